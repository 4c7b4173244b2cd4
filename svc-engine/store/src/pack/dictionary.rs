//! Dictionaries for compression, with what agents' payloads have in common.
//!
//! A message or a skeleton is too short for zstd to find much repetition in it. A dictionary is
//! trained on sample payloads with
//! `cargo run --bin dictionary -- train 2` in `benchmarks`, which writes
//! `svc-engine/src/store/dictionary/2.zdict`. Stored bytes name the dictionary that they need, so a
//! released dictionary is never changed or removed: a better one is added, and used from then on.

use std::sync::LazyLock;

use zstd::dict::{DecoderDictionary, EncoderDictionary};

/// The dictionaries; the number of each is its index plus one.
const DICTIONARIES: [&[u8]; 1] = [include_bytes!("dictionary/1.zdict")];

/// Higher levels save little on short texts and cost several times as much.
const LEVEL: i32 = 3;

/// The number of the dictionary for writing.
pub(crate) const CURRENT: u8 = 1;

static ENCODER: LazyLock<Option<EncoderDictionary<'static>>> = LazyLock::new(|| {
    let dictionary = DICTIONARIES.last()?;
    EncoderDictionary::try_copy(dictionary, LEVEL).ok()
});

static DECODERS: LazyLock<Vec<Option<DecoderDictionary<'static>>>> = LazyLock::new(|| {
    let decoder = |dictionary| DecoderDictionary::try_copy(dictionary).ok();
    DICTIONARIES.into_iter().map(decoder).collect()
});

/// Returns the current dictionary, ready for compression.
pub(crate) fn encoder() -> Option<&'static EncoderDictionary<'static>> {
    ENCODER.as_ref()
}

/// Returns the dictionary of this number, ready for decompression.
pub(crate) fn decoder(number: u8) -> Option<&'static DecoderDictionary<'static>> {
    let place = usize::from(number.checked_sub(1)?);
    DECODERS.get(place)?.as_ref()
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;

    /// Stored bytes can only be read with unchanged dictionaries.
    #[test]
    fn no_published_dictionary_has_changed() {
        let digest = |dictionary: &[u8]| {
            let digest = Sha256::digest(dictionary);
            digest.first_chunk().copied().map(u128::from_be_bytes)
        };
        assert_eq!(
            DICTIONARIES.map(digest),
            [Some(0x6f86_65ee_8635_6f09_8f28_8279_1ef7_5b57)]
        );
    }

    #[test]
    fn every_dictionary_can_be_loaded() {
        assert!(encoder().is_some());
        assert_eq!(usize::from(CURRENT), DICTIONARIES.len());
        for number in 1..=CURRENT {
            assert!(decoder(number).is_some(), "{number}");
        }
        assert!(decoder(0).is_none() && decoder(CURRENT + 1).is_none());
    }
}
