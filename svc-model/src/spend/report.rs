#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ItemCost, PriceTableName, UnpricedReason};
use crate::closed_set;
use crate::id::{SessionId, UserId};
use crate::open::Open;
use crate::query::LifetimeIdentity;
use crate::reports::{AttributionSkip, Counts, LifecycleRepositorySkips, Provenance, ReportScope};
use crate::repository::CommitSha;
use crate::version::Version1;

closed_set! {
    /// What the rows of a spend report stand for.
    pub enum SpendBy {
        /// A model of a provider.
        Model = "model",
        /// A Session.
        Session = "session",
        /// A repository that the work reached.
        Repository = "repository",
        /// A pull request that the work reached.
        PullRequest = "pull-request",
        /// A commit that the work reached.
        Commit = "commit",
        /// A user.
        User = "user",
        /// An agent.
        Agent = "agent",
    }
}

impl SpendBy {
    /// Returns whether the rows stand for something that the work reached.
    pub const fn is_of_commits(self) -> bool {
        matches!(self, Self::Repository | Self::PullRequest | Self::Commit)
    }
}

closed_set! {
    /// How the cost of spend figures is to be read.
    pub enum SpendBasis {
        /// At list price: it is not the bill of a subscription or of a discount.
        ListPrice = "list_price",
    }
}

closed_set! {
    /// A row of items that belong to no single key.
    pub enum SpendRowWithoutKey {
        /// The model is unknown.
        NoModel = "no_model",
        /// The user is unknown.
        NoUser = "no_user",
        /// The agent is unknown: a gateway does not say.
        NoAgent = "no_agent",
        /// The Session was observed at several commits, repositories or pull requests.
        Shared = "shared",
        /// The commits of the work are in no pull request that is known.
        NoPullRequest = "no_pull_request",
        /// No evidence of a commit. It does not say that the work was in vain.
        NoCommitEvidence = "no_commit_evidence",
    }
}

/// What a row of a spend report stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
#[serde(untagged)]
pub enum SpendKey {
    /// Items that belong to no single key.
    Without {
        /// Why.
        row: Open<SpendRowWithoutKey>,
    },
    /// A pull request.
    PullRequest {
        /// The identity of the repository; null if it is known by name only.
        repository: Option<LifetimeIdentity>,
        /// A name of the repository.
        repo: String,
        /// The number.
        pr_number: i64,
        /// Whether it is known to be merged.
        merged: bool,
    },
    /// A commit.
    Commit {
        /// The identity of the repository; null if it is known by name only.
        repository: Option<LifetimeIdentity>,
        /// A name of the repository.
        repo: String,
        /// The full id.
        commit_sha: CommitSha,
    },
    /// A repository.
    Repository {
        /// The identity; null if the repository is known by name only.
        repository: Option<LifetimeIdentity>,
        /// A name of the repository.
        repo: String,
    },
    /// A Session.
    Session {
        /// The id.
        session_id: SessionId,
    },
    /// A user.
    User {
        /// The id.
        user_id: UserId,
    },
    /// An agent.
    Agent {
        /// Its name, such as `claude-code`.
        agent: String,
    },
    /// A model.
    Model {
        /// The provider, as captured; null if unknown.
        model_provider: Option<String>,
        /// The model, as captured.
        model: String,
    },
}

/// What items cost and used together.
///
/// An item is a visible inference call with the visible usage receipts that are about it, or the
/// receipts of one call that was not captured. So a call that several sources report is spent once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SpendFigure {
    /// The items with a captured call.
    pub calls: u64,
    /// The items without one.
    pub receipts_only: u64,
    /// The items whose cost a source reported.
    pub captured: ItemCost,
    /// The items whose cost was derived from their tokens and a price table.
    pub derived: ItemCost,
    /// The items whose cost is unknown. They add nothing to the cost.
    pub unpriced_items: u64,
    /// The cost of the captured and of the derived items, in micro-USD.
    pub cost_usd_micros: i64,
    /// The input tokens outside any cache, of the items that have them.
    pub input_tokens_uncached: i64,
    /// The input tokens that were read from a cache.
    pub cache_read_tokens: i64,
    /// The input tokens that were written to a cache.
    pub cache_write_tokens: i64,
    /// The output tokens, including reasoning.
    pub output_tokens: i64,
    /// The items whose input or output tokens are unknown.
    pub items_without_counts: u64,
}

impl SpendFigure {
    /// Returns the number of items.
    pub const fn items(&self) -> u64 {
        self.calls + self.receipts_only
    }
}

/// A row of a spend report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SpendRow {
    /// What it stands for.
    pub key: SpendKey,
    /// The figure.
    #[serde(flatten)]
    pub figure: SpendFigure,
    /// The items whose text is in the commits; the others are other calls of the same Sessions.
    /// Present only in a report by repository, pull request or commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributed_items: Option<u64>,
}

/// The rows beyond the limit, together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct OtherSpendRows {
    /// How many there are.
    pub rows: u64,
    /// Their figure.
    #[serde(flatten)]
    pub figure: SpendFigure,
    /// Their attributed items, as in `SpendRow`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributed_items: Option<u64>,
}

/// What the items of one outcome cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct OutcomeSpend {
    /// The figure.
    #[serde(flatten)]
    pub figure: SpendFigure,
    /// The items that are attributed by a note.
    pub git_notes_items: u64,
    /// The items that are attributed by similarity only, which is a guess.
    pub similarity_items: u64,
}

/// What the spend became. Each item is in the first of these that applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SpendOutcomes {
    /// Attributed to a file of a commit of a merged pull request.
    pub merged: OutcomeSpend,
    /// Attributed to a file of a commit; no merge is known.
    pub committed: OutcomeSpend,
    /// An edit of the call was kept, at least in part; no commit is known.
    pub edits_kept: OutcomeSpend,
    /// Every edit of the call whose Fate is known was deleted before the end of the Session.
    pub edits_deleted: OutcomeSpend,
    /// A person rejected what the call proposed, and accepted none of it.
    pub rejected: OutcomeSpend,
    /// Another call of a Session that was observed at a commit.
    pub session_committed: OutcomeSpend,
    /// No evidence of a commit. It does not say that the work was in vain.
    pub no_commit_evidence: OutcomeSpend,
}

/// What CI said of the commits that the spend reached: those that the items are attributed to, or
/// the only commit of their Session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SpendCi {
    /// The commit passed.
    pub passed: SpendFigure,
    /// The commit failed.
    pub failed: SpendFigure,
    /// There is no commit, or it has no verdict.
    pub no_verdict: SpendFigure,
}

/// How many usage receipts of the cohort are about a captured call, and what told so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct JoinedReceipts {
    /// By an id of the provider.
    pub ids: u64,
    /// By equal counts of one model near in time.
    pub counts: u64,
    /// About no captured call.
    pub unjoined: u64,
}

/// What the calls of a cohort cost at list price, and what the spend became.
///
/// For every member of the figures, the sum over `rows` and `other_rows` is that of `total`; so are
/// the sums over `outcomes`, and over `ci`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CohortSpend {
    /// Always `list_price`: the figures are nobody's bill.
    pub basis: Open<SpendBasis>,
    /// What the rows stand for.
    pub by: Open<SpendBy>,
    /// All items.
    pub total: SpendFigure,
    /// The rows by descending cost, then by descending number of unpriced items, then by key.
    pub rows: Vec<SpendRow>,
    /// The rows beyond the limit; null if there are none.
    pub other_rows: Option<OtherSpendRows>,
    /// What the spend became; null if the request asks for no outcomes.
    pub outcomes: Option<SpendOutcomes>,
    /// What CI said; null if the request asks for no outcomes.
    pub ci: Option<SpendCi>,
    /// The items without a cost, by reason.
    pub unpriced: Counts<UnpricedReason>,
    /// The price table that costs were derived with; null if none was loaded.
    pub price_table: Option<PriceTableName>,
    /// How the receipts of the cohort were joined to calls.
    pub joined_receipts: JoinedReceipts,
    /// The items whose call and receipt have costs that differ by more than one micro-USD. The
    /// call's stands.
    pub cost_disagreements: u64,
    /// Facts whose repository cannot be determined, by kind. A fact may be in several kinds.
    pub repository_skipped: LifecycleRepositorySkips,
    /// What could not be examined when calls were attributed to commits, by reason.
    pub attribution_skipped: Counts<AttributionSkip>,
    /// The number of repositories whose mirror was fetched before and cannot be found now. Absent if
    /// there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_mirrors: Option<u64>,
    /// The rules that the report was derived by.
    pub provenance: Provenance,
}

/// The spend report: what a cohort's calls cost, and what the spend became.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SpendReport {
    /// The version of this message: always 1.
    pub schema_version: Version1,
    /// The calls that the report covers, and its boundary.
    pub scope: ReportScope,
    /// The report.
    pub report: CohortSpend,
}
