//! The answers as the specification states them, by going through every fact each time. Nothing
//! here is shared with the real implementation.

mod dossier;
mod through;

use std::collections::{BTreeMap, BTreeSet};

use super::world::Facts;
use super::*;
use svc_model::repository::{RepositoryIdentity, RepositoryName};

/// A repository: identified ones first, by the texts of their identities, then names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Repository {
    Identified([String; 3]),
    Named(String),
}

type Identity = [String; 3];

fn texts(identity: &RepositoryIdentity) -> Identity {
    [
        identity.repository_provider.to_string(),
        identity.repository_host.to_string(),
        identity.repository_id.to_string(),
    ]
}

/// What a selector selects.
enum Chosen {
    All,
    One(Repository),
    None,
}

/// A name of an identity, from a fact of this moment. A name that was given up is not current.
struct Claim {
    name: String,
    identity: Identity,
    at: Instant,
    given_up: bool,
}

pub(super) struct Reference<'w> {
    facts: &'w Facts,
    seen: Facts,
}

impl<'w> Reference<'w> {
    pub(super) fn of(facts: &'w Facts) -> Self {
        macro_rules! visible {
            ($($list:ident $id:ident),+) => {
                Facts {
                    $($list: facts.$list.iter()
                        .filter(|fact| !facts.quarantined.contains(&fact.$id))
                        .cloned()
                        .collect(),)+
                    quarantined: BTreeSet::new(),
                }
            };
        }
        let seen = visible!(
            calls inference_call_id, decisions decision_id, edits observation_id,
            rejections rejection_id, retries retry_linkage_id, pushes push_id, revisions revision_id,
            merges merge_id, renames rename_id, outcomes outcome_id, observations observation_id
        );
        Self { facts, seen }
    }

    /// The claims of every visible fact by the boundary.
    fn claims(&self, boundary: Instant) -> Vec<Claim> {
        let mut claims = Vec::new();
        let mut add = |name: &str, identity: Option<&RepositoryIdentity>, at, given_up| {
            if let (false, Some(identity), true) = (name.is_empty(), identity, at <= boundary) {
                claims.push(Claim {
                    name: name.to_owned(),
                    identity: texts(identity),
                    at,
                    given_up,
                });
            }
        };
        for push in &self.seen.pushes {
            add(
                &push.repo,
                push.repository.as_ref(),
                push.captured_at,
                false,
            );
        }
        for outcome in &self.seen.outcomes {
            add(
                &outcome.repo,
                outcome.repository.as_ref(),
                outcome.captured_at,
                false,
            );
        }
        for observation in &self.seen.observations {
            add(
                observation.repo.as_str(),
                observation.repository.as_ref(),
                observation.captured_at,
                false,
            );
        }
        let revisions = self.seen.revisions.iter();
        let merges = self.seen.merges.iter();
        let pulls = revisions
            .map(|revision| (&revision.pull_request, revision.captured_at))
            .chain(merges.map(|merge| (&merge.pull_request, merge.captured_at)));
        for (pull, at) in pulls {
            add(&pull.repo, pull.repository.as_ref(), at, false);
            let head = pull.head_repo.as_deref().unwrap_or_default();
            add(head, pull.head_repository.as_ref(), at, false);
        }
        for rename in &self.seen.renames {
            add(
                rename.old_repo.as_str(),
                Some(&rename.repository),
                rename.captured_at,
                true,
            );
            add(
                rename.new_repo.as_str(),
                Some(&rename.repository),
                rename.captured_at,
                false,
            );
        }
        claims
    }

    fn bearers(&self, name: &str, boundary: Instant) -> BTreeSet<Identity> {
        let claims = self.claims(boundary).into_iter();
        claims
            .filter(|claim| claim.name == name)
            .map(|claim| claim.identity)
            .collect()
    }

    fn names(&self, identity: &Identity, boundary: Instant) -> BTreeSet<String> {
        let claims = self.claims(boundary).into_iter();
        claims
            .filter(|claim| claim.identity == *identity)
            .map(|claim| claim.name)
            .collect()
    }

    /// The name in the latest received fact.
    fn current(&self, identity: &Identity, boundary: Instant) -> Option<String> {
        let claims = self.claims(boundary).into_iter();
        claims
            .filter(|claim| claim.identity == *identity)
            .map(|claim| (Some(claim.at).filter(|_| !claim.given_up), claim.name))
            .max()
            .map(|(_, name)| name)
    }

    fn resolve(
        &self,
        name: &str,
        identity: Option<&RepositoryIdentity>,
        boundary: Instant,
    ) -> Result<Repository, &'static str> {
        match (name, identity) {
            ("", _) => Err("repository_identity_absent"),
            (_, Some(identity)) => Ok(Repository::Identified(texts(identity))),
            (name, None) if self.bearers(name, boundary).is_empty() => {
                Ok(Repository::Named(name.to_owned()))
            }
            (_, None) => Err("repository_identity_unresolved"),
        }
    }

    fn resolve_observation(
        &self,
        observation: &SessionCommitObservation,
        boundary: Instant,
    ) -> Result<Repository, &'static str> {
        let mut pushes = self.seen.pushes.iter();
        let push = pushes.find(|push| {
            push.push_id == observation.source_push_id && push.captured_at <= boundary
        });
        let own = observation.repository.as_ref();
        let identity = match push {
            None if own.is_some() => return Err("repository_source_absent"),
            None => None,
            Some(push) => match (own, &push.repository) {
                (None, Some(identity)) => Some(identity),
                (Some(own), Some(identity)) if own == identity => Some(own),
                (Some(_), None) => return Err("repository_identity_unresolved"),
                (None, None) if push.repo == observation.repo.as_str() => None,
                (Some(_), Some(_)) | (None, None) => return Err("repository_identity_conflict"),
            },
        };
        self.resolve(observation.repo.as_str(), identity, boundary)
    }

    fn choose(
        &self,
        selector: &RepositorySelector,
        boundary: Instant,
    ) -> Result<Chosen, &'static str> {
        let name = selector.repo.as_ref().map(RepositoryName::as_str);
        if let Some(identity) = &selector.identity {
            let identity = texts(identity);
            let names = self.names(&identity, boundary);
            let nameless = self.seen.outcomes.iter().any(|outcome| {
                let own = outcome.repository.as_ref().map(texts);
                outcome.repo.is_empty()
                    && own.as_ref() == Some(&identity)
                    && outcome.captured_at <= boundary
            });
            return match name {
                None if names.is_empty() && !nameless => Ok(Chosen::None),
                Some(_) if names.is_empty() => Ok(Chosen::None),
                Some(name) if !names.contains(name) => Err("conflict"),
                _ => Ok(Chosen::One(Repository::Identified(identity))),
            };
        }
        let Some(name) = name else {
            return Ok(Chosen::All);
        };
        let bearers = self.bearers(name, boundary);
        match bearers.len() {
            0 => Ok(Chosen::One(Repository::Named(name.to_owned()))),
            1 => Ok(Chosen::One(Repository::Identified(
                bearers.into_iter().next().unwrap(),
            ))),
            _ => Err("ambiguous"),
        }
    }

    /// Whether an outcome belongs to the chosen repository. Its identity decides, with or without a
    /// name.
    fn is_of(&self, outcome: &CiOutcome, chosen: &Repository, boundary: Instant) -> bool {
        match (&outcome.repository, chosen) {
            (Some(own), Repository::Identified(identity)) => texts(own) == *identity,
            (Some(_), Repository::Named(_)) => false,
            (None, _) => self.resolve(&outcome.repo, None, boundary).as_ref() == Ok(chosen),
        }
    }

    pub(super) fn outcome(&self, request: &CiOutcomeRequest) -> String {
        let seen = &self.seen;
        let latest = (seen.pushes.iter().map(|push| push.captured_at))
            .chain(seen.outcomes.iter().map(|outcome| outcome.captured_at))
            .chain(
                seen.observations
                    .iter()
                    .map(|observation| observation.captured_at),
            )
            .chain(seen.revisions.iter().map(|revision| revision.captured_at))
            .chain(seen.merges.iter().map(|merge| merge.captured_at))
            .chain(seen.renames.iter().map(|rename| rename.captured_at))
            .max();
        let Some(boundary) = request.as_of.or(latest) else {
            return "nothing".to_owned();
        };
        let chosen = match self.choose(&request.repository, boundary) {
            Ok(chosen) => chosen,
            Err(word) => return word.to_owned(),
        };
        let found: Vec<&CiOutcome> = (seen.outcomes.iter())
            .filter(|outcome| {
                outcome.captured_at <= boundary && outcome.provider == request.provider
            })
            .filter(|outcome| outcome.run_id == request.run_id.as_str())
            .filter(|outcome| outcome.run_attempt == request.run_attempt)
            .filter(|outcome| match &chosen {
                Chosen::All => true,
                Chosen::One(repository) => self.is_of(outcome, repository, boundary),
                Chosen::None => false,
            })
            .collect();
        match found[..] {
            [] => "nothing".to_owned(),
            [outcome] => {
                let own = outcome.repository.as_ref().map(texts);
                let to = own.map(Repository::Identified);
                let to = to.or_else(|| self.resolve(&outcome.repo, None, boundary).ok());
                outcome_line(outcome, to.as_ref(), boundary)
            }
            _ => "ambiguous".to_owned(),
        }
    }

    pub(super) fn failures(&self, request: &CiFailuresRequest) -> String {
        let boundary = request.as_of.unwrap_or(request.captured_before);
        let chosen = match self.choose(&request.repository, boundary) {
            Ok(Chosen::One(chosen)) => chosen,
            Ok(_) => return String::new(),
            Err(word) => return word.to_owned(),
        };
        let mut found: Vec<&CiOutcome> = (self.seen.outcomes.iter())
            .filter(|outcome| {
                self.is_of(outcome, &chosen, boundary) && outcome.captured_at <= boundary
            })
            .filter(|outcome| outcome.captured_at >= request.captured_after)
            .filter(|outcome| {
                outcome.captured_at < request.captured_before && outcome.result == request.result
            })
            .filter(|outcome| request.pr_number.is_none() || outcome.pr_number == request.pr_number)
            .filter(|outcome| {
                let name = request.workflow_name.as_deref();
                name.is_none_or(|name| outcome.workflow_name == *name)
            })
            .collect();
        found.sort_by_key(|outcome| (outcome.captured_at, outcome.outcome_id.to_string()));
        found.reverse();
        let lines = found.into_iter();
        let lines = lines.map(|line| outcome_line(line, Some(&chosen), boundary));
        lines.collect::<Vec<_>>().join("\n")
    }

    pub(super) fn commit(&self, request: &CommitRequest, now: Instant) -> String {
        #[derive(Default)]
        struct Found<'f> {
            sessions: BTreeMap<&'f str, BTreeSet<String>>,
            outcomes: BTreeSet<(Instant, String)>,
            through: Vec<String>,
        }
        let boundary = request.as_of.unwrap_or(now);
        let chosen = match self.choose(&request.repository, boundary) {
            Ok(Chosen::None) => return "nothing".to_owned(),
            Ok(Chosen::One(chosen)) => Some(chosen),
            Ok(Chosen::All) => None,
            Err(word) => return word.to_owned(),
        };
        let mut found: BTreeMap<Repository, Found<'_>> = BTreeMap::new();
        let mut skipped: BTreeMap<&str, u64> = BTreeMap::new();
        let mut unresolved = BTreeSet::new();
        let sha = &request.commit_sha;
        let observations = self.seen.observations.iter();
        for observation in observations.filter(|observation| {
            observation.commit_sha == *sha && observation.captured_at <= boundary
        }) {
            match self.resolve_observation(observation, boundary) {
                Ok(repository) => {
                    let sessions = &mut found.entry(repository).or_default().sessions;
                    let ids = sessions.entry(observation.session_id.as_str()).or_default();
                    ids.insert(observation.observation_id.to_string());
                }
                Err(reason) => *skipped.entry(reason).or_default() += 1,
            }
        }
        let outcomes = self.seen.outcomes.iter();
        for outcome in
            outcomes.filter(|outcome| outcome.commit_sha == *sha && outcome.captured_at <= boundary)
        {
            let line = (outcome.captured_at, outcome.outcome_id.to_string());
            let wanted = chosen
                .as_ref()
                .filter(|repository| self.is_of(outcome, repository, boundary));
            match wanted
                .cloned()
                .ok_or(())
                .or_else(|()| self.resolve(&outcome.repo, outcome.repository.as_ref(), boundary))
            {
                Ok(repository) => {
                    found.entry(repository).or_default().outcomes.insert(line);
                }
                Err(reason) => {
                    *skipped.entry(reason).or_default() += 1;
                    unresolved.insert(line);
                }
            }
        }
        for merge in &self.seen.merges {
            let pull = &merge.pull_request;
            let base = self.resolve(&pull.repo, pull.repository.as_ref(), boundary);
            if let Ok(repository) = base {
                let (through, have_sessions) = self.through(sha, &repository, boundary);
                if have_sessions || found.contains_key(&repository) {
                    found.entry(repository).or_default().through = through;
                }
            }
        }
        if let Some(chosen) = &chosen {
            found.retain(|repository, _| repository == chosen);
            unresolved.clear();
        }
        if found.is_empty() && skipped.is_empty() {
            return "nothing".to_owned();
        }
        let attributed = found.values().any(|value| !value.sessions.is_empty());
        let mut lines = vec![format!("attributed {attributed}")];
        for (repository, found) in found {
            lines.push(match &repository {
                Repository::Named(name) => format!("{name:?} None - {:?}", [name]),
                Repository::Identified(identity) => {
                    let names = self.names(identity, boundary);
                    let first = names.first().cloned().unwrap_or_default();
                    let current = self.current(identity, boundary);
                    let names: Vec<String> = names.into_iter().collect();
                    format!("{first:?} {current:?} {} {names:?}", identity.join("/"))
                }
            });
            for (session, ids) in found.sessions {
                let ids: Vec<String> = ids.into_iter().collect();
                lines.push(format!("session {session} {}", ids.join(" ")));
            }
            lines.extend(found.outcomes.into_iter().map(|(_, id)| format!("ci {id}")));
            lines.extend(found.through);
        }
        if !skipped.is_empty() {
            lines.push(format!("skipped {}", counts(&skipped)));
        }
        lines.extend(
            unresolved
                .into_iter()
                .map(|(_, id)| format!("unresolved {id}")),
        );
        lines.join("\n")
    }
}

fn outcome_line(outcome: &CiOutcome, to: Option<&Repository>, boundary: Instant) -> String {
    let identity = outcome.repository.as_ref().map(texts);
    let identity = identity.map_or_else(|| "-".to_owned(), |identity| identity.join("/"));
    let link = link(&outcome.commit_sha, to, boundary);
    let (id, repo) = (outcome.outcome_id, &outcome.repo);
    format!("{id} {repo:?} {identity} {} {link}", outcome.captured_at)
}

fn counts(counts: &BTreeMap<&str, u64>) -> String {
    let counts = counts
        .iter()
        .map(|(reason, count)| format!("{reason}={count}"));
    counts.collect::<Vec<_>>().join(" ")
}

/// The link to a commit, written by hand.
fn link(sha: &CommitSha, repository: Option<&Repository>, boundary: Instant) -> String {
    let selector = match repository {
        Some(Repository::Identified([provider, host, id])) => {
            format!("repository_provider={provider}&repository_host={host}&repository_id={id}&")
        }
        Some(Repository::Named(name)) => format!("repo={}&", name.replace('/', "%2F")),
        None => String::new(),
    };
    let utc = boundary.to_string().replace('Z', "+00:00");
    let utc = utc.replace(':', "%3A").replace('+', "%2B");
    format!("/query/commit/{sha}?{selector}as_of={utc}")
}
