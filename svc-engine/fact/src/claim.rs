use svc_model::repository::{RepositoryIdentity, RepositoryName};
use svc_model::time::Instant;

/// A repository's name, as proved by visible facts. It is read from facts and is not one itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryClaim {
    /// The name.
    pub name: RepositoryName,
    /// The repository.
    pub repository: RepositoryIdentity,
    /// When the latest fact with the name was received; `None` if facts only say that the
    /// repository once had it.
    pub borne_at: Option<Instant>,
}
