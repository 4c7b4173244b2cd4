//! Context: the few exact parts of earlier work that match a query.

mod discovery;
mod query;
mod retrieval;

pub use discovery::{
    CommitMatch, ContextDiscoveryRequest, DiscoveryCandidate, DiscoveryCoverage, DiscoveryResult,
    DiscoverySkipped,
};
pub(crate) use query::is_stop_word;
pub use query::{MaxBytes, Query, tokens};
pub use retrieval::{
    ContextCoverage, ContextItem, ContextResult, ContextRetrievalRequest, ContextSelectedRequest,
    ContextSkipped, ContextStatus,
};
