//! Two rankings without a server, over whole parts: plain BM25, and the number of distinct words.
//!
//! They tell what the service's own passages, weights and packing add.

use std::collections::HashMap;

use svc_model::context::{Query, tokens};
use svc_model::search::{SearchQuery, words};

use crate::Failure;
use crate::search::set::{Place, SessionRow, places};

const K1: f64 = 1.2;
const B: f64 = 0.75;
/// The bytes for parts in an answer of 16 KiB.
const PACKED_BYTES: usize = 16_384 - 2_048;

/// An answer: Sessions, best first, and the texts of the parts that fit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) sessions: Vec<String>,
    /// Session and text.
    pub(crate) texts: Vec<(String, String)>,
    /// Whether the query was refused.
    pub(crate) refused: bool,
}

/// All parts, and where each word is.
#[derive(Debug, Default)]
pub(crate) struct LocalIndex {
    sessions: Vec<String>,
    parts: Vec<IndexedPart>,
    postings: HashMap<String, Vec<(u32, u32)>>,
    /// The parts of each token, as the context routes cut them.
    tokens: HashMap<String, Vec<u32>>,
    length: u64,
}

#[derive(Debug)]
struct IndexedPart {
    place: Place,
    sessions: Vec<u32>,
    length: u32,
}

impl LocalIndex {
    /// Indexes the distinct parts of Sessions.
    pub(crate) fn new(sessions: &[SessionRow]) -> Result<Self, Failure> {
        let mut index = Self::default();
        let mut known: HashMap<(String, String), u32> = HashMap::new();
        for session in sessions {
            let number = index.sessions.len() as u32;
            index.sessions.push(session.session.clone());
            for place in places(session)? {
                let key = (place.kind.clone(), place.text.clone());
                if let Some(part) = known.get(&key) {
                    index.parts[*part as usize].sessions.push(number);
                    continue;
                }
                known.insert(key, index.parts.len() as u32);
                index.add(place, number);
            }
        }
        Ok(index)
    }

    fn add(&mut self, place: Place, session: u32) {
        let mut counts: HashMap<String, u32> = HashMap::new();
        let mut length = 0;
        words(&place.text, |word, _| {
            length += 1;
            *counts.entry(word.to_owned()).or_default() += 1;
        });
        let part = self.parts.len() as u32;
        let lower = place.text.to_ascii_lowercase();
        tokens(lower.as_bytes(), |token| {
            // Every token is ASCII.
            let parts = self.tokens.entry(lower[token].to_owned()).or_default();
            if parts.last() != Some(&part) {
                parts.push(part);
            }
        });
        for (word, count) in counts {
            self.postings.entry(word).or_default().push((part, count));
        }
        self.length += u64::from(length);
        self.parts.push(IndexedPart {
            place,
            sessions: vec![session],
            length,
        });
    }

    /// Returns the number of distinct parts.
    pub(crate) fn part_count(&self) -> usize {
        self.parts.len()
    }

    /// Returns the bytes of the search texts of all distinct parts.
    pub(crate) fn text_bytes(&self) -> usize {
        self.parts.iter().map(|part| part.place.text.len()).sum()
    }

    /// Ranks by BM25.
    pub(crate) fn bm25(&self, query: &str) -> Answer {
        let Ok(query) = SearchQuery::new(query) else {
            return refused();
        };
        let count = self.parts.len() as f64;
        let mean = self.length as f64 / count.max(1.0);
        let mut scores: HashMap<u32, f64> = HashMap::new();
        for word in query.words() {
            let Some(postings) = self.postings.get(word) else {
                continue;
            };
            let having = postings.len() as f64;
            let rarity = (1.0 + (count - having + 0.5) / (having + 0.5)).ln();
            for (part, times) in postings {
                let times = f64::from(*times);
                let length = f64::from(self.parts[*part as usize].length) / mean;
                let weight = times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * length));
                *scores.entry(*part).or_default() += rarity * weight;
            }
        }
        self.answer(scores)
    }

    /// Ranks by the number of distinct words, as the context routes do.
    pub(crate) fn distinct_words(&self, query: &str) -> Answer {
        let Ok(query) = Query::new(query) else {
            return refused();
        };
        let mut scores: HashMap<u32, f64> = HashMap::new();
        for token in query.tokens() {
            for part in self.tokens.get(token).into_iter().flatten() {
                *scores.entry(*part).or_default() += 1.0;
            }
        }
        self.answer(scores)
    }

    /// Ranks Sessions by their best part, and packs whole parts, best first.
    fn answer(&self, scores: HashMap<u32, f64>) -> Answer {
        let mut parts: Vec<(f64, u32)> = scores.into_iter().map(|(part, at)| (at, part)).collect();
        parts.sort_by(|(a, first), (b, second)| b.total_cmp(a).then(first.cmp(second)));
        let mut answer = Answer::default();
        let mut seen = vec![false; self.sessions.len()];
        let mut left = PACKED_BYTES;
        for (_, part) in parts {
            let part = &self.parts[part as usize];
            let fits = part.place.size <= left;
            if fits {
                left -= part.place.size;
            }
            for session in &part.sessions {
                let name = &self.sessions[*session as usize];
                if !std::mem::replace(&mut seen[*session as usize], true) {
                    answer.sessions.push(name.clone());
                }
                if fits {
                    let text = part.place.text.clone();
                    answer.texts.push((name.clone(), text));
                }
            }
        }
        answer
    }
}

fn refused() -> Answer {
    Answer {
        refused: true,
        ..Answer::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::set::{CallRow, MessageRow};

    fn index(texts: &[(&str, &str)]) -> LocalIndex {
        let sessions = texts.iter().map(|(session, text)| SessionRow {
            session: (*session).to_owned(),
            calls: vec![CallRow {
                input: vec![MessageRow::text("user", *text)],
                output: Vec::new(),
            }],
            ..SessionRow::default()
        });
        LocalIndex::new(&sessions.collect::<Vec<_>>()).expect("an index")
    }

    #[test]
    fn rare_words_and_short_parts_come_first() {
        let index = index(&[
            ("a", "The scheduler drops a job when the queue restarts."),
            ("b", "Queue, queue, queue: list all queue names."),
            ("c", "Unrelated text about colours."),
        ]);
        assert_eq!(index.part_count(), 3);
        assert_eq!(index.bm25("restarting schedulers").sessions, ["a"]);
        assert_eq!(index.bm25("queue").sessions, ["b", "a"]);
        assert!(index.bm25("paint").sessions.is_empty());
        assert!(index.bm25("the").refused);
        assert_eq!(index.distinct_words("queue job").sessions, ["a", "b"]);
    }

    #[test]
    fn what_does_not_fit_is_ranked_but_not_packed() {
        let long = format!("pump {}", "word ".repeat(4_000));
        let index = index(&[("a", &long), ("b", "a pump")]);
        let answer = index.bm25("pump");
        assert_eq!(answer.sessions, ["b", "a"]);
        let packed: Vec<&str> = answer.texts.iter().map(|(one, _)| one.as_str()).collect();
        assert_eq!(packed, ["b"]);
    }

    #[test]
    fn a_part_of_several_sessions_is_one_part() {
        let index = index(&[("a", "the same text"), ("b", "the same text")]);
        assert_eq!(index.part_count(), 1);
        assert_eq!(index.bm25("same").sessions, ["a", "b"]);
    }
}
