//! Any number of distinct parts that look like a coding agent's work, and queries about them.
//!
//! Words have the frequencies of a language (Zipf's law) over a vocabulary of 40,000; identifiers
//! are made of them, and every part has some of its own. A part depends on its number alone.

use crate::template::mix;
use crate::text::{Random, put};

const VOCABULARY: usize = 40_000;
/// Entries of the table of draws.
const DRAWS: usize = 1 << 16;
#[rustfmt::skip]
const SYLLABLES: &[&str] = &[
    "ba", "con", "de", "er", "fo", "gra", "in", "ka", "lo", "mer", "no", "pa", "qui", "re", "sta",
    "ti", "un", "ver", "wa", "xi", "yo", "zen", "ch", "pl", "st",
];
#[rustfmt::skip]
const FREQUENT: &[&str] = &[
    "the", "to", "is", "a", "of", "and", "in", "it", "error", "test", "file", "value", "return",
    "for", "that", "with", "not", "function", "this", "if", "name", "result", "line", "when",
    "request", "call", "we", "data", "state", "type", "index", "string", "config", "build", "run",
];
const ASKING: [&str; 6] = [
    "why does",
    "how did we fix",
    "where is",
    "what about",
    "when does",
    "the",
];

/// The vocabulary, and how often each word is drawn.
pub(crate) struct Corpus {
    words: Vec<String>,
    draws: Vec<u32>,
}

impl Corpus {
    pub(crate) fn new() -> Self {
        let frequent = FREQUENT.iter().map(|word| (*word).to_owned());
        let made = (0..VOCABULARY - FREQUENT.len()).map(|number| made_word(number as u64));
        let words: Vec<String> = frequent.chain(made).collect();
        let total: f64 = (1..=words.len()).map(|rank| 1.0 / rank as f64).sum();
        let mut draws = Vec::with_capacity(DRAWS);
        let mut reached = 0.0;
        for rank in 0..words.len() {
            reached += DRAWS as f64 / total / (rank + 1) as f64;
            while (draws.len() as f64) < reached && draws.len() < DRAWS {
                draws.push(rank as u32);
            }
        }
        Self { words, draws }
    }

    fn word(&self, random: &mut Random) -> &str {
        // The table has no room for the rarest ones.
        if random.below(8) == 0 {
            return &self.words[random.below(VOCABULARY as u64) as usize];
        }
        let drawn = random.below(self.draws.len() as u64) as usize;
        &self.words[self.draws[drawn] as usize]
    }

    /// Returns the text of a part: mostly a few lines, sometimes a page.
    pub(crate) fn part(&self, number: u64) -> String {
        let mut random = Random::new(mix(number));
        let words =
            12 + random.below(90).min(random.below(180)) + random.below(2) * random.below(40);
        let mut text = String::with_capacity(words as usize * 8);
        for at in 0..words {
            match random.below(14) {
                0 => put(
                    &mut text,
                    format_args!("{}\n", self.own(number, &mut random)),
                ),
                1 => put(
                    &mut text,
                    format_args!("{}_{} ", self.word(&mut random), self.word(&mut random)),
                ),
                2 => put(&mut text, format_args!("{} ", random.below(100_000))),
                3 => put(
                    &mut text,
                    format_args!(
                        "src/{}/{}.rs:{at}\n",
                        self.word(&mut random),
                        self.word(&mut random)
                    ),
                ),
                _ => put(&mut text, format_args!("{} ", self.word(&mut random))),
            }
        }
        put(&mut text, format_args!("#{number}"));
        text
    }

    /// Returns an identifier that few other parts have.
    fn own(&self, number: u64, random: &mut Random) -> String {
        let word = self.word(random);
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        let capital: String = first.into_iter().chain(letters).collect();
        format!(
            "{}{capital}{}",
            made_word(mix(number) % 1_000_000),
            number % 97
        )
    }

    /// Returns a query of 2 to 12 words about one of the first parts: words of the part, rare and
    /// common ones, some as a question, some with an identifier, some with a wrong letter.
    pub(crate) fn query(&self, number: u64, parts: u64) -> String {
        let mut random = Random::new(mix(number ^ 0x5ea_4c4));
        let part = self.part(random.below(parts));
        let words: Vec<&str> = part.split_ascii_whitespace().collect();
        let count = 2 + random.below(6).min(random.below(11));
        let mut query = String::new();
        if random.below(3) == 0 {
            query.push_str(ASKING[random.below(ASKING.len() as u64) as usize]);
        }
        for _ in 0..count {
            let from = random.below(words.len() as u64) as usize;
            let word = match random.below(4) {
                0 => self.word(&mut random),
                _ => words[from],
            };
            put(&mut query, format_args!(" {word}"));
        }
        if random.below(5) == 0 && query.is_char_boundary(query.len() - 2) {
            query.remove(query.len() - 2);
        }
        query
    }
}

/// Returns a word of two to four syllables.
fn made_word(number: u64) -> String {
    let mut bits = mix(number ^ 0x00c0_4b05);
    let mut word = String::new();
    for _ in 0..2 + bits % 3 {
        bits = mix(bits);
        word.push_str(SYLLABLES[(bits % SYLLABLES.len() as u64) as usize]);
    }
    word
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    #[test]
    fn parts_are_distinct_and_have_the_lengths_of_real_ones() {
        let corpus = Corpus::new();
        let parts: HashSet<String> = (0..2_000).map(|number| corpus.part(number)).collect();
        assert_eq!(parts.len(), 2_000);
        let mean = parts.iter().map(String::len).sum::<usize>() / parts.len();
        assert!((250..900).contains(&mean), "{mean} bytes");
        assert_eq!(corpus.part(7), corpus.part(7));
    }

    #[test]
    fn words_are_uneven() {
        let corpus = Corpus::new();
        let mut parts_with: HashMap<String, u32> = HashMap::new();
        for number in 0..2_000 {
            let part = corpus.part(number);
            let words: HashSet<&str> = part.split_ascii_whitespace().collect();
            for word in words {
                *parts_with.entry(word.to_owned()).or_default() += 1;
            }
        }
        assert!(parts_with["the"] > 1_000);
        let once = parts_with.values().filter(|count| **count == 1).count();
        assert!(
            once > parts_with.len() / 4,
            "{once} of {}",
            parts_with.len()
        );
    }

    #[test]
    fn queries_have_words_to_search_for() {
        let corpus = Corpus::new();
        let queries: Vec<String> = (0..400).map(|number| corpus.query(number, 1_000)).collect();
        assert!(
            queries
                .iter()
                .all(|query| query.split_ascii_whitespace().count() >= 2)
        );
        let searchable = queries.iter();
        let searchable =
            searchable.filter(|query| svc_model::search::SearchQuery::new(query).is_ok());
        assert!(searchable.count() >= 395);
    }
}
