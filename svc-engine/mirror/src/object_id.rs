use std::fmt;

use svc_model::repository::CommitSha;

/// The id of a git object, SHA-1 or SHA-256. It is small, because many may be kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    length: u8,
    bytes: [u8; 32],
}

impl ObjectId {
    /// Parses lower-case hexadecimal digits.
    pub(super) fn parse(digits: &[u8]) -> Option<Self> {
        if !matches!(digits.len(), 40 | 64) {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self {
            length: if digits.len() == 40 { 20 } else { 32 },
            bytes,
        })
    }

    /// Returns the id of a commit.
    ///
    /// # Panics
    ///
    /// Never: a commit id has 40 or 64 digits.
    pub fn of(commit: &CommitSha) -> Self {
        Self::parse(commit.as_str().as_bytes()).expect("a commit id is 40 or 64 digits")
    }

    /// Returns the id with these bytes.
    pub(super) fn of_bytes(raw: &[u8]) -> Option<Self> {
        let length = u8::try_from(raw.len()).ok()?;
        let mut bytes = [0; 32];
        matches!(length, 20 | 32).then(|| bytes[..raw.len()].copy_from_slice(raw))?;
        Some(Self { length, bytes })
    }

    /// Returns the bytes of the id.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Returns git's name for the hash algorithm of the id.
    pub(super) const fn format(self) -> &'static str {
        if self.length == 20 { "sha1" } else { "sha256" }
    }

    /// Returns the id as a commit id.
    pub(super) fn commit(self) -> CommitSha {
        CommitSha::new(&self.to_string()).expect("an object id is 40 or 64 digits")
    }
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut digits = [0; 64];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.bytes()) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        let digits = &digits[..2 * self.bytes().len()];
        f.write_str(str::from_utf8(digits).unwrap_or_default())
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_id_is_its_hexadecimal_digits() {
        for text in ["0123456789abcdef".repeat(4), "a0".repeat(20)] {
            let id = ObjectId::parse(text.as_bytes()).unwrap();
            assert_eq!(id.to_string(), text);
            assert_eq!(ObjectId::of(&id.commit()), id);
        }
        for wrong in ["", "ab", &"A".repeat(40), &"g".repeat(40), &"a".repeat(41)] {
            assert_eq!(ObjectId::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
