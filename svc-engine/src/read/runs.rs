//! The runs with an id or a URL, and what was delivered with their commit.

use std::collections::{BTreeMap, BTreeSet};

use svc_engine_fact::Lifetime;
use svc_engine_store::{CiOutcomeRow, Snapshot};
use svc_model::endpoint::CiRunsQuery;
use svc_model::id::{FactId, SessionId};
use svc_model::limit::{CI_DELIVERY_MAX, CI_RUN_OUTCOMES_MAX, CI_RUNS_MAX};
use svc_model::query::{
    CiDelivery, CiOutcomeRecord, CiRun, CiRuns, CiRunsRequest, DeliveredCommit,
};
use svc_model::repository::{CommitSha, RepositoryIdentity, RepositoryName};
use svc_model::time::Instant;

use super::answer::{AdmissionKind, Answer, ReadContext};
use super::repository::{link, repository_of, retain_selected};
use crate::error::Error;

/// A run, represented by its last attempt.
pub(super) struct Run {
    pub(super) last: CiOutcomeRow,
    pub(super) attempts: Vec<Option<i64>>,
}

/// Returns the runs of these outcomes, each once. A run belongs to one system and one forge.
pub(super) fn by_run(rows: Vec<CiOutcomeRow>) -> Vec<Run> {
    let mut runs: BTreeMap<_, Run> = BTreeMap::new();
    for row in rows {
        let forge = row.repository.as_ref().map(|repository| {
            (
                repository.repository_provider,
                repository.repository_host.clone(),
            )
        });
        let attempt = row.run_attempt;
        match runs.entry((row.provider, row.run_id.clone(), forge)) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(Run {
                    last: row,
                    attempts: vec![attempt],
                });
            }
            std::collections::btree_map::Entry::Occupied(mut entry) => {
                let run = entry.get_mut();
                run.attempts.push(attempt);
                // An outcome without an attempt number comes before the first attempt.
                if attempt > run.last.run_attempt {
                    run.last = row;
                }
            }
        }
    }
    let mut runs: Vec<Run> = runs.into_values().collect();
    for run in &mut runs {
        run.attempts.sort_unstable();
    }
    runs
}

/// Returns an outcome as answers give it.
pub(super) fn record(
    row: CiOutcomeRow,
    repository: Option<&Lifetime>,
    boundary: Instant,
) -> CiOutcomeRecord {
    let commit_query = link(&row.commit_sha, repository, boundary);
    CiOutcomeRecord {
        outcome_id: row.outcome_id,
        provider: row.provider.into(),
        run_id: row.run_id,
        run_attempt: row.run_attempt,
        repo: row.repo,
        commit_sha: row.commit_sha,
        branch: row.branch,
        result: row.result.into(),
        workflow_name: row.workflow_name,
        workflow_id: row.workflow_id,
        run_url: row.run_url,
        provider_result: row.provider_result,
        error_type: row.error_type,
        reason: row.reason,
        pr_number: row.pr_number,
        captured_at: row.captured_at,
        commit_query,
        repository_identity: row.repository.map(Into::into),
        superseded: row.superseded,
    }
}

/// Returns the runs with a name, the latest capture first, and what was delivered with their
/// commit.
///
/// # Errors
///
/// If several repositories are selected, or the selector contradicts stored facts.
pub fn ci_runs(snapshot: &mut Snapshot<'_>, request: &CiRunsRequest) -> Result<CiRuns, Error> {
    let boundary = snapshot.boundary(request.as_of)?;
    let mut rows = snapshot.ci_outcomes_named(&request.name, boundary)?;
    let cut = rows.len() as u64 > CI_RUN_OUTCOMES_MAX;
    if let Some(provider) = request.provider {
        rows.retain(|row| row.provider == provider);
    }
    let repositories = retain_selected(snapshot, &request.repository, &mut rows, boundary)?;
    let mut runs = by_run(rows);
    runs.sort_unstable_by_key(|run| std::cmp::Reverse((run.last.captured_at, run.last.outcome_id)));
    let more = cut || runs.len() > CI_RUNS_MAX;
    runs.truncate(CI_RUNS_MAX);
    let of: BTreeSet<(Option<Lifetime>, CommitSha)> = runs
        .iter()
        .map(|run| {
            (
                repository_of(&repositories, &run.last),
                run.last.commit_sha.clone(),
            )
        })
        .collect();
    let delivery = match (of.first(), of.len()) {
        (Some((Some(repository), commit_sha)), 1) => {
            Some(delivery(snapshot, repository, commit_sha, boundary)?)
        }
        _ => None,
    };
    let runs = runs.into_iter().map(|run| {
        let repository = repository_of(&repositories, &run.last);
        CiRun {
            attempts: run.attempts,
            outcome: record(run.last, repository.as_ref(), boundary),
        }
    });
    Ok(CiRuns {
        runs: runs.collect(),
        more,
        delivery,
    })
}

/// Returns the repository of a fact with this identity, or with only this name.
fn lifetime(identity: Option<&RepositoryIdentity>, name: Option<&str>) -> Option<Lifetime> {
    match identity {
        Some(identity) => Some(Lifetime::Identified(identity.clone())),
        None => RepositoryName::new(name?).map(Lifetime::Named),
    }
}

/// Returns what was delivered with a commit.
fn delivery(
    snapshot: &mut Snapshot<'_>,
    repository: &Lifetime,
    commit_sha: &CommitSha,
    boundary: Instant,
) -> Result<CiDelivery, Error> {
    // One more row than allowed shows that there is more.
    let rows_max = CI_DELIVERY_MAX + 1;
    let mut more = false;
    let mut is_cut = |rows: usize| more |= rows as u64 > CI_DELIVERY_MAX;
    let mut heads: BTreeMap<Lifetime, BTreeSet<CommitSha>> = BTreeMap::new();
    heads
        .entry(repository.clone())
        .or_default()
        .insert(commit_sha.clone());
    let mut pull_requests = BTreeSet::new();
    let at_head = snapshot.pull_requests_at(commit_sha, boundary, rows_max)?;
    is_cut(at_head.len());
    for found in at_head {
        let base = lifetime(found.repository.as_ref(), Some(&found.repo));
        let head = lifetime(found.head_repository.as_ref(), found.head_repo.as_deref());
        // The commit may belong to a fork, or to a different repository.
        let is_of_run = [&base, &head]
            .into_iter()
            .flatten()
            .any(|side| side == repository);
        if !is_of_run || !pull_requests.insert(found.pr_number) {
            continue;
        }
        let every = snapshot.heads_of_pull_request(&found, boundary, rows_max)?;
        is_cut(every.len());
        for head in every {
            let of = lifetime(head.head_repository.as_ref(), head.head_repo.as_deref());
            // A branch of the repository itself may also be at the commit.
            for of in of.into_iter().chain(base.clone()) {
                heads.entry(of).or_default().insert(head.head_sha.clone());
            }
        }
    }
    let mut push_ids: BTreeSet<FactId> = BTreeSet::new();
    for (repository, commits) in &heads {
        let rows_max = usize::try_from(rows_max).unwrap_or(usize::MAX);
        let pushes = snapshot.pushes_of_delivery(repository, commits.iter(), boundary, rows_max)?;
        is_cut(pushes.len());
        push_ids.extend(pushes.iter().map(|push| push.push_id));
    }
    let mut sessions: BTreeMap<CommitSha, BTreeSet<SessionId>> = BTreeMap::new();
    let mut links = 0;
    for push_id in push_ids.iter().take(PUSHES_MAX) {
        let observed = snapshot.sessions_of_push(*push_id, boundary, rows_max)?;
        links += observed.len();
        is_cut(links);
        for link in observed {
            let session_ids = sessions.entry(link.commit_sha).or_default();
            session_ids.insert(link.session_id);
        }
    }
    is_cut(if push_ids.len() > PUSHES_MAX {
        usize::MAX
    } else {
        0
    });
    let shown = usize::try_from(CI_DELIVERY_MAX).unwrap_or(usize::MAX);
    is_cut(sessions.len());
    Ok(CiDelivery {
        commit_sha: commit_sha.clone(),
        push_ids: push_ids.into_iter().take(shown).collect(),
        pull_requests: pull_requests.into_iter().collect(),
        commits: sessions
            .into_iter()
            .take(shown)
            .map(|(commit_sha, session_ids)| DeliveredCommit {
                commit_sha,
                session_ids: session_ids.into_iter().collect(),
            })
            .collect(),
        more,
    })
}

/// Maximum number of pushes whose notes are looked up.
const PUSHES_MAX: usize = 100;

impl Answer for CiRunsQuery {
    const ADMISSION: AdmissionKind = AdmissionKind::Short;

    fn answer(
        reading: &mut ReadContext<'_, '_>,
        request: Self::Request,
    ) -> Result<Self::Reply, Error> {
        ci_runs(reading.snapshot, &request)
    }
}
