//! Of which calls a commit could have been seen.
//!
//! A call without a row says something only if somebody could have seen its commit: if it lies within
//! reach of a push whose commits were read. The windows are those of the rows: around a push for every
//! call, and the week of a push for the calls of Sessions that notes name. A push
//! reaches a range of calls, of which only the ends are noted, so that the work grows with calls and
//! pushes, and not with their product.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use svc_engine_fact::Lifetime;
use svc_model::id::FactId;
use svc_model::reports::{AttributionSkip, Unobservable};
use svc_model::time::Instant;

use super::commits::{CommitState, PushedCommit};
use super::plan::{RankedCalls, within};
use super::texts::MarkedIndices;

/// What was read of the pushes that some call could have led to.
#[derive(Clone, Debug, Default)]
pub(super) struct Sight {
    /// When pushes of undetermined repositories were received.
    pub(super) undetermined: Vec<Instant>,
    /// Pushes whose commits are not known, by repository.
    pub(super) unread: BTreeMap<Lifetime, UnreadPushes>,
    /// When every other push was received, and the indices of its commits.
    pub(super) read: Vec<(Instant, Vec<usize>)>,
}

/// The pushes of a repository whose commits are not known.
#[derive(Clone, Debug)]
pub(super) struct UnreadPushes {
    /// Why they are not known.
    pub(super) why: Unobservable,
    /// When each was received.
    pub(super) pushed_at: Vec<Instant>,
    /// The Sessions that notes in the repository name.
    pub(super) sessions: BTreeSet<u32>,
}

impl Sight {
    /// Returns the calls of which no commit could have been seen, each with the reason, in the order
    /// of the calls.
    pub(super) fn unobservable(
        &self,
        calls: &RankedCalls,
        commits: &[PushedCommit],
    ) -> Vec<(FactId, Unobservable)> {
        // What is said later prevails: the nearest to having been seen.
        let mut said = vec![Some(Unobservable::NoPush); calls.all.len()];
        let mut undetermined = Reached::new(calls);
        for pushed_at in &self.undetermined {
            undetermined.near(*pushed_at);
        }
        undetermined.say(Some(Unobservable::NoRepository), &mut said);
        for why in [Unobservable::NoMirror, Unobservable::LostMirrors] {
            let mut unread = Reached::new(calls);
            let pushes = self.unread.values().filter(|pushes| pushes.why == why);
            pushes.for_each(|pushes| pushes.reach(&mut unread));
            unread.say(Some(why), &mut said);
        }
        let [unread, read] = self.read(calls, commits);
        unread.say(Some(Unobservable::NoDiff), &mut said);
        read.say(None, &mut said);
        let ids = calls.all.iter().map(|call| call.inference_call_id);
        ids.zip(said)
            .filter_map(|(call, why)| Some((call, why?)))
            .collect()
    }

    /// Returns the calls within reach of commits that were not read, and of those that were. A push
    /// without commits was read: nothing of it was missed.
    fn read<'c>(&self, calls: &'c RankedCalls, commits: &[PushedCommit]) -> [Reached<'c>; 2] {
        let mut reached = [Reached::new(calls), Reached::new(calls)];
        for (pushed_at, places) in &self.read {
            let is_read = places.is_empty() || places.iter().any(|place| is_read(&commits[*place]));
            reached[usize::from(is_read)].near(*pushed_at);
        }
        for commit in commits {
            let week = calls.within_week(commit.pushed_at);
            for session in &commit.sessions {
                reached[usize::from(is_read(commit))].of_session(*session, &week);
            }
        }
        reached
    }
}

impl UnreadPushes {
    fn reach(&self, reached: &mut Reached<'_>) {
        for pushed_at in &self.pushed_at {
            reached.near(*pushed_at);
        }
        for week in self.weeks(reached.calls) {
            for session in &self.sessions {
                reached.of_session(*session, &week);
            }
        }
    }

    /// Returns the calls in the week of any push. Weeks that overlap are joined, so there are few.
    fn weeks(&self, calls: &RankedCalls) -> Vec<Range<u32>> {
        let pushed_at = self.pushed_at.iter();
        let mut weeks: Vec<Range<u32>> = pushed_at
            .map(|pushed_at| calls.within_week(*pushed_at))
            .collect();
        weeks.sort_unstable_by_key(|week| week.start);
        weeks.dedup_by(|next, week| {
            let is_joined = next.start <= week.end;
            if is_joined {
                week.end = week.end.max(next.end);
            }
            is_joined
        });
        weeks
    }
}

/// Returns whether everything that a commit adds could be compared.
fn is_read(commit: &PushedCommit) -> bool {
    let malformed = AttributionSkip::MalformedDiffSection;
    commit.state != CommitState::Wanted && commit.tied.skipped.get(malformed) == 0
}

/// The calls that pushes reach, among all calls and among those of each Session.
struct Reached<'c> {
    calls: &'c RankedCalls,
    all: MarkedIndices,
    of_session: BTreeMap<u32, MarkedIndices>,
}

impl<'c> Reached<'c> {
    fn new(calls: &'c RankedCalls) -> Self {
        Self {
            calls,
            all: MarkedIndices::new(calls.all.len()),
            of_session: BTreeMap::new(),
        }
    }

    /// Adds the calls near a push.
    fn near(&mut self, pushed_at: Instant) {
        let near = self.calls.near(pushed_at);
        self.all.add(near.start as usize..near.end as usize);
    }

    /// Adds the calls of a Session that are at these indices.
    fn of_session(&mut self, session: u32, places: &Range<u32>) {
        let calls = &self.calls.of_session[session as usize];
        self.of_session
            .entry(session)
            .or_insert_with(|| MarkedIndices::new(calls.len()))
            .add(within(calls, places));
    }

    /// Sets what is said of every call that was added.
    fn say(self, why: Option<Unobservable>, of_calls: &mut [Option<Unobservable>]) {
        self.all.marked().for_each(|place| of_calls[place] = why);
        for (session, marks) in self.of_session {
            let calls = &self.calls.of_session[session as usize];
            marks
                .marked()
                .for_each(|at| of_calls[calls[at] as usize] = why);
        }
    }
}
