//! One search for reported commits in the mirrors.

use std::collections::{BTreeMap, BTreeSet};

use svc_engine_fact::clock::{Clock, Ids};
use svc_engine_fact::deadline::Deadline;
use svc_engine_fact::{
    CommitClaim, Lifetime, NamedRepository, ObservationOrigin, SessionCommitObservation,
};
use svc_engine_mirror::MirrorReading;
use svc_engine_store::{Append, Delivery, NewestPush, SettledClaim, Snapshot, Store};
use svc_model::id::FactId;
use svc_model::limit::REPOSITORY_CLAIMS_MAX;
use svc_model::repository::{CommitSha, RepositoryIdentity, RepositoryName};

use crate::error::Error;

/// Claims that are settled in one transaction.
const SETTLED_AT_ONCE: usize = 128;

/// Why the mirrors are searched.
#[derive(Debug)]
pub(super) enum Occasion {
    /// These claims were stored.
    Arrived(Vec<FactId>),
    /// The mirror of this repository was refreshed.
    Refreshed(Lifetime),
}

/// A claim, and the commits of repositories that fit it.
type ClaimMatches = (CommitClaim, Vec<(Lifetime, CommitSha)>);

/// What a search has decided.
#[derive(Debug, Default)]
pub(super) struct SettledCounts {
    pub(super) resolved: usize,
    pub(super) ambiguous: usize,
}

impl SettledCounts {
    pub(super) const fn is_empty(&self) -> bool {
        self.resolved == 0 && self.ambiguous == 0
    }
}

/// One search.
pub(super) struct Search<'s> {
    pub(super) store: &'s Store,
    pub(super) mirrors: &'s MirrorReading,
    pub(super) clock: &'s Clock,
    pub(super) ids: &'s Ids,
    pub(super) deadline: Deadline,
}

/// A claim that is searched for.
struct Case {
    claim: CommitClaim,
    scope: Scope,
    /// The commits that fit, with their repositories. Two decide as well as more.
    found: Vec<(Lifetime, CommitSha)>,
    /// Whether a mirror could not be asked.
    is_undecided: bool,
}

/// The repositories that a claim may be about.
enum Scope {
    Any,
    Only(BTreeSet<RepositoryIdentity>),
    /// So many repositories have had the name that it says nothing.
    Unknown,
}

impl Case {
    fn is_about(&self, repository: &Lifetime) -> bool {
        match (&self.scope, repository) {
            (Scope::Any, _) => true,
            (Scope::Only(meant), Lifetime::Identified(identity)) => meant.contains(identity),
            (Scope::Only(_), Lifetime::Named(_)) | (Scope::Unknown, _) => false,
        }
    }

    const fn is_open(&self) -> bool {
        !self.is_undecided && self.found.len() < 2
    }
}

impl Search<'_> {
    /// Searches the mirrors and settles what they decide.
    pub(super) fn run(&self, occasion: &Occasion) -> Result<SettledCounts, Error> {
        let now = self.clock.now();
        let mut snapshot = self.store.snapshot(&self.deadline)?;
        let claims = match occasion {
            Occasion::Arrived(claims) => snapshot.open_commit_claims_of(claims)?,
            Occasion::Refreshed(_) => snapshot.open_commit_claims()?,
        };
        let too_old = CommitClaim::too_old(now);
        let (old, claims): (Vec<_>, Vec<_>) = claims
            .into_iter()
            .partition(|claim| claim.captured_at <= too_old);
        let claims = match occasion {
            Occasion::Arrived(_) => claims,
            Occasion::Refreshed(repository) => may_be_of(&mut snapshot, claims, repository)?,
        };
        drop(snapshot);
        if !old.is_empty() {
            self.store.expire_commit_claims(now)?;
        }
        let mut cases = match occasion {
            Occasion::Arrived(_) => claims
                .into_iter()
                .map(|claim| (claim, Vec::new()))
                .collect(),
            Occasion::Refreshed(repository) => self.found_in(repository, claims)?,
        };
        if cases.is_empty() {
            return Ok(SettledCounts::default());
        }
        let cases = self.everywhere(std::mem::take(&mut cases), occasion)?;
        self.settle(cases)
    }

    /// Returns the claims that the mirror of a repository has commits for.
    fn found_in(
        &self,
        repository: &Lifetime,
        claims: Vec<CommitClaim>,
    ) -> Result<Vec<ClaimMatches>, Error> {
        if claims.is_empty() {
            return Ok(Vec::new());
        }
        let mut found = vec![Vec::new(); claims.len()];
        for (place, commit) in self.commits(repository, claims.iter())?.unwrap_or_default() {
            found[place].push((repository.clone(), commit));
        }
        let found = claims.into_iter().zip(found);
        Ok(found.filter(|(_, commits)| !commits.is_empty()).collect())
    }

    /// Looks for claims in all mirrors but the refreshed one, in which they were found.
    fn everywhere(
        &self,
        claims: Vec<(CommitClaim, Vec<(Lifetime, CommitSha)>)>,
        occasion: &Occasion,
    ) -> Result<Vec<Case>, Error> {
        let mut snapshot = self.store.snapshot(&self.deadline)?;
        let mut scopes = Scopes::default();
        let mut cases = Vec::with_capacity(claims.len());
        for (claim, found) in claims {
            cases.push(Case {
                scope: scopes.of(&mut snapshot, claim.repository.as_ref())?,
                claim,
                found,
                is_undecided: false,
            });
        }
        let mirrors = snapshot.mirrors(self.clock.now())?;
        drop(snapshot);
        for mirror in mirrors {
            let was_asked = matches!(occasion, Occasion::Refreshed(of) if *of == mirror.lifetime);
            if mirror.last_success_at.is_some() && !was_asked {
                self.look(&mirror.lifetime, &mut cases);
            }
        }
        Ok(cases)
    }

    /// Looks for claims in one mirror. If it cannot be asked, they are not decided: it may have
    /// another commit that fits.
    fn look(&self, repository: &Lifetime, cases: &mut [Case]) {
        let asked = cases.iter_mut();
        let asked = asked.filter(|case| case.is_open() && case.is_about(repository));
        let mut asked: Vec<&mut Case> = asked.collect();
        if asked.is_empty() {
            return;
        }
        match self.commits(repository, asked.iter().map(|case| &case.claim)) {
            Ok(Some(commits)) => {
                for (place, commit) in commits {
                    asked[place].found.push((repository.clone(), commit));
                }
            }
            unanswered => {
                let error = unanswered.err();
                let error = error.as_ref().map(|error| error as &dyn std::error::Error);
                tracing::debug!(mirror = %repository, error, "commit_claims.mirror_not_asked");
                for case in asked {
                    case.is_undecided = true;
                }
            }
        }
    }

    /// Returns the commits of a mirror that fit claims, with the indices of the claims; `None` if
    /// the mirror is not on this machine.
    fn commits<'c>(
        &self,
        repository: &Lifetime,
        claims: impl Iterator<Item = &'c CommitClaim>,
    ) -> Result<Option<Vec<(usize, CommitSha)>>, Error> {
        let Some(mirror) = self.mirrors.open(repository, &self.deadline)? else {
            return Ok(None);
        };
        let ids: Vec<&str> = claims.map(|claim| claim.git_commit_id.as_str()).collect();
        Ok(Some(mirror.commits_beginning_with(&ids)?))
    }

    /// Stores what the mirrors decide.
    fn settle(&self, cases: Vec<Case>) -> Result<SettledCounts, Error> {
        let mut snapshot = self.store.snapshot(&self.deadline)?;
        let mut newest: BTreeMap<Lifetime, Option<NewestPush>> = BTreeMap::new();
        let mut deliveries = vec![Delivery::default()];
        let mut counts = SettledCounts::default();
        for case in cases {
            let observation = match &*case.found {
                [(repository, commit)] if !case.is_undecided => {
                    let push = match newest.get(repository) {
                        Some(push) => push,
                        None => newest
                            .entry(repository.clone())
                            .or_insert(snapshot.newest_push(repository)?),
                    };
                    let push = push.as_ref();
                    let Some(fact) = push.and_then(|push| {
                        self.observation(&case.claim, repository, commit.clone(), push)
                    }) else {
                        continue;
                    };
                    counts.resolved += 1;
                    Some(fact)
                }
                [_, _, ..] => {
                    counts.ambiguous += 1;
                    None
                }
                _ => continue,
            };
            if deliveries
                .last()
                .is_some_and(|last| last.settled_claims.len() >= SETTLED_AT_ONCE)
            {
                deliveries.push(Delivery::default());
            }
            if let Some(delivery) = deliveries.last_mut() {
                delivery.settled_claims.push(SettledClaim {
                    claim_id: case.claim.claim_id,
                    observation_id: observation.as_ref().map(|fact| fact.observation_id),
                });
                let fact = observation.map(Box::new);
                delivery
                    .facts
                    .extend(fact.map(Append::SessionCommitObservation));
            }
        }
        drop(snapshot);
        for delivery in deliveries {
            self.store.append_blocking(delivery)?;
        }
        Ok(counts)
    }

    fn observation(
        &self,
        claim: &CommitClaim,
        repository: &Lifetime,
        commit_sha: CommitSha,
        push: &NewestPush,
    ) -> Option<SessionCommitObservation> {
        Some(SessionCommitObservation {
            observation_id: FactId::new(self.ids.fresh()),
            session_id: claim.session_id.clone(),
            repo: RepositoryName::new(&push.repo)?,
            repository: repository.identity().cloned(),
            commit_sha,
            source_push_id: push.push_id,
            origin: ObservationOrigin::Telemetry,
            captured_at: self.clock.now(),
        })
    }
}

/// Returns the claims that may be about a repository: those that name none, or one of its names.
fn may_be_of(
    snapshot: &mut Snapshot<'_>,
    mut claims: Vec<CommitClaim>,
    repository: &Lifetime,
) -> Result<Vec<CommitClaim>, Error> {
    if claims.iter().all(|claim| claim.repository.is_none()) {
        return Ok(claims);
    }
    let Some(identity) = repository.identity() else {
        claims.retain(|claim| claim.repository.is_none());
        return Ok(claims);
    };
    let boundary = snapshot.boundary(None)?;
    let repositories = BTreeSet::from([identity.clone()]);
    let proven = snapshot.repository_claims(&BTreeSet::new(), &repositories, boundary)?;
    let proven = proven
        .into_iter()
        .filter(|proven| proven.repository == *identity);
    let names: BTreeSet<RepositoryName> = proven.map(|proven| proven.name).collect();
    claims.retain(|claim| {
        let named = claim.repository.as_ref();
        named.is_none_or(|named| names.contains(&named.name) && named.may_be(identity))
    });
    Ok(claims)
}

/// The repositories that have had a name, as far as they were looked up.
#[derive(Default)]
struct Scopes(BTreeMap<RepositoryName, Option<BTreeSet<RepositoryIdentity>>>);

impl Scopes {
    fn of(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        named: Option<&NamedRepository>,
    ) -> Result<Scope, Error> {
        let Some(named) = named else {
            return Ok(Scope::Any);
        };
        if !self.0.contains_key(&named.name) {
            let bearers = bearers(snapshot, &named.name)?;
            self.0.insert(named.name.clone(), bearers);
        }
        let bearers = self.0.get(&named.name).and_then(Option::as_ref);
        Ok(bearers.map_or(Scope::Unknown, |bearers| {
            let meant = bearers.iter().filter(|bearer| named.may_be(bearer));
            Scope::Only(meant.cloned().collect())
        }))
    }
}

/// Returns the repositories that have had a name; `None` if there are too many.
fn bearers(
    snapshot: &mut Snapshot<'_>,
    name: &RepositoryName,
) -> Result<Option<BTreeSet<RepositoryIdentity>>, Error> {
    let boundary = snapshot.boundary(None)?;
    let names = BTreeSet::from([name.clone()]);
    let proven = snapshot.repository_claims(&names, &BTreeSet::new(), boundary)?;
    if proven.len() > REPOSITORY_CLAIMS_MAX {
        return Ok(None);
    }
    let proven = proven.into_iter().filter(|proven| proven.name == *name);
    Ok(Some(proven.map(|proven| proven.repository).collect()))
}
