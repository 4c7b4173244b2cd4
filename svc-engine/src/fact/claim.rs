use svc_model::repository::{RepositoryIdentity, RepositoryName};
use svc_model::time::Instant;

/// That a repository bears a name, as visible facts prove it. It is read from facts and is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryClaim {
    /// The name.
    pub name: RepositoryName,
    /// The repository.
    pub repository: RepositoryIdentity,
    /// When the latest fact was received under the name; absent if facts only say that the
    /// repository bore it once.
    pub borne_at: Option<Instant>,
}
