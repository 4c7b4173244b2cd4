//! How a repository is shown.

use svc_engine_fact::Lifetime;
use svc_model::query::LifetimeIdentity;

use super::repository::Repositories;

/// How a repository is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryLabel {
    /// The alphabetically first of the names that it has had.
    pub repo: String,
    /// Its identity; `None` if only its name is known.
    pub identity: Option<LifetimeIdentity>,
}

impl RepositoryLabel {
    /// Returns how a repository is shown, given the names of all repositories.
    pub fn of(repositories: &Repositories, repository: &Lifetime) -> Self {
        Self {
            repo: repositories.names(repository).map_or_else(
                || repository.to_string(),
                |names| names.display().as_str().to_owned(),
            ),
            identity: repository.identity().cloned().map(LifetimeIdentity::from),
        }
    }
}
