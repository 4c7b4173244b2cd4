//! Strings of generalised UTF-8.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use super::compact::Compact;
use super::escape;
use super::word::Word;

/// A string as JSON can spell it: Unicode text that may contain NUL and lone surrogates.
///
/// The bytes are UTF-8, generalised to surrogates: a lone surrogate takes the three bytes that the
/// scheme of UTF-8 would give it, and two surrogates that form a pair are always stored as the one
/// character that they spell. So the order of bytes is the order of code points.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Text(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    /// A text without a surrogate.
    Whole(Compact),
    /// A text with at least one surrogate.
    Broken(Box<[u8]>),
}

impl Text {
    /// Returns the text with these bytes, if they are well-formed generalised UTF-8, as
    /// [`Text::as_bytes`] returns it. Two halves of a surrogate pair are not well-formed.
    pub fn from_wtf8(bytes: Vec<u8>) -> Option<Self> {
        match String::from_utf8(bytes) {
            Ok(string) => Some(string.into()),
            Err(error) => {
                let bytes = error.into_bytes();
                is_wtf8(&bytes).then(|| Self(Repr::Broken(bytes.into())))
            }
        }
    }

    /// Returns the generalised UTF-8.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Whole(string) => string.as_bytes(),
            Repr::Broken(bytes) => bytes,
        }
    }

    /// Returns the text as an ordinary string; `None` if it contains a surrogate.
    pub fn as_str(&self) -> Option<&str> {
        match &self.0 {
            Repr::Whole(string) => Some(string.as_str()),
            Repr::Broken(_) => None,
        }
    }

    /// Converts the text into an ordinary string; returns it unchanged if it contains a surrogate.
    pub fn into_string(self) -> Result<String, Self> {
        match self.0 {
            Repr::Whole(string) => Ok(string.into()),
            broken @ Repr::Broken(_) => Err(Self(broken)),
        }
    }

    /// Returns the text with U+FFFD in place of each surrogate.
    pub fn to_string_lossy(&self) -> Cow<'_, str> {
        let mut rest = match &self.0 {
            Repr::Whole(string) => return Cow::Borrowed(string.as_str()),
            Repr::Broken(bytes) => &**bytes,
        };
        let mut string = String::with_capacity(rest.len());
        while let (whole, Some(after)) = split_surrogate(rest) {
            string.push_str(whole);
            string.push(char::REPLACEMENT_CHARACTER);
            rest = after;
        }
        string.push_str(split_surrogate(rest).0);
        Cow::Owned(string)
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.as_bytes().len()
    }

    /// Returns whether the text has no characters.
    pub fn is_empty(&self) -> bool {
        self.as_bytes().is_empty()
    }

    /// Returns whether the text has only blanks, as [`Text::trimmed`] defines them, or nothing.
    pub fn is_blank(&self) -> bool {
        self.as_str()
            .is_some_and(|string| string.chars().all(is_blank))
    }

    /// Returns whether the text contains a surrogate.
    pub fn has_surrogate(&self) -> bool {
        matches!(self.0, Repr::Broken(_))
    }

    /// Returns whether the text contains U+0000.
    pub fn has_nul(&self) -> bool {
        self.as_bytes().contains(&0)
    }

    /// Returns the text without the blanks at both ends: Unicode white space and U+001C to U+001F.
    #[must_use]
    pub fn trimmed(&self) -> Self {
        match &self.0 {
            Repr::Whole(string) => {
                let string = string.as_str();
                let trimmed = string.trim_matches(is_blank);
                if trimmed.len() == string.len() {
                    self.clone()
                } else {
                    trimmed.into()
                }
            }
            Repr::Broken(bytes) => {
                // Surrogates are not blanks, so blanks can only be trimmed before the first
                // surrogate and after the last.
                let (head, _) = split_surrogate(bytes);
                let start = head.len() - head.trim_start_matches(is_blank).len();
                let tail = after_last_surrogate(bytes);
                let end = bytes.len() - (tail.len() - tail.trim_end_matches(is_blank).len());
                Self(Repr::Broken(bytes[start..end].into()))
            }
        }
    }

    /// Returns the number of bytes of the text as a canonical JSON string. It may be six times that
    /// of the text.
    pub fn escaped_len(&self) -> usize {
        escape::string_len(self.as_bytes())
    }

    /// Appends the text as a canonical JSON string: ASCII, escaped, in quotes.
    pub fn write_escaped(&self, out: &mut Vec<u8>) {
        escape::string(self.as_bytes(), out);
    }
}

impl Default for Text {
    fn default() -> Self {
        "".into()
    }
}

impl From<&str> for Text {
    fn from(string: &str) -> Self {
        Self(Repr::Whole(string.into()))
    }
}

impl From<String> for Text {
    fn from(string: String) -> Self {
        Self(Repr::Whole(string.into()))
    }
}

impl From<&Self> for Text {
    fn from(text: &Self) -> Self {
        text.clone()
    }
}

impl From<&String> for Text {
    fn from(string: &String) -> Self {
        string.as_str().into()
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The canonical JSON string.
/// Writes the text as people read it, with U+FFFD in place of each surrogate. Whoever needs the exact
/// text uses [`Text::as_str`] or [`Text::write_escaped`]. Control characters are written as they are.
impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_string_lossy())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut escaped = Vec::with_capacity(self.len() + 2);
        self.write_escaped(&mut escaped);
        f.write_str(&String::from_utf8_lossy(&escaped))
    }
}

/// How many bytes are reserved before the length of a text is known.
const ROOM_MAX: usize = 16 * 1024;

/// A text that is being built, one run or character after another.
#[derive(Default)]
pub(super) struct TextBuilder {
    bytes: Vec<u8>,
    surrogates: bool,
}

impl TextBuilder {
    /// Reserves room for a text of this many bytes, or for its beginning. Later, the room grows as
    /// needed.
    pub(super) fn make_room(&mut self, bytes: usize) {
        self.bytes.reserve(bytes.min(ROOM_MAX));
    }

    pub(super) fn push_str(&mut self, run: &str) {
        self.bytes.extend_from_slice(run.as_bytes());
    }

    /// Appends the beginning of `rest`, up to a quote, a backslash or a control character, and
    /// returns its length.
    pub(super) fn push_run(&mut self, rest: &[u8]) -> usize {
        let start = self.bytes.len();
        let mut rest = rest;
        while let Some((word, after)) = Word::split_off(rest) {
            let run = word.unescaped();
            word.push(0..run, &mut self.bytes);
            if run < word.len() {
                break;
            }
            rest = after;
        }
        self.bytes.len() - start
    }

    pub(super) fn push_ascii(&mut self, byte: u8) {
        debug_assert!(byte.is_ascii());
        self.bytes.push(byte);
    }

    pub(super) fn push_char(&mut self, char: char) {
        self.bytes
            .extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
    }

    /// Appends a lone surrogate. The caller has already joined those that form a pair.
    pub(super) fn push_surrogate(&mut self, unit: u16) {
        debug_assert!((0xd800..0xe000).contains(&unit));
        let [high, low] = unit.to_be_bytes();
        self.bytes.extend([
            0xe0 | high >> 4,
            0x80 | (high & 0xf) << 2 | low >> 6,
            0x80 | low & 0x3f,
        ]);
        self.surrogates = true;
    }

    /// Returns the number of bytes so far.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the text so far. The builder is then empty and keeps its room.
    pub(super) fn finish(&mut self) -> Text {
        let text = if self.surrogates {
            Text(Repr::Broken(self.bytes.as_slice().into()))
        } else {
            str::from_utf8(&self.bytes)
                .expect("without a surrogate, only whole characters were pushed")
                .into()
        };
        self.bytes.clear();
        self.surrogates = false;
        text
    }
}

/// Returns the surrogate that `bytes`, in generalised UTF-8, begin with.
pub(super) fn leading_surrogate(bytes: &[u8]) -> Option<u16> {
    match *bytes {
        [0xed, middle @ 0xa0..=0xbf, last @ 0x80..=0xbf, ..] => {
            Some(0xd000 | u16::from(middle & 0x3f) << 6 | u16::from(last & 0x3f))
        }
        _ => None,
    }
}

/// The number of bytes that a surrogate takes.
pub(super) const SURROGATE_LEN: usize = 3;

/// Returns the text before the first surrogate, and the bytes after that surrogate, if there is
/// one.
fn split_surrogate(bytes: &[u8]) -> (&str, Option<&[u8]>) {
    match str::from_utf8(bytes) {
        Ok(whole) => (whole, None),
        Err(error) => {
            let (whole, rest) = bytes.split_at(error.valid_up_to());
            let whole = str::from_utf8(whole).expect("it was valid up to here");
            (whole, rest.get(SURROGATE_LEN..))
        }
    }
}

fn after_last_surrogate(bytes: &[u8]) -> &str {
    let last = (0..bytes.len())
        .rev()
        .find(|&at| leading_surrogate(&bytes[at..]).is_some());
    let tail = last.map_or(bytes, |at| &bytes[at + SURROGATE_LEN..]);
    str::from_utf8(tail).expect("text without a surrogate is UTF-8")
}

/// Returns whether `bytes` are UTF-8 except for lone surrogates, no two of which form a pair.
fn is_wtf8(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    let mut after_high = false;
    while let Err(error) = str::from_utf8(rest) {
        rest = &rest[error.valid_up_to()..];
        let Some(unit) = leading_surrogate(rest) else {
            return false;
        };
        let low = unit >= 0xdc00;
        if low && after_high && error.valid_up_to() == 0 {
            return false;
        }
        after_high = !low;
        rest = &rest[SURROGATE_LEN..];
    }
    true
}

fn is_blank(char: char) -> bool {
    char.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&char)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text of UTF-16 units, by parsing it.
    fn text(units: &[u16]) -> Text {
        let escapes: Vec<_> = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
        let document = format!("\"{}\"", escapes.concat());
        let json = crate::json::Json::parse(document.as_bytes()).unwrap();
        json.into_text().unwrap()
    }

    fn escaped(text: &Text) -> String {
        let mut out = Vec::new();
        text.write_escaped(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_lone_surrogate_needs_three_bytes() {
        let lone = text(&[0x61, 0xd83d, 0x62]);
        assert_eq!(lone.as_bytes(), b"a\xed\xa0\xbdb");
        assert_eq!(lone.as_str(), None);
        assert!(lone.has_surrogate());
        assert_eq!(lone.to_string_lossy(), "a\u{fffd}b");
        assert_eq!(format!("{lone:>4}"), " a\u{fffd}b");
        assert_eq!(lone.clone().into_string(), Err(lone.clone()));
        assert_eq!(escaped(&lone), r#""a\ud83db""#);
        assert_eq!(format!("{lone:?}"), escaped(&lone));
    }

    #[test]
    fn surrogates_in_the_wrong_order_stay_apart() {
        let swapped = text(&[0xde42, 0xd83d]);
        assert_eq!(escaped(&swapped), r#""\ude42\ud83d""#);
        assert_eq!(swapped.to_string_lossy(), "\u{fffd}\u{fffd}");
        let pair = text(&[0xd83d, 0xde42]);
        assert_eq!(pair, "🙂");
        assert_eq!(escaped(&pair), r#""\ud83d\ude42""#);
    }

    #[test]
    fn only_well_formed_bytes_make_a_text() {
        for whole in [
            "",
            "a\0b",
            "héllo",
            "🙂",
            "a string too long to be kept in place",
        ] {
            let text = Text::from_wtf8(whole.into()).unwrap();
            assert_eq!(text, whole);
            assert_eq!(text, Text::from(whole));
        }
        for broken in [
            &b"\xed\xa0\x80"[..],
            b"x\xed\xbf\xbfy",
            b"\xed\xb0\x80\xed\xa0\x80",
        ] {
            assert_eq!(Text::from_wtf8(broken.into()).unwrap().as_bytes(), broken);
        }
        let malformed = [
            &b"\xff"[..],
            b"\xc0\x80",
            b"\xed\xa0",
            b"\xf5\x80\x80\x80",
            b"\xed\xa0\xbd\xed\xb8\x80",
            b"a\xed\xa0\x80\xed\xa0\x80\xed\xb0\x80",
        ];
        for bytes in malformed {
            assert_eq!(Text::from_wtf8(bytes.into()), None, "{bytes:x?}");
        }
    }

    #[test]
    fn blanks_are_trimmed_around_whole_and_broken_text() {
        assert_eq!(
            Text::from(" \t\n\u{1c}\u{1f}\u{85}\u{a0}\u{3000}a b\u{1d}\u{1e} ").trimmed(),
            "a b"
        );
        assert_eq!(Text::from("\0 ").trimmed(), "\0");
        assert_eq!(Text::from("\u{200b}").trimmed(), "\u{200b}");
        assert_eq!(Text::from("\u{3000}\u{1c}").trimmed(), "");
        let broken = text(&[
            0x20, 0x3000, 0x61, 0x20, 0xd800, 0x20, 0xdfff, 0x20, 0x62, 0x1f, 0xa0,
        ]);
        let kept = text(&[0x61, 0x20, 0xd800, 0x20, 0xdfff, 0x20, 0x62]);
        assert_eq!(broken.trimmed(), kept);
        assert_eq!(kept.trimmed(), kept);
        assert_eq!(text(&[0x20, 0xd800, 0x20]).trimmed(), text(&[0xd800]));
    }

    #[test]
    fn blank_and_nul_are_seen() {
        assert!(Text::from("").is_blank() && Text::from(" \u{1f}\n").is_blank());
        assert!(!Text::from(" a").is_blank() && !Text::from("\0").is_blank());
        assert!(!text(&[0x20, 0xd800]).is_blank());
        assert!(Text::from("a\0").has_nul() && !Text::from("a").has_nul());
        assert!(Text::default().is_empty());
    }

    #[test]
    fn order_is_that_of_code_points() {
        let sorted = [
            Text::from(""),
            Text::from("a"),
            Text::from("a\0"),
            Text::from("b"),
            Text::from("é"),
            text(&[0xd800]),
            Text::from("\u{e000}"),
            Text::from("\u{10000}"),
        ];
        assert!(sorted.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn short_and_long_texts_behave_alike() {
        for length in 0..60 {
            let string = "é".repeat(length / 2) + &"x".repeat(length % 2);
            let text = Text::from(string.as_str());
            assert_eq!(text, Text::from(string.clone()));
            assert_eq!(text.as_str(), Some(string.as_str()));
            assert_eq!(text.len(), string.len());
            assert_eq!(text.into_string(), Ok(string));
        }
    }
}
