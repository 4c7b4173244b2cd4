use std::fmt;

use quick_cache::sync::Cache;
use sha2::{Digest as _, Sha256};

/// The shortest text that is remembered, in bytes: a shorter one is gone through in less time than is
/// saved.
const TEXT_BYTES_MIN: usize = 192;
/// Texts that are remembered, at some 50 bytes each.
const TEXTS_MAX: usize = 100_000;

/// A text, by half of its SHA-256: nobody finds another text with the same.
pub(super) type Digest = [u8; 16];

/// The texts in which no credential was found, the latest ones.
///
/// An agent sends its whole history again with every call, and what was clean once is clean again:
/// what is looked for stays the same as long as the process runs.
pub(super) struct CleanTexts(Cache<Digest, ()>);

impl Default for CleanTexts {
    fn default() -> Self {
        Self(Cache::new(TEXTS_MAX))
    }
}

impl fmt::Debug for CleanTexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CleanTexts")
    }
}

impl CleanTexts {
    /// Returns under what a text is remembered; nothing for a short one.
    pub(super) fn digest(text: &[u8]) -> Option<Digest> {
        if text.len() < TEXT_BYTES_MIN {
            return None;
        }
        Sha256::digest(text).first_chunk().copied()
    }

    pub(super) fn has(&self, digest: &Digest) -> bool {
        self.0.get(digest).is_some()
    }

    pub(super) fn remember(&self, digest: Digest) {
        self.0.insert(digest, ());
    }
}
