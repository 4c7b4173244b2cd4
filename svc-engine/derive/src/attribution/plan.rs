use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use foldhash::fast::RandomState;
use svc_engine_fact::Lifetime;
use svc_model::id::{FactId, SessionId};
use svc_model::reports::{AttributionSkip, Counts};
use svc_model::repository::CommitSha;
use svc_model::time::Instant;

use super::sight::{Sight, UnreadPushes};
use super::{
    Call, Commits, GUESS_MINUTES_BEFORE, Inputs, MINUTES_AFTER, MirrorAbsence, NOTE_MINUTES_BEFORE,
    Push,
};

const MINUTE_MICROSECONDS: i64 = 60 * 1_000_000;

/// The first step: which pushes some call could have led to.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) calls: RankedCalls,
    pub(super) noted: NotedSessions,
    /// Pushes that some call could have led to, in order.
    pushes: Vec<(Lifetime, Push)>,
    pub(super) skipped: Counts<AttributionSkip>,
    pub(super) sight: Sight,
}

/// Calls in order of precedence, where the earlier wins, and grouped by Session.
#[derive(Clone, Debug)]
pub(super) struct RankedCalls {
    pub(super) all: Vec<Call>,
    /// The indices of each Session's calls, ascending. Every Session here has at least one.
    pub(super) of_session: Vec<Vec<u32>>,
}

/// The Sessions that notes on each commit name, by number. Only Sessions with calls are kept.
pub(super) type NotedSessions = BTreeMap<Lifetime, BTreeMap<CommitSha, BTreeSet<u32>>>;

impl Plan {
    /// Takes what is known without reading a repository or a text. Calls observed after `as_of` are
    /// left out.
    pub fn new(inputs: Inputs, as_of: Instant) -> Self {
        let Inputs {
            calls,
            mut pushes,
            notes,
        } = inputs;
        let (calls, sessions) = RankedCalls::new(calls, as_of);
        let mut noted = NotedSessions::new();
        for note in notes {
            if let Some(session) = sessions.get(&note.session_id) {
                noted
                    .entry(note.repository)
                    .or_default()
                    .entry(note.commit_sha)
                    .or_default()
                    .insert(*session);
            }
        }
        pushes.sort_by_key(|push| (push.captured_at, push.push_id));
        pushes.dedup_by_key(|push| push.push_id);
        let mut plan = Self {
            calls,
            noted,
            pushes: Vec::new(),
            skipped: Counts::default(),
            sight: Sight::default(),
        };
        plan.choose(pushes);
        plan
    }

    /// Returns the pushes whose commits are wanted, each with its repository, in the order in which
    /// they were received.
    pub fn pushes(&self) -> impl ExactSizeIterator<Item = (&Lifetime, FactId)> {
        self.pushes
            .iter()
            .map(|(repository, push)| (repository, push.push_id))
    }

    /// Takes the commits of each of these pushes, oldest first, or why its repository has no mirror
    /// that knows them.
    pub fn with_ranges(
        mut self,
        mut range: impl FnMut(&Lifetime, FactId) -> Result<Vec<CommitSha>, MirrorAbsence>,
    ) -> Commits {
        let mut ranges = Vec::new();
        for (repository, push) in std::mem::take(&mut self.pushes) {
            match range(&repository, push.push_id) {
                Ok(commits) => ranges.push((repository, push, commits)),
                Err(why) => {
                    self.skipped.add(AttributionSkip::MirrorAbsent, 1);
                    self.leave_unread(repository, push.captured_at, why);
                }
            }
        }
        Commits::new(self, ranges)
    }

    fn leave_unread(&mut self, repository: Lifetime, pushed_at: Instant, why: MirrorAbsence) {
        let noted = self.noted.get(&repository);
        let sessions = || noted.into_iter().flat_map(BTreeMap::values).flatten();
        let unread = self.sight.unread.entry(repository);
        let unread = unread.or_insert_with(|| UnreadPushes {
            why: why.into(),
            pushed_at: Vec::new(),
            sessions: sessions().copied().collect(),
        });
        unread.pushed_at.push(pushed_at);
    }

    /// Keeps the pushes that some call could have led to, and counts the others.
    fn choose(&mut self, pushes: Vec<Push>) {
        let mut pushed: BTreeMap<Lifetime, Vec<Push>> = BTreeMap::new();
        for push in pushes {
            match &push.repository {
                Ok(repository) => pushed.entry(repository.clone()).or_default().push(push),
                Err(decline) => {
                    let reason = AttributionSkip::from(*decline);
                    self.skipped.add(reason, 1);
                    self.sight.undetermined.push(push.captured_at);
                }
            }
        }
        for (repository, pushes) in pushed {
            let noted = NotedCalls::new(&self.calls, self.noted.get(&repository), pushes.len());
            for push in pushes {
                let near = self.calls.near(push.captured_at);
                let week = self.calls.within_week(push.captured_at);
                if near.is_empty() && !noted.any_within(&week) {
                    let reason = AttributionSkip::NoInferenceCallCandidates;
                    self.skipped.add(reason, 1);
                } else {
                    self.pushes.push((repository.clone(), push));
                }
            }
        }
        self.pushes
            .sort_by_key(|(_, push)| (push.captured_at, push.push_id));
    }
}

impl RankedCalls {
    fn new(mut calls: Vec<Call>, as_of: Instant) -> (Self, HashMap<SessionId, u32, RandomState>) {
        calls.retain(|call| call.observed_at <= as_of);
        calls.sort_by_key(|call| (call.observed_at, call.inference_call_id));
        calls.dedup_by_key(|call| call.inference_call_id);
        let mut sessions: HashMap<SessionId, u32, RandomState> = HashMap::default();
        let mut of_session: Vec<Vec<u32>> = Vec::new();
        for (place, call) in (0_u32..).zip(&calls) {
            let next = u32::try_from(of_session.len()).unwrap_or(u32::MAX);
            let session = *sessions.entry(call.session_id.clone()).or_insert(next);
            if session == next {
                of_session.push(Vec::new());
            }
            of_session[session as usize].push(place);
        }
        let calls = Self {
            all: calls,
            of_session,
        };
        (calls, sessions)
    }

    /// Returns the indices of the calls observed near a push.
    pub(super) fn near(&self, pushed_at: Instant) -> Range<u32> {
        self.around(pushed_at, GUESS_MINUTES_BEFORE)
    }

    /// Returns the indices of the calls observed in the week of a push.
    pub(super) fn within_week(&self, pushed_at: Instant) -> Range<u32> {
        self.around(pushed_at, NOTE_MINUTES_BEFORE)
    }

    fn around(&self, pushed_at: Instant, minutes_before: i64) -> Range<u32> {
        let moment = |minutes: i64| pushed_at.microseconds() + minutes * MINUTE_MICROSECONDS;
        let (first, last) = (moment(-minutes_before), moment(MINUTES_AFTER));
        let place = |is_before: &dyn Fn(i64) -> bool| {
            let place = self
                .all
                .partition_point(|call| is_before(call.observed_at.microseconds()));
            u32::try_from(place).unwrap_or(u32::MAX)
        };
        place(&|observed_at| observed_at < first)..place(&|observed_at| observed_at <= last)
    }
}

/// The calls of all Sessions that notes in a repository name.
enum NotedCalls<'c> {
    /// One list per Session.
    Apart(Vec<&'c [u32]>),
    /// One list for all Sessions, because many pushes ask.
    Together(Vec<u32>),
}

impl<'c> NotedCalls<'c> {
    fn new(
        calls: &'c RankedCalls,
        noted: Option<&BTreeMap<CommitSha, BTreeSet<u32>>>,
        questions: usize,
    ) -> Self {
        let sessions: BTreeSet<u32> = noted
            .into_iter()
            .flat_map(BTreeMap::values)
            .flatten()
            .copied()
            .collect();
        let lists = sessions
            .iter()
            .map(|session| &*calls.of_session[*session as usize]);
        if sessions.len().saturating_mul(questions) <= calls.all.len() {
            return Self::Apart(lists.collect());
        }
        let mut together = lists.collect::<Vec<_>>().concat();
        together.sort_unstable();
        Self::Together(together)
    }

    fn any_within(&self, places: &Range<u32>) -> bool {
        match self {
            Self::Apart(lists) => lists.iter().any(|list| !within(list, places).is_empty()),
            Self::Together(list) => !within(list, places).is_empty(),
        }
    }
}

/// Returns the positions of an ascending list whose values lie in a range.
pub(super) fn within(list: &[u32], places: &Range<u32>) -> Range<usize> {
    let before = |end: u32| list.partition_point(|place| *place < end);
    before(places.start)..before(places.end)
}
