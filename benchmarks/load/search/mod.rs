//! How well, and how fast, the search finds Sessions and parts.
//!
//! | Module | Holds |
//! |---|---|
//! | [`set`] | Sessions and questions as files |
//! | [`scenarios`], [`surroundings`], [`own`] | our own set: what is written by hand, what is written around it, and both together |
//! | [`transcripts`] | Sessions of real transcripts |
//! | [`server`] | a server that is filled and asked |
//! | [`quality`], [`adjacency`] | the two measures of quality |
//! | [`local`], [`metrics`] | rankings to compare with, and figures |
//! | [`speed`], [`corpus`] | rate, size, memory and latency as the index grows |

mod adjacency;
mod corpus;
mod local;
mod metrics;
mod own;
mod quality;
mod scenarios;
mod server;
mod set;
mod speed;
mod surroundings;
mod transcripts;

use std::path::PathBuf;

use clap::Args;

use crate::report::Report;
use crate::scenario::Bench;
use crate::search::quality::Ranking;
use crate::search::set::{QuestionSet, SessionRow, Split, read_lines};
use crate::{Backend, Failure};

/// What is searched, and what for.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Search")]
pub(crate) struct SearchArguments {
    /// Sessions, one a line [default: our own set].
    #[arg(long)]
    sessions: Option<PathBuf>,
    /// Questions about these Sessions, one a line.
    #[arg(long, requires = "sessions")]
    questions: Option<PathBuf>,
    /// Only the questions for tuning, or only those held back.
    #[arg(long, value_enum)]
    split: Option<Split>,
    /// What is compared; the first policy takes a second for each question over many Sessions.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Ranking::Search, Ranking::Policy1, Ranking::Bm25])]
    rankings: Vec<Ranking>,
    /// The Sessions of an answer of the search: with more of them, fewer parts of each fit.
    #[arg(long, default_value_t = 20)]
    limit: u64,
    /// A folder of transcripts whose Sessions are searched for what was said before.
    #[arg(long, conflicts_with = "sessions")]
    transcripts: Option<PathBuf>,
    /// The agent that the transcripts are of.
    #[arg(long, default_value = "claude-code")]
    transcripts_of: String,
    /// A file for all figures, and what came of each question.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Parts that a growing index has when it is measured.
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 100_000])]
    passages: Vec<u64>,
}

impl SearchArguments {
    const fn limit(&self) -> u64 {
        self.limit
    }
}

/// Asks the questions of a set, and prints a table.
pub(crate) fn quality(bench: &Bench, backend: Backend) -> Result<(), Failure> {
    let arguments = &bench.arguments.search;
    let set = match (&arguments.sessions, &arguments.questions) {
        (Some(sessions), Some(questions)) => QuestionSet::read(sessions, questions)?,
        (Some(_), None) => return Err("name the questions too, with --questions".into()),
        (None, _) => own::own_set()?,
    };
    let quality = quality::measure(bench, backend, set, arguments.split, &arguments.rankings)?;
    println!("{}", quality.table());
    quality::save(arguments.json.as_deref(), &quality.json())
}

/// Asks for what was said before, and prints a table.
pub(crate) fn adjacency(bench: &Bench, backend: Backend) -> Result<(), Failure> {
    let arguments = &bench.arguments.search;
    let sessions: Vec<SessionRow> = match (&arguments.transcripts, &arguments.sessions) {
        (Some(folder), _) => transcripts::read(bench, backend, &arguments.transcripts_of, folder)?,
        (None, Some(sessions)) => read_lines(sessions)?,
        (None, None) => own::own_set()?.sessions,
    };
    let adjacency = adjacency::measure(bench, backend, &sessions, &arguments.rankings)?;
    println!("{}", adjacency.table());
    quality::save(arguments.json.as_deref(), &adjacency.json())
}

/// Writes our own set to the files that are named.
pub(crate) fn write_set(arguments: &SearchArguments) -> Result<(), Failure> {
    match (&arguments.sessions, &arguments.questions) {
        (Some(sessions), Some(questions)) => own::own_set()?.write(sessions, questions),
        _ => Err("name two files to write, with --sessions and --questions".into()),
    }
}

/// Measures the index as it grows.
pub(crate) fn speed(bench: &Bench, backend: Backend, report: &mut Report) -> Result<(), Failure> {
    speed::measure(bench, backend, &bench.arguments.search.passages, report)
}
