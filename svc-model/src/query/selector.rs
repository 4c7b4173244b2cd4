use std::fmt;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::field::Violations;
use crate::open::Open;
use crate::parameter::Declared;
use crate::problem::QueryFault;
use crate::repository::{
    RepositoryHost, RepositoryId, RepositoryIdentity, RepositoryName, RepositoryProvider,
};
use crate::request::{Incoming, Outgoing};

/// Selects a repository by its name, by its identity, by both, or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepositorySelector {
    /// The name. If an identity is given too, the name must be one that the repository has had.
    pub repo: Option<RepositoryName>,
    /// The identity.
    pub identity: Option<RepositoryIdentity>,
}

impl RepositorySelector {
    /// Selects by name.
    pub fn named(repo: RepositoryName) -> Self {
        Self {
            repo: Some(repo),
            identity: None,
        }
    }

    /// Selects by identity.
    pub fn identified(identity: RepositoryIdentity) -> Self {
        Self {
            repo: None,
            identity: Some(identity),
        }
    }

    /// Returns whether no repository is selected.
    pub fn is_empty(&self) -> bool {
        self.repo.is_none() && self.identity.is_none()
    }

    /// Adds the parameters of the selector.
    pub(crate) fn write(&self, mut outgoing: Outgoing) -> Outgoing {
        outgoing = REPO.write_any(outgoing, self.repo.as_ref());
        if let Some(identity) = &self.identity {
            outgoing = REPOSITORY_PROVIDER.write(outgoing, &identity.repository_provider);
            outgoing = REPOSITORY_HOST.write(outgoing, &identity.repository_host);
            outgoing = REPOSITORY_ID.write(outgoing, &identity.repository_id);
        }
        outgoing
    }
}

pub(crate) const REPO: Declared<RepositoryName> =
    Declared::optional("repo", "The name of the repository: owner/name.");
pub(crate) const REPOSITORY_PROVIDER: Declared<RepositoryProvider> = Declared::optional(
    "repository_provider",
    "The kind of forge, `github`; the three components of an identity are given together.",
);
pub(crate) const REPOSITORY_HOST: Declared<RepositoryHost> = Declared::optional(
    "repository_host",
    "The host of the forge; given with the two other components of an identity or not at all.",
);
pub(crate) const REPOSITORY_ID: Declared<RepositoryId> = Declared::optional(
    "repository_id",
    "The forge's id of the repository: decimal text; given with the two other components of an \
     identity or not at all.",
);

/// The four parameters of a selector. Each is valid, but the identity may be incomplete.
#[derive(Debug)]
pub(crate) struct SelectorParameters {
    repo: Option<RepositoryName>,
    provider: Option<RepositoryProvider>,
    host: Option<RepositoryHost>,
    id: Option<RepositoryId>,
}

impl SelectorParameters {
    pub(crate) fn read(incoming: &Incoming<'_>, violations: &mut Violations) -> Self {
        Self {
            repo: REPO.read(incoming, violations),
            provider: REPOSITORY_PROVIDER.read(incoming, violations),
            host: REPOSITORY_HOST.read(incoming, violations),
            id: REPOSITORY_ID.read(incoming, violations),
        }
    }

    /// Returns the selector. The three components of an identity must be given together or not at
    /// all.
    pub(crate) fn complete(self) -> Result<RepositorySelector, QueryFault> {
        let identity = match (self.provider, self.host, self.id) {
            (Some(repository_provider), Some(repository_host), Some(repository_id)) => {
                Some(RepositoryIdentity {
                    repository_provider,
                    repository_host,
                    repository_id,
                })
            }
            (None, None, None) => None,
            _ => return Err(QueryFault::IncompleteIdentity),
        };
        Ok(RepositorySelector {
            repo: self.repo,
            identity,
        })
    }
}

/// The identity of a repository. A rename does not change it; a repository that is deleted and
/// created again under the same name has another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct LifetimeIdentity {
    /// The kind of forge.
    pub provider: Open<RepositoryProvider>,
    /// The host of the forge.
    pub host: RepositoryHost,
    /// The id that the forge gave the repository.
    pub repository_id: RepositoryId,
}

/// `provider/host/id`.
impl fmt::Display for LifetimeIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            provider,
            host,
            repository_id,
        } = self;
        write!(f, "{provider}/{host}/{repository_id}")
    }
}

impl From<RepositoryIdentity> for LifetimeIdentity {
    fn from(identity: RepositoryIdentity) -> Self {
        Self {
            provider: identity.repository_provider.into(),
            host: identity.repository_host,
            repository_id: identity.repository_id,
        }
    }
}

impl LifetimeIdentity {
    /// Returns the identity for use in a request; nothing if this version does not know the kind of
    /// forge.
    pub fn repository(&self) -> Option<RepositoryIdentity> {
        Some(RepositoryIdentity {
            repository_provider: *self.provider.known()?,
            repository_host: self.host.clone(),
            repository_id: self.repository_id.clone(),
        })
    }
}

/// Describes counts by the reason that a fact cannot be assigned to a repository.
#[cfg(feature = "schema")]
pub(crate) fn counts_by_decline(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "propertyNames": generator.subschema_for::<crate::repository::RepositoryDecline>(),
        "additionalProperties": generator.subschema_for::<u64>(),
    })
}
