//! What a connection is doing, and how long it may take.

use std::time::Duration;

use tokio::time::Instant;

use crate::limits::Limits;

/// How long the answer to a body past its deadline may take before the connection is cut.
const ANSWER_FOR: Duration = Duration::from_secs(2);

/// How far received bytes may raise a standing above the present: enough for a short pause of the
/// sender, but too little to earn a lead.
const LEAD_MAX: Duration = Duration::from_secs(1);

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The head of the next request is incomplete.
    Waiting,
    /// A body is arriving.
    Receiving,
    /// The request is complete and is being answered, which has deadlines of its own.
    Working,
    /// An answer is being sent. `complete` is true once all of it has been handed over.
    Replying { complete: bool },
    /// The answer was sent, and further bytes are dropped.
    Lingering,
}

#[derive(Clone, Debug)]
pub(super) struct Progress {
    pub(super) phase: Phase,
    /// When this phase began.
    pub(super) since: Instant,
    /// When bytes were last received or sent.
    pub(super) last: Instant,
    /// The standing among those who may have to give way. The lowest goes first.
    pub(super) standing: Instant,
    /// The bytes of the body received so far.
    pub(super) bytes: u64,
    /// Bytes of memory that the body holds.
    pub(super) held: usize,
    pub(super) known: bool,
    /// Whether the body waits for memory.
    pub(super) waits_for_memory: bool,
    pub(super) ended: bool,
    pub(super) stopping: Option<Instant>,
}

impl Progress {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            phase: Phase::Waiting,
            since: now,
            last: now,
            standing: now,
            bytes: 0,
            held: 0,
            known: false,
            waits_for_memory: false,
            ended: false,
            stopping: None,
        }
    }

    pub(super) fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.since = Instant::now();
        self.last = self.since;
        // A new request starts with the maximum lead, so that a newcomer does not give way to
        // somebody who has just stopped sending.
        self.standing = match phase {
            Phase::Receiving => self.since + LEAD_MAX,
            _ => self.since,
        };
    }

    pub(super) fn received(&mut self, bytes: usize, limits: &Limits) {
        let now = Instant::now();
        let earned = limits.earned(bytes as u64);
        self.bytes = self.bytes.saturating_add(bytes as u64);
        self.last = now;
        self.standing = (self.standing.max(now) + earned).min(now + LEAD_MAX);
    }

    /// Returns the deadline of the phase; `None` while the connection waits for the service.
    pub(super) fn deadline(&self, limits: &Limits) -> Option<Instant> {
        let due = match (self.phase, self.known) {
            (Phase::Working, _) => return None,
            (Phase::Receiving, true) if self.waits_for_memory => return None,
            (Phase::Waiting, true) => self.since + limits.idle_for,
            (Phase::Waiting | Phase::Replying { .. }, false) => self.since + limits.stranger_for,
            (Phase::Receiving, false) => {
                let earned = limits.stranger_for + limits.earned(self.bytes);
                self.since + earned.min(limits.stranger_body_for)
            }
            (Phase::Receiving, true) => {
                (self.last + limits.body_idle_for).min(self.since + limits.body_for)
            }
            (Phase::Replying { .. }, true) => {
                (self.last + limits.reply_idle_for).min(self.since + limits.reply_for)
            }
            (Phase::Lingering, _) => self.since + limits.linger_for,
        };
        Some(due)
    }

    /// Returns when the connection is cut, whatever it does.
    pub(super) fn cut_at(&self, limits: &Limits) -> Option<Instant> {
        let due = match self.phase {
            Phase::Receiving => self.deadline(limits).map(|due| due + ANSWER_FOR),
            _ => self.deadline(limits),
        };
        let Some(stopping) = self.stopping else {
            return due;
        };
        match (self.phase, self.known) {
            (Phase::Waiting, _) => Some(stopping),
            (Phase::Receiving, false) | (Phase::Lingering, _) => {
                let soon = stopping + limits.stop_strangers_for;
                Some(due.map_or(soon, |due| due.min(soon)))
            }
            (Phase::Receiving, true) | (Phase::Working | Phase::Replying { .. }, _) => due,
        }
    }
}
