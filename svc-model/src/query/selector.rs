#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::field::{Fields, Violations};
use crate::open::Open;
use crate::problem::QueryFault;
use crate::repository::{
    RepositoryHost, RepositoryId, RepositoryIdentity, RepositoryName, RepositoryProvider,
};
use crate::request::Outgoing;

/// Which repository is meant: by its name, by its identity, by both, or none in particular.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepositorySelector {
    /// The name; with an identity it must be one of the names of that repository.
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

    /// Returns whether no repository in particular is meant.
    pub fn is_empty(&self) -> bool {
        self.repo.is_none() && self.identity.is_none()
    }

    /// Adds the parameters that say so.
    pub(super) fn write(&self, mut outgoing: Outgoing) -> Outgoing {
        if let Some(repo) = &self.repo {
            outgoing = outgoing.with_query("repo", repo.as_str());
        }
        if let Some(identity) = &self.identity {
            outgoing = outgoing
                .with_query("repository_provider", identity.repository_provider.as_str())
                .with_query("repository_host", identity.repository_host.as_str())
                .with_query("repository_id", identity.repository_id.as_str());
        }
        outgoing
    }
}

/// The four parameters of a selector, each valid; the identity need not be whole yet.
#[derive(Debug)]
pub(super) struct SelectorParameters {
    repo: Option<RepositoryName>,
    provider: Option<RepositoryProvider>,
    host: Option<RepositoryHost>,
    id: Option<RepositoryId>,
}

impl SelectorParameters {
    pub(super) fn read(fields: &Fields<'_>, violations: &mut Violations) -> Self {
        Self {
            repo: fields.present("repo", violations),
            provider: fields.present("repository_provider", violations),
            host: fields.present("repository_host", violations),
            id: fields.present("repository_id", violations),
        }
    }

    /// Returns the selector; of an identity all three components must be given, or none.
    pub(super) fn complete(self) -> Result<RepositorySelector, QueryFault> {
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

/// The identity of a repository lifetime in a reply.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct LifetimeIdentity {
    /// The kind of forge.
    pub provider: Open<RepositoryProvider>,
    /// The host of the forge.
    pub host: RepositoryHost,
    /// The forge's id of the repository.
    pub repository_id: RepositoryId,
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
    /// Returns the identity as a question names it; nothing when the forge is of a kind that this
    /// version cannot ask for.
    pub fn repository(&self) -> Option<RepositoryIdentity> {
        Some(RepositoryIdentity {
            repository_provider: *self.provider.known()?,
            repository_host: self.host.clone(),
            repository_id: self.repository_id.clone(),
        })
    }
}

/// Counts whose names are reasons to count a fact to no repository.
#[cfg(feature = "schema")]
pub(super) fn counts_by_decline(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "propertyNames": generator.subschema_for::<crate::repository::RepositoryDecline>(),
        "additionalProperties": generator.subschema_for::<u64>(),
    })
}
