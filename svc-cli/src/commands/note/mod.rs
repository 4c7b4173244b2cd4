//! Notes on commits that name the Sessions that worked on them. A service that mirrors the
//! repository reads these notes.
//!
//! These commands work on the current repository, with the user's git and configuration. They need
//! neither a service nor a store.

mod call;
mod pending;
mod push;
mod remembered;
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
    /// Record which Session worked on a commit.
    ///
    /// It adds the Session to the commit's note in refs/notes/svc, unless it is already there.
    Stamp(stamp::Stamp),
    /// Remember that a Session wrote a file, for the commit that will contain it.
    ///
    /// An agent's hook calls this after an edit; the post-commit hook that `svc install git-hooks`
    /// installs then stamps the commit that changes the file, and forgets it. What is not committed
    /// is forgotten after 30 days. With --hook, it reads the hook's input from standard input and
    /// never fails, because it must not hold up the agent.
    Session(session::Remember),
    /// Push the notes, after merging those of others.
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
