//! Investigation: a CI run leads to its commit, a commit leads to its Sessions and repositories,
//! and a Session leads to everything that was captured of it.
//!
//! Each reply is one snapshot of stored facts up to a boundary. A link from one reply to the next
//! ([`CommitLink`]) contains that boundary, so that both show the same state.

mod ci;
mod commit;
mod commit_link;
mod constant;
mod failures;
mod link;
mod page;
mod parameter;
mod runs;
mod selector;
mod session;
mod sessions;
#[cfg(test)]
mod tests;

pub use ci::{CiOutcomeAnswer, CiOutcomeRecord, CiOutcomeRequest, SupersededOutcome};
pub use commit::{
    AttributionSource, CI_OUTCOME_VERSION, CommitCiOutcome, CommitEvidence, CommitRepository,
    CommitRequest, InferenceSkip, InferredCall, InferredRelationship, ObservationSource,
    ObservedSession,
};
pub use commit_link::{
    CommitRelation, LinkSkip, LinkedCommit, MergeMethod, NamedCommit, ThroughPullRequest,
};
pub use constant::{Found, Unknown};
pub use failures::{CiFailures, CiFailuresRequest};
pub use link::CommitLink;
pub use page::{CiCursor, PageLimit, SessionCursor, SessionPageLimit};
pub(crate) use page::{from_one, row_limit};
pub(crate) use parameter::{FALSE, PositiveNumber, TRUE, Truth, as_of, asks};
pub use runs::{CiDelivery, CiRun, CiRuns, CiRunsRequest, DeliveredCommit, RunName, RunUrl};
pub use selector::{LifetimeIdentity, RepositorySelector};
pub(crate) use selector::{
    REPO, REPOSITORY_HOST, REPOSITORY_ID, REPOSITORY_PROVIDER, SelectorParameters,
};
pub use session::{
    AttributedCommit, ContinuedSession, DossierCiOutcome, DossierPush, EventCount, EventCoverage,
    Gap, PushMatch, RetryTool, SessionAnswer, SessionDossier, SessionDossierRequest, SessionUsage,
    TimelineEvent, UnknownSession,
};
pub use sessions::{ModelName, SessionList, SessionSummary, SessionsRequest};
