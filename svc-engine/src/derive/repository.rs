//! Which repository a fact is part of.
//!
//! A repository with an identity is told apart by it: a name that is given up and taken again is
//! another repository. Facts without an identity are known by their name alone, as long as no
//! repository with an identity bears that name; afterwards nobody guesses which one they mean.

use std::collections::{BTreeMap, BTreeSet};

use svc_model::limit::REPOSITORY_CLAIMS_MAX;
use svc_model::problem::Decline;
use svc_model::repository::{RepositoryDecline, RepositoryIdentity, RepositoryName};
use svc_model::time::Instant;

use crate::fact::RepositoryClaim;

/// One repository of an organization. The order is that of answers: identities as texts, then names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Repository {
    /// Told apart by its identity.
    Identified(RepositoryIdentity),
    /// Known by its name alone.
    Named(RepositoryName),
}

/// What a fact says of its repository.
#[derive(Clone, Copy, Debug)]
pub struct Mention<'f> {
    /// The name on the fact; may be empty.
    pub name: &'f str,
    /// The identity on the fact.
    pub identity: Option<&'f RepositoryIdentity>,
}

/// The names of one repository. There is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    all: BTreeSet<RepositoryName>,
    /// The one under which the latest fact was received, and when.
    latest: (Option<Instant>, RepositoryName),
}

impl Names {
    fn one(name: RepositoryName, borne_at: Option<Instant>) -> Self {
        Self {
            all: BTreeSet::from([name.clone()]),
            latest: (borne_at, name),
        }
    }

    fn add(&mut self, name: RepositoryName, borne_at: Option<Instant>) {
        // Of two names of one moment the later one in the alphabet, whatever comes first.
        if (borne_at, &name) > (self.latest.0, &self.latest.1) {
            self.latest = (borne_at, name.clone());
        }
        self.all.insert(name);
    }

    /// Returns every name, sorted.
    pub const fn all(&self) -> &BTreeSet<RepositoryName> {
        &self.all
    }

    /// Returns the name that stands for the repository in answers: the first in the alphabet, so
    /// that it changes as seldom as can be.
    pub fn display(&self) -> &RepositoryName {
        self.all.first().unwrap_or(&self.latest.1)
    }

    /// Returns the name under which the latest fact was received.
    pub const fn current(&self) -> &RepositoryName {
        &self.latest.1
    }
}

/// A question's choice of repositories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// By a name.
    pub name: Option<RepositoryName>,
    /// By an identity.
    pub identity: Option<RepositoryIdentity>,
}

/// What a selector selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Every repository: nothing was selected.
    All,
    /// One.
    One(Repository),
    /// None: no fact names the identity.
    None,
}

/// Why a selector selects nothing that could be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// Several repositories bear the name.
    #[error("several repositories bear the name")]
    Ambiguous,
    /// The repository with the identity never bore the name.
    #[error("the repository never bore the name")]
    Conflict,
}

/// The names that facts prove, of the names and identities that a question touches.
///
/// Whoever asks about a name or an identity must have had its claims read: one that was not read
/// looks like one that nobody bears.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repositories {
    names: BTreeMap<RepositoryIdentity, Names>,
    bearers: BTreeMap<RepositoryName, BTreeSet<RepositoryIdentity>>,
}

impl Repositories {
    /// Collects claims.
    ///
    /// # Errors
    ///
    /// When there are more than [`REPOSITORY_CLAIMS_MAX`].
    pub fn new(claims: Vec<RepositoryClaim>) -> Result<Self, Decline> {
        if claims.len() > REPOSITORY_CLAIMS_MAX {
            return Err(Decline::RepositoryEvidenceLimit);
        }
        let mut repositories = Self::default();
        for claim in claims {
            let RepositoryClaim {
                name,
                repository,
                borne_at,
            } = claim;
            repositories
                .bearers
                .entry(name.clone())
                .or_default()
                .insert(repository.clone());
            repositories
                .names
                .entry(repository)
                .and_modify(|names| names.add(name.clone(), borne_at))
                .or_insert_with(|| Names::one(name, borne_at));
        }
        Ok(repositories)
    }

    /// Returns the names of a repository; nothing when no fact names it.
    pub fn names(&self, repository: &Repository) -> Option<Names> {
        match repository {
            Repository::Identified(identity) => self.names.get(identity).cloned(),
            Repository::Named(name) => Some(Names::one(name.clone(), None)),
        }
    }

    /// Returns what a selector selects.
    ///
    /// # Errors
    ///
    /// See [`SelectorError`].
    pub fn select(&self, selector: &Selector) -> Result<Selection, SelectorError> {
        match selector {
            Selector {
                name: None,
                identity: None,
            } => Ok(Selection::All),
            Selector {
                name,
                identity: Some(identity),
            } => {
                let Some(names) = self.names.get(identity) else {
                    return Ok(Selection::None);
                };
                match name {
                    Some(name) if !names.all.contains(name) => Err(SelectorError::Conflict),
                    _ => Ok(Selection::One(Repository::Identified(identity.clone()))),
                }
            }
            Selector {
                name: Some(name),
                identity: None,
            } => {
                let mut bearers = self.bearers(name);
                match (bearers.next(), bearers.next()) {
                    (None, _) => Ok(Selection::One(Repository::Named(name.clone()))),
                    (Some(one), None) => Ok(Selection::One(Repository::Identified(one.clone()))),
                    (Some(_), Some(_)) => Err(SelectorError::Ambiguous),
                }
            }
        }
    }

    /// Returns the repository of a fact.
    ///
    /// # Errors
    ///
    /// When it cannot be told: [`RepositoryDecline`] says why.
    pub fn of(&self, fact: Mention<'_>) -> Result<Repository, RepositoryDecline> {
        let name = RepositoryName::new(fact.name).ok_or(RepositoryDecline::IdentityAbsent)?;
        match fact.identity {
            Some(identity) => Ok(Repository::Identified(identity.clone())),
            None if self.bearers(&name).next().is_some() => {
                Err(RepositoryDecline::IdentityUnresolved)
            }
            None => Ok(Repository::Named(name)),
        }
    }

    /// Returns the repository of a link between a Session and a commit, given the push that led to
    /// it: visible, and received by the boundary.
    ///
    /// # Errors
    ///
    /// When it cannot be told: [`RepositoryDecline`] says why.
    pub fn of_observation(
        &self,
        observation: Mention<'_>,
        push: Option<Mention<'_>>,
    ) -> Result<Repository, RepositoryDecline> {
        let identity = match (observation.identity, push) {
            (Some(_), None) => return Err(RepositoryDecline::SourceAbsent),
            (None, None) => None,
            (Some(own), Some(push)) => match push.identity {
                None => return Err(RepositoryDecline::IdentityUnresolved),
                Some(identity) if identity != own => {
                    return Err(RepositoryDecline::IdentityConflict);
                }
                Some(identity) => Some(identity),
            },
            (None, Some(push)) => {
                if push.identity.is_none() && push.name != observation.name {
                    return Err(RepositoryDecline::IdentityConflict);
                }
                push.identity
            }
        };
        self.of(Mention {
            name: observation.name,
            identity,
        })
    }

    /// Returns the repository into whose mirror a push may be fetched. Unlike an answer, a fetch
    /// follows the name: it must lead to this repository and to no other.
    ///
    /// # Errors
    ///
    /// When it does not, or when the push is not visible.
    pub fn mirror(&self, push: Option<Mention<'_>>) -> Result<Repository, RepositoryDecline> {
        let push = push.ok_or(RepositoryDecline::SourceAbsent)?;
        let repository = self.of(push)?;
        if let (Repository::Identified(identity), Some(name)) =
            (&repository, RepositoryName::new(push.name))
            && !self.bearers(&name).eq([identity])
        {
            return Err(RepositoryDecline::MirrorIdentityUnresolved);
        }
        Ok(repository)
    }

    fn bearers(&self, name: &RepositoryName) -> impl Iterator<Item = &RepositoryIdentity> {
        self.bearers.get(name).into_iter().flatten()
    }
}
