//! Asks every question of a set, and compares three rankings: the search, the first policy of the
//! context routes, and plain BM25 over whole parts.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant as Clock};

use serde_json::{Value, json};

use crate::scenario::Bench;
use crate::search::local::{Answer, LocalIndex};
use crate::search::metrics::{Figures, Outcome, contains, rank};
use crate::search::server::Filled;
use crate::search::set::{QuestionRow, QuestionSet, Split};
use crate::text::put;
use crate::{Backend, Failure};

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Ranking {
    /// The search.
    Search,
    /// The discovery of the context routes.
    Policy1,
    /// Plain BM25 over whole parts, without a server.
    Bm25,
}

impl Ranking {
    const ALL: [Self; 3] = [Self::Search, Self::Policy1, Self::Bm25];

    const fn name(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Policy1 => "policy 1",
            Self::Bm25 => "bm25",
        }
    }
}

/// What came of one question.
struct Asked {
    question: QuestionRow,
    outcomes: BTreeMap<Ranking, Outcome>,
    refused: Vec<Ranking>,
}

/// The questions that were asked, and what is to be known about the Sessions.
#[derive(Default)]
pub(crate) struct Quality {
    rankings: Vec<Ranking>,
    asked: Vec<Asked>,
    notes: Vec<String>,
}

/// Fills a server with each group of a set, and asks its questions.
pub(crate) fn measure(
    bench: &Bench,
    backend: Backend,
    set: QuestionSet,
    split: Option<Split>,
    rankings: &[Ranking],
) -> Result<Quality, Failure> {
    let mut quality = Quality {
        rankings: rankings.to_vec(),
        ..Quality::default()
    };
    for mut group in set.groups() {
        group
            .questions
            .retain(|question| split.is_none_or(|split| question.split == split));
        if !group.questions.is_empty() {
            quality.group(bench, backend, &group)?;
        }
    }
    Ok(quality)
}

impl Quality {
    fn group(&mut self, bench: &Bench, backend: Backend, set: &QuestionSet) -> Result<(), Failure> {
        let index = LocalIndex::new(&set.sessions)?;
        let mut server = Filled::start(bench, backend)?;
        let [sent, indexed] = server.fill(&set.sessions)?;
        self.notes.push(format!(
            "{} Sessions, {} distinct parts, {:.1} MiB of text; sent in {:.1} s, indexed after {:.1} s",
            set.sessions.len(),
            index.part_count(),
            index.text_bytes() as f64 / 1_048_576.0,
            sent.as_secs_f64(),
            indexed.as_secs_f64(),
        ));
        if self.rankings.contains(&Ranking::Policy1) {
            let [searched, found] = server.discovered()?;
            let note = format!("policy 1 looks at {searched} of {found} Sessions");
            self.notes.push(note);
        }
        if !server.searches {
            self.notes.push("this server does not search".to_owned());
        }
        for question in &set.questions {
            self.ask(question, &index, &mut server)?;
        }
        Ok(())
    }

    fn ask(
        &mut self,
        question: &QuestionRow,
        index: &LocalIndex,
        server: &mut Filled<'_>,
    ) -> Result<(), Failure> {
        let mut asked = Asked {
            question: question.clone(),
            outcomes: BTreeMap::new(),
            refused: Vec::new(),
        };
        let query = query(&question.query);
        for ranking in &self.rankings {
            let (answer, elapsed) = match ranking {
                Ranking::Search if !server.searches => continue,
                Ranking::Search => server.search(query)?,
                Ranking::Policy1 => server.discover(query)?,
                Ranking::Bm25 => {
                    let begin = Clock::now();
                    let answer = index.bm25(query);
                    (answer, begin.elapsed())
                }
            };
            asked.judge(*ranking, &answer, elapsed);
        }
        self.asked.push(asked);
        Ok(())
    }

    /// Returns the figures as a table in Markdown.
    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        for note in &self.notes {
            put(&mut text, format_args!("- {note}\n"));
        }
        for ranking in Ranking::ALL {
            let refused = self
                .asked
                .iter()
                .filter(|one| one.refused.contains(&ranking));
            let refused = refused.count();
            if refused > 0 {
                put(
                    &mut text,
                    format_args!(
                        "- {} refused {refused} queries; they count as not found\n",
                        ranking.name()
                    ),
                );
            }
        }
        text.push_str(
            "\n| kind | split | ranking | n | hit@1 | hit@5 | hit@8 | MRR | part in answer | median ms | p95 ms |\n\
             |---|---|---|---|---|---|---|---|---|---|---|\n",
        );
        for (kind, split, ranking, figures) in self.rows() {
            let packed = figures
                .packed
                .map_or(String::new(), |share| format!("{share:.2}"));
            put(
                &mut text,
                format_args!(
                    "| {kind} | {split} | {} | {} | {:.2} | {:.2} | {:.2} | {:.2} | {packed} | {:.1} | {:.1} |\n",
                    ranking.name(),
                    figures.count,
                    figures.hit_1,
                    figures.hit_5,
                    figures.hit_8,
                    figures.reciprocal,
                    figures.median.as_secs_f64() * 1e3,
                    figures.p95.as_secs_f64() * 1e3,
                ),
            );
        }
        text
    }

    /// Returns the figures: first of all kinds, then of each.
    fn rows(&self) -> Vec<(&str, &'static str, Ranking, Figures)> {
        let mut kinds: Vec<&str> = self
            .asked
            .iter()
            .map(|one| one.question.kind.as_str())
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        let splits = [None, Some(Split::Tune), Some(Split::Held)];
        let mut rows = Vec::new();
        for kind in [None].into_iter().chain(kinds.into_iter().map(Some)) {
            for split in splits {
                for ranking in Ranking::ALL {
                    let asked = self.asked.iter();
                    let asked = asked.filter(|one| {
                        kind.is_none_or(|kind| kind == one.question.kind)
                            && split.is_none_or(|split| split == one.question.split)
                    });
                    let outcomes = asked.filter_map(|one| one.outcomes.get(&ranking).copied());
                    let outcomes: Vec<Outcome> = outcomes.collect();
                    if !outcomes.is_empty() {
                        let split = split.map_or("all", Split::name);
                        let figures = Figures::of(&outcomes);
                        rows.push((kind.unwrap_or("all"), split, ranking, figures));
                    }
                }
            }
        }
        rows
    }

    /// Returns all figures, and what came of each question, as JSON.
    pub(crate) fn json(&self) -> Value {
        let rows = self.rows().into_iter().map(|(kind, split, ranking, figures)| {
            json!({"kind": kind, "split": split, "ranking": ranking.name(), "figures": figures.json()})
        });
        let questions = self.asked.iter().map(Asked::json);
        json!({
            "notes": self.notes, "figures": rows.collect::<Vec<_>>(),
            "questions": questions.collect::<Vec<_>>(),
        })
    }
}

impl Asked {
    fn judge(&mut self, ranking: Ranking, answer: &Answer, elapsed: Duration) {
        let right = &self.question.session;
        let sessions = answer.sessions.iter().map(String::as_str);
        let packed = self.question.part.as_deref().map(|part| {
            let mut texts = answer.texts.iter();
            texts.any(|(session, text)| right.has(session) && contains(text, part))
        });
        let outcome = Outcome {
            rank: rank(sessions, |session| right.has(session)),
            packed,
            elapsed,
        };
        self.outcomes.insert(ranking, outcome);
        if answer.refused {
            self.refused.push(ranking);
        }
    }

    fn json(&self) -> Value {
        let outcomes = self.outcomes.iter().map(|(ranking, outcome)| {
            let value = json!({
                "rank": outcome.rank, "packed": outcome.packed,
                "ms": outcome.elapsed.as_secs_f64() * 1e3,
            });
            (ranking.name().to_owned(), value)
        });
        let outcomes: serde_json::Map<String, Value> = outcomes.collect();
        let refused = self.refused.iter().map(|ranking| ranking.name());
        json!({"question": self.question, "refused": refused.collect::<Vec<_>>(), "outcomes": outcomes})
    }
}

/// Returns as much of a text as a query may have.
pub(crate) fn query(text: &str) -> &str {
    let most = svc_model::limit::QUERY_BYTES_MAX;
    &text[..text.floor_char_boundary(most)]
}

/// Writes JSON to a file, if one is named.
pub(crate) fn save(path: Option<&std::path::Path>, value: &Value) -> Result<(), Failure> {
    if let Some(path) = path {
        fs::write(path, format!("{value:#}\n"))?;
    }
    Ok(())
}
