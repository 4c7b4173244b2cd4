use svc_model::id::FactId;
use svc_model::repository::{RepositoryIdentity, RepositoryName};
use svc_model::time::Instant;

/// A renamed repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryRename {
    /// The id of the fact.
    pub rename_id: FactId,
    /// The repository.
    pub repository: RepositoryIdentity,
    /// The old name.
    pub old_repo: RepositoryName,
    /// The new name.
    pub new_repo: RepositoryName,
    /// The forge's id of the delivery.
    pub source_event_id: Option<String>,
    /// When it was renamed, if known. The time in the forge's webhook is not reliable.
    pub occurred_at: Option<Instant>,
    /// When the service received it.
    pub captured_at: Instant,
}
