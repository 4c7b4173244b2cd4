//! A few lines around the place where a text matches a query, with the words that match.

use std::collections::BTreeSet;
use std::ops::Range;

use svc_model::search::words;

/// The part of a text that has most of a query's words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// The text, with white space of any length as one blank, and an ellipsis where it was cut.
    pub text: String,
    /// The bytes of `text` that match, in order and apart.
    pub marks: Vec<Range<usize>>,
}

impl Snippet {
    /// Returns the text in pieces, each with whether it matches. No piece is empty.
    pub fn pieces(&self) -> impl Iterator<Item = (&str, bool)> {
        let ends = self.marks.iter().flat_map(|mark| [mark.start, mark.end]);
        let ends = ends.chain([self.text.len()]);
        let pieces = ends.scan(0, |start, end| {
            let piece = self.text.get(*start..end).unwrap_or_default();
            *start = end;
            Some(piece)
        });
        let marked = [false, true].into_iter().cycle();
        pieces.zip(marked).filter(|(piece, _)| !piece.is_empty())
    }
}

/// Characters before the first match that are shown.
const BEFORE: usize = 60;
/// The mark of a cut.
pub(crate) const CUT: &str = "…";

/// Returns a part of a text of at most so many characters, around the most distinct words of a
/// query.
pub fn snippet(text: &str, query: &BTreeSet<String>, characters_max: usize) -> Snippet {
    let mut matches: Vec<(Range<usize>, &str)> = Vec::new();
    words(text, |word, place| {
        if let Some(word) = query.get(word) {
            matches.push((place, word));
        }
    });
    matches.sort_by_key(|(place, _)| (place.start, place.end));
    let room = characters_max.saturating_sub(2 * CUT.len());
    // A text that fits is whole.
    let start = if text.chars().nth(room).is_none() {
        0
    } else {
        let start = best_start(&matches, room.saturating_sub(BEFORE));
        before(text, start, BEFORE)
    };
    let mut snippet = Snippet::default();
    if text[..start]
        .chars()
        .any(|character| !character.is_whitespace())
    {
        snippet.text.push_str(CUT);
    }
    let mut count = 0;
    let mut next = matches.iter().map(|(place, _)| place).peekable();
    let mut is_blank = true;
    let mut open: Option<(usize, usize)> = None;
    for (at, character) in text[start..].char_indices() {
        let at = start + at;
        if open.is_some_and(|(_, end)| at >= end) {
            close(&mut snippet, &mut open);
        }
        while let Some(place) = next.next_if(|place| place.start <= at) {
            if place.end <= at {
                continue;
            }
            open = match open {
                None => Some((snippet.text.len(), place.end)),
                Some((from, end)) => Some((from, end.max(place.end))),
            };
        }
        if count >= room {
            close(&mut snippet, &mut open);
            let kept = snippet.text.trim_end().len();
            snippet.text.truncate(kept);
            snippet.text.push_str(CUT);
            return snippet;
        }
        if character.is_whitespace() {
            if !is_blank {
                snippet.text.push(' ');
                count += 1;
            }
            is_blank = true;
        } else {
            snippet.text.push(character);
            count += 1;
            is_blank = false;
        }
    }
    close(&mut snippet, &mut open);
    let kept = snippet.text.trim_end().len();
    snippet.text.truncate(kept);
    snippet
}

fn close(snippet: &mut Snippet, open: &mut Option<(usize, usize)>) {
    if let Some((from, _)) = open.take()
        && from < snippet.text.len()
    {
        snippet.marks.push(from..snippet.text.len());
    }
}

/// Returns where the stretch of a text begins that has the most distinct words.
fn best_start(matches: &[(Range<usize>, &str)], bytes: usize) -> usize {
    let mut best = (0, 0);
    for (index, (place, _)) in matches.iter().enumerate() {
        let end = place.start + bytes;
        let within = matches[index..]
            .iter()
            .take_while(|(place, _)| place.end <= end);
        let distinct: BTreeSet<&str> = within.map(|(_, word)| *word).collect();
        if distinct.len() > best.0 {
            best = (distinct.len(), place.start);
        }
    }
    best.1
}

/// Returns a place before `at`, by at most so many characters, behind white space if there is some.
fn before(text: &str, at: usize, characters: usize) -> usize {
    let mut place = at;
    let mut after_blank = None;
    for (index, character) in text[..at].char_indices().rev().take(characters) {
        place = index;
        if character == '\n' {
            return index + 1;
        }
        if character.is_whitespace() {
            after_blank = Some(index + character.len_utf8());
        }
    }
    if place == 0 {
        return 0;
    }
    after_blank.unwrap_or(place)
}

#[cfg(test)]
mod tests {
    use svc_model::search::SearchQuery;

    use super::*;

    fn marked(text: &str, query: &str, most: usize) -> String {
        let query = SearchQuery::new(query).unwrap();
        let Snippet { text, marks } = snippet(text, query.words(), most);
        let mut marked = String::new();
        let mut last = 0;
        for mark in marks {
            marked.push_str(&text[last..mark.start]);
            marked.push('[');
            marked.push_str(&text[mark.clone()]);
            marked.push(']');
            last = mark.end;
        }
        marked.push_str(&text[last..]);
        marked
    }

    #[test]
    fn a_short_text_is_whole() {
        assert_eq!(
            marked("We  retry\n the payments.\n", "retries of payment", 300),
            "We [retry] the [payments]."
        );
        assert_eq!(
            marked("useDebouncedCallback()", "debounced", 300),
            "use[Debounced]Callback()"
        );
        assert_eq!(
            marked("One line.\nA retry.", "retry", 300),
            "One line. A [retry]."
        );
        assert_eq!(marked("", "x", 300), "");
        assert_eq!(marked("nothing", "x", 300), "nothing");
    }

    #[test]
    fn a_long_text_is_cut_around_its_match() {
        let text = format!(
            "{}the backoff table has jitter {}",
            "word ".repeat(500),
            "more ".repeat(500)
        );
        let found = marked(&text, "jitter backoff", 100);
        assert!(found.starts_with('…') && found.ends_with('…'), "{found}");
        assert!(
            found.contains("the [backoff] table has [jitter]"),
            "{found}"
        );
        assert!(found.chars().count() <= 104, "{found}");
        let cjk = "長".repeat(400);
        assert!(marked(&cjk, "長長", 50).chars().count() <= 60);
    }
}
