//! What remained of attributed files in merged pull requests.

use std::collections::{BTreeMap, BTreeSet};

use svc_model::limit::REPORT_FACTS_MAX;
use svc_model::reports::ScoringSkip;
use svc_model::repository::{CommitSha, RepositoryName};
use svc_model::time::Instant;

use super::Gathered;
use super::history::QUESTION;
use super::mirrors::OpenMirrors;
use super::population::up_to;
use super::resolving::{Resolving, of_outcome};
use crate::derive::diff::CommitDiff;
use crate::derive::merge_retention::{
    AncestryQuestion, Candidates, CiMembership, FILE_BYTES_MAX, FileAt, Inputs, Joined, JoinedFile,
    Merge, MergeRetention, ObservedEdge, Revision, Scores, file_text, renamed_to, score,
    source_text,
};
use crate::derive::observed::ObservedEdges;
use crate::derive::repository::{Mention, Names};
use crate::error::Error;
use crate::fact::{Lifetime, PullRequest, PullRequestMerge, PullRequestRevision};
use crate::mirror::{Ancestry, ReadDecline, ReadError};
use crate::store::{Snapshot, StoreError};

/// Derives what remained, of pull requests that were merged by a moment.
pub(super) fn read(
    snapshot: &mut Snapshot<'_>,
    gathered: &mut Gathered<'_>,
    merged_by: Instant,
) -> Result<MergeRetention, Error> {
    let inputs = inputs(snapshot, gathered, merged_by)?;
    let candidates = Candidates::new(inputs);
    let mirrors = &mut gathered.history.mirrors;
    let mut ancestries: BTreeMap<Lifetime, Vec<Ancestry>> = BTreeMap::new();
    for (repository, question) in candidates.ancestry() {
        let answers = ancestry(mirrors, &repository, &question)?;
        ancestries.insert(repository, answers);
    }
    // The first mirror that has a tip has all that the tip reaches.
    let reaches = |repository: &Lifetime, commit: &CommitSha, tip: &CommitSha| {
        let mut answers = ancestries.get(repository)?.iter();
        answers.find_map(|ancestry| ancestry.reaches(commit, tip))
    };
    let deadline = snapshot.deadline().clone();
    let mut joined = candidates
        .join(&reaches, &|| deadline.check())
        .map_err(StoreError::from)?;
    score_all(&mut joined, mirrors)?;
    Ok(joined.finish())
}

fn inputs(
    snapshot: &mut Snapshot<'_>,
    gathered: &mut Gathered<'_>,
    merged_by: Instant,
) -> Result<Inputs, Error> {
    let boundary = gathered.boundary;
    let attributions = gathered.attributions.rows.clone();
    let edges = ObservedEdges::new(&gathered.observations);
    let repositories: BTreeSet<Lifetime> = attributions
        .iter()
        .filter(|file| {
            let observed = edges.of(&file.repository, &file.commit_sha, &file.session_id);
            !observed.is_empty()
        })
        .map(|file| file.repository.clone())
        .collect();
    let observed = gathered
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
            let names = gathered.resolving.repositories().names(repository);
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
        if merge.merged_at <= merged_by {
            take(merge)?;
        }
        Ok(())
    })?;
    drop(take);
    let numbers: BTreeSet<i64> = merges.iter().map(|it| it.pull_request.pr_number).collect();
    let mut revisions = Vec::new();
    let mut take = up_to(&mut revisions, REPORT_FACTS_MAX);
    snapshot.revisions_of_repositories(&of_ids, &names, boundary, |it: PullRequestRevision| {
        if numbers.contains(&it.pull_request.pr_number) {
            take(it)?;
        }
        Ok(())
    })?;
    drop(take);
    for merge in &merges {
        gathered.resolving.touch(of_base(&merge.pull_request));
        gathered.resolving.touch(of_head(&merge.pull_request));
    }
    for revision in &revisions {
        gathered.resolving.touch(of_base(&revision.pull_request));
    }
    gathered.resolving.read(snapshot, boundary)?;

    let resolving = &gathered.resolving;
    let mut inputs = Inputs {
        attributions,
        observed,
        ..Inputs::default()
    };
    let mut unresolved = Unresolved {
        borne: &borne,
        found: BTreeSet::new(),
    };
    inputs.merges = merges
        .into_iter()
        .filter_map(|merge| {
            let repository = unresolved.of(resolving, of_base(&merge.pull_request))?;
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
            let repository = unresolved.of(resolving, of_base(&revision.pull_request))?;
            Some(Revision {
                repository,
                pr_number: revision.pull_request.pr_number,
                head_sha: revision.pull_request.head_sha,
                previous_head_sha: revision.previous_head_sha,
            })
        })
        .collect();
    inputs.ci = gathered
        .ci
        .outcomes
        .iter()
        .filter_map(|outcome| {
            let repository = unresolved.of(resolving, of_outcome(outcome))?;
            Some(CiMembership {
                repository,
                pr_number: outcome.pr_number?,
                commit_sha: outcome.commit_sha.clone(),
            })
        })
        .collect();
    inputs.unresolved = unresolved.found;
    Ok(inputs)
}

/// Repositories that a fact may be of whose repository cannot be told.
struct Unresolved<'u> {
    borne: &'u BTreeMap<&'u Lifetime, BTreeSet<RepositoryName>>,
    found: BTreeSet<Lifetime>,
}

impl Unresolved<'_> {
    /// Returns the repository of a fact, or notes which ones it may be.
    fn of(&mut self, resolving: &Resolving, mention: Mention<'_>) -> Option<Lifetime> {
        if let Ok(repository) = resolving.of(mention) {
            return Some(repository);
        }
        for (repository, names) in self.borne {
            let is_it = match mention.identity {
                Some(identity) => repository.identity() == Some(identity),
                None => names.iter().any(|name| name.as_str() == mention.name),
            };
            if is_it {
                self.found.insert((*repository).clone());
            }
        }
        None
    }
}

fn of_base(pull_request: &PullRequest) -> Mention<'_> {
    Mention {
        name: &pull_request.repo,
        identity: pull_request.repository.as_ref(),
    }
}

fn of_head(pull_request: &PullRequest) -> Mention<'_> {
    Mention {
        name: pull_request.head_repo.as_deref().unwrap_or_default(),
        identity: pull_request.head_repository.as_ref(),
    }
}

/// Answers a question of a repository's history, from its own mirror and then from those of the
/// repositories that pull requests came from.
fn ancestry(
    mirrors: &mut OpenMirrors<'_>,
    repository: &Lifetime,
    question: &AncestryQuestion,
) -> Result<Vec<Ancestry>, Error> {
    let mut answers = Vec::new();
    for repository in [repository].into_iter().chain(&question.head_repositories) {
        if let Some(mirror) = mirrors.of(repository)? {
            answers.extend(mirror.read(|it| it.ancestry(&question.commits, &question.tips))?);
        }
    }
    Ok(answers)
}

/// Scores one file after the other: those of one commit follow each other.
fn score_all(joined: &mut Joined, mirrors: &mut OpenMirrors<'_>) -> Result<(), Error> {
    let files: Vec<(usize, JoinedFile)> = joined
        .files()
        .map(|(place, file)| (place, file.clone()))
        .collect();
    let mut last: Option<((Lifetime, CommitSha), Result<CommitDiff, ScoringSkip>)> = None;
    for (place, file) in files {
        let commit = (
            file.attribution.repository.clone(),
            file.attribution.commit_sha.clone(),
        );
        let diff = match last.take() {
            Some((read, diff)) if read == commit => diff,
            _ => source(mirrors, &commit)?,
        };
        if let Ok(diff) = &diff {
            joined.count_sections(&commit.0, &commit.1, diff);
        }
        let scores = scores(mirrors, &file, &diff)?;
        last = Some((commit, diff));
        joined.add(place, scores);
    }
    Ok(())
}

/// Reads the diff of an attributed commit.
fn source(
    mirrors: &mut OpenMirrors<'_>,
    (repository, commit): &(Lifetime, CommitSha),
) -> Result<Result<CommitDiff, ScoringSkip>, Error> {
    let Some(mirror) = mirrors.of(repository)? else {
        return Ok(Err(ScoringSkip::MirrorAbsent));
    };
    Ok(match mirror.read(|it| it.diff(commit, QUESTION))? {
        Some(Some(diff)) => Ok(CommitDiff::parse(&diff.bytes)),
        Some(None) => Err(ScoringSkip::SourceCommitAbsent),
        None => Err(ScoringSkip::SourceDiffUnavailable),
    })
}

fn scores(
    mirrors: &mut OpenMirrors<'_>,
    file: &JoinedFile,
    diff: &Result<CommitDiff, ScoringSkip>,
) -> Result<Result<Scores, ScoringSkip>, Error> {
    let (attribution, merge) = (&file.attribution, &file.merge);
    let head_repository = match &merge.head_repository {
        Ok(repository) => repository,
        Err(decline) => return Ok(Err((*decline).into())),
    };
    if let Err(skip @ (ScoringSkip::MirrorAbsent | ScoringSkip::SourceCommitAbsent)) = diff {
        return Ok(Err(*skip));
    }
    let repository = &attribution.repository;
    if !holds(mirrors, repository, &merge.merge_commit_sha)? {
        return Ok(Err(ScoringSkip::MergeCommitAbsent));
    }
    // A forge shows the head of a pull request in its target too, whoever may read where it came from.
    let head_repository = if holds(mirrors, repository, &merge.head_sha)? {
        repository
    } else if mirrors.of(head_repository)?.is_none() {
        return Ok(Err(ScoringSkip::MirrorAbsent));
    } else if holds(mirrors, head_repository, &merge.head_sha)? {
        head_repository
    } else {
        return Ok(Err(ScoringSkip::HeadCommitAbsent));
    };
    let added = match diff {
        Ok(diff) => source_text(diff, &attribution.file_path),
        Err(skip) => Err(*skip),
    };
    let added = match added {
        Ok(added) => added,
        Err(skip) => return Ok(Err(skip)),
    };
    let path = &attribution.file_path;
    let commit = &attribution.commit_sha;
    let head = file_at(mirrors, head_repository, commit, path, &merge.head_sha)?;
    let merged = file_at(mirrors, repository, commit, path, &merge.merge_commit_sha)?;
    Ok(score(added, &head, &merged))
}

fn holds(
    mirrors: &mut OpenMirrors<'_>,
    repository: &Lifetime,
    commit: &CommitSha,
) -> Result<bool, Error> {
    let Some(mirror) = mirrors.of(repository)? else {
        return Ok(false);
    };
    let commit = mirror.read(|it| it.commit(commit))?;
    Ok(commit.flatten().is_some())
}

/// Reads a file of a commit as it is at a later one, where it may lie elsewhere.
fn file_at(
    mirrors: &mut OpenMirrors<'_>,
    repository: &Lifetime,
    from: &CommitSha,
    path: &str,
    at: &CommitSha,
) -> Result<FileAt, Error> {
    let Some(mirror) = mirrors.of(repository)? else {
        return Ok(FileAt::ReadFailed);
    };
    let mut place = path.as_bytes().to_vec();
    let mut file = mirror.reader().regular_file(at, &place, FILE_BYTES_MAX);
    if let Ok(None) = file {
        let renames = mirror.read(|it| it.renames(from, at))?.flatten();
        let Some(renames) = renames else {
            return Ok(FileAt::PathUnresolved);
        };
        let pairs = renames
            .iter()
            .map(|it| (it.from.as_slice(), it.to.as_slice()));
        let Some(to) = renamed_to(pairs, path) else {
            return Ok(FileAt::PathUnresolved);
        };
        place = to.to_vec();
        file = mirror.reader().regular_file(at, &place, FILE_BYTES_MAX);
    }
    let path = String::from_utf8_lossy(&place).into_owned();
    Ok(match file {
        Ok(Some(bytes)) => file_text(path, &bytes),
        Ok(None) => FileAt::Absent,
        Err(ReadError::Declined(ReadDecline::TooLarge)) => FileAt::Oversized,
        file => {
            mirror.readable(file)?;
            FileAt::ReadFailed
        }
    })
}
