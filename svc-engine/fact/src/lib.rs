//! The immutable facts, as capture creates them and the store keeps them.
//!
//! A fact is complete when it is created: nothing is ever added to it or changed.

mod call;
mod call_key;
mod ci;
mod claim;
pub mod clock;
mod commit_claim;
pub mod deadline;
mod decision;
mod edit;
mod half;
mod lifetime;
mod observation;
pub mod private;
mod pull_request;
mod push;
mod raw;
mod rename;
mod retry;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod threads;
mod usage;

pub use call::{ContinuedInput, InferenceCall, SessionContinuation, Workplace};
pub use call_key::{CallKey, CallKeyKind};
pub use ci::CiOutcome;
pub use claim::RepositoryClaim;
pub use commit_claim::{CommitClaim, GitCommitId, NamedRepository};
pub use decision::DeveloperDecision;
pub use edit::{EditObservation, EditTexts, RejectedEdit};
pub use half::{
    CallHalf, CalledTools, HalfKey, HalfOutline, HalfSide, HalfState, KeptHalf, MessagesDigest,
};
pub use lifetime::Lifetime;
pub use observation::{ObservationOrigin, SessionCommitObservation};
pub use pull_request::{PullRequest, PullRequestMerge, PullRequestRevision};
pub use push::Push;
pub use raw::{RawPayload, Repeats, Segment};
pub use rename::RepositoryRename;
pub use retry::RetryLinkage;
pub use usage::{UsageReceipt, gemini_event};
