//! Which call wrote what a commit adds to a file.
//!
//! A row ties one file of one commit of one repository to one call. A note of the commit names
//! Sessions, and the most similar of their calls is taken if it is similar at all; without one the most
//! similar of all calls near the push is a guess, and has to be much more similar. Similar means: of the
//! tokens of either the call's whole answer or the file's added lines, the part that both have. More in
//! one call than the file's lines counts against it, so what is found is a lower bound.
//!
//! The derivation asks for little and only for what it needs, in four steps:
//!
//! 1. [`Plan::new`] takes calls (without their texts), pushes and notes, and says whose commits are
//!    wanted ([`Plan::pushes`]): those of pushes that some call could have led to.
//! 2. [`Plan::with_ranges`] takes the commits of these pushes, and [`Commits::wanted`] says of which
//!    commits the diffs are needed: each once, under the first push that brought it.
//!    [`Commits::recall`] leaves out those of which somebody remembers what they were tied to when the
//!    same calls were within their reach ([`Reach`]).
//! 3. [`Commits::add`] takes the files of each diff ([`CommitFiles`], which may be kept as long as one
//!    likes, since a commit never changes), and [`Commits::with_files`] ends it. [`Texts::wants`] says
//!    which calls' answers are needed.
//! 4. [`Texts::add`] takes the tokens of one answer after another, and [`Texts::attribute`] scores.
//!
//! What is never added counts as what could not be read. Everything is bounded: what would take more
//! memory than [`FILE_TOKENS_MAX`], [`CALL_TOKENS_MAX`] and [`VOCABULARY_MAX`] allow, or more work than
//! [`LOOKS_MAX`], is refused as a whole, and the scoring asks whether it may go on.

mod commits;
mod files;
mod plan;
mod reach;
mod similarity;
mod texts;
mod tokens;

use svc_model::id::{FactId, SessionId};
use svc_model::query::AttributionSource;
use svc_model::reports::{AttributionSkip, Counts};
use svc_model::repository::{CommitSha, RepositoryDecline};
use svc_model::time::Instant;

pub use self::commits::Commits;
pub use self::files::{CommitFiles, FileTokens, is_code};
pub use self::plan::Plan;
pub use self::reach::{Reach, ReachKey, Tied, TiedCommit};
pub use self::similarity::Similarity;
pub use self::texts::Texts;
pub use self::tokens::TokenSet;
use crate::deadline::Passed;
use crate::fact::Lifetime;

/// How similar a call of a noted Session must be: 0.3.
pub const NOTE_FLOOR: Similarity = Similarity {
    common: 3,
    either: 10,
};
/// How similar a call must be that no note names: 0.7.
pub const GUESS_FLOOR: Similarity = Similarity {
    common: 7,
    either: 10,
};
/// Minutes before a push was received in which a call of a noted Session was observed: a week.
pub const NOTE_MINUTES_BEFORE: i64 = 7 * 24 * 60;
/// Minutes before a push was received in which any other call was observed.
pub const GUESS_MINUTES_BEFORE: i64 = 60;
/// Minutes after a push was received in which a call was observed.
pub const MINUTES_AFTER: i64 = 10;

/// Tokens of all files together.
pub const FILE_TOKENS_MAX: usize = 16 * 1024 * 1024;
/// Tokens of all calls together, as far as some file has them.
pub const CALL_TOKENS_MAX: usize = 24 * 1024 * 1024;
/// Different tokens of all files together.
pub const VOCABULARY_MAX: usize = 3_500_000;

/// Looks at a call for a file, of all files together: some seconds of work. Ordinary calls are told
/// apart by their rare words, so that few are looked at for each file.
pub const LOOKS_MAX: u64 = 3_000_000_000;

/// A call, without what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its id.
    pub inference_call_id: FactId,
    /// Its Session.
    pub session_id: SessionId,
    /// When it was observed.
    pub observed_at: Instant,
}

/// A push, and to which repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Push {
    /// Its id.
    pub push_id: FactId,
    /// When it was received.
    pub captured_at: Instant,
    /// Its repository, or why that cannot be determined.
    pub repository: Result<Lifetime, RepositoryDecline>,
}

/// That a note of a commit names a Session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The repository of the commit.
    pub repository: Lifetime,
    /// The commit.
    pub commit_sha: CommitSha,
    /// The Session.
    pub session_id: SessionId,
}

/// Among what calls and commits are tied. The order of each list plays no part, nor what stands in it
/// twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// The calls that compete.
    pub calls: Vec<Call>,
    /// The pushes whose commits are tied to them.
    pub pushes: Vec<Push>,
    /// What the notes of commits say.
    pub notes: Vec<Note>,
}

/// One file of one commit, and the call that wrote what was added to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribution {
    /// The repository.
    pub repository: Lifetime,
    /// The commit.
    pub commit_sha: CommitSha,
    /// The file.
    pub file_path: String,
    /// The call.
    pub inference_call_id: FactId,
    /// Its Session.
    pub session_id: SessionId,
    /// How similar they are.
    pub similarity: Similarity,
    /// Whether a note led to the call, or a guess.
    pub source: AttributionSource,
    /// The push that brought the commit.
    pub push_id: FactId,
}

impl Attribution {
    /// Returns what is tied to the call: the file, which has one row at most.
    pub fn place(&self) -> (&Lifetime, &CommitSha, &str) {
        (&self.repository, &self.commit_sha, &self.file_path)
    }
}

/// A commit that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssessedCommit {
    /// The repository.
    pub repository: Lifetime,
    /// The commit.
    pub commit_sha: CommitSha,
    /// The first push that brought it.
    pub push_id: FactId,
    /// When that push was received.
    pub pushed_at: Instant,
    /// Whether a call near the push, or one of a noted Session within its week, could have led to it.
    pub is_plausible: bool,
    /// What led to its rows: a note if any file has one, else a guess; nothing if no file has a row.
    pub source: Option<AttributionSource>,
    /// Whether that is all there is to find: with a note it is. Without one, a diff that cannot be read or a
    /// call whose content was erased may hide it.
    pub is_settled: bool,
}

/// What was derived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributions {
    /// By repository, commit and path; each at most once.
    pub rows: Vec<Attribution>,
    /// Every commit of a push that some call could have led to, by repository and commit.
    pub commits: Vec<AssessedCommit>,
    /// What has no row. Each push, commit and file of the above is counted once or has rows.
    pub skipped: Counts<AttributionSkip>,
    /// Files whose row is a guess, although an erased call of a noted Session may have written them.
    pub notes_hidden: u64,
    /// What the commits that were read are tied to, for whoever remembers it.
    pub tied: Vec<TiedCommit>,
}

/// Why nothing is derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttributionError {
    /// There is more to compare than memory, or time, is taken for.
    #[error("more tokens, or calls that are alike, than are compared at once")]
    TooMuch,
    /// The work must end.
    #[error(transparent)]
    Passed(#[from] Passed),
}

#[cfg(test)]
mod tests;
