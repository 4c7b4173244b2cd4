//! What became of the work of the last days: one set of figures for everything, for each day,
//! repository, model and Session.
//!
//! Each item of spend is looked at once. What it counts for follows from the outcome of its call, so
//! every table adds up to the same figures.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::RandomState;
use svc_engine_fact::Lifetime;
use svc_model::id::{FactId, SessionId, UserId};
use svc_model::overview::{OverviewFigures, OverviewOutcome};
use svc_model::query::AttributionSource;
use svc_model::reports::{Counts, Unobservable};
use svc_model::spend::{SpendFigure, UnpricedReason};
use svc_model::time::Instant;

use super::call_outcome::{Acceptance, CallOutcome, CallOutcomes, Outcome};
use super::ci::Verdict;
use super::spend::{self, Cost, Item, SumTooLarge};

/// What an overview is derived from.
#[derive(Clone, Copy, Debug)]
pub struct OverviewEvidence<'e> {
    /// The time that it covers.
    pub window: &'e Range<Instant>,
    /// The items of that time, and what they cost.
    pub items: &'e [(Item, Cost)],
    /// What became of their calls.
    pub outcomes: &'e CallOutcomes,
    /// The calls of which no commit could have been seen.
    pub unobservable: &'e HashMap<FactId, Unobservable, RandomState>,
    /// The indices of the commits that a later commit reverts, or whose merge it reverts.
    pub reverted: &'e HashSet<usize, RandomState>,
}

/// Which items an overview is of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Selected<'s> {
    /// Those whose work reached this repository.
    pub repository: Option<&'s Lifetime>,
    /// Those of this model.
    pub model: Option<&'s str>,
    /// Those of this user.
    pub user_id: Option<&'s UserId>,
    /// The figure that the listed Sessions count for.
    pub outcome: Option<OverviewOutcome>,
}

/// A pull request of a repository.
pub type PullRequestOf = (Lifetime, i64, bool);

/// A Session of an overview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// The Session.
    pub session_id: SessionId,
    /// The users that its items name.
    pub user_ids: BTreeSet<UserId>,
    /// The models of its items.
    pub models: BTreeSet<Arc<str>>,
    /// The repositories that its work reached.
    pub repositories: BTreeSet<Lifetime>,
    /// The pull requests that its work reached.
    pub pull_requests: BTreeSet<PullRequestOf>,
    /// When its last item was observed.
    pub last_observed_at: Instant,
    /// Its figures.
    pub figures: OverviewFigures,
}

/// The tables of an overview.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverviewTables {
    /// Everything that is selected.
    pub figures: OverviewFigures,
    /// Each day in UTC, in order, cut to the window.
    pub days: Vec<(Range<Instant>, OverviewFigures)>,
    /// Each repository; `None` stands for an unknown one.
    pub repositories: BTreeMap<Option<Lifetime>, OverviewFigures>,
    /// Each model; `None` stands for an unknown one.
    pub models: BTreeMap<Option<Arc<str>>, OverviewFigures>,
    /// The Sessions with an item that the outcome selects, the last active first.
    pub sessions: Vec<SessionRow>,
    /// Why changes are not observable.
    pub unobservable: Counts<Unobservable>,
    /// Why items have no cost.
    pub unpriced: Counts<UnpricedReason>,
}

/// Derives the tables of an overview.
///
/// # Errors
///
/// If a sum is beyond 2^63-1.
pub fn derive(
    evidence: OverviewEvidence<'_>,
    selected: Selected<'_>,
) -> Result<OverviewTables, SumTooLarge> {
    let mut all = Tally::default();
    let mut days: Vec<(Range<Instant>, Tally<'_>)> = days(evidence.window)
        .map(|day| (day, Tally::default()))
        .collect();
    let mut repositories: BTreeMap<Option<&Lifetime>, Tally<'_>> = BTreeMap::new();
    let mut models: BTreeMap<Option<&Arc<str>>, Tally<'_>> = BTreeMap::new();
    let mut sessions: HashMap<&SessionId, SessionTally<'_>, RandomState> = HashMap::default();
    let mut tables = OverviewTables::default();
    for (item, cost) in evidence.items {
        let marks = Marks::of(item, *cost, evidence);
        if !selected.holds(item, &marks) {
            continue;
        }
        all.add(item, &marks)?;
        let day = days.partition_point(|(day, _)| day.end <= item.at);
        if let Some((_, day)) = days.get_mut(day) {
            day.add(item, &marks)?;
        }
        let of_repository = repositories.entry(marks.repository).or_default();
        of_repository.add(item, &marks)?;
        let of_model = models.entry(name(item)).or_default();
        of_model.add(item, &marks)?;
        let session = sessions.entry(&item.session_id).or_default();
        session.add(item, &marks, evidence.outcomes)?;
        session.is_listed |= selected
            .outcome
            .is_none_or(|outcome| marks.counts_for(outcome));
        if let Some(reason) = marks.unobservable {
            tables.unobservable.add(reason, 1);
        }
        if let Cost::Unknown(reason) = cost {
            tables.unpriced.add(*reason, 1);
        }
    }
    tables.figures = all.figures();
    tables.days = days
        .into_iter()
        .map(|(day, tally)| (day, tally.figures()))
        .collect();
    tables.repositories = repositories
        .into_iter()
        .map(|(repository, tally)| (repository.cloned(), tally.figures()))
        .collect();
    tables.models = models
        .into_iter()
        .map(|(model, tally)| (model.cloned(), tally.figures()))
        .collect();
    tables.sessions = sessions
        .into_iter()
        .filter(|(_, session)| session.is_listed)
        .map(|(session_id, session)| session.row(session_id))
        .collect();
    tables.sessions.sort_unstable_by(|one, other| {
        let last = other.last_observed_at.cmp(&one.last_observed_at);
        last.then_with(|| one.session_id.cmp(&other.session_id))
    });
    Ok(tables)
}

const DAY_MICROSECONDS: i64 = 24 * 60 * 60 * 1_000_000;

/// Returns the days of a window in UTC, cut to it.
fn days(window: &Range<Instant>) -> impl Iterator<Item = Range<Instant>> {
    let (start, end) = (window.start.microseconds(), window.end.microseconds());
    let first = start.div_euclid(DAY_MICROSECONDS);
    let last = (end - 1).div_euclid(DAY_MICROSECONDS);
    let at = |microseconds: i64, other| Instant::from_microseconds(microseconds).unwrap_or(other);
    let (window_start, window_end) = (window.start, window.end);
    (first..=last).map(move |day| {
        let start = at((day * DAY_MICROSECONDS).max(start), window_start);
        let end = at(((day + 1) * DAY_MICROSECONDS).min(end), window_end);
        start..end
    })
}

/// What an item counts for.
#[derive(Clone, Copy, Debug)]
struct Marks<'e> {
    call: Option<&'e CallOutcome>,
    /// The repository that its work reached: that of its commit, else the only one that its Session
    /// was observed in.
    repository: Option<&'e Lifetime>,
    state: ChangeState,
    verdict: Option<Verdict>,
    is_reverted: bool,
    unobservable: Option<Unobservable>,
    cost: Cost,
    spend: SpendFigure,
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChangeState {
    /// The call is no change.
    None,
    Committed,
    Deleted,
    NoCommitFound,
    NotObservable,
}

impl<'e> Marks<'e> {
    fn of(item: &Item, cost: Cost, evidence: OverviewEvidence<'e>) -> Self {
        let outcomes = evidence.outcomes;
        let call = item.call.and_then(|call| outcomes.calls.get(&call));
        let own = call.and_then(|call| call.commit);
        let own = own.map(|commit| &outcomes.commits[commit].repository);
        let state = call.map_or(ChangeState::None, |call| {
            let is_unseen = || {
                let call = item.call.as_ref();
                call.is_some_and(|call| evidence.unobservable.contains_key(call))
            };
            ChangeState::of(call, is_unseen)
        });
        let is_unobservable = state == ChangeState::NotObservable;
        Self {
            call,
            repository: own.or_else(|| only_repository(outcomes, &item.session_id)),
            state,
            verdict: call.and_then(|call| outcomes.verdict_now(call)),
            is_reverted: call.is_some_and(|call| {
                let mut commits = call.commits.iter();
                commits.any(|commit| evidence.reverted.contains(commit))
            }),
            unobservable: item
                .call
                .filter(|_| is_unobservable)
                .map(|call| evidence.unobservable.get(&call).copied())
                .map(|why| why.unwrap_or(Unobservable::ContentErased)),
            cost,
            spend: spend::figure(item, cost),
        }
    }

    fn is_change(&self) -> bool {
        self.state != ChangeState::None
    }

    fn is_committed(&self) -> bool {
        self.state == ChangeState::Committed
    }

    fn has_outcome(&self, outcome: Outcome) -> bool {
        self.call.is_some_and(|call| call.outcome == outcome)
    }

    fn is_accepted(&self, by: impl Fn(Acceptance) -> bool) -> bool {
        self.call.and_then(|call| call.acceptance).is_some_and(by)
    }

    /// Returns whether the item counts for a figure.
    fn counts_for(&self, outcome: OverviewOutcome) -> bool {
        match outcome {
            OverviewOutcome::Changes => self.is_change(),
            OverviewOutcome::Accepted => self.is_accepted(|_| true),
            OverviewOutcome::Committed => self.is_committed(),
            OverviewOutcome::Merged => self.has_outcome(Outcome::Merged),
            OverviewOutcome::Reverted => self.is_reverted,
            OverviewOutcome::Passed => self.verdict == Some(Verdict::Passed),
            OverviewOutcome::Failed => self.verdict == Some(Verdict::Failed),
            OverviewOutcome::NoVerdict => self.is_committed() && self.verdict.is_none(),
            OverviewOutcome::Deleted => self.state == ChangeState::Deleted,
            OverviewOutcome::NoCommitFound => self.state == ChangeState::NoCommitFound,
            OverviewOutcome::NotObservable => self.state == ChangeState::NotObservable,
            OverviewOutcome::Rejected => self.has_outcome(Outcome::Rejected),
            OverviewOutcome::Unpriced => matches!(self.cost, Cost::Unknown(_)),
        }
    }
}

impl ChangeState {
    fn of(call: &CallOutcome, is_unseen: impl FnOnce() -> bool) -> Self {
        let is_change = call.acceptance.is_some() || call.outcome == Outcome::EditsKept;
        match call.outcome {
            Outcome::Merged | Outcome::Committed => Self::Committed,
            Outcome::EditsDeleted => Self::Deleted,
            _ if !is_change => Self::None,
            _ if call.is_erased || is_unseen() => Self::NotObservable,
            _ => Self::NoCommitFound,
        }
    }
}

/// Returns the model of an item, without its provider.
fn name(item: &Item) -> Option<&Arc<str>> {
    item.model.as_ref().map(|model| &model.name)
}

/// Returns the only repository in which a Session was observed at commits.
fn only_repository<'e>(outcomes: &'e CallOutcomes, session_id: &SessionId) -> Option<&'e Lifetime> {
    let commits = outcomes.sessions.get(session_id)?;
    let mut repositories = commits
        .iter()
        .map(|commit| &outcomes.commits[*commit].repository);
    let first = repositories.next()?;
    repositories.all(|other| other == first).then_some(first)
}

impl Selected<'_> {
    fn holds(&self, item: &Item, marks: &Marks<'_>) -> bool {
        self.repository
            .is_none_or(|of| marks.repository == Some(of))
            && self
                .model
                .is_none_or(|of| name(item).map(|name| &**name) == Some(of))
            && self
                .user_id
                .is_none_or(|of| item.user_id.as_ref() == Some(of))
    }
}

/// The figures of some items while they are counted.
#[derive(Debug, Default)]
struct Tally<'e> {
    figures: OverviewFigures,
    sessions: HashSet<&'e SessionId, RandomState>,
    people: HashSet<&'e UserId, RandomState>,
}

impl<'e> Tally<'e> {
    fn add(&mut self, item: &'e Item, marks: &Marks<'_>) -> Result<(), SumTooLarge> {
        let figures = &mut self.figures;
        let count = |figure: &mut u64, counts: bool| *figure += u64::from(counts);
        spend::add(&mut figures.spend, &marks.spend)?;
        if item.call.is_some() {
            self.sessions.insert(&item.session_id);
            self.people.extend(&item.user_id);
        }
        count(&mut figures.calls, item.call.is_some());
        for (figure, outcome) in [
            (&mut figures.changes, OverviewOutcome::Changes),
            (&mut figures.accepted, OverviewOutcome::Accepted),
            (&mut figures.committed, OverviewOutcome::Committed),
            (&mut figures.merged, OverviewOutcome::Merged),
            (&mut figures.reverted, OverviewOutcome::Reverted),
            (&mut figures.passed, OverviewOutcome::Passed),
            (&mut figures.failed, OverviewOutcome::Failed),
            (&mut figures.no_verdict, OverviewOutcome::NoVerdict),
            (&mut figures.deleted, OverviewOutcome::Deleted),
            (&mut figures.no_commit_found, OverviewOutcome::NoCommitFound),
            (&mut figures.not_observable, OverviewOutcome::NotObservable),
            (&mut figures.rejected, OverviewOutcome::Rejected),
        ] {
            count(figure, marks.counts_for(outcome));
        }
        count(
            &mut figures.accepted_by_people,
            marks.is_accepted(|by| by == Acceptance::Explicit),
        );
        let source = marks.call.and_then(|call| call.source);
        count(
            &mut figures.committed_by_similarity,
            source == Some(AttributionSource::Jaccard),
        );
        Ok(())
    }

    fn figures(self) -> OverviewFigures {
        OverviewFigures {
            sessions: self.sessions.len() as u64,
            people: self.people.len() as u64,
            ..self.figures
        }
    }
}

/// The row of a Session while it is counted.
#[derive(Debug, Default)]
struct SessionTally<'e> {
    tally: Tally<'e>,
    models: BTreeSet<&'e Arc<str>>,
    repositories: BTreeSet<Lifetime>,
    pull_requests: BTreeSet<PullRequestOf>,
    last_observed_at: Option<Instant>,
    is_listed: bool,
}

impl<'e> SessionTally<'e> {
    fn add(
        &mut self,
        item: &'e Item,
        marks: &Marks<'_>,
        outcomes: &CallOutcomes,
    ) -> Result<(), SumTooLarge> {
        if self.last_observed_at.is_none() {
            let observed = outcomes.sessions.get(&item.session_id);
            self.reach(observed.into_iter().flatten(), outcomes);
        }
        self.reach(marks.call.iter().flat_map(|call| &call.commits), outcomes);
        self.tally.add(item, marks)?;
        self.models.extend(name(item));
        self.last_observed_at = self.last_observed_at.max(Some(item.at));
        Ok(())
    }

    fn reach<'c>(&mut self, commits: impl Iterator<Item = &'c usize>, outcomes: &CallOutcomes) {
        for commit in commits {
            let commit = &outcomes.commits[*commit];
            self.repositories.insert(commit.repository.clone());
            self.pull_requests
                .extend(commit.pull_request.as_ref().map(|of| {
                    let repository = commit.repository.clone();
                    (repository, of.pr_number, of.is_merged)
                }));
        }
    }

    fn row(self, session_id: &SessionId) -> SessionRow {
        SessionRow {
            session_id: session_id.clone(),
            user_ids: self.tally.people.iter().copied().cloned().collect(),
            models: self.models.into_iter().cloned().collect(),
            repositories: self.repositories,
            pull_requests: self.pull_requests,
            last_observed_at: self.last_observed_at.unwrap_or(Instant::MAX),
            figures: self.tally.figures(),
        }
    }
}

#[cfg(test)]
mod tests;
