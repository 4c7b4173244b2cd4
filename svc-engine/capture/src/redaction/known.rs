//! Credentials that are known by value and so are found again where nothing else gives them away.

use std::collections::HashSet;
use std::ops::Range;

use super::cursor::is_blank;
use super::header::without_bearer;
use super::looks::is_reference;
use super::rewrite::is_marked;

/// The shortest known value that is searched for between quotes. A shorter one might be
/// punctuation.
const QUOTED_BYTES_MIN: usize = 4;

/// Values that stood under the name of a credential.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownSecrets(HashSet<Box<[u8]>>);

impl KnownSecrets {
    pub(super) fn add(&mut self, value: &[u8]) {
        let value = without_bearer(value);
        let blank = value.iter().all(|byte| is_blank(*byte));
        if !blank && !is_marked(value) && !is_reference(value) {
            self.0.insert(value.into());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the lines of a text that consist of a known value.
    pub(super) fn lines(&self, text: &[u8]) -> Vec<Range<usize>> {
        if self.0.contains(text) {
            return std::iter::once(0..text.len()).collect();
        }
        let mut places = Vec::new();
        let mut start = 0;
        for line in text.split(|byte| *byte == b'\n') {
            let content = line.strip_suffix(b"\r").unwrap_or(line);
            if self.0.contains(content) {
                places.push(start..start + content.len());
            }
            start += line.len() + 1;
        }
        places
    }

    /// Returns the known values between quotes in a text that is itself JSON.
    pub(super) fn quoted(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        if !matches!(text.trim_ascii(), [b'{', .., b'}'] | [b'[', .., b']']) {
            return places;
        }
        let mut start = 0;
        for piece in text.split(|byte| *byte == b'"') {
            let escapes = piece
                .iter()
                .rev()
                .take_while(|byte| **byte == b'\\')
                .count();
            let content = &piece[..piece.len() - escapes];
            if content.len() >= QUOTED_BYTES_MIN && self.0.contains(content) {
                places.push(start..start + content.len());
            }
            start += piece.len() + 1;
        }
        places
    }
}
