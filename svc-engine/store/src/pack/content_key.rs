//! What identifies a content: its hash, and which calls share it.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sha2::{Digest as _, Sha256};

use super::packing::Packed;

/// The first 20 bytes of the SHA-256 of a content.
pub(crate) type ContentHash = [u8; 20];

/// The first 16 bytes of the SHA-256 of a Session's id.
pub(crate) type SessionKey = [u8; 16];

/// A map by hashes or keys of contents and Sessions. Its own hash need not be a careful one.
pub(crate) type ByHash<K, V> = HashMap<K, V, RandomState>;

/// Which calls share a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All calls: it is what every Session of an agent sends, such as a system prompt, tool
    /// definitions or a price table.
    Global,
    /// The calls of its Session, which repeat it.
    Session,
}

/// The key of a content: its hash, and its Session unless all calls may share it.
///
/// Only shared contents are indexed. A Session's contents are found through its calls
/// (`write::recall`), so storing a call of a new Session touches no index page for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ContentKey {
    pub(crate) session: Option<SessionKey>,
    pub(crate) hash: ContentHash,
}

/// Returns whether a content has this hash.
pub(crate) fn is_of(hash: &[u8], bytes: &[u8]) -> bool {
    hash == hash_of(bytes)
}

/// Returns the hash of a content.
pub(crate) fn hash_of(bytes: &[u8]) -> ContentHash {
    let mut hash = ContentHash::default();
    hash.copy_from_slice(&Sha256::digest(bytes)[..20]);
    hash
}

/// Returns the key of a Session.
pub(crate) fn session_key(session_id: &str) -> SessionKey {
    let mut key = SessionKey::default();
    key.copy_from_slice(&Sha256::digest(session_id.as_bytes())[..16]);
    key
}

/// One content of a call that is to be stored.
#[derive(Debug)]
pub(crate) enum ContentRef {
    /// It is stored under this id.
    Known(i64),
    /// It may not be stored yet.
    New(Box<NewContent>),
}

/// A content that may not be stored yet.
#[derive(Debug)]
pub(crate) struct NewContent {
    pub(crate) key: ContentKey,
    pub(crate) packed: Packed,
}
