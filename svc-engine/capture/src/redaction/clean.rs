use std::fmt;

use quick_cache::sync::Cache;
use sha2::{Digest as _, Sha256};

/// The shortest text that is remembered, in bytes. Searching a shorter one again costs less than
/// remembering it.
const TEXT_BYTES_MIN: usize = 192;
/// The number of texts that are remembered, at about 50 bytes each.
const TEXTS_MAX: usize = 100_000;

/// Half of a text's SHA-256, which stands for the text: nobody can find another text with the same
/// half.
pub(super) type Digest = [u8; 16];

/// The latest texts in which no credential was found.
///
/// An agent sends its whole history again with every call. A text that was clean once stays clean,
/// because what is searched for does not change while the process runs.
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
    /// Returns the digest by which a text is remembered, or `None` for a short text.
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
