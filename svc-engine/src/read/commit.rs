//! What is known about a commit, by repository.

use std::collections::{BTreeMap, BTreeSet};

use svc_engine_derive::repository::{Names, Repositories, Selection};
use svc_engine_fact::{Lifetime, Push};
use svc_engine_store::{CiOutcomeRow, Snapshot};
use svc_model::endpoint::CommitQuery;
use svc_model::id::{FactId, OrgId, SessionId};
use svc_model::limit::{COMMIT_OBSERVATIONS_MAX, COMMIT_PUSHES_MAX, QUERY_REPLY_BYTES_MAX};
use svc_model::problem::Decline;
use svc_model::query::{
    CI_OUTCOME_VERSION, CommitCiOutcome, CommitEvidence, CommitRepository, CommitRequest,
    InferenceSkip, InferredCall, LinkSkip, ObservationSource, ObservedSession,
};
use svc_model::reports::Counts;
use svc_model::repository::RepositoryName;
use svc_model::time::Instant;

use super::answer::{AdmissionKind, Answer, ReadContext};
use super::links::{CommitLinks, LinkBounds, LinkedPlace, links};
use super::reports::{Bounds, Inference, KnownCommit, ReportSources};
use super::repository::{
    DeclineCounts, TouchedRepositories, display, of_base, of_observation, of_outcome, of_push,
    select, source, touch,
};
use crate::error::Error;

/// The evidence that one repository has about a commit.
#[derive(Debug, Default)]
struct RepositoryEvidence {
    sessions: BTreeMap<SessionId, BTreeMap<FactId, Option<ObservationSource>>>,
    outcomes: Vec<CiOutcomeRow>,
    /// The first push that left a branch at the commit.
    head: Option<Push>,
    calls: Vec<InferredCall>,
    decisions: u64,
    links: CommitLinks,
}

impl RepositoryEvidence {
    /// Returns whether there is anything to show; a push or a merge alone is not shown.
    fn is_shown(&self) -> bool {
        !(self.sessions.is_empty() && self.outcomes.is_empty() && self.calls.is_empty())
            || self.links.have_sessions()
    }
}

/// Returns what is known about a commit. Without a boundary in the request, the answer covers all
/// stored facts, and calls observed by `now`: a gateway's clock may be ahead of the last stored
/// fact.
///
/// Calls are searched for in the repositories that a stored fact links to the commit: an
/// observation, an outcome, or a push that left a branch at it. Another repository is searched only
/// if it is selected.
///
/// # Errors
///
/// If several repositories match, the selector contradicts stored facts, too many facts are near
/// the commit, or the reply would be too large.
pub fn commit_evidence(
    snapshot: &mut Snapshot<'_>,
    sources: ReportSources<'_>,
    request: CommitRequest,
    now: Instant,
) -> Result<CommitEvidence, Error> {
    let boundary = snapshot.boundary(request.as_of)?;
    let commit_sha = request.commit_sha;
    let rows_max = COMMIT_OBSERVATIONS_MAX + 1;
    let observed = snapshot.sessions_of_commit(&commit_sha, boundary, rows_max)?;
    if observed.len() as u64 > COMMIT_OBSERVATIONS_MAX {
        return Err(Decline::RepositoryEvidenceLimit.into());
    }
    let pushes = snapshot.pushes_at(&commit_sha, boundary, COMMIT_PUSHES_MAX + 1)?;
    if pushes.len() > COMMIT_PUSHES_MAX {
        return Err(Decline::RepositoryEvidenceLimit.into());
    }
    let outcomes = snapshot
        .ci_outcomes_of_commit(&commit_sha, boundary, QUERY_REPLY_BYTES_MAX)?
        .ok_or(Error::ReplyTooLarge)?;
    let merges = snapshot.merges_at(&[&commit_sha], boundary, COMMIT_PUSHES_MAX + 1)?;
    if merges.len() > COMMIT_PUSHES_MAX {
        return Err(Decline::RepositoryEvidenceLimit.into());
    }
    let mut touched = TouchedRepositories::by(&request.repository);
    for link in &observed {
        touch(&mut touched, link);
    }
    for push in &pushes {
        touched.add(of_push(push));
    }
    for row in &outcomes {
        touched.add(of_outcome(row));
    }
    for merge in &merges {
        touched.add(of_base(&merge.pull_request));
    }
    let repositories = touched.read(snapshot, boundary)?;
    let selection = select(snapshot, &repositories, &request.repository, boundary)?;
    if selection == Selection::None {
        return Ok(CommitEvidence::none(commit_sha));
    }

    let mut declined = DeclineCounts::default();
    let mut unresolved = Vec::new();
    let mut found: BTreeMap<Lifetime, RepositoryEvidence> = BTreeMap::new();
    for link in observed {
        if let Some(repository) = declined.or_count(of_observation(&repositories, &link)) {
            let evidence = found.entry(repository).or_default();
            let session = evidence.sessions.entry(link.session_id).or_default();
            session.insert(link.observation_id, link.source);
        }
    }
    for row in outcomes {
        let repository = match &selection {
            Selection::One(selected) if repositories.holds(selected, of_outcome(&row)) => {
                Ok(selected.clone())
            }
            _ => repositories.of(of_outcome(&row)),
        };
        match declined.or_count(repository) {
            Some(repository) => found.entry(repository).or_default().outcomes.push(row),
            None => unresolved.push(row),
        }
    }
    for push in pushes {
        if let Ok(repository) = repositories.of(of_push(&push)) {
            let head = &mut found.entry(repository).or_default().head;
            let order = |push: &Push| (push.captured_at, push.push_id);
            if head
                .as_ref()
                .is_none_or(|first| order(&push) < order(first))
            {
                *head = Some(push);
            }
        }
    }
    let is_named: BTreeSet<Lifetime> = found.keys().cloned().collect();
    let mut links_skipped: Counts<LinkSkip> = Counts::default();
    for merge in &merges {
        match repositories.of(of_base(&merge.pull_request)) {
            Ok(repository) => drop(found.entry(repository).or_default()),
            Err(_) => links_skipped.add(LinkSkip::RepositoryUndetermined, 1),
        }
    }
    let is_linked: BTreeSet<Lifetime> = found.keys().cloned().collect();
    if let Selection::One(selected) = &selection {
        found.retain(|repository, _| repository == selected);
        unresolved.clear();
        found.entry(selected.clone()).or_default();
    }

    let bounds = Bounds {
        boundary,
        observed_by: request.as_of.unwrap_or(now),
    };
    let link_bounds = LinkBounds {
        boundary,
        as_of: request.as_of,
    };
    let mut inference = Inference::new(sources, snapshot.deadline(), bounds);
    let mut inference_skipped: Counts<InferenceSkip> = Counts::default();
    for (repository, evidence) in &mut found {
        let names = repositories.names(repository);
        let names: Vec<RepositoryName> = names.iter().flat_map(Names::all).cloned().collect();
        let place = LinkedPlace {
            repository,
            names: &names,
            commit_sha: &commit_sha,
            is_named: is_linked.contains(repository),
        };
        evidence.links = links(snapshot, inference.mirrors(), place, link_bounds)?;
        for (skip, count) in evidence.links.skipped.iter() {
            links_skipped.add(skip, count);
        }
        // Calls are searched for where the commit is known to have been, not where it was merged.
        if !is_named.contains(repository) && selection == Selection::All {
            continue;
        }
        let known = KnownCommit {
            repository,
            names: &names,
            commit_sha: &commit_sha,
            head: evidence.head.as_ref(),
            sessions: evidence.sessions.keys().collect(),
            is_named: is_named.contains(repository),
        };
        let inferred = inference
            .of(snapshot, &known)
            .map_err(|error| match error {
                Error::ReportBound(_) => Decline::RepositoryEvidenceLimit.into(),
                error => error,
            })?;
        for (skip, count) in inferred.skipped.iter().filter(|_| request.explain) {
            inference_skipped.add(skip, count);
        }
        evidence.calls = inferred.calls;
        if !request.explain {
            for call in &mut evidence.calls {
                (call.similarity_score, call.attributed_files) = (None, None);
            }
        }
        evidence.decisions = inferred.decisions;
    }
    found.retain(|_, evidence| evidence.is_shown());
    let skipped = declined.into_counts();
    let links_skipped = Some(links_skipped).filter(|skips| request.explain && !skips.is_empty());
    if found.is_empty()
        && skipped.is_empty()
        && inference_skipped.is_empty()
        && links_skipped.is_none()
    {
        return Ok(CommitEvidence::none(commit_sha));
    }
    let org_id = snapshot.org_id();
    let facts = |rows: Vec<CiOutcomeRow>| rows.into_iter().map(|row| fact(row, org_id)).collect();
    Ok(CommitEvidence {
        commit_sha,
        attributed: found.values().any(|evidence| !evidence.sessions.is_empty()),
        repos: Some(
            found
                .into_iter()
                .map(|(repository, evidence)| entry(&repositories, &repository, evidence, org_id))
                .collect(),
        ),
        repository_skipped: Some(skipped).filter(|skipped| !skipped.is_empty()),
        unresolved_ci_outcomes: Some(unresolved)
            .filter(|unresolved| !unresolved.is_empty())
            .map(facts),
        inference_skipped: Some(inference_skipped).filter(|skipped| !skipped.is_empty()),
        links_skipped,
    })
}

fn entry(
    repositories: &Repositories,
    repository: &Lifetime,
    evidence: RepositoryEvidence,
    org_id: &OrgId,
) -> CommitRepository {
    let names = repositories.names(repository);
    let current = names.as_ref().map(|names| names.current().to_string());
    let identity = repository.identity().cloned();
    let inferred: BTreeSet<&SessionId> =
        evidence.calls.iter().map(|call| &call.session_id).collect();
    let is_unobserved = |session: &&&SessionId| !evidence.sessions.contains_key(**session);
    let unobserved = inferred.iter().filter(is_unobserved).count() as u64;
    CommitRepository {
        repo: display(repositories, repository),
        // A repository known only by its name has no other name.
        current_repo: current.filter(|_| identity.is_some()),
        repository_identity: identity.map(Into::into),
        observed_repo_slugs: names
            .iter()
            .flat_map(Names::all)
            .map(ToString::to_string)
            .collect(),
        session_commit_unobserved: unobserved,
        inference_calls: evidence.calls,
        decisions: evidence.decisions,
        observed_sessions: evidence
            .sessions
            .into_iter()
            .map(|(session_id, observations)| ObservedSession {
                session_id,
                source: source(observations.values().copied()),
                session_commit_observation_ids: observations.into_keys().collect(),
            })
            .collect(),
        ci_outcomes: evidence
            .outcomes
            .into_iter()
            .map(|row| fact(row, org_id))
            .collect(),
        through_pull_requests: evidence.links.through,
        named_commits: evidence.links.named,
    }
}

fn fact(row: CiOutcomeRow, org_id: &OrgId) -> CommitCiOutcome {
    let (repository_provider, repository_host, repository_id) = row
        .repository
        .map(|repository| {
            (
                repository.repository_provider,
                repository.repository_host,
                repository.repository_id,
            )
        })
        .map_or((None, None, None), |(a, b, c)| {
            (Some(a.into()), Some(b), Some(c))
        });
    CommitCiOutcome {
        schema_version: CI_OUTCOME_VERSION,
        repository_provider,
        repository_host,
        repository_id,
        outcome_id: row.outcome_id,
        org_id: org_id.clone(),
        provider: row.provider.into(),
        run_id: row.run_id,
        run_attempt: row.run_attempt,
        repo: row.repo,
        commit_sha: row.commit_sha,
        branch: row.branch,
        result: row.result.into(),
        workflow_name: row.workflow_name,
        workflow_id: row.workflow_id,
        workflow_path: row.workflow_path,
        run_url: row.run_url,
        provider_result: row.provider_result,
        error_type: row.error_type,
        reason: row.reason,
        source_event_type: row.source_event_type,
        source_spec_version: row.source_spec_version,
        source_event_id: row.source_event_id,
        pr_number: row.pr_number,
        captured_at: row.captured_at,
        superseded: row.superseded,
    }
}

impl Answer for CommitQuery {
    const ADMISSION: AdmissionKind = AdmissionKind::SlotOfTwo;

    fn answer(
        reading: &mut ReadContext<'_, '_>,
        request: Self::Request,
    ) -> Result<Self::Reply, Error> {
        let memory = reading.report_memory()?;
        let sources = reading.report_sources(&memory);
        commit_evidence(reading.snapshot, sources, request, reading.now)
    }
}
