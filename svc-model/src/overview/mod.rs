//! What became of the work of the last days, on one page: one set of figures for everything, for
//! each day, repository, model and Session, and what needs a look.
//!
//! Each figure counts calls of models, so the same call counts once in each. Missing evidence is a
//! figure of its own, and never a negative outcome.

mod request;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use request::{OverviewDays, OverviewLimit, OverviewOutcome, OverviewRequest};

use crate::capture::CaptureSource;
use crate::id::{SessionId, UserId};
use crate::open::{Open, Vocabulary};
use crate::query::LifetimeIdentity;
use crate::reports::{AttributionSkip, Counts, LifecycleRepositorySkips, Provenance, Unobservable};
use crate::repository::CommitSha;
use crate::spend::{PriceTableName, SpendFigure, UnpricedReason};
use crate::time::Instant;
use crate::version::Version1;

/// What became of some calls. The unit is a call, unless something else is said.
///
/// A *change* is a call that proposed an edit which somebody or a rule accepted, whose edit was
/// observed, or whose text is in a commit. `changes` is the sum of `committed`, `deleted`,
/// `no_commit_found` and `not_observable`; `committed` is the sum of `passed`, `failed` and
/// `no_verdict`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct OverviewFigures {
    /// The calls.
    pub calls: u64,
    /// Their Sessions.
    pub sessions: u64,
    /// The users of these Sessions. Sessions without a user count for none.
    pub people: u64,
    /// The changes.
    pub changes: u64,
    /// Those that were accepted, by a person or by a rule.
    pub accepted: u64,
    /// Those that a person accepted.
    pub accepted_by_people: u64,
    /// The changes whose text is in a pushed commit.
    pub committed: u64,
    /// Those of them that are attributed by similarity only, which is a guess.
    pub committed_by_similarity: u64,
    /// Those of `committed` with a commit of a merged pull request.
    pub merged: u64,
    /// Those of `committed` whose commit, or the commit that holds the merged work, a later commit
    /// reverts.
    pub reverted: u64,
    /// Those of `committed` that CI passed: the commit that holds the merged work, or their own.
    pub passed: u64,
    /// Those of `committed` that CI says now that it failed.
    pub failed: u64,
    /// Those of `committed` without a verdict of CI.
    pub no_verdict: u64,
    /// The changes without a commit whose edits were gone before the end of their Session.
    pub deleted: u64,
    /// The changes that are in none of the commits that could have been seen.
    pub no_commit_found: u64,
    /// The changes of which nobody could have seen a commit: see `unobservable` of the overview.
    pub not_observable: u64,
    /// The calls whose proposal a person rejected, and of which nothing was accepted. No changes.
    pub rejected: u64,
    /// What the calls cost, with the receipts of calls that were not captured.
    pub spend: SpendFigure,
}

/// The time that an overview covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct OverviewWindow {
    /// The length in days: 1, 7 or 31.
    pub days: u64,
    /// The start, included. A call belongs to the window by its observation time.
    pub start: Instant,
    /// The end, not included.
    pub end: Instant,
    /// The boundary: only facts that the service received at or before this moment count.
    pub as_of: Instant,
}

/// What became of the calls of one day, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct OverviewDay {
    /// The start of the day, or of the window if that is later.
    pub start: Instant,
    /// The end of the day, or of the window if that is earlier; not included.
    pub end: Instant,
    /// The figures.
    pub figures: OverviewFigures,
}

/// What became of the calls whose work reached one repository: whose text is in a commit of it, or
/// whose Session was observed only at commits of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct OverviewRepository {
    /// A name of the repository; null for the calls whose repository is unknown.
    pub repo: Option<String>,
    /// Its identity; null if it is known by name only.
    pub repository_identity: Option<LifetimeIdentity>,
    /// The figures.
    pub figures: OverviewFigures,
}

/// What became of the calls of one model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct OverviewModel {
    /// The model, as captured; null for the calls whose model is unknown.
    pub model: Option<String>,
    /// The figures.
    pub figures: OverviewFigures,
}

/// A pull request that the work of a Session reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct OverviewPullRequest {
    /// A name of the repository.
    pub repo: String,
    /// The number.
    pub pr_number: i64,
    /// Whether it is known to be merged.
    pub merged: bool,
}

/// One Session of the window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct OverviewSession {
    /// The id.
    pub session_id: SessionId,
    /// The beginning of what its user asked first; null if its first call has no such text.
    pub title: Option<String>,
    /// The users that its calls name, sorted.
    pub user_ids: Vec<UserId>,
    /// The models of its calls, sorted.
    pub models: Vec<String>,
    /// The names of the repositories that its work reached, sorted.
    pub repositories: Vec<String>,
    /// The pull requests that its work reached, sorted.
    pub pull_requests: Vec<OverviewPullRequest>,
    /// When its last call of the window was observed.
    pub last_observed_at: Instant,
    /// The figures of its calls in the window.
    pub figures: OverviewFigures,
}

/// Something that needs a look. It says where to look, not what is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Attention {
    /// CI failed on a commit, and there are Sessions behind it.
    FailedCommit {
        /// A name of the repository.
        repo: String,
        /// Its identity; null if it is known by name only.
        repository_identity: Option<LifetimeIdentity>,
        /// The commit that failed.
        commit_sha: CommitSha,
        /// The pull request whose merged work it holds; null if it is a commit of the work itself.
        pr_number: Option<i64>,
        /// The names of the workflows that failed, sorted.
        workflows: Vec<String>,
        /// The Sessions whose calls or commits lead to it, sorted.
        session_ids: Vec<SessionId>,
    },
    /// All edits of calls of a Session were gone before its end.
    DeletedEdits {
        /// The Session.
        session_id: SessionId,
        /// The number of calls.
        calls: u64,
    },
    /// Calls were observed near at least three commits of a repository, and no note of any of them
    /// names a Session.
    NotesAbsent {
        /// A name of the repository.
        repo: String,
        /// Its identity; null if it is known by name only.
        repository_identity: Option<LifetimeIdentity>,
        /// The commits of the window that an agent could have made.
        commits: u64,
    },
    /// A repository was pushed to less recently than is usual for it.
    PushesAbsent {
        /// A name of the repository.
        repo: String,
        /// Its identity; null if it is known by name only.
        repository_identity: Option<LifetimeIdentity>,
        /// When the last push was received.
        last_push_at: Instant,
        /// The median time between two pushes, in seconds.
        usual_seconds: u64,
    },
    /// A source delivered less recently than is usual for it.
    SilentSource {
        /// The source.
        source: Open<CaptureSource>,
        /// When its last delivery arrived.
        last_delivery_at: Instant,
        /// The average time between two deliveries, in seconds.
        usual_seconds: u64,
    },
}

impl Vocabulary for Attention {
    fn word(&self) -> &'static str {
        match self {
            Self::FailedCommit { .. } => "failed_commit",
            Self::DeletedEdits { .. } => "deleted_edits",
            Self::NotesAbsent { .. } => "notes_absent",
            Self::PushesAbsent { .. } => "pushes_absent",
            Self::SilentSource { .. } => "silent_source",
        }
    }

    fn unknown_word(value: &crate::json::Json) -> Option<&str> {
        let kind = value.as_object()?.get("kind")?.as_str()?;
        let known = [
            "failed_commit",
            "deleted_edits",
            "notes_absent",
            "pushes_absent",
            "silent_source",
        ];
        (!known.contains(&kind)).then_some(kind)
    }
}

/// What became of the work of the last days.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Overview {
    /// The version of this message: always 1.
    pub schema_version: Version1,
    /// What became of the work, in one English sentence. Programs read the figures.
    pub sentence: String,
    /// The time that it covers.
    pub window: OverviewWindow,
    /// The figures of all calls that the request selects.
    pub figures: OverviewFigures,
    /// Those of each day, in order. Their calls are the calls of `figures`.
    pub days: Vec<OverviewDay>,
    /// Those of each repository, by descending number of calls, then by name; those whose
    /// repository is unknown are last.
    pub repositories: Vec<OverviewRepository>,
    /// Those of each model, by descending number of calls, then by name; those whose model is
    /// unknown are last.
    pub models: Vec<OverviewModel>,
    /// What needs a look, at most 100 of each kind. The filters of the request do not matter for
    /// repositories and sources that fell silent.
    pub attention: Vec<Open<Attention>>,
    /// How many more there are.
    pub attention_left_out: u64,
    /// The Sessions that the request selects, by descending time of their last call, then by id; at
    /// most `limit`.
    pub sessions: Vec<OverviewSession>,
    /// How many Sessions the request selects.
    pub session_count: u64,
    /// Why the changes that are `not_observable` are so.
    pub unobservable: Counts<Unobservable>,
    /// Why calls have no cost.
    pub unpriced: Counts<UnpricedReason>,
    /// The price table that costs were derived with; null if none was loaded.
    pub price_table: Option<PriceTableName>,
    /// Facts whose repository cannot be determined, by kind.
    pub repository_skipped: LifecycleRepositorySkips,
    /// What could not be examined when calls were attributed to commits, by reason.
    pub attribution_skipped: Counts<AttributionSkip>,
    /// The number of repositories whose mirror was fetched before and cannot be found now. Absent if
    /// there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_mirrors: Option<u64>,
    /// The rules that it was derived by.
    pub provenance: Provenance,
}
