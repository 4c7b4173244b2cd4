//! Processes strings eight bytes at a time.
//!
//! The eight bytes of a word are its lanes. A test leaves its answer in the high bit of each lane,
//! and must not carry from one lane into the next.

use std::ops::Range;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = ONES * 0x80;

/// Up to eight bytes of a string. Lanes beyond its length are zero.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Word {
    lanes: u64,
    len: u32,
}

impl Word {
    /// Splits the first word off the bytes, if there are any.
    #[inline]
    pub(super) fn split_off(bytes: &[u8]) -> Option<(Self, &[u8])> {
        if let Some((lanes, after)) = bytes.split_first_chunk() {
            return Some((
                Self {
                    lanes: u64::from_le_bytes(*lanes),
                    len: 8,
                },
                after,
            ));
        }
        let mut word = Self { lanes: 0, len: 0 };
        for &byte in bytes {
            word.lanes |= u64::from(byte) << (8 * word.len);
            word.len += 1;
        }
        (word.len > 0).then_some((word, &[]))
    }

    pub(super) fn len(self) -> u32 {
        self.len
    }

    /// Returns the byte at a place below the length.
    pub(super) fn byte(self, at: u32) -> u8 {
        self.lanes.to_le_bytes()[at as usize]
    }

    /// Returns the length of the leading run that a JSON string may contain unescaped: no quote, no
    /// backslash, no control character.
    pub(super) fn unescaped(self) -> u32 {
        first(self.special()).min(self.len)
    }

    /// Returns all eight bytes, if the canonical form writes each of them unchanged: printable
    /// ASCII, no quote and no backslash.
    pub(super) fn verbatim(self) -> Option<[u8; 8]> {
        // A shorter word has a NUL, which is marked.
        (self.escaped() == 0).then(|| self.lanes.to_le_bytes())
    }

    /// Returns the places of the bytes that the canonical form does not write unchanged.
    pub(super) fn escaped_places(self) -> impl Iterator<Item = u32> {
        let mut marks = self.escaped();
        std::iter::from_fn(move || {
            let at = first(marks);
            marks &= marks.wrapping_sub(1);
            (at < self.len).then_some(at)
        })
    }

    /// Appends a range of the bytes. It copies the whole word and removes the excess, which is
    /// cheaper than copying a slice of variable length.
    pub(super) fn push(self, range: Range<u32>, out: &mut Vec<u8>) {
        let end = out.len() + range.len();
        out.extend_from_slice(&self.lanes.unbounded_shr(8 * range.start).to_le_bytes());
        out.truncate(end);
    }

    /// Marks every byte that is not printable ASCII, and quote and backslash.
    const fn escaped(self) -> u64 {
        let del = (self.lanes & !HIGHS) + ONES;
        self.special() | (del | self.lanes) & HIGHS
    }

    /// Marks quote, backslash and control characters.
    const fn special(self) -> u64 {
        let ascii = self.lanes & !HIGHS;
        // Flipping this bit exchanges the quote and the blank, so the quote follows the control
        // characters.
        let above_control_and_quote = (ascii ^ (ONES * 0x02)) + ONES * (0x80 - 0x21);
        let not_backslash = (ascii ^ (ONES * 0x5c)) + ONES * 0x7f;
        !(above_control_and_quote & not_backslash | self.lanes) & HIGHS
    }
}

/// Returns the place of the first mark; 8 if there is none.
const fn first(marks: u64) -> u32 {
    marks.trailing_zeros() / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(bytes: &[u8]) -> Word {
        let (word, after) = Word::split_off(bytes).unwrap();
        assert!(after.is_empty());
        word
    }

    #[test]
    fn words_are_split_off_up_to_the_last_byte() {
        assert_eq!(Word::split_off(b""), None);
        let (first, after) = Word::split_off(b"abcdefghij").unwrap();
        assert_eq!(
            (first.len(), first.byte(0), first.byte(7), after),
            (8, b'a', b'h', &b"ij"[..])
        );
        let (last, after) = Word::split_off(after).unwrap();
        assert_eq!(
            (last.len(), last.byte(0), last.byte(1), after),
            (2, b'i', b'j', &b""[..])
        );
    }

    #[test]
    fn ranges_of_a_word_are_appended() {
        for len in 1..=8 {
            let bytes = &b"abcdefgh"[..len as usize];
            for start in 0..=len {
                for end in start..=len {
                    let mut out = b"before".to_vec();
                    word(bytes).push(start..end, &mut out);
                    assert_eq!(out[6..], bytes[start as usize..end as usize]);
                }
            }
        }
    }

    #[test]
    fn every_pair_of_adjacent_bytes_is_classified() {
        for pair in 0..=u16::MAX {
            let [low, high] = pair.to_le_bytes();
            let bytes = [b'a', low, high, b'b', high, low, b'c', low];
            for bytes in [&bytes[..], &bytes[..3], &bytes[..6]] {
                let word = word(bytes);
                let special = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
                let run = bytes.iter().take_while(|byte| !special(**byte)).count();
                assert_eq!(word.unescaped() as usize, run);
                let escaped =
                    (0..word.len()).filter(|&at| special(word.byte(at)) || word.byte(at) > b'~');
                assert!(word.escaped_places().eq(escaped), "{bytes:x?}");
                let verbatim = word.len() == 8 && word.escaped_places().next().is_none();
                assert_eq!(word.verbatim().is_some(), verbatim, "{bytes:x?}");
            }
        }
    }
}
