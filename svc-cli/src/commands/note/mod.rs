//! Notes on commits: which Sessions worked on them. A service that mirrors the repository reads them.
//!
//! These commands work on the repository that they are called in, with its owner's git and
//! configuration. They need neither a service nor a store.

mod push;
pub(super) mod repository;
mod session;
mod show;
mod stamp;

use clap::Subcommand;

use crate::error::CommandError;
use crate::output::Output;

/// The ref of the notes.
pub(super) const NOTES: &str = "refs/notes/svc";

#[derive(Debug, Subcommand)]
pub(crate) enum Note {
    /// Record on a commit which Session worked on it.
    ///
    /// It adds to the note of the commit in refs/notes/svc what is not there yet.
    Stamp(stamp::Stamp),
    /// Remember a Session for the next commit.
    ///
    /// An agent's own hook calls it after an edit; the post-commit hook that `svc install git-hooks`
    /// installs stamps the commit and forgets the Session. With --hook the agent's description of
    /// its call is read from standard input, and nothing that goes wrong is a failure: it must not
    /// hold up the agent.
    Session(session::Remember),
    /// Push the notes, after joining them with those of others.
    Push(push::Push),
    /// Show the Sessions that the notes of a commit name.
    Show(show::Show),
}

impl Note {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        match self {
            Self::Stamp(stamp) => stamp.run(output),
            Self::Session(remember) => remember.run(output),
            Self::Push(push) => push.run(output),
            Self::Show(show) => show.run(output),
        }
    }
}
