//! Reports that only an operator requests, usually over all history.

use svc_engine_derive::decision::distinct;
use svc_engine_derive::place::RepositoryLabel;
use svc_engine_derive::retention_report;
use svc_engine_derive::session_status::SessionStatuses;
use svc_engine_store::{CohortDecision, Snapshot};
use svc_model::reports::{
    AbandonmentReport, AttributionShareReport, Counts, MergeRetentionReport,
    RetentionRepositorySkips, UncheckedPullRequests,
};
use svc_model::time::Instant;

use super::population::{decided, decisions, observed, sessions};
use super::resolving::Resolving;
use super::{Diffs, Extent, Gathered, ReportSources, merges, share};
use crate::error::Error;

/// Returns what is known about Sessions with accepted work: the Sessions of the calls, or with all
/// history every Session. Mirrors are not read.
///
/// # Errors
///
/// [`Error::ReportBound`] if there are too many calls, decisions or observations.
pub fn abandonment(
    snapshot: &mut Snapshot<'_>,
    extent: &Extent,
) -> Result<AbandonmentReport, Error> {
    let boundary = snapshot.boundary(Some(extent.as_of))?;
    let sessions = sessions(snapshot, extent)?;
    let decisions = decisions(snapshot, &sessions, boundary)?;
    let as_of = last_considered(snapshot, extent, &decisions, boundary)?;
    let decisions = distinct(decisions.into_iter().map(decided).collect());
    let observed = observed(snapshot, &sessions, boundary)?;
    let mut resolving = Resolving::default();
    for observed in &observed {
        resolving.touch_observed(observed);
    }
    resolving.read(snapshot, boundary)?;
    let observations: Vec<_> = observed
        .iter()
        .map(|observed| resolving.observed(observed))
        .collect();
    let revision = snapshot.quarantine_revision()?;
    let statuses = SessionStatuses::new(&decisions, &observations);
    Ok(statuses.report(snapshot.org_id(), as_of, revision))
}

/// Returns the time of the last relevant fact: a decision, a call, or a fact about a repository;
/// `None` without a decision. A sender's clock may be ahead, so the result is capped at the
/// requested moment.
fn last_considered(
    snapshot: &mut Snapshot<'_>,
    extent: &Extent,
    decisions: &[CohortDecision],
    boundary: Instant,
) -> Result<Option<Instant>, Error> {
    let decided = decisions
        .iter()
        .map(|decision| decision.occurred_at.max(decision.captured_at));
    let Some(decided) = decided.max() else {
        return Ok(None);
    };
    let of_call = snapshot.latest_call(extent.observed())?;
    let of_repository = snapshot.latest_repository_fact(boundary)?;
    let last = of_call
        .max(of_repository)
        .map_or(decided, |moment| moment.max(decided));
    Ok(Some(last.min(extent.as_of)))
}

/// Returns the share of each repository's commits that notes tie to agents, in the week before its
/// last push and in the weeks before that. `cases_min` is how many commits both windows need before
/// a decline is reported.
///
/// # Errors
///
/// [`Error::ReportBound`] if there are too many pushes, or too many facts near them.
pub fn attribution_share(
    snapshot: &mut Snapshot<'_>,
    sources: ReportSources<'_>,
    as_of: Instant,
    cases_min: u64,
) -> Result<AttributionShareReport, Error> {
    let Gathered { cohort, mut reader } = Gathered::new(
        snapshot,
        sources,
        &Extent::nothing_until(as_of),
        Diffs::Once,
        &[],
    )?;
    share::report(snapshot, &mut reader, &cohort.population, as_of, cases_min)
}

/// Returns what remained of the calls' attributed files in merged pull requests, and the pull
/// requests that leave this unknown for others.
///
/// # Errors
///
/// [`Error::ReportBound`] if there are too many calls, or too many facts about them.
pub fn merge_retention(
    snapshot: &mut Snapshot<'_>,
    sources: ReportSources<'_>,
    extent: &Extent,
) -> Result<MergeRetentionReport, Error> {
    let mut gathered = Gathered::new(snapshot, sources, extent, Diffs::Again, &[])?;
    let inputs = merges::read(snapshot, &mut gathered, extent)?;
    let retention = merges::derive(inputs, &gathered.reader.history, snapshot.deadline())?;
    let cohort = &gathered.cohort;
    let mut attribution_skips = cohort.attributions.skipped.clone();
    let observations = cohort.declined.attribution_observations().into_iter();
    for (why, count) in observations.flat_map(Counts::iter) {
        attribution_skips.add(why.into(), count);
    }
    let repository_skipped = RetentionRepositorySkips {
        session_observations: cohort.declined.observations.clone(),
        // The repository of an attributed file is always known.
        candidate_edges: Counts::default(),
    };
    let unchecked = retention.unchecked.iter().map(|(repository, numbers)| {
        let place = RepositoryLabel::of(gathered.reader.resolving.repositories(), repository);
        UncheckedPullRequests {
            repo: place.repo,
            repository_identity: place.identity,
            pr_numbers: numbers.iter().copied().collect(),
        }
    });
    let unchecked: Vec<UncheckedPullRequests> = unchecked.collect();
    Ok(retention_report::report(
        &retention,
        retention_report::RetentionParts {
            org_id: snapshot.org_id(),
            quarantine_revision: snapshot.quarantine_revision()?,
            attribution_skips: &attribution_skips,
            decisions: &cohort.population.decisions,
            repository_skipped: &repository_skipped,
            unchecked_pull_requests: &unchecked,
        },
    ))
}
