//! A hash in place of an identity that is too long for an index.

use sha2::{Digest as _, Sha256};

use crate::sql::value::Value;

/// Bytes of the hash: enough that no two identities share one by chance.
const BYTES: usize = 16;

/// Returns the hash of a list of members. The lengths are hashed too, so different lists are
/// different input.
pub(crate) fn of(members: &[&[u8]]) -> Value<'static> {
    let mut hash = Sha256::new();
    for member in members {
        hash.update((member.len() as u64).to_be_bytes());
        hash.update(member);
    }
    Value::OwnBlob(hash.finalize()[..BYTES].to_vec())
}
