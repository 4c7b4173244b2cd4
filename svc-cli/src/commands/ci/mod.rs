//! The runs of CI systems: told to the service by a pipeline, asked for by an operator.

mod failures;
mod outcome;
mod place;
mod report;
mod selection;

use clap::Subcommand;

pub(crate) use self::failures::Failures;
pub(crate) use self::outcome::{
    Outcome, attempt_of, commit_command, fields, not_stored, others, run_flags,
};
pub(crate) use self::report::Report;
pub(crate) use self::selection::{FoundRun, RunOptions};
use crate::error::CommandError;
use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum Ci {
    /// Report how this pipeline, or this job of it, ended.
    ///
    /// Which commit of which repository was checked, by which run, is read from the variables of
    /// GitHub Actions, GitLab CI, Jenkins, CircleCI or Buildkite; a flag wins over a variable. What
    /// is sent for each system is in docs/integrate/ci.md, and --dry-run shows it.
    Report(Box<Report>),
    /// Show how a run ended.
    Outcome(Box<Outcome>),
    /// List the failed runs of a repository, the latest first.
    ///
    /// A page is read at a time; --all reads them all. What is captured meanwhile does not appear, and
    /// when a fact is quarantined or released meanwhile, the list is refused rather than mixed.
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
