//! Which part of the commits of the last days, and of the weeks before them, notes tie to agents.
//!
//! Other than in the rows, every call of the organization counts that a push could be of: those near
//! it, and those of the Sessions that were observed at its commits.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use svc_model::id::{FactId, SessionId};
use svc_model::limit::REPORT_FACTS_MAX;
use svc_model::reports::{AttributionAlert, AttributionShareRow, Counts, ReportScope};
use svc_model::repository::{CommitSha, RepositoryDecline};
use svc_model::time::Instant;

use super::population::{candidate, up_to};
use super::{Gathered, attribute, declined, just_after, minutes_later, notes};
use crate::derive::attribution::{
    self, AssessedCommit, Call, GUESS_MINUTES_BEFORE, Inputs, MINUTES_AFTER, NOTE_MINUTES_BEFORE,
};
use crate::derive::attribution_share::{BASELINE_DAYS, DECLINE_CASES_MIN, Window, alerts, shares};
use crate::derive::observed::ObservedCommit;
use crate::derive::share_report::Shown;
use crate::error::Error;
use crate::store::Snapshot;

/// Calls that all pushes of both windows may be of. They are of the organization and not of the cohort,
/// so there may be more.
const CALLS_MAX: usize = 500_000;

/// The shares of a model report.
#[derive(Default)]
pub(super) struct Shares {
    pub(super) rows: Vec<AttributionShareRow>,
    pub(super) alerts: Vec<AttributionAlert>,
    /// Pushes of the window whose repository cannot be told.
    pub(super) pushes_declined: Counts<RepositoryDecline>,
    /// Observations whose repository cannot be told, and why.
    pub(super) declined_observations: BTreeMap<FactId, RepositoryDecline>,
}

/// Returns the observations whose repository cannot be told, and why.
pub(super) fn declined_of(observations: &[ObservedCommit]) -> BTreeMap<FactId, RepositoryDecline> {
    let decline = |observed: &ObservedCommit| {
        let decline = observed.repository.as_ref().err()?;
        Some((observed.observation_id, *decline))
    };
    observations.iter().filter_map(decline).collect()
}

pub(super) fn read(
    snapshot: &mut Snapshot<'_>,
    gathered: &mut Gathered<'_>,
    scope: &ReportScope,
) -> Result<Shares, Error> {
    let days = i64::try_from(scope.since_days()).unwrap_or(i64::MAX);
    let window = Window::days_before(scope.as_of, days);
    let before = Window::days_before(window.start, BASELINE_DAYS);
    let boundary = gathered.boundary;
    let mut pushes = Vec::new();
    let captured = before.start..just_after(boundary.max(before.start));
    snapshot.pushes_captured(captured, up_to(&mut pushes, REPORT_FACTS_MAX))?;
    if pushes.is_empty() {
        return Ok(Shares::default());
    }
    for push in &pushes {
        gathered.resolving.touch_push(push);
    }
    gathered.resolving.read(snapshot, boundary)?;
    let pushes = gathered.history.pushed(&pushes, &gathered.resolving);
    let told = pushes
        .iter()
        .filter_map(|push| Some((push.repository.as_ref().ok()?, push.push_id)));
    gathered.history.read_ranges(told)?;

    let observations = observations(snapshot, gathered, &pushes)?;
    let inputs = Inputs {
        calls: calls(snapshot, &pushes, &observations)?,
        notes: notes(&observations),
        pushes,
    };
    let of = |is_in: &dyn Fn(Instant) -> bool| {
        let pushes = inputs.pushes.iter().filter(|push| is_in(push.captured_at));
        pushes.cloned().collect::<Vec<_>>()
    };
    let (now, earlier) = (of(&|at| window.holds(at)), of(&|at| window.is_baseline(at)));
    let pushes_declined = declined(&now);
    let mut assess = |pushes: Vec<attribution::Push>| -> Result<Vec<AssessedCommit>, Error> {
        let inputs = Inputs {
            pushes,
            ..inputs.clone()
        };
        let Gathered {
            history, answers, ..
        } = &mut *gathered;
        let attributions = attribute(snapshot, history, answers, inputs, scope.as_of, u64::MAX)?;
        Ok(attributions.commits)
    };
    let current = shares(&assess(now)?, |_| Some(window));
    // The baseline ends where the window begins, which is not its own moment any more.
    let baseline = shares(&assess(earlier)?, |_| Some(before));
    let alerts = alerts(&current, &baseline, DECLINE_CASES_MIN);
    let shown = Shown {
        org_id: snapshot.org_id(),
        quarantine_revision: snapshot.quarantine_revision()?,
        repositories: gathered.resolving.repositories(),
    };
    Ok(Shares {
        rows: current.iter().map(|row| shown.row(row)).collect(),
        alerts: alerts.iter().map(|alert| shown.alert(alert)).collect(),
        pushes_declined,
        declined_observations: declined_of(&observations),
    })
}

/// Returns the observations at the commits of pushes.
fn observations(
    snapshot: &mut Snapshot<'_>,
    gathered: &mut Gathered<'_>,
    pushes: &[attribution::Push],
) -> Result<Vec<ObservedCommit>, Error> {
    let commits: BTreeSet<CommitSha> = pushes
        .iter()
        .filter_map(|push| gathered.history.range(push.push_id))
        .flatten()
        .collect();
    let commits: Vec<&CommitSha> = commits.iter().collect();
    let mut observed = Vec::new();
    let take = up_to(&mut observed, REPORT_FACTS_MAX);
    snapshot.sessions_of_commits(&commits, gathered.boundary, take)?;
    for observed in &observed {
        gathered.resolving.touch_observed(observed);
    }
    gathered.resolving.read(snapshot, gathered.boundary)?;
    let resolved = observed.iter().map(|it| gathered.resolving.observed(it));
    Ok(resolved.collect())
}

/// Returns the calls that pushes may be of.
fn calls(
    snapshot: &mut Snapshot<'_>,
    pushes: &[attribution::Push],
    observations: &[ObservedCommit],
) -> Result<Vec<Call>, Error> {
    let mut calls = Vec::new();
    let mut take = up_to(&mut calls, CALLS_MAX);
    for near in near(pushes) {
        snapshot.calls_observed(near, |call| take(candidate(&call)))?;
    }
    let captured = || pushes.iter().map(|push| push.captured_at);
    if let (Some(first), Some(last)) = (captured().min(), captured().max()) {
        let weeks = minutes_later(first, -NOTE_MINUTES_BEFORE)
            ..just_after(minutes_later(last, MINUTES_AFTER));
        let sessions: BTreeSet<&SessionId> = observations.iter().map(|it| &it.session_id).collect();
        let sessions: Vec<SessionId> = sessions.into_iter().cloned().collect();
        snapshot.calls_of_sessions(&sessions, weeks, |call| take(candidate(&call)))?;
    }
    drop(take);
    Ok(calls)
}

/// Returns the times near pushes, apart from each other and in their order.
fn near(pushes: &[attribution::Push]) -> Vec<Range<Instant>> {
    let mut moments: Vec<Instant> = pushes
        .iter()
        .filter(|push| push.repository.is_ok())
        .map(|push| push.captured_at)
        .collect();
    moments.sort_unstable();
    let mut ranges: Vec<Range<Instant>> = Vec::new();
    for moment in moments {
        let start = minutes_later(moment, -GUESS_MINUTES_BEFORE);
        let end = just_after(minutes_later(moment, MINUTES_AFTER));
        match ranges.last_mut() {
            Some(last) if start <= last.end => last.end = end,
            _ => ranges.push(start..end),
        }
    }
    ranges
}
