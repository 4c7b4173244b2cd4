//! Which call wrote the lines that a commit adds to a file.
//!
//! A row ties one file of one commit in one repository to one call. If notes on the commit name
//! Sessions, the most similar of their calls is taken, provided that it is similar at all.
//! Otherwise the most similar of all calls near the push is a guess, and has to be much more
//! similar. Similarity is the share of tokens that the call's whole answer and the file's added
//! lines have in common, out of all tokens in either. Whatever else a call wrote counts against it,
//! so the result is a lower bound.
//!
//! The derivation asks only for what it needs, in four steps:
//!
//! 1. [`Plan::new`] takes calls (without their texts), pushes and notes. [`Plan::pushes`] returns
//!    the pushes that some call could have led to: only their commits are wanted.
//! 2. [`Plan::with_ranges`] takes the commits of these pushes, and [`Commits::wanted`] returns the
//!    commits whose diffs are needed, each once, under the first push that brought it.
//!    [`Commits::recall`] drops the commits whose result is remembered from a time when the same
//!    calls were within their reach ([`CallReach`]).
//! 3. [`Commits::add`] takes the files of each diff ([`CommitFiles`], which can be cached forever,
//!    since a commit never changes), and [`Commits::with_files`] ends this step. [`Texts::wants`]
//!    returns whether a call's answer is needed.
//! 4. [`Texts::add`] takes the tokens of one answer at a time, and [`Texts::attribute`] scores.
//!
//! Whatever is never added counts as unreadable. Everything is bounded: input that needs more
//! memory than [`FILE_TOKENS_MAX`], [`CALL_TOKENS_MAX`] and [`VOCABULARY_MAX`] allow, or more work
//! than [`LOOKS_MAX`], is refused as a whole, and scoring regularly checks whether it may go on.

mod commits;
mod files;
mod plan;
mod reach;
mod sight;
mod similarity;
mod texts;
mod tokens;

use svc_model::id::{FactId, SessionId};
use svc_model::query::AttributionSource;
use svc_model::reports::{AttributionSkip, Counts, Unobservable};
use svc_model::repository::{CommitSha, RepositoryDecline};
use svc_model::time::Instant;

pub use self::commits::Commits;
pub use self::files::{CommitFiles, FileTokens, is_code};
pub use self::plan::Plan;
pub use self::reach::{CallReach, CommitTies, ReachKey, TiedCommit};
pub use self::similarity::Similarity;
pub use self::texts::Texts;
pub use self::tokens::CodeTokens;
use svc_engine_fact::Lifetime;
use svc_engine_fact::deadline::Passed;

/// The minimum similarity of a call of a noted Session: 0.3.
pub const NOTE_FLOOR: Similarity = Similarity {
    common: 3,
    either: 10,
};
/// The minimum similarity of a call that no note leads to: 0.7.
pub const GUESS_FLOOR: Similarity = Similarity {
    common: 7,
    either: 10,
};
/// How many minutes before the push a call of a noted Session may have been observed: a week.
pub const NOTE_MINUTES_BEFORE: i64 = 7 * 24 * 60;
/// How many minutes before the push any other call may have been observed.
pub const GUESS_MINUTES_BEFORE: i64 = 60;
/// How many minutes after the push a call may have been observed.
pub const MINUTES_AFTER: i64 = 10;

/// Maximum number of tokens in all files together.
pub const FILE_TOKENS_MAX: usize = 16 * 1024 * 1024;
/// Maximum number of tokens in all calls together, counting only those that occur in some file.
pub const CALL_TOKENS_MAX: usize = 24 * 1024 * 1024;
/// Maximum number of distinct tokens in all files together.
pub const VOCABULARY_MAX: usize = 3_500_000;

/// Maximum number of times that any file looks at any call: some seconds of work. Ordinary calls
/// differ in their rare words, so each file looks at few of them.
pub const LOOKS_MAX: u64 = 3_000_000_000;

/// A call, without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its id.
    pub inference_call_id: FactId,
    /// Its Session.
    pub session_id: SessionId,
    /// When it was observed.
    pub observed_at: Instant,
}

/// A push, and its repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Push {
    /// Its id.
    pub push_id: FactId,
    /// When it was received.
    pub captured_at: Instant,
    /// Its repository, or why it cannot be determined.
    pub repository: Result<Lifetime, RepositoryDecline>,
}

/// A note on a commit that names a Session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The repository of the commit.
    pub repository: Lifetime,
    /// The commit.
    pub commit_sha: CommitSha,
    /// The Session.
    pub session_id: SessionId,
}

/// Why the commits of a push are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MirrorAbsence {
    /// The repository has no mirror, or its mirror lacks the push.
    Never,
    /// The repository had a mirror, which is missing.
    Lost,
}

impl From<MirrorAbsence> for Unobservable {
    fn from(absence: MirrorAbsence) -> Self {
        match absence {
            MirrorAbsence::Never => Self::NoMirror,
            MirrorAbsence::Lost => Self::LostMirrors,
        }
    }
}

/// What calls and commits are matched from. The order of each list does not matter, and neither do
/// duplicates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// The competing calls.
    pub calls: Vec<Call>,
    /// The pushes whose commits are matched.
    pub pushes: Vec<Push>,
    /// The notes on commits.
    pub notes: Vec<Note>,
}

/// One file of one commit, and the call that wrote the added lines.
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
    /// Whether a note or a guess led to the call.
    pub source: AttributionSource,
    /// The push that brought the commit.
    pub push_id: FactId,
}

impl Attribution {
    /// Returns what is tied to the call: the file, which has at most one row.
    pub fn place(&self) -> (&Lifetime, &CommitSha, &str) {
        (&self.repository, &self.commit_sha, &self.file_path)
    }
}

/// A commit that was examined.
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
    /// Whether a call near the push, or a call of a noted Session in the week before it, could have
    /// led to it.
    pub is_plausible: bool,
    /// What led to its rows: a note if any file has one, otherwise a guess; `None` without rows.
    pub source: Option<AttributionSource>,
    /// Whether `source` is final. With a note it always is; without one, an unreadable diff or a
    /// call whose content was erased may hide a note.
    pub is_settled: bool,
}

/// The result of the derivation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributions {
    /// Sorted by repository, commit and path; each at most once.
    pub rows: Vec<Attribution>,
    /// Every commit of a push that some call could have led to, sorted by repository and commit.
    pub commits: Vec<AssessedCommit>,
    /// What has no row. Each push, commit and file is either counted here once or has rows.
    pub skipped: Counts<AttributionSkip>,
    /// Files whose row is a guess although an erased call of a noted Session may have written them.
    pub notes_hidden: u64,
    /// The calls of which no commit could have been seen, each with the reason. Those with a row are
    /// not among them, unless the row's commit could not be read in full.
    pub unobservable: Vec<(FactId, Unobservable)>,
    /// What each commit that was read is tied to, for a caller that remembers it.
    pub tied: Vec<TiedCommit>,
}

/// Why nothing was derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttributionError {
    /// There is more to compare than memory or time allows.
    #[error("too many tokens, or too many similar calls, to compare")]
    TooMuch,
    /// The work has to end.
    #[error(transparent)]
    Passed(#[from] Passed),
}

#[cfg(test)]
mod tests;
