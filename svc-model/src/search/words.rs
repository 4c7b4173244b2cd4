//! Cuts text into the words that are searched.

use std::collections::BTreeSet;
use std::ops::Range;

use unicode_normalization::char::{decompose_compatible, is_combining_mark};

use crate::context::is_stop_word;
use crate::limit::SEARCH_WORD_CHARACTERS_MAX;

/// Calls `each` with every word of a text, and with the bytes of the text that it was read from.
///
/// Letters and digits form runs, and `_` joins runs to a compound. A run is cut where its case or
/// its kind of character changes, and its pieces are stemmed. A run or compound that was cut is one
/// word more as a whole, which is not stemmed. So `retryCount` and `retry_count` share all of their
/// words. Letters of scripts without blanks between words (Han, Hiragana, Katakana, Hangul) form
/// overlapping pairs. Words are in lower case, without marks, in the compatibility form of Unicode.
pub fn words(text: &str, mut each: impl FnMut(&str, Range<usize>)) {
    split(text, |word| match word {
        Word::Piece(piece, place) => stemmed(piece, |stem| each(stem, place)),
        Word::Whole(whole, place) => each(whole, place),
    });
}

/// Returns the distinct words that a query asks for, sorted: all of its words, but no stop word
/// unless there is nothing else.
pub(super) fn query_words(query: &str) -> BTreeSet<String> {
    let mut asked = BTreeSet::new();
    split(query, |word| match word {
        Word::Piece(piece, _) if is_stop_word(piece) => {}
        Word::Piece(piece, _) => stemmed(piece, |stem| {
            asked.insert(stem.to_owned());
        }),
        Word::Whole(whole, _) => {
            asked.insert(whole.to_owned());
        }
    });
    asked
}

enum Word<'w> {
    /// A run, or a piece of one.
    Piece(&'w str, Range<usize>),
    /// A run or a compound that was cut.
    Whole(&'w str, Range<usize>),
}

/// The kind of a character of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Upper,
    /// Also letters without case.
    Lower,
    Digit,
    /// A letter of a script without blanks between words.
    Unspaced,
}

impl Kind {
    fn of(character: char) -> Option<Self> {
        if character.is_ascii() {
            return match character {
                'a'..='z' => Some(Self::Lower),
                'A'..='Z' => Some(Self::Upper),
                '0'..='9' => Some(Self::Digit),
                _ => None,
            };
        }
        if is_unspaced(character) {
            Some(Self::Unspaced)
        } else if character.is_uppercase() {
            Some(Self::Upper)
        } else if character.is_alphabetic() {
            Some(Self::Lower)
        } else if character.is_numeric() {
            Some(Self::Digit)
        } else {
            None
        }
    }
}

/// Returns whether a character is Han, Hiragana, Katakana or Hangul.
const fn is_unspaced(character: char) -> bool {
    matches!(character,
        '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{2fdf}' | '\u{3005}'..='\u{3007}'
        | '\u{3021}'..='\u{3029}' | '\u{3031}'..='\u{3035}' | '\u{3038}'..='\u{303b}'
        | '\u{3041}'..='\u{3096}' | '\u{309d}'..='\u{309f}' | '\u{30a1}'..='\u{30fa}'
        | '\u{30fc}'..='\u{30ff}' | '\u{3131}'..='\u{318e}' | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{a960}'..='\u{a97f}'
        | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// A piece of a compound: its bytes in the buffer and in the text.
#[derive(Clone)]
struct Piece {
    buffer: Range<usize>,
    place: Range<usize>,
}

/// The compound that is being read.
#[derive(Default)]
struct Compound {
    /// Its characters, in lower case, without `_`.
    buffer: String,
    pieces: Vec<Piece>,
    /// The first piece of each of its runs.
    runs: Vec<usize>,
    last: Option<Kind>,
    /// Capitals at the end of the run, and the place of the last one.
    capitals: usize,
    last_capital: (usize, usize),
}

impl Compound {
    fn add(&mut self, kind: Kind, character: char, place: &Range<usize>) {
        let at = self.buffer.len();
        let begins_run = self.last.is_none();
        let begins = match self.last {
            None => true,
            Some(Kind::Lower) => matches!(kind, Kind::Upper | Kind::Digit),
            Some(Kind::Upper) => kind == Kind::Digit,
            Some(Kind::Digit) => kind != Kind::Digit,
            Some(Kind::Unspaced) => false,
        };
        if begins_run {
            self.runs.push(self.pieces.len());
        }
        if begins {
            self.pieces.push(Piece {
                buffer: at..at,
                place: place.clone(),
            });
        } else if self.last == Some(Kind::Upper) && kind == Kind::Lower && self.capitals > 1 {
            // The last capital begins a word: `HTTPServer`.
            let (in_buffer, in_text) = self.last_capital;
            if let Some(piece) = self.pieces.last_mut() {
                piece.buffer.end = in_buffer;
                piece.place.end = in_text;
            }
            self.pieces.push(Piece {
                buffer: in_buffer..at,
                place: in_text..place.end,
            });
        }
        if kind == Kind::Upper {
            self.capitals = if begins { 1 } else { self.capitals + 1 };
            self.last_capital = (at, place.start);
        }
        self.last = Some(kind);
        if character.is_ascii() {
            self.buffer.push(character.to_ascii_lowercase());
        } else {
            self.buffer.extend(character.to_lowercase());
        }
        if let Some(piece) = self.pieces.last_mut() {
            piece.buffer.end = self.buffer.len();
            piece.place.end = place.end;
        }
    }

    /// Ends the run at a `_`.
    const fn join(&mut self) {
        self.last = None;
    }

    fn finish(&mut self, each: &mut impl FnMut(Word<'_>)) {
        if self.pieces.is_empty() {
            self.last = None;
            return;
        }
        let ends = self.runs.iter().skip(1).copied();
        let ends = ends.chain([self.pieces.len()]);
        for (first, end) in self.runs.iter().copied().zip(ends) {
            let pieces = &self.pieces[first..end];
            for piece in pieces {
                let text = &self.buffer[piece.buffer.clone()];
                each(Word::Piece(cut(text), piece.place.clone()));
            }
            self.whole(pieces, each);
        }
        if self.runs.len() > 1 {
            self.whole(&self.pieces, each);
        }
        self.buffer.clear();
        self.pieces.clear();
        self.runs.clear();
        self.last = None;
    }

    fn whole(&self, pieces: &[Piece], each: &mut impl FnMut(Word<'_>)) {
        if let [first, .., last] = pieces {
            let text = &self.buffer[first.buffer.start..last.buffer.end];
            let place = first.place.start..last.place.end;
            each(Word::Whole(cut(text), place));
        }
    }
}

/// Returns as much of a word as is searched.
fn cut(word: &str) -> &str {
    if word.len() <= SEARCH_WORD_CHARACTERS_MAX {
        return word;
    }
    let end = word.char_indices().nth(SEARCH_WORD_CHARACTERS_MAX);
    end.map_or(word, |(end, _)| &word[..end])
}

fn split(text: &str, mut each: impl FnMut(Word<'_>)) {
    let mut compound = Compound::default();
    // The last character of a script without blanks, and its place.
    let mut unspaced: Vec<(char, Range<usize>)> = Vec::new();
    for (start, character) in text.char_indices() {
        let place = start..start + character.len_utf8();
        if character.is_ascii() {
            end_unspaced(&mut unspaced, &mut each);
            match Kind::of(character) {
                Some(kind) => compound.add(kind, character, &place),
                None if character == '_' => compound.join(),
                None => compound.finish(&mut each),
            }
            continue;
        }
        if is_combining_mark(character) {
            continue;
        }
        let mut feed = |character: char| match Kind::of(character) {
            Some(Kind::Unspaced) => {
                compound.finish(&mut each);
                unspaced.push((character, place.clone()));
                if let [(first, start), (second, end)] = unspaced.as_slice() {
                    let pair: String = [*first, *second].iter().collect();
                    each(Word::Whole(&pair, start.start..end.end));
                }
                if unspaced.len() > 2 {
                    let (first, start) = &unspaced[unspaced.len() - 2];
                    let pair: String = [*first, character].iter().collect();
                    each(Word::Whole(&pair, start.start..place.end));
                    unspaced.remove(0);
                }
            }
            Some(kind) => {
                end_unspaced(&mut unspaced, &mut each);
                compound.add(kind, character, &place);
            }
            None if is_combining_mark(character) => {}
            None => {
                end_unspaced(&mut unspaced, &mut each);
                compound.finish(&mut each);
            }
        };
        // A syllable of Hangul is one character here, not its letters.
        if matches!(character, '\u{ac00}'..='\u{d7a3}') {
            feed(character);
        } else {
            decompose_compatible(character, &mut feed);
        }
    }
    end_unspaced(&mut unspaced, &mut each);
    compound.finish(&mut each);
}

/// Ends a run of characters of a script without blanks. A single character is a word.
fn end_unspaced(run: &mut Vec<(char, Range<usize>)>, each: &mut impl FnMut(Word<'_>)) {
    if let [(only, place)] = run.as_slice() {
        each(Word::Whole(only.encode_utf8(&mut [0; 4]), place.clone()));
    }
    run.clear();
}

/// Calls `each` with the stem of a word: plurals, past and progressive forms, and a last `e` are
/// removed from words of ASCII letters.
fn stemmed(word: &str, each: impl FnOnce(&str)) {
    if word.len() < 3 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return each(word);
    }
    let mut stem = word.to_owned();
    if stem.ends_with("sses") {
        stem.truncate(stem.len() - 2);
    } else if stem.len() >= 5 && stem.ends_with("ies") {
        stem.truncate(stem.len() - 3);
        stem.push('y');
    } else if stem.ends_with('s') && !["ss", "us", "is"].iter().any(|end| stem.ends_with(end)) {
        stem.pop();
    }
    if stem.len() >= 4 {
        if stem.ends_with("ied") {
            stem.truncate(stem.len() - 3);
            stem.push('y');
        } else if let Some(rest) = stem
            .strip_suffix("ing")
            .or_else(|| stem.strip_suffix("ed"))
            .filter(|rest| rest.len() >= 3 && rest.bytes().any(is_vowel))
        {
            let mut length = rest.len();
            let bytes = rest.as_bytes();
            let last = bytes[length - 1];
            let is_doubled = bytes[length - 2] == last;
            if is_doubled && !is_vowel(last) && !matches!(last, b'l' | b's' | b'z') {
                length -= 1;
            }
            stem.truncate(length);
        }
    }
    if stem.len() >= 4 && stem.ends_with('e') {
        stem.pop();
    }
    each(&stem);
}

const fn is_vowel(byte: u8) -> bool {
    matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        words(text, |word, _| found.push(word.to_owned()));
        found
    }

    #[test]
    fn identifiers_are_cut_and_kept_whole() {
        for (text, expected) in [
            ("src/lib/fooBar.rs:42", "src lib foo bar foobar rs 42"),
            ("getUserIds", "get user id getuserids"),
            ("HTTPServer2", "http server 2 httpserver2"),
            ("retry_count", "retry count retrycount"),
            ("retryCount", "retry count retrycount"),
            ("__init__", "init"),
            (
                "fooBar_bazQux",
                "foo bar foobar baz qux bazqux foobarbazqux",
            ),
            ("E0502", "e 0502 e0502"),
            ("x86_64", "x 86 x86 64 x8664"),
            ("2.0", "2 0"),
            ("IDs", "i ds ids"),
            ("a-b", "a b"),
            ("", ""),
        ] {
            assert_eq!(of(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn english_words_lose_their_endings() {
        for (text, expected) in [
            ("retry retries retried retrying", "retry retry retry retry"),
            ("cache caches cached caching", "cach cach cach cach"),
            ("running status need string", "run status need string"),
            ("classes class bus is", "class class bus is"),
            ("called failing stopped", "call fail stop"),
            (
                "restarts restarting schedulers",
                "restart restart scheduler",
            ),
        ] {
            assert_eq!(of(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn words_of_other_scripts_are_found() {
        assert_eq!(of("Größe naïve"), ["große", "naiv"]);
        assert_eq!(of("nai\u{308}ve ﬁle"), ["naiv", "fil"]);
        assert_eq!(of("почему Растёт"), ["почему", "растет"]);
        assert_eq!(of("請求書"), ["請求", "求書"]);
        assert_eq!(of("日本語x字"), ["日本", "本語", "x", "字"]);
        assert_eq!(of("한국어"), ["한국", "국어"]);
        assert_eq!(of("\u{fffd}a\u{fffd}"), ["a"]);
    }

    #[test]
    fn a_query_has_its_words_without_stop_words() {
        let words = query_words("Why do the retries in fetchWithBackoff fail?");
        let expected = ["backoff", "fail", "fetch", "fetchwithbackoff", "retry"];
        assert!(words.iter().eq(expected));
        assert!(query_words("what is the").is_empty());
        assert!(query_words("!!! \"OR\" NEAR(").iter().eq(["near"]));
    }

    #[test]
    fn a_long_word_is_cut() {
        let word = "ä".repeat(100);
        assert_eq!(of(&word), ["a".repeat(64)]);
    }

    proptest! {
        #[test]
        fn places_are_in_the_text_and_words_are_searchable(text in "\\PC{0,80}") {
            let mut found = Vec::new();
            words(&text, |word, place| found.push((word.to_owned(), place)));
            for (word, place) in found {
                prop_assert!(text.get(place).is_some_and(|place| !place.is_empty()));
                prop_assert!(!word.is_empty() && word.chars().count() <= 64 + 2);
                prop_assert!(!word.contains(|c: char| c.is_whitespace() || c.is_ascii_punctuation()));
            }
        }
    }
}
