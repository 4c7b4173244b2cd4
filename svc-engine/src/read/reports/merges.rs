//! What remained of attributed files in merged pull requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use svc_engine_derive::merge_retention::{
    AncestryQuestion, Candidates, Inputs, Merge, MergeRetention, ObservedEdge, ReachedFrom,
    Revision,
};
use svc_engine_derive::observed::ObservedEdges;
use svc_engine_derive::repository::{Mention, Names};
use svc_engine_fact::deadline::Deadline;
use svc_engine_fact::threads::at_once;
use svc_engine_fact::{Lifetime, PullRequestMerge, PullRequestRevision};
use svc_engine_mirror::Ancestry;
use svc_engine_store::{Snapshot, StoreError, UnsurePullRequest};
use svc_model::limit::REPORT_FACTS_MAX;
use svc_model::repository::{CommitSha, RepositoryDecline, RepositoryName};

use super::history::History;
use super::memory::AncestryKey;
use super::population::up_to;
use super::resolving::Resolving;
use super::scoring::score_all;
use super::{Extent, Gathered};
use crate::error::Error;
use crate::read::repository::{of_base, of_head};

/// Derives what remained, reading mirrors but not the store.
pub(super) fn derive(
    inputs: Inputs,
    history: &History<'_>,
    deadline: &Deadline,
) -> Result<MergeRetention, Error> {
    let candidates = Candidates::new(inputs);
    let ancestries = Ancestries::read(history, candidates.ancestry())?;
    let reached =
        |repository: &Lifetime, commit: &CommitSha| ancestries.reached(repository, commit);
    let mut joined = candidates
        .join(&reached, &|| deadline.check())
        .map_err(StoreError::from)?;
    score_all(&mut joined, history)?;
    Ok(joined.finish())
}

/// What mirrors tell of the ancestry of commits, by repository.
pub(super) struct Ancestries(BTreeMap<Lifetime, Vec<Arc<Ancestry>>>);

impl Ancestries {
    /// Reads the answers to a question about each repository.
    pub(super) fn read(
        history: &History<'_>,
        questions: BTreeMap<Lifetime, AncestryQuestion>,
    ) -> Result<Self, Error> {
        let questions: Vec<(Lifetime, AncestryQuestion)> = questions.into_iter().collect();
        let answers = at_once(&questions, |(repository, question)| {
            ancestry(history, repository, question)
        })?;
        let repositories = questions.into_iter().map(|(repository, _)| repository);
        Ok(Self(repositories.zip(answers).collect()))
    }

    /// Returns what reaches a commit of a question.
    pub(super) fn reached(&self, repository: &Lifetime, commit: &CommitSha) -> ReachedFrom<'_> {
        let answers = self.0.get(repository).into_iter().flatten();
        let reached: Vec<_> = answers.map(|ancestry| ancestry.of(commit)).collect();
        // The first mirror that has a tip also has everything that the tip reaches.
        Box::new(move |tip| reached.iter().find_map(|reached| reached.from(tip)))
    }
}

/// Reads the inputs of this derivation, for pull requests merged by the report's moment.
pub(super) fn read(
    snapshot: &mut Snapshot<'_>,
    gathered: &mut Gathered<'_>,
    extent: &Extent,
) -> Result<Inputs, Error> {
    let Gathered { cohort, reader } = gathered;
    let boundary = reader.boundary;
    let attributions = cohort.attributions.rows.clone();
    let edges = ObservedEdges::new(&cohort.observations);
    let repositories: BTreeSet<Lifetime> = attributions
        .iter()
        .filter(|file| {
            let observed = edges.of(&file.repository, &file.commit_sha, &file.session_id);
            !observed.is_empty()
        })
        .map(|file| file.repository.clone())
        .collect();
    let observed = cohort
        .observations
        .iter()
        .filter_map(|observed| {
            Some(ObservedEdge {
                observation_id: observed.observation_id,
                repository: observed.repository.clone().ok()?,
                commit_sha: observed.commit_sha.clone(),
                session_id: observed.session_id.clone(),
            })
        })
        .collect();
    let borne: BTreeMap<&Lifetime, BTreeSet<RepositoryName>> = repositories
        .iter()
        .map(|repository| {
            let names = reader.resolving.repositories().names(repository);
            let names = names.iter().flat_map(Names::all).cloned().collect();
            (repository, names)
        })
        .collect();
    let of_ids: Vec<&Lifetime> = repositories.iter().collect();
    let names: BTreeSet<&RepositoryName> = borne.values().flatten().collect();
    let names: Vec<&RepositoryName> = names.into_iter().collect();

    let mut merges = Vec::new();
    let mut take = up_to(&mut merges, REPORT_FACTS_MAX);
    snapshot.merges_of_repositories(&of_ids, &names, boundary, |merge: PullRequestMerge| {
        if merge.merged_at <= extent.as_of {
            take(merge)?;
        }
        Ok(())
    })?;
    drop(take);
    let numbers: BTreeSet<i64> = merges
        .iter()
        .map(|merge| merge.pull_request.pr_number)
        .collect();
    let mut revisions = Vec::new();
    let mut take = up_to(&mut revisions, REPORT_FACTS_MAX);
    snapshot.revisions_of_repositories(
        &of_ids,
        &names,
        boundary,
        |revision: PullRequestRevision| {
            if numbers.contains(&revision.pull_request.pr_number) {
                take(revision)?;
            }
            Ok(())
        },
    )?;
    drop(take);
    let mut unsure = Vec::new();
    if extent.is_all() {
        let take = up_to(&mut unsure, REPORT_FACTS_MAX);
        snapshot.unsure_pull_requests(boundary, extent.as_of, take)?;
    }
    for pull_request in &unsure {
        reader.resolving.touch(of_unsure(pull_request));
    }
    for merge in &merges {
        reader.resolving.touch(of_base(&merge.pull_request));
        reader.resolving.touch(of_head(&merge.pull_request));
    }
    for revision in &revisions {
        reader.resolving.touch(of_base(&revision.pull_request));
    }
    reader.resolving.read(snapshot, boundary)?;

    let resolving = &reader.resolving;
    let mut inputs = Inputs {
        attributions,
        observed,
        ci: std::mem::take(&mut cohort.ci.pull_requests),
        declined: cohort.declined.observations.clone(),
        ..Inputs::default()
    };
    let mut unresolved = Unresolved {
        borne: &borne,
        found: BTreeMap::new(),
    };
    inputs.merges = merges
        .into_iter()
        .filter_map(|merge| {
            let number = merge.pull_request.pr_number;
            let repository = unresolved.of(resolving, of_base(&merge.pull_request), number);
            let repository = repository.ok()?;
            Some(Merge {
                merge_id: merge.merge_id,
                repository,
                head_repository: resolving.of(of_head(&merge.pull_request)),
                pr_number: merge.pull_request.pr_number,
                head_sha: merge.pull_request.head_sha,
                base_sha: merge.pull_request.base_sha,
                merge_commit_sha: merge.merge_commit_sha,
            })
        })
        .collect();
    inputs.revisions = revisions
        .into_iter()
        .filter_map(|revision| {
            let number = revision.pull_request.pr_number;
            let repository = unresolved.of(resolving, of_base(&revision.pull_request), number);
            let repository = repository.ok()?;
            Some(Revision {
                repository,
                pr_number: revision.pull_request.pr_number,
                head_sha: revision.pull_request.head_sha,
                previous_head_sha: revision.previous_head_sha,
            })
        })
        .collect();
    for pull_request in &unsure {
        let mention = of_unsure(pull_request);
        if let Err(why) = unresolved.of(resolving, mention, pull_request.pr_number) {
            inputs.declined.add(why, pull_request.facts);
        }
    }
    inputs.unresolved = unresolved.found;
    Ok(inputs)
}

/// The repositories that facts may belong to whose own repository cannot be determined.
struct Unresolved<'u> {
    borne: &'u BTreeMap<&'u Lifetime, BTreeSet<RepositoryName>>,
    /// The pull requests that these facts name.
    found: BTreeMap<Lifetime, BTreeSet<i64>>,
}

impl Unresolved<'_> {
    /// Returns the repository of a fact.
    ///
    /// # Errors
    ///
    /// If it cannot be determined. Then the repositories that it may be are recorded, with the pull
    /// request that the fact names.
    fn of(
        &mut self,
        resolving: &Resolving,
        mention: Mention<'_>,
        pr_number: i64,
    ) -> Result<Lifetime, RepositoryDecline> {
        let decline = match resolving.of(mention) {
            Ok(repository) => return Ok(repository),
            Err(decline) => decline,
        };
        for (repository, names) in self.borne {
            let is_mentioned = match mention.identity {
                Some(identity) => repository.identity() == Some(identity),
                None => names.iter().any(|name| name.as_str() == mention.name),
            };
            if is_mentioned {
                let numbers = self.found.entry((*repository).clone()).or_default();
                numbers.insert(pr_number);
            }
        }
        Err(decline)
    }
}

fn of_unsure(pull_request: &UnsurePullRequest) -> Mention<'_> {
    Mention {
        name: &pull_request.repo,
        identity: pull_request.repository.as_ref(),
    }
}

/// Answers a question about a repository's history, from its own mirror and then from the mirrors
/// of the repositories that pull requests came from.
fn ancestry(
    history: &History<'_>,
    repository: &Lifetime,
    question: &AncestryQuestion,
) -> Result<Vec<Arc<Ancestry>>, Error> {
    let remembered = &history.memory().ancestries;
    let digest = digest(question);
    let mut answers = Vec::new();
    for repository in [repository].into_iter().chain(&question.head_repositories) {
        let asked = AncestryKey {
            mirror: repository.clone(),
            question: digest,
        };
        // Even if it is remembered, a repository without a mirror has no answer.
        let answer = history.mirrors.with(repository, |mirror| {
            if let Some(known) = remembered.get(&asked) {
                return Ok(Some(known));
            }
            let read = mirror.read(|reader| reader.ancestry(&question.commits, &question.tips))?;
            let answer = read.map(Arc::new);
            if let Some(answer) = answer
                .as_ref()
                .filter(|answer| answer.is_final(question.tips.len()))
            {
                remembered.insert(asked, Arc::clone(answer));
            }
            Ok(answer)
        })?;
        answers.extend(answer.flatten());
    }
    Ok(answers)
}

fn digest(question: &AncestryQuestion) -> [u8; 32] {
    let mut digest = Sha256::new();
    for commits in [&question.commits, &question.tips] {
        for commit in commits {
            digest.update(commit.as_str());
            digest.update("\n");
        }
        digest.update("\n");
    }
    digest.finalize().into()
}
