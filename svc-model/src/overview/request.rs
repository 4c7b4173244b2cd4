use crate::closed_set;
use crate::field::Violations;
use crate::id::UserId;
use crate::json::WriteError;
use crate::limit::{OVERVIEW_SESSIONS_DEFAULT, OVERVIEW_SESSIONS_MAX};
use crate::parameter::{Declared, DefaultValue, Parameter, parameters};
use crate::query::{
    ModelName, REPO, REPOSITORY_HOST, REPOSITORY_ID, REPOSITORY_PROVIDER, RepositorySelector,
    SelectorParameters, as_of, row_limit,
};
use crate::request::{Incoming, Outgoing, Refusal, Request};
use crate::time::Instant;

closed_set! {
    /// The number of days that an overview covers.
    pub enum OverviewDays {
        /// The last 24 hours.
        One = "1",
        /// The last seven days.
        Seven = "7",
        /// The last 31 days.
        ThirtyOne = "31",
    }
}

impl OverviewDays {
    /// Returns the number.
    pub const fn get(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Seven => 7,
            Self::ThirtyOne => 31,
        }
    }
}

closed_set! {
    /// A figure of an overview, whose Sessions are asked for. The words are those of the figures.
    pub enum OverviewOutcome {
        /// A change.
        Changes = "changes",
        /// A change that was accepted.
        Accepted = "accepted",
        /// A change in a pushed commit.
        Committed = "committed",
        /// A change in a commit of a merged pull request.
        Merged = "merged",
        /// A change that was reverted.
        Reverted = "reverted",
        /// A committed change that CI passed.
        Passed = "passed",
        /// A committed change that failed CI.
        Failed = "failed",
        /// A committed change without a verdict.
        NoVerdict = "no_verdict",
        /// A change whose edits are gone.
        Deleted = "deleted",
        /// A change in none of the commits that could have been seen.
        NoCommitFound = "no_commit_found",
        /// A change of which nobody could have seen a commit.
        NotObservable = "not_observable",
        /// A proposal that was rejected.
        Rejected = "rejected",
        /// A call without a cost.
        Unpriced = "unpriced",
    }
}

row_limit! {
    /// The maximum number of Sessions of an overview: 1 to 1,000, by default 20.
    OverviewLimit, OVERVIEW_SESSIONS_DEFAULT, OVERVIEW_SESSIONS_MAX, "must be from 1 to 1000";
}

/// Asks what became of the work of the last days.
///
/// The repository, the model and the user select calls, and all figures are of these calls. The
/// outcome selects only which Sessions are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverviewRequest {
    /// The length of the window; by default seven days.
    pub days: Option<OverviewDays>,
    /// The end of the window and the boundary of the facts; by default now.
    pub as_of: Option<Instant>,
    /// Only calls whose work reached this repository.
    pub repository: RepositorySelector,
    /// Only calls of this model, exactly.
    pub model: Option<ModelName>,
    /// Only calls of this user, exactly.
    pub user_id: Option<UserId>,
    /// Only Sessions with a call that this figure counts.
    pub outcome: Option<OverviewOutcome>,
    /// The maximum number of Sessions.
    pub limit: OverviewLimit,
}

impl OverviewRequest {
    /// Returns whether it selects calls by anything but their time.
    pub fn is_narrowed(&self) -> bool {
        !self.repository.is_empty() || self.model.is_some() || self.user_id.is_some()
    }

    const DAYS: Declared<OverviewDays> = Declared::optional(
        "days",
        "The length of the window in days: `1`, `7` or `31`; by default 7.",
    );
    const AS_OF: Declared<Instant> = as_of(
        "The end of the window: count only calls observed before, and facts captured by, this moment; by default now.",
    );
    const MODEL: Declared<ModelName> =
        Declared::optional("model", "Only calls of this model, exactly.");
    const USER_ID: Declared<UserId> =
        Declared::optional("user_id", "Only calls of this user, exactly.");
    const OUTCOME: Declared<OverviewOutcome> = Declared::optional(
        "outcome",
        "List only Sessions with a call that this figure counts.",
    );
    const LIMIT: Declared<OverviewLimit> = Declared::optional(
        "limit",
        "The maximum number of Sessions: 1 to 1,000, by default 20.",
    )
    .or(DefaultValue::Number(OVERVIEW_SESSIONS_DEFAULT));
}

impl Request for OverviewRequest {
    const PARAMETERS: &'static [Parameter] = parameters![
        Self::DAYS,
        Self::AS_OF,
        REPO,
        REPOSITORY_PROVIDER,
        REPOSITORY_HOST,
        REPOSITORY_ID,
        Self::MODEL,
        Self::USER_ID,
        Self::OUTCOME,
        Self::LIMIT,
    ];

    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let mut violations = Violations::default();
        let v = &mut violations;
        let days = Self::DAYS.read(incoming, v);
        let as_of = Self::AS_OF.read(incoming, v);
        let repository = SelectorParameters::read(incoming, v);
        let model = Self::MODEL.read(incoming, v);
        let user_id = Self::USER_ID.read(incoming, v);
        let outcome = Self::OUTCOME.read(incoming, v);
        let limit = Self::LIMIT.read(incoming, v);
        violations.finish(|| Some(()))?;
        Ok(Self {
            days,
            as_of,
            repository: repository.complete()?,
            model,
            user_id,
            outcome,
            limit: limit.unwrap_or_default(),
        })
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        let mut outgoing = Self::DAYS.write_any(Outgoing::default(), self.days.as_ref());
        outgoing = Self::AS_OF.write_any(outgoing, self.as_of.as_ref());
        outgoing = self.repository.write(outgoing);
        outgoing = Self::MODEL.write_any(outgoing, self.model.as_ref());
        outgoing = Self::USER_ID.write_any(outgoing, self.user_id.as_ref());
        outgoing = Self::OUTCOME.write_any(outgoing, self.outcome.as_ref());
        Ok(Self::LIMIT.write(outgoing, &self.limit))
    }
}
