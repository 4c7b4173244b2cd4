//! What a pipeline tells the service.

mod environment;
mod flags;
mod outcome;
mod report;
mod repository;
mod system;

use clap::Subcommand;

pub(crate) use self::report::Report;
use crate::error::CommandError;
use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum Ci {
    /// Report how this pipeline, or this job of it, ended.
    ///
    /// Which commit of which repository was checked, by which run, is read from the variables of
    /// GitHub Actions, GitLab CI, Jenkins, CircleCI or Buildkite; a flag wins over a variable. What
    /// is sent for each system is in docs/integrate.md, and --dry-run shows it.
    Report(Box<Report>),
}

impl Ci {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        match self {
            Self::Report(report) => report.run(output),
        }
    }
}
