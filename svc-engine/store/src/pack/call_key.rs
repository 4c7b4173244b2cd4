//! The stored form of what identifies a call.

use sha2::{Digest as _, Sha256};
use svc_engine_fact::{CallKey, CallKeyKind};
use svc_model::id::OrgId;

/// The first 16 bytes of the SHA-256 of an organization and a key.
pub(crate) type KeyHash = [u8; 16];

/// A key as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StoredKey {
    pub(crate) kind: CallKeyKind,
    pub(crate) hash: KeyHash,
}

/// The bytes of a key in a list of keys.
const LISTED_BYTES: usize = 17;

impl StoredKey {
    pub(crate) fn of(org_id: &OrgId, key: &CallKey) -> Self {
        let org_id = org_id.as_str();
        // The length tells where the organization ends.
        let text = format!("{}:{org_id}{key}", org_id.len());
        let mut hash = KeyHash::default();
        hash.copy_from_slice(&Sha256::digest(text.as_bytes())[..16]);
        let kind = key.kind;
        Self { kind, hash }
    }
}

/// Returns the letter of a kind of key. Letters are for ever.
pub(crate) const fn letter(kind: CallKeyKind) -> &'static str {
    match kind {
        CallKeyKind::Response => "r",
        CallKeyKind::Request => "q",
        CallKeyKind::ClientRequest => "c",
        CallKeyKind::Span => "s",
        CallKeyKind::Event => "e",
        CallKeyKind::Client => "a",
    }
}

/// Returns the kind of key with this letter.
pub(crate) fn kind_of_letter(given: &str) -> Option<CallKeyKind> {
    let mut all = CallKeyKind::ALL.into_iter();
    all.find(|kind| letter(*kind) == given)
}

/// Writes a list of keys.
pub(crate) fn write_list(keys: &[StoredKey]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(keys.len() * LISTED_BYTES);
    for key in keys {
        bytes.extend_from_slice(letter(key.kind).as_bytes());
        bytes.extend_from_slice(&key.hash);
    }
    bytes
}

/// Reads a list of keys; `None` if it cannot have been written.
pub(crate) fn read_list(bytes: &[u8]) -> Option<Vec<StoredKey>> {
    let keys = bytes.chunks(LISTED_BYTES).map(|listed| {
        let (letter, hash) = listed.split_at_checked(1)?;
        Some(StoredKey {
            kind: kind_of_letter(str::from_utf8(letter).ok()?)?,
            hash: hash.try_into().ok()?,
        })
    });
    keys.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_keys_is_read_back() {
        let org_id = OrgId::new("acme").unwrap();
        let keys = CallKeyKind::ALL.map(|kind| StoredKey::of(&org_id, &CallKey::new(kind, "x")));
        let bytes = write_list(&keys);
        assert_eq!(read_list(&bytes).unwrap(), keys);
        assert_eq!(read_list(b"").unwrap(), []);
        for damaged in [&bytes[1..], &bytes[..5], b"x0123456789abcdef"] {
            assert_eq!(read_list(damaged), None);
        }
    }

    #[test]
    fn keys_of_other_organizations_and_kinds_are_others() {
        let key = |org_id, kind, id: &str| {
            StoredKey::of(&OrgId::new(org_id).unwrap(), &CallKey::new(kind, id)).hash
        };
        let hash = key("acme", CallKeyKind::Response, "1");
        assert_eq!(key("acme", CallKeyKind::Response, "1"), hash);
        assert_ne!(key("acme2", CallKeyKind::Response, "1"), hash);
        assert_ne!(key("acme", CallKeyKind::Request, "1"), hash);
        assert_ne!(key("acme", CallKeyKind::Response, "2"), hash);
    }
}
