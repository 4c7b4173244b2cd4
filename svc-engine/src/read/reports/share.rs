//! The share of commits that notes tie to agents, in the last days and in the weeks before.
//!
//! Unlike in the rows, every call of the organization counts that a push could come from: those
//! near the push, and those of the Sessions observed at its commits.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use svc_engine_derive::attribution::{
    self, Attributions, GUESS_MINUTES_BEFORE, MINUTES_AFTER, NOTE_MINUTES_BEFORE, Note,
};
use svc_engine_derive::attribution_share::{
    BASELINE_DAYS, DECLINE_CASES_MIN, WINDOW_DAYS, Window, alerts, shares, unseen, unsettled,
};
use svc_engine_derive::observed::ObservedCommit;
use svc_engine_derive::repository::Mention;
use svc_engine_derive::share_report::{Renderer, ShareParts};
use svc_engine_fact::{Lifetime, Push};
use svc_engine_store::{CohortCall, Snapshot};
use svc_model::id::{FactId, SessionId};
use svc_model::limit::REPORT_FACTS_MAX;
use svc_model::reports::{
    AttributionAlert, AttributionShareReport, AttributionShareRow, AttributionSkip, Counts,
};
use svc_model::repository::{CommitSha, RepositoryDecline, RepositoryIdentity};
use svc_model::time::Instant;

use super::extent::first;
use super::population::{Population, up_to};
use super::{Extent, Question, Reader, attribute, declined, just_after, minutes_later, notes};
use crate::error::Error;

/// Maximum number of calls that the pushes of both windows may come from. They may be more than a
/// cohort's, because they are the organization's.
const CALLS_MAX: usize = 500_000;

/// The shares of a model report.
#[derive(Default)]
pub(super) struct Shares {
    pub(super) rows: Vec<AttributionShareRow>,
    pub(super) alerts: Vec<AttributionAlert>,
    /// What could not be looked at in the commits of both windows.
    pub(super) skipped: Counts<AttributionSkip>,
    /// Pushes of the window whose repository cannot be determined.
    pub(super) pushes_declined: Counts<RepositoryDecline>,
    /// Observations whose repository cannot be determined, and why.
    pub(super) declined_observations: BTreeMap<FactId, RepositoryDecline>,
}

/// Returns the observations whose repository cannot be determined, and why.
pub(super) fn declined_of(observations: &[ObservedCommit]) -> BTreeMap<FactId, RepositoryDecline> {
    let decline = |observed: &ObservedCommit| {
        let decline = observed.repository.as_ref().err()?;
        Some((observed.observation_id, *decline))
    };
    observations.iter().filter_map(decline).collect()
}

/// Reads the shares in the days that a report covers, or in all history.
pub(super) fn read(
    snapshot: &mut Snapshot<'_>,
    reader: &mut Reader<'_>,
    population: &Population,
    extent: &Extent,
) -> Result<Shares, Error> {
    let days = |days: u64| i64::try_from(days).unwrap_or(i64::MAX);
    let window = extent
        .since_days
        .map(|since| Window::days_before(extent.as_of, days(since)));
    let before = window.map(|window| Window::days_before(window.start, BASELINE_DAYS));
    let pushes = pushes(
        snapshot,
        reader,
        before.map_or(first(), |window| window.start),
    )?;
    if pushes.is_empty() {
        return Ok(Shares::default());
    }
    let reach = Reach::read(snapshot, reader, population, &pushes, CALLS_MAX)?;
    let spans = reach.spans();
    let is_now = |at: Instant| window.is_none_or(|window| window.holds(at));
    let is_earlier = |at: Instant| window.is_some_and(|window| window.is_baseline(at));
    let now = reach.pushes(|push| is_now(push.captured_at));
    let earlier = reach.pushes(|push| is_earlier(push.captured_at));
    let pushes_declined = declined(&now);
    let now = reach.assess(snapshot, reader, population, now, extent.as_of)?;
    let current = shares(&now.commits, |repository| {
        window.or_else(|| spans.get(repository).copied())
    });
    let earlier = reach.assess(snapshot, reader, population, earlier, extent.as_of)?;
    // The baseline ends just before the window begins.
    let baseline = shares(&earlier.commits, |_| before);
    let alerts = alerts(&current, &baseline, DECLINE_CASES_MIN);
    let mut skipped = unsettled(&now);
    for (reason, count) in unsettled(&earlier).iter() {
        skipped.add(reason, count);
    }
    let renderer = Renderer {
        org_id: snapshot.org_id(),
        quarantine_revision: snapshot.quarantine_revision()?,
        repositories: reader.resolving.repositories(),
    };
    Ok(Shares {
        rows: current.iter().map(|row| renderer.row(row)).collect(),
        alerts: alerts.iter().map(|alert| renderer.alert(alert)).collect(),
        skipped,
        pushes_declined,
        declined_observations: declined_of(&reach.observations),
    })
}

/// Reads the shares of each repository in the week before its last push.
pub(super) fn report(
    snapshot: &mut Snapshot<'_>,
    reader: &mut Reader<'_>,
    population: &Population,
    as_of: Instant,
    cases_min: u64,
) -> Result<AttributionShareReport, Error> {
    let windows = windows(snapshot, reader)?;
    let window = |repository: &Lifetime| windows.known.get(repository).copied();
    let baselines = (windows.known.values().chain(windows.declined.values()))
        .map(|window| Window::days_before(window.start, BASELINE_DAYS).start);
    let Some(from) = baselines.min() else {
        return render(snapshot, reader, ShareParts::of_nothing(cases_min));
    };
    let mut pushes = Vec::new();
    let mut declined: Counts<AttributionSkip> = Counts::default();
    let mut take = up_to(&mut pushes, REPORT_FACTS_MAX);
    snapshot.pushes_captured(from..just_after(reader.boundary.max(from)), |push| {
        let at = push.captured_at;
        let is_in = |window: Window| window.holds(at) || window.is_baseline(at);
        match reader.resolving.of_push(&push) {
            Ok(repository) if window(&repository).is_some_and(is_in) => take(push)?,
            Ok(_) => {}
            Err(decline) => {
                let window = windows.declined.get(&(push.repo, push.repository));
                declined.add(
                    decline.into(),
                    u64::from(window.copied().is_some_and(is_in)),
                );
            }
        }
        Ok(())
    })?;
    drop(take);
    let reach = Reach::read(snapshot, reader, population, &pushes, CALLS_MAX)?;
    let of = |is_in: fn(Window, Instant) -> bool| {
        reach.pushes(|push| {
            let window = push.repository.as_ref().ok().and_then(window);
            window.is_some_and(|window| is_in(window, push.captured_at))
        })
    };
    let now = reach.assess(snapshot, reader, population, of(Window::holds), as_of)?;
    let current = shares(&now.commits, window);
    let earlier = reach.assess(snapshot, reader, population, of(Window::is_baseline), as_of)?;
    let before = |repository: &Lifetime| {
        Some(Window::days_before(
            window(repository)?.start,
            BASELINE_DAYS,
        ))
    };
    let baseline = shares(&earlier.commits, before);
    let mut attribution_skips = unseen(&now);
    for (reason, count) in unseen(&earlier).iter().chain(declined.iter()) {
        attribution_skips.add(reason, count);
    }
    let report = ShareParts {
        alerts: &alerts(&current, &baseline, cases_min),
        current: &current,
        baseline: &baseline,
        cases_min,
        attribution_skips,
    };
    render(snapshot, reader, report)
}

/// A name and an identity that occur together in pushes.
type Mentioned = (String, Option<RepositoryIdentity>);

/// The week before the last push of each repository, and of pushes whose repository is unknown.
#[derive(Default)]
struct Windows {
    known: BTreeMap<Lifetime, Window>,
    declined: BTreeMap<Mentioned, Window>,
}

/// Returns the week before each last push. However many pushes there are, only one moment is held
/// per name and identity.
fn windows(snapshot: &mut Snapshot<'_>, reader: &mut Reader<'_>) -> Result<Windows, Error> {
    let boundary = reader.boundary;
    let mut last: BTreeMap<Mentioned, Instant> = BTreeMap::new();
    snapshot.pushes_captured(first()..just_after(boundary), |push| {
        // Pushes come in the order of capture.
        last.insert((push.repo, push.repository), push.captured_at);
        Ok(())
    })?;
    for mentioned in last.keys() {
        reader.resolving.touch(mention(mentioned));
    }
    reader.resolving.read(snapshot, boundary)?;
    let mut windows = Windows::default();
    for (mentioned, at) in last {
        let window = Window::days_before(at, WINDOW_DAYS);
        if let Ok(repository) = reader.resolving.of(mention(&mentioned)) {
            let known = windows.known.entry(repository).or_insert(window);
            if known.end < window.end {
                *known = window;
            }
        } else {
            windows.declined.insert(mentioned, window);
        }
    }
    Ok(windows)
}

/// Returns the mention of a name with an identity.
fn mention((name, identity): &Mentioned) -> Mention<'_> {
    Mention {
        name,
        identity: identity.as_ref(),
    }
}

/// Returns the report in the form of replies.
fn render(
    snapshot: &mut Snapshot<'_>,
    reader: &Reader<'_>,
    report: ShareParts<'_>,
) -> Result<AttributionShareReport, Error> {
    let renderer = Renderer {
        org_id: snapshot.org_id(),
        quarantine_revision: snapshot.quarantine_revision()?,
        repositories: reader.resolving.repositories(),
    };
    Ok(renderer.report(report))
}

/// Returns the pushes received from a moment on, in the order of capture.
fn pushes(
    snapshot: &mut Snapshot<'_>,
    reader: &mut Reader<'_>,
    from: Instant,
) -> Result<Vec<Push>, Error> {
    let boundary = reader.boundary;
    let mut pushes = Vec::new();
    let captured = from..just_after(boundary.max(from));
    snapshot.pushes_captured(captured, up_to(&mut pushes, REPORT_FACTS_MAX))?;
    for push in &pushes {
        reader.resolving.touch_push(push);
    }
    reader.resolving.read(snapshot, boundary)?;
    Ok(pushes)
}

/// Pushes, and what their commits could be tied to besides the calls of the cohort.
pub(super) struct Reach {
    pub(super) pushes: Vec<attribution::Push>,
    /// Calls observed before or after the cohort.
    calls: Vec<CohortCall>,
    notes: Vec<Note>,
    observations: Vec<ObservedCommit>,
}

impl Reach {
    pub(super) fn read(
        snapshot: &mut Snapshot<'_>,
        reader: &mut Reader<'_>,
        population: &Population,
        pushes: &[Push],
        calls_max: usize,
    ) -> Result<Self, Error> {
        let pushes = reader.history.pushed(pushes, &reader.resolving);
        let determined = pushes
            .iter()
            .filter_map(|push| Some((push.repository.as_ref().ok()?, push.push_id)));
        reader.history.read_ranges(determined)?;
        let observations = observations(snapshot, reader, &pushes)?;
        let cohort = &population.extent;
        Ok(Self {
            calls: calls(snapshot, cohort, &pushes, &observations, calls_max)?,
            notes: notes(&observations),
            pushes,
            observations,
        })
    }

    /// Asks about the commits of some of the pushes.
    pub(super) fn question<'q>(
        &'q self,
        population: &'q Population,
        pushes: Vec<attribution::Push>,
        as_of: Instant,
    ) -> Question<'q> {
        Question {
            calls: population.calls.iter().chain(&self.calls).collect(),
            pushes,
            notes: self.notes.clone(),
            as_of,
            answer_bytes_max: u64::MAX,
            only: None,
        }
    }

    fn pushes(&self, is_in: impl Fn(&attribution::Push) -> bool) -> Vec<attribution::Push> {
        let pushes = self.pushes.iter().filter(|push| is_in(push));
        pushes.cloned().collect()
    }

    /// Returns the time from each repository's first push to its last.
    fn spans(&self) -> BTreeMap<Lifetime, Window> {
        let mut spans: BTreeMap<Lifetime, Window> = BTreeMap::new();
        for push in &self.pushes {
            if let Ok(repository) = &push.repository {
                let at = push.captured_at;
                let span = spans.entry(repository.clone());
                let span = span.or_insert(Window { start: at, end: at });
                span.start = span.start.min(at);
                span.end = span.end.max(at);
            }
        }
        spans
    }

    /// Ties the commits of some of the pushes to calls.
    fn assess(
        &self,
        snapshot: &mut Snapshot<'_>,
        reader: &mut Reader<'_>,
        population: &Population,
        pushes: Vec<attribution::Push>,
        as_of: Instant,
    ) -> Result<Attributions, Error> {
        if pushes.is_empty() {
            return Ok(Attributions::default());
        }
        let question = self.question(population, pushes, as_of);
        attribute(snapshot, &mut reader.history, &reader.answers, question)
    }
}

/// Returns the observations at the commits of pushes.
fn observations(
    snapshot: &mut Snapshot<'_>,
    reader: &mut Reader<'_>,
    pushes: &[attribution::Push],
) -> Result<Vec<ObservedCommit>, Error> {
    let commits: BTreeSet<CommitSha> = pushes
        .iter()
        .filter_map(|push| reader.history.range(push.push_id))
        .flatten()
        .collect();
    let commits: Vec<&CommitSha> = commits.iter().collect();
    let mut observed = Vec::new();
    let take = up_to(&mut observed, REPORT_FACTS_MAX);
    snapshot.sessions_of_commits(&commits, reader.boundary, take)?;
    for observed in &observed {
        reader.resolving.touch_observed(observed);
    }
    reader.resolving.read(snapshot, reader.boundary)?;
    let resolved = observed
        .iter()
        .map(|observed| reader.resolving.observed(observed));
    Ok(resolved.collect())
}

/// Returns the calls that pushes may come from, observed before or after a cohort.
fn calls(
    snapshot: &mut Snapshot<'_>,
    cohort: &Range<Instant>,
    pushes: &[attribution::Push],
    observations: &[ObservedCommit],
    calls_max: usize,
) -> Result<Vec<CohortCall>, Error> {
    let mut calls = Vec::new();
    let mut take = up_to(&mut calls, calls_max);
    for near in near(pushes).iter().flat_map(|near| beside(near, cohort)) {
        snapshot.calls_observed(near, &mut take)?;
    }
    let captured = || pushes.iter().map(|push| push.captured_at);
    if let (Some(first), Some(last)) = (captured().min(), captured().max()) {
        let weeks = minutes_later(first, -NOTE_MINUTES_BEFORE)
            ..just_after(minutes_later(last, MINUTES_AFTER));
        let sessions: BTreeSet<&SessionId> = observations
            .iter()
            .map(|observation| &observation.session_id)
            .collect();
        let sessions: Vec<SessionId> = sessions.into_iter().cloned().collect();
        for weeks in beside(&weeks, cohort) {
            snapshot.calls_of_sessions(&sessions, weeks, &mut take)?;
        }
    }
    drop(take);
    Ok(calls)
}

/// Returns the parts of a range before and after another one.
fn beside(time: &Range<Instant>, other: &Range<Instant>) -> impl Iterator<Item = Range<Instant>> {
    let before = time.start..time.end.min(other.start);
    let after = time.start.max(other.end)..time.end;
    [before, after]
        .into_iter()
        .filter(|range| range.start < range.end)
}

/// Returns the times near pushes, as disjoint ranges in order.
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
