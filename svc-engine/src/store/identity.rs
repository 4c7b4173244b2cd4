//! The hash that stands for what identifies a fact, where that is longer than an index takes.

use sha2::{Digest as _, Sha256};

use super::value::Value;

/// Bytes of the hash that are kept: two facts that share them by chance are not to be expected.
const BYTES: usize = 16;

/// Returns the hash of a list of members. No two lists are written alike.
pub(super) fn of(members: &[&[u8]]) -> Value<'static> {
    let mut hash = Sha256::new();
    for member in members {
        hash.update((member.len() as u64).to_be_bytes());
        hash.update(member);
    }
    Value::OwnBlob(hash.finalize()[..BYTES].to_vec())
}
