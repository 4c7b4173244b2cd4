//! The dossier of a Session: what was captured, and how its work was delivered.

use std::collections::{BTreeMap, BTreeSet};

use svc_engine_derive::dossier::{self, Deliveries};
use svc_engine_derive::repository::Repositories;
use svc_engine_derive::session_usage;
use svc_engine_fact::{Lifetime, Push};
use svc_engine_store::{CiOutcomeRow, Snapshot};
use svc_model::endpoint::SessionQuery;
use svc_model::id::FactId;
use svc_model::limit::{DOSSIER_DELIVERIES_MAX, DOSSIER_EVENTS_MAX, DOSSIER_OBSERVATIONS_MAX};
use svc_model::open::Open;
use svc_model::problem::{Decline, SessionBound};
use svc_model::query::{
    AttributedCommit, DossierCiOutcome, DossierPush, Found, ObservationSource, PushMatch,
    SessionAnswer, SessionDossier, SessionDossierRequest, TimelineEvent,
};
use svc_model::repository::CommitSha;
use svc_model::time::Instant;

use super::answer::{AdmissionKind, Answer, ReadContext};
use super::earlier_cost::earlier_costs;
use super::repository::{
    DeclineCounts, TouchedRepositories, display, link, of_observation, source, touch,
};
use super::spend::identities;
use crate::error::Error;

/// The commits of a Session by repository, each with its observations and where they come from.
type ObservedCommits = BTreeMap<Lifetime, BTreeMap<CommitSha, Observations>>;
type Observations = Vec<(FactId, Option<ObservationSource>)>;

/// Returns the dossier of a Session, up to the last stored fact. Its links lead to what is known
/// about a commit by `now`: the call that wrote it may have been observed by a clock that is ahead
/// of the last stored fact.
///
/// # Errors
///
/// If it exceeds a bound. There is no partial dossier.
pub fn session_dossier(
    snapshot: &mut Snapshot<'_>,
    request: SessionDossierRequest,
    now: Instant,
) -> Result<SessionAnswer, Error> {
    let session_id = request.session_id;
    let Some((first_observed_at, last_observed_at)) = snapshot.session_span(&session_id)? else {
        return Ok(SessionAnswer::UNKNOWN);
    };
    let coverage = dossier::coverage(snapshot.session_fact_counts(&session_id)?);
    let counts = coverage.counts();
    if counts.iter().map(|count| count.visible).sum::<u64>() > DOSSIER_EVENTS_MAX {
        return Err(SessionBound::Dossier.into());
    }
    let content_erased = snapshot.erased_of_session(&session_id)?.total();
    let boundary = snapshot.boundary(None)?;
    // A link must cover what the dossier shows, even if the clock was set back.
    let linked = boundary.max(now);
    let rows_max = DOSSIER_OBSERVATIONS_MAX + 1;
    let observed = snapshot.commits_of_session(&session_id, boundary, rows_max)?;
    if observed.len() as u64 > DOSSIER_OBSERVATIONS_MAX {
        return Err(Decline::RepositoryEvidenceLimit.into());
    }
    let mut touched = TouchedRepositories::default();
    for link in &observed {
        touch(&mut touched, link);
    }
    let repositories = touched.read(snapshot, boundary)?;
    let mut declined = DeclineCounts::default();
    let mut commits = ObservedCommits::new();
    for link in observed {
        if let Some(repository) = declined.or_count(of_observation(&repositories, &link)) {
            let commits = commits.entry(repository).or_default();
            let observations = commits.entry(link.commit_sha).or_default();
            observations.push((link.observation_id, link.source));
        }
    }
    let pushes = deliveries(&commits, |repository, commits, rows_max| {
        Ok(snapshot.pushes_of_delivery(repository, commits.keys(), boundary, rows_max)?)
    })?;
    let outcomes = deliveries(&commits, |repository, commits, rows_max| {
        Ok(snapshot.ci_outcomes_of_delivery(repository, commits.keys(), boundary, rows_max)?)
    })?;
    let mut timeline = snapshot.session_events(&session_id)?;
    timeline.sort_unstable_by(dossier::order);
    let costs = earlier_costs(snapshot, &session_id)?;
    for event in &mut timeline {
        if let TimelineEvent::InferenceCall { fact_id, usage, .. } = event {
            usage.cost_usd_micros = usage.cost_usd_micros.or(costs.get(fact_id).copied());
        }
    }
    let usage = if coverage.usage_receipts.is_some() {
        let receipts = snapshot.session_usage(&session_id)?;
        let calls = snapshot.session_call_usage(&session_id)?;
        let identities = identities(snapshot, &calls, &receipts)?;
        session_usage::add(&mut timeline, &identities, receipts, DOSSIER_EVENTS_MAX)
    } else {
        None
    };
    if !request.explain {
        timeline.iter_mut().for_each(TimelineEvent::hide_path);
    }
    let brought = if request.explain {
        let behind = snapshot.pushes_behind_session(&session_id, boundary, rows_max)?;
        Some(brought(snapshot, &commits, &pushes, &behind, boundary)?)
    } else {
        None
    };
    let gaps = dossier::gaps(
        &coverage,
        Deliveries {
            commits: commits.values().map(BTreeMap::len).sum(),
            pushes: pushes.len(),
            ci_outcomes: outcomes.len(),
        },
    );
    let mut attributed_commits = attributed(commits, &repositories);
    let (delivering_pushes, delivering_ci_outcomes) = match brought {
        None => (None, None),
        Some(brought) => {
            for commit in &mut attributed_commits {
                commit.delivered_by_push_ids = Some(brought.of(commit));
            }
            let outcomes = brought.outcomes.map(|outcomes| checked(outcomes, linked));
            (
                Some(received(brought.further_on, PushMatch::Brought)),
                outcomes,
            )
        }
    };
    let continues = snapshot.continued_sessions(&session_id)?;
    let continued_by = snapshot.continuing_sessions(&session_id)?;
    Ok(SessionAnswer::Known(Box::new(SessionDossier {
        found: Found,
        session_id,
        first_observed_at,
        last_observed_at,
        coverage,
        omitted_events: counts.iter().map(|count| count.quarantined).sum(),
        content_erased: (content_erased > 0).then_some(content_erased),
        gaps: gaps.into_iter().map(Open::Known).collect(),
        timeline: timeline.into_iter().map(Open::Known).collect(),
        usage,
        continues,
        continued_by,
        session_commit_unobserved: u64::from(attributed_commits.is_empty()),
        attributed_commits,
        pushes: received(pushes, PushMatch::AfterSha),
        delivering_pushes,
        delivering_ci_outcomes,
        ci_outcomes: checked(outcomes, linked),
        repository_skipped: declined.into_counts(),
    })))
}

/// Returns the deliveries of each repository's commits, with the repository.
fn deliveries<T>(
    commits: &ObservedCommits,
    mut of: impl FnMut(&Lifetime, &BTreeMap<CommitSha, Observations>, usize) -> Result<Vec<T>, Error>,
) -> Result<Vec<(Lifetime, T)>, Error> {
    let mut found = Vec::new();
    for (repository, commits) in commits {
        // One more row than allowed shows that there are too many.
        let rows_max = DOSSIER_DELIVERIES_MAX + 1 - found.len();
        let rows = of(repository, commits, rows_max)?;
        found.extend(rows.into_iter().map(|row| (repository.clone(), row)));
        if found.len() > DOSSIER_DELIVERIES_MAX {
            return Err(SessionBound::Delivery.into());
        }
    }
    Ok(found)
}

/// The pushes that led to a Session's links.
struct LinkPushes {
    /// The push behind each link.
    behind: BTreeMap<FactId, FactId>,
    /// Pushes that did not leave a branch at a commit of the Session.
    further_on: Vec<(Lifetime, Push)>,
    /// The CI outcomes at the commits where these pushes left their branches; `None` if too many.
    outcomes: Option<Vec<(Lifetime, CiOutcomeRow)>>,
}

impl LinkPushes {
    /// Returns the pushes that brought a commit, sorted.
    fn of(&self, commit: &AttributedCommit) -> Vec<FactId> {
        let links = commit.session_commit_observation_ids.iter();
        let pushes: BTreeSet<FactId> = links
            .filter_map(|link| self.behind.get(link))
            .copied()
            .collect();
        pushes.into_iter().collect()
    }
}

/// Returns the pushes that brought a Session's commits, and those that left a branch further on.
fn brought(
    snapshot: &mut Snapshot<'_>,
    commits: &ObservedCommits,
    at_commit: &[(Lifetime, Push)],
    pushes: &BTreeMap<FactId, Push>,
    boundary: Instant,
) -> Result<LinkPushes, Error> {
    let known: BTreeSet<FactId> = at_commit.iter().map(|(_, push)| push.push_id).collect();
    let mut behind = BTreeMap::new();
    let mut further_on = BTreeMap::new();
    // Links without a known repository are not shown.
    for (repository, links) in commits {
        for (link, _) in links.values().flatten() {
            let Some(push) = pushes.get(link) else {
                continue;
            };
            behind.insert(*link, push.push_id);
            if !known.contains(&push.push_id) {
                further_on.insert(push.push_id, (repository.clone(), push.clone()));
            }
        }
    }
    let further_on: Vec<_> = further_on.into_values().collect();
    let mut heads = ObservedCommits::new();
    for (repository, push) in &further_on {
        let heads = heads.entry(repository.clone()).or_default();
        heads.insert(push.after_sha.clone(), Vec::new());
    }
    let outcomes = deliveries(&heads, |repository, heads, rows_max| {
        Ok(snapshot.ci_outcomes_of_delivery(repository, heads.keys(), boundary, rows_max)?)
    });
    Ok(LinkPushes {
        behind,
        further_on,
        outcomes: match outcomes {
            Ok(outcomes) => Some(outcomes),
            Err(Error::SessionBound(SessionBound::Delivery)) => None,
            Err(error) => return Err(error),
        },
    })
}

fn attributed(commits: ObservedCommits, repositories: &Repositories) -> Vec<AttributedCommit> {
    let mut attributed = Vec::new();
    for (repository, commits) in commits {
        let repo = display(repositories, &repository);
        attributed.extend(commits.into_iter().map(|(commit_sha, observations)| {
            let source = source(observations.iter().map(|(_, source)| *source));
            let ids = observations.into_iter().map(|(id, _)| id);
            let mut observation_ids: Vec<FactId> = ids.collect();
            observation_ids.sort_unstable();
            AttributedCommit {
                repo: repo.clone(),
                commit_sha,
                attribution_sources: Vec::new(),
                session_commit_observation_ids: observation_ids,
                source,
                repository_identity: repository.identity().cloned().map(Into::into),
                delivered_by_push_ids: None,
            }
        }));
    }
    attributed
}

fn received(mut pushes: Vec<(Lifetime, Push)>, match_kind: PushMatch) -> Vec<DossierPush> {
    pushes.sort_unstable_by_key(|(_, push)| (push.captured_at, push.push_id));
    pushes
        .into_iter()
        .map(|(_, push)| DossierPush {
            push_id: push.push_id,
            provider: push.provider.into(),
            repo: push.repo,
            r#ref: push.r#ref,
            before_sha: push.before_sha,
            after_sha: push.after_sha,
            forced: push.forced,
            captured_at: push.captured_at,
            match_kind: match_kind.into(),
            repository_identity: push.repository.map(Into::into),
        })
        .collect()
}

fn checked(mut outcomes: Vec<(Lifetime, CiOutcomeRow)>, linked: Instant) -> Vec<DossierCiOutcome> {
    outcomes.sort_unstable_by_key(|(_, row)| (row.captured_at, row.outcome_id));
    outcomes
        .into_iter()
        .map(|(repository, row)| DossierCiOutcome {
            commit_query: link(&row.commit_sha, Some(&repository), linked),
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
            pr_number: row.pr_number,
            captured_at: row.captured_at,
            repository_identity: row.repository.map(Into::into),
            superseded: row.superseded,
        })
        .collect()
}

impl Answer for SessionQuery {
    const ADMISSION: AdmissionKind = AdmissionKind::Slot;

    fn answer(
        reading: &mut ReadContext<'_, '_>,
        request: Self::Request,
    ) -> Result<Self::Reply, Error> {
        session_dossier(reading.snapshot, request, reading.now)
    }
}
