use std::collections::BTreeSet;
use std::fmt;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use super::MARKER;
use super::clean::CleanTexts;

/// The number of bytes of a text that are looked up at once.
const PIECE: usize = 4;

/// The secrets of the service itself, which are redacted wherever they occur.
///
/// They are recognised by value and need no name or prefix. They are also found as JSON and URLs
/// spell them. Clones share the same secrets, and no value is ever shown.
#[derive(Clone, Default)]
pub struct Secrets {
    index: Option<Arc<Index>>,
    /// The texts that contain neither one of these secrets nor any other credential.
    clean: Option<Arc<CleanTexts>>,
}

/// An index of the first pieces of every secret. Wherever a secret occurs, one of these pieces
/// stands at a multiple of the stride. So only those places are looked at, and a bit table rules
/// nearly all of them out.
struct Index {
    secrets: Vec<Box<[u8]>>,
    stride: usize,
    /// The pieces, each with its secret and its offset in the secret, sorted.
    pieces: Vec<(u32, usize, usize)>,
    bits: Box<[u64]>,
}

impl Secrets {
    /// The shortest secret that is searched for, in bytes. A shorter one may be a word, and
    /// removing it everywhere would destroy evidence.
    pub const BYTES_MIN: usize = 8;

    /// Creates an index of these secrets, without those that are too short.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let written = secrets
            .into_iter()
            .filter(|secret| secret.len() >= Self::BYTES_MIN)
            .flat_map(|secret| [secret.to_owned(), in_json(secret), in_url(secret)])
            // A secret that is part of the marker would be found again in its own replacement.
            .filter(|secret| !MARKER.contains(secret.as_str()));
        let secrets: BTreeSet<String> = written.collect();
        let secrets: Vec<Box<[u8]>> = secrets
            .into_iter()
            .map(|secret| secret.into_bytes().into())
            .collect();
        Self {
            index: (!secrets.is_empty()).then(|| Arc::new(Index::new(secrets))),
            clean: Some(Arc::default()),
        }
    }

    /// Returns where secrets occur in a text, in order and without overlaps.
    pub(super) fn places(&self, text: &[u8]) -> Vec<Range<usize>> {
        self.index
            .as_ref()
            .map_or_else(Vec::new, |index| index.places(text))
    }
}

impl Secrets {
    /// Returns the record of texts that were clean.
    pub(super) fn clean_texts(&self) -> Option<&CleanTexts> {
        self.clean.as_deref()
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets([REDACTED])")
    }
}

impl Index {
    fn new(secrets: Vec<Box<[u8]>>) -> Self {
        const STRIDE_MAX: usize = 32;
        const BITS_PER_PIECE: usize = 32;
        let shortest = secrets.iter().map(|secret| secret.len()).min().unwrap_or(0);
        let stride = (shortest + 1).saturating_sub(PIECE).clamp(1, STRIDE_MAX);
        let mut pieces = Vec::new();
        for (number, secret) in secrets.iter().enumerate() {
            for (offset, piece) in secret.array_windows().take(stride).enumerate() {
                pieces.push((u32::from_le_bytes(*piece), number, offset));
            }
        }
        pieces.sort_unstable();
        let words = (pieces.len() * BITS_PER_PIECE).next_power_of_two() / 64;
        let mut index = Self {
            secrets,
            stride,
            bits: vec![0; words.max(1)].into(),
            pieces: Vec::new(),
        };
        for (piece, ..) in &pieces {
            let (word, bit) = index.bit(*piece);
            index.bits[word] |= bit;
        }
        index.pieces = pieces;
        index
    }

    fn bit(&self, piece: u32) -> (usize, u64) {
        // The high bits of the product depend on all bits of the piece.
        let mixed = u64::from(piece).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let word = usize::try_from(mixed >> 40).unwrap_or(0) & (self.bits.len() - 1);
        (word, 1 << (mixed >> 34 & 63))
    }

    fn places(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut places: Vec<Range<usize>> = Vec::new();
        for place in (0..text.len()).step_by(self.stride) {
            let Some(piece) = text[place..].first_chunk() else {
                break;
            };
            let piece = u32::from_le_bytes(*piece);
            let (word, bit) = self.bit(piece);
            if self.bits[word] & bit == 0 {
                continue;
            }
            let first = self.pieces.partition_point(|(known, ..)| *known < piece);
            for (known, number, offset) in &self.pieces[first..] {
                if *known != piece {
                    break;
                }
                let secret = &self.secrets[*number];
                if let Some(start) = place.checked_sub(*offset)
                    && text[start..].starts_with(secret)
                {
                    places.push(start..start + secret.len());
                }
            }
        }
        places.sort_unstable_by_key(|place| (place.start, place.end));
        let mut apart: Vec<Range<usize>> = Vec::new();
        for place in places {
            match apart.last_mut() {
                Some(last) if place.start < last.end => last.end = last.end.max(place.end),
                _ => apart.push(place),
            }
        }
        apart
    }
}

fn in_json(secret: &str) -> String {
    secret.replace('\\', "\\\\").replace('"', "\\\"")
}

fn in_url(secret: &str) -> String {
    let mut written = String::with_capacity(secret.len());
    for byte in secret.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            written.push(char::from(byte));
        } else {
            // Writing to a string never fails.
            _ = write!(written, "%{byte:02X}");
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'t>(secrets: &[&str], text: &'t str) -> Vec<&'t str> {
        let secrets = Secrets::new(secrets.iter().copied());
        let places = secrets.places(text.as_bytes());
        places.into_iter().map(|place| &text[place]).collect()
    }

    #[test]
    fn a_secret_is_found_at_every_offset() {
        let secrets = [
            "operator-operator-operator",
            "ingest/ingest+ingest=ingest",
            "a-rather-long-webhook-secret-of-more-than-forty-bytes",
            "eightby8",
        ];
        for chosen in [&secrets[..], &secrets[..3], &secrets[2..3], &secrets[3..]] {
            for secret in chosen {
                for before in 0..70 {
                    for after in [0, 1, 40] {
                        let text = format!("{}{secret}{}", ".".repeat(before), ".".repeat(after));
                        assert_eq!(found(chosen, &text), [*secret], "{before} before");
                        let cut = &text[..before + secret.len() - 1];
                        assert_eq!(found(chosen, cut), [""; 0], "{cut}");
                    }
                }
            }
        }
    }

    #[test]
    fn secrets_that_touch_or_overlap_are_found() {
        let secrets = ["aaaaaaaaaaaa", "aaaaaaaabbbb"];
        assert_eq!(found(&secrets, "aaaaaaaaaaaabbbb"), ["aaaaaaaaaaaabbbb"]);
        assert_eq!(
            found(&secrets, "xaaaaaaaabbbbaaaaaaaabbbbx"),
            ["aaaaaaaabbbb"; 2]
        );
    }

    #[test]
    fn a_secret_is_found_in_json_and_url_encoding() {
        let secret = "p\"a\\ss w\u{f6}rd/1";
        let text = r#"{"a":"p\"a\\ss wörd/1"} ?a=p%22a%5Css%20w%C3%B6rd%2F1&b"#;
        let expected = [r#"p\"a\\ss wörd/1"#, "p%22a%5Css%20w%C3%B6rd%2F1"];
        assert_eq!(found(&[secret], text), expected);
    }

    #[test]
    fn short_secrets_and_parts_of_the_marker_are_not_searched_for() {
        assert_eq!(found(&["seven77"], "seven77"), [""; 0]);
        assert_eq!(found(&["REDACTED"], "REDACTED"), [""; 0]);
        assert_eq!(found(&[], "anything"), [""; 0]);
    }

    #[test]
    fn the_debug_form_shows_no_secret() {
        let shown = format!("{:?}", Secrets::new(["operator-operator"]));
        assert_eq!(shown, "Secrets([REDACTED])");
    }
}
