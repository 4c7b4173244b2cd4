//! How a repository is shown.

use svc_model::query::LifetimeIdentity;

use super::repository::Repositories;
use crate::fact::Lifetime;

/// How a repository is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// A name of it: of those it had, the first in the alphabet.
    pub repo: String,
    /// Its identity; absent when it is only known by its name.
    pub identity: Option<LifetimeIdentity>,
}

impl Place {
    /// Returns how a repository is shown, given the names of all.
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
