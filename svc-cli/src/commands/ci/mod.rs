//! CI runs: pipelines report them, and operators look them up.

mod failures;
mod outcome;
mod place;
mod report;
mod selection;

use clap::Subcommand;

pub(crate) use self::failures::Failures;
pub(crate) use self::outcome::{
    Outcome, attempt_of, commit_command, fields, not_stored, others, run_flags, superseded,
};
pub(crate) use self::report::Report;
pub(crate) use self::selection::{FoundRun, RunOptions};
use crate::error::CommandError;
use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum Ci {
    /// Report how this pipeline or job ended.
    ///
    /// The repository, commit and run are read from the variables of GitHub Actions, GitLab CI,
    /// Jenkins, CircleCI or Buildkite; a flag overrides a variable. docs/integrate/ci.md lists what
    /// is sent for each system, and --dry-run shows it.
    Report(Box<Report>),
    /// Show how a run ended.
    Outcome(Box<Outcome>),
    /// List the failed runs of a repository, latest first.
    ///
    /// It shows one page; --all reads every page. Facts captured in the meantime do not appear. If
    /// a fact is quarantined or released between two pages, the next page is refused, so that a
    /// list never mixes two states.
    Failures(Box<Failures>),
}

impl Ci {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        match self {
            Self::Report(report) => report.run(output),
            Self::Outcome(outcome) => outcome.run(output),
            Self::Failures(failures) => failures.run(output),
        }
    }
}
