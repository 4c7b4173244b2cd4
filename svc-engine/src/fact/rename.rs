use svc_model::id::FactId;
use svc_model::repository::{RepositoryIdentity, RepositoryName};
use svc_model::time::Instant;

/// The receipt of a repository's change of name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryRename {
    /// The id of the fact.
    pub rename_id: FactId,
    /// The repository.
    pub repository: RepositoryIdentity,
    /// The name it had.
    pub old_repo: RepositoryName,
    /// The name it has.
    pub new_repo: RepositoryName,
    /// The forge's id of the delivery.
    pub source_event_id: Option<String>,
    /// When it was renamed; the forge's webhook says nothing that could be trusted.
    pub occurred_at: Option<Instant>,
    /// When the service received it.
    pub captured_at: Instant,
}
