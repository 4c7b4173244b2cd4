//! Finding what was said just before: needs no questions, only Sessions.
//!
//! The query is a text of the assistant; right is one of the three parts before it in its Session.
//! Texts that are asked are left out of what is searched, with all of their repetitions. Between two
//! of them, three parts remain.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant as Clock};

use serde_json::{Value, json};

use crate::scenario::Bench;
use crate::search::local::{Answer, LocalIndex};
use crate::search::metrics::{Figures, Outcome, rank};
use crate::search::quality::{Ranking, query};
use crate::search::server::Filled;
use crate::search::set::{CallRow, MessageRow, Place, SessionRow, places, text_of};
use crate::text::put;
use crate::{Backend, Failure};

/// The words that a query has at least.
const WORDS: usize = 8;
/// The parts before it that are right.
const BEFORE: usize = 3;
/// The characters of a right part that an excerpt has to show.
const SHOWN: usize = 40;

/// A text that was left out.
#[derive(Clone, Debug)]
struct Missing {
    session: String,
    text: String,
    /// The texts of the parts before it.
    before: Vec<String>,
}

/// What came of each text, by ranking.
#[derive(Default)]
pub(crate) struct Adjacency {
    outcomes: BTreeMap<&'static str, Vec<Outcome>>,
    notes: Vec<String>,
}

/// Leaves texts out of Sessions, fills a server with the rest, and asks for what was said before
/// each.
pub(crate) fn measure(
    bench: &Bench,
    backend: Backend,
    sessions: &[SessionRow],
    rankings: &[Ranking],
) -> Result<Adjacency, Failure> {
    let (missing, rest) = leave_out(sessions)?;
    let index = LocalIndex::new(&rest)?;
    let mut server = Filled::start(bench, backend)?;
    server.fill(&rest)?;
    let mut adjacency = Adjacency::default();
    adjacency.notes.push(format!(
        "{} Sessions, {} distinct parts, {:.1} MiB of text, {} texts left out and asked",
        rest.len(),
        index.part_count(),
        index.text_bytes() as f64 / 1_048_576.0,
        missing.len()
    ));
    if !server.searches {
        adjacency
            .notes
            .push("this server does not search".to_owned());
    }
    for missing in &missing {
        let query = query(&missing.text);
        if server.searches {
            let (answer, elapsed) = server.search(query)?;
            adjacency.judge("search", missing, &answer, elapsed);
        }
        if rankings.contains(&Ranking::Policy1) {
            let (answer, elapsed) = server.discover(query)?;
            adjacency.judge("policy 1", missing, &answer, elapsed);
        }
        let begin = Clock::now();
        let answer = index.distinct_words(query);
        adjacency.judge("policy 1, all parts", missing, &answer, begin.elapsed());
        let begin = Clock::now();
        let answer = index.bm25(query);
        adjacency.judge("bm25", missing, &answer, begin.elapsed());
    }
    Ok(adjacency)
}

impl Adjacency {
    fn judge(
        &mut self,
        ranker: &'static str,
        missing: &Missing,
        answer: &Answer,
        elapsed: Duration,
    ) {
        let sessions = answer.sessions.iter().map(String::as_str);
        let mut texts = answer.texts.iter();
        let outcome = Outcome {
            rank: rank(sessions, |session| session == missing.session),
            packed: Some(texts.any(|(session, text)| {
                *session == missing.session
                    && missing.before.iter().any(|before| shows(text, before))
            })),
            elapsed,
        };
        self.outcomes.entry(ranker).or_default().push(outcome);
    }

    /// Returns the figures as a table in Markdown.
    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        for note in &self.notes {
            put(&mut text, format_args!("- {note}\n"));
        }
        text.push_str(
            "\n| ranking | n | right part in answer | Session hit@1 | hit@5 | MRR | median ms | p95 ms |\n\
             |---|---|---|---|---|---|---|---|\n",
        );
        for (ranker, outcomes) in &self.outcomes {
            let figures = Figures::of(outcomes);
            put(
                &mut text,
                format_args!(
                    "| {ranker} | {} | {:.3} | {:.2} | {:.2} | {:.2} | {:.1} | {:.1} |\n",
                    figures.count,
                    figures.packed.unwrap_or_default(),
                    figures.hit_1,
                    figures.hit_5,
                    figures.reciprocal,
                    figures.median.as_secs_f64() * 1e3,
                    figures.p95.as_secs_f64() * 1e3,
                ),
            );
        }
        text
    }

    /// Returns the figures as JSON.
    pub(crate) fn json(&self) -> Value {
        let figures = self.outcomes.iter();
        let figures = figures.map(|(ranker, outcomes)| {
            json!({"ranking": ranker, "figures": Figures::of(outcomes).json()})
        });
        json!({"notes": self.notes, "figures": figures.collect::<Vec<_>>()})
    }
}

/// Returns whether a text of an answer is a part, or an excerpt of it.
fn shows(text: &str, part: &str) -> bool {
    text == part || (text.chars().count() >= SHOWN && part.contains(text))
}

/// Returns the texts to ask, and the Sessions without them.
fn leave_out(sessions: &[SessionRow]) -> Result<(Vec<Missing>, Vec<SessionRow>), Failure> {
    let mut missing: Vec<Missing> = Vec::new();
    let mut right: HashSet<String> = HashSet::new();
    let mut asked: HashSet<String> = HashSet::new();
    for session in sessions {
        let parts = places(session)?;
        let mut free = 1;
        for (at, part) in parts.iter().enumerate() {
            let before = &parts[at.saturating_sub(BEFORE)..at];
            let is_apart = before.iter().all(|one| !asked.contains(&one.text));
            if at < free || !is_query(part) || !is_apart || right.contains(&part.text) {
                continue;
            }
            if !asked.insert(part.text.clone()) {
                continue;
            }
            free = at + BEFORE + 1;
            let before: Vec<String> = before.iter().map(|one| one.text.clone()).collect();
            right.extend(before.iter().cloned());
            missing.push(Missing {
                session: session.session.clone(),
                text: part.text.clone(),
                before,
            });
        }
    }
    let rest = sessions.iter().map(|session| without(session, &asked));
    let rest = rest.collect::<Result<Vec<_>, _>>()?;
    let rest = rest.into_iter().filter(|session| !session.calls.is_empty());
    Ok((missing, rest.collect()))
}

fn is_query(part: &Place) -> bool {
    let is_said = part.role == "assistant" && part.kind == "text";
    is_said && part.text.split_whitespace().count() >= WORDS
}

fn without(session: &SessionRow, asked: &HashSet<String>) -> Result<SessionRow, Failure> {
    let mut rest = session.clone();
    for call in &mut rest.calls {
        for message in call.input.iter_mut().chain(&mut call.output) {
            let mut kept = Vec::new();
            for part in message.all() {
                if !asked.contains(&text_of(part.to_string().as_bytes())?) {
                    kept.push(part);
                }
            }
            *message = MessageRow::parts(&message.role, kept);
        }
        call.input.retain(|message| !message.parts.is_empty());
        call.output.retain(|message| !message.parts.is_empty());
    }
    rest.calls
        .retain(|call: &CallRow| !call.input.is_empty() || !call.output.is_empty());
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str, said: &[(&str, &str)]) -> SessionRow {
        SessionRow {
            session: name.to_owned(),
            calls: vec![CallRow {
                input: said
                    .iter()
                    .map(|(role, text)| MessageRow::text(role, *text))
                    .collect(),
                output: Vec::new(),
            }],
            ..SessionRow::default()
        }
    }

    #[test]
    fn a_text_is_left_out_with_its_repetitions_and_what_is_before_it_stays() {
        let long = "one two three four five six seven eight";
        let sessions = [
            session(
                "a",
                &[("user", "first"), ("user", "second"), ("assistant", long)],
            ),
            session(
                "b",
                &[
                    ("user", "third"),
                    ("assistant", long),
                    ("assistant", "short"),
                ],
            ),
        ];
        let (missing, rest) = leave_out(&sessions).expect("texts");
        assert_eq!(missing.len(), 1);
        assert_eq!(missing[0].before, ["first", "second"]);
        let left: Vec<usize> = rest.iter().map(|row| row.calls[0].input.len()).collect();
        assert_eq!(left, [2, 2]);
    }

    #[test]
    fn what_is_right_for_one_text_is_not_left_out_for_another() {
        let texts: Vec<String> = (0..9)
            .map(|number| format!("a b c d e f g h {number}"))
            .collect();
        let said: Vec<(&str, &str)> = texts
            .iter()
            .map(|text| ("assistant", text.as_str()))
            .collect();
        let (missing, rest) = leave_out(&[session("a", &said)]).expect("texts");
        let asked: Vec<&str> = missing.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(asked, [texts[1].as_str(), texts[5].as_str()]);
        assert_eq!(missing[1].before, texts[2..5]);
        assert_eq!(rest[0].calls[0].input.len(), 7);
    }

    #[test]
    fn an_excerpt_shows_a_part_if_it_is_long_enough() {
        let part = "word ".repeat(100);
        assert!(shows(&part[5..105], &part));
        assert!(!shows("word word", &part));
        assert!(shows("short", "short"));
    }
}
