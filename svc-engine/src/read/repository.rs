//! Which repositories a query is about, decided in its snapshot.

use std::collections::{BTreeMap, BTreeSet};

use svc_engine_derive::repository::{Mention, Repositories, Selection, Selector, SelectorError};
use svc_engine_fact::{Lifetime, PullRequest, Push};
use svc_engine_store::{CiOutcomeRow, ObservationRow, Snapshot};
use svc_model::open::Open;
use svc_model::problem::{Decline, QueryFault};
use svc_model::query::{CommitLink, CommitRequest, ObservationSource, RepositorySelector};
use svc_model::repository::{CommitSha, RepositoryDecline, RepositoryIdentity, RepositoryName};
use svc_model::time::Instant;

use crate::error::Error;

/// The names and identities that a query mentions.
#[derive(Debug, Default)]
pub(super) struct TouchedRepositories {
    names: BTreeSet<RepositoryName>,
    identities: BTreeSet<RepositoryIdentity>,
}

impl TouchedRepositories {
    /// Starts with those in a selector.
    pub(super) fn by(selector: &RepositorySelector) -> Self {
        Self {
            names: selector.repo.iter().cloned().collect(),
            identities: selector.identity.iter().cloned().collect(),
        }
    }

    /// Adds those in a fact. If it has an identity, its name does not matter.
    pub(super) fn add(&mut self, mention: Mention<'_>) {
        match mention.identity {
            // Thousands of facts mention the same few identities.
            Some(identity) if self.identities.contains(identity) => {}
            Some(identity) => drop(self.identities.insert(identity.clone())),
            None => self.names.extend(RepositoryName::new(mention.name)),
        }
    }

    /// Reads what visible facts received by the boundary claim about them.
    pub(super) fn read(
        &self,
        snapshot: &mut Snapshot<'_>,
        boundary: Instant,
    ) -> Result<Repositories, Error> {
        let claims = snapshot.repository_claims(&self.names, &self.identities, boundary)?;
        Ok(Repositories::new(claims)?)
    }
}

/// Returns the repositories of a selector, according to visible facts received by the boundary.
pub(super) fn select(
    snapshot: &mut Snapshot<'_>,
    repositories: &Repositories,
    selector: &RepositorySelector,
    boundary: Instant,
) -> Result<Selection, Error> {
    let selector = Selector {
        name: selector.repo.clone(),
        identity: selector.identity.clone(),
    };
    let selection = repositories
        .select(&selector)
        .map_err(|error| match error {
            SelectorError::Ambiguous => Error::from(Decline::RepositorySelectorAmbiguous),
            SelectorError::Conflict => QueryFault::SelectorConflict.into(),
        })?;
    match (selection, selector) {
        // The forge may have sent the identity of a run's repository but never its name.
        (
            Selection::None,
            Selector {
                name: None,
                identity: Some(identity),
            },
        ) if snapshot.has_nameless_outcome(&identity, boundary)? => {
            Ok(Selection::One(Lifetime::Identified(identity)))
        }
        (selection, _) => Ok(selection),
    }
}

/// Returns the repository of a link between a Session and a commit.
pub(super) fn of_observation(
    repositories: &Repositories,
    observed: &ObservationRow,
) -> Result<Lifetime, RepositoryDecline> {
    let push = observed.push.as_ref().map(|(name, identity)| Mention {
        name,
        identity: identity.as_ref(),
    });
    repositories.of_observation(mention(observed), push)
}

/// Returns what a link between a Session and a commit states about its repository, ignoring the
/// push that led to it.
pub(super) fn mention(observed: &ObservationRow) -> Mention<'_> {
    Mention {
        name: observed.repo.as_str(),
        identity: observed.repository.as_ref(),
    }
}

/// Returns where observations of one Session at one commit come from; nothing if one of them comes
/// from a note.
pub(super) fn source(
    mut observations: impl Iterator<Item = Option<ObservationSource>>,
) -> Option<Open<ObservationSource>> {
    let first = observations.next()??;
    observations
        .all(|source| source.is_some())
        .then_some(Open::Known(first))
}

/// Adds what a link between a Session and a commit mentions.
pub(super) fn touch(touched: &mut TouchedRepositories, observed: &ObservationRow) {
    touched.add(mention(observed));
    if let Some((name, identity)) = &observed.push {
        touched.add(Mention {
            name,
            identity: identity.as_ref(),
        });
    }
}

/// Returns what a push states about its repository.
pub(super) fn of_push(push: &Push) -> Mention<'_> {
    Mention {
        name: &push.repo,
        identity: push.repository.as_ref(),
    }
}

/// Returns what a pull request states about its repository.
pub(super) fn of_base(pull_request: &PullRequest) -> Mention<'_> {
    Mention {
        name: &pull_request.repo,
        identity: pull_request.repository.as_ref(),
    }
}

/// Returns what a pull request states about the repository of its branch.
pub(super) fn of_head(pull_request: &PullRequest) -> Mention<'_> {
    Mention {
        name: pull_request.head_repo.as_deref().unwrap_or_default(),
        identity: pull_request.head_repository.as_ref(),
    }
}

/// Keeps the outcomes of the selected repository, and returns the repositories of all mentions.
///
/// # Errors
///
/// If several repositories are selected, or the selector contradicts stored facts.
pub(super) fn retain_selected(
    snapshot: &mut Snapshot<'_>,
    selector: &RepositorySelector,
    rows: &mut Vec<CiOutcomeRow>,
    boundary: Instant,
) -> Result<Repositories, Error> {
    let mut touched = TouchedRepositories::by(selector);
    for row in &*rows {
        touched.add(of_outcome(row));
    }
    let repositories = touched.read(snapshot, boundary)?;
    match select(snapshot, &repositories, selector, boundary)? {
        Selection::All => {}
        Selection::One(selected) => {
            rows.retain(|row| repositories.holds(&selected, of_outcome(row)));
        }
        Selection::None => rows.clear(),
    }
    Ok(repositories)
}

/// Returns what an outcome states about its repository.
pub(super) fn of_outcome(row: &CiOutcomeRow) -> Mention<'_> {
    Mention {
        name: &row.repo,
        identity: row.repository.as_ref(),
    }
}

/// Returns the repository of an outcome: by its identity, or else by its name if no identity has
/// that name.
pub(super) fn repository_of(repositories: &Repositories, row: &CiOutcomeRow) -> Option<Lifetime> {
    match &row.repository {
        Some(identity) => Some(Lifetime::Identified(identity.clone())),
        None => repositories.of(of_outcome(row)).ok(),
    }
}

/// Returns the name of a repository in replies; empty if no fact names it.
pub(super) fn display(repositories: &Repositories, repository: &Lifetime) -> String {
    let names = repositories.names(repository);
    names.map_or_else(String::new, |names| names.display().to_string())
}

/// Returns the link to a commit in a repository. Without a repository, it leads to every repository
/// that has the commit.
pub(super) fn link(
    commit_sha: &CommitSha,
    repository: Option<&Lifetime>,
    boundary: Instant,
) -> CommitLink {
    let repository = match repository {
        Some(Lifetime::Identified(identity)) => RepositorySelector::identified(identity.clone()),
        Some(Lifetime::Named(name)) => RepositorySelector::named(name.clone()),
        None => RepositorySelector::default(),
    };
    CommitLink::new(&CommitRequest {
        commit_sha: commit_sha.clone(),
        repository,
        as_of: Some(boundary),
        explain: false,
    })
}

/// The number of facts without a repository, by reason.
#[derive(Debug, Default)]
pub(super) struct DeclineCounts(BTreeMap<RepositoryDecline, u64>);

impl DeclineCounts {
    /// Returns the repository, or counts the reason why there is none.
    pub(super) fn or_count(
        &mut self,
        repository: Result<Lifetime, RepositoryDecline>,
    ) -> Option<Lifetime> {
        repository
            .map_err(|reason| *self.0.entry(reason).or_default() += 1)
            .ok()
    }

    /// Returns the counts.
    pub(super) fn into_counts(self) -> BTreeMap<Open<RepositoryDecline>, u64> {
        let counts = self.0.into_iter();
        counts
            .map(|(reason, count)| (reason.into(), count))
            .collect()
    }
}
