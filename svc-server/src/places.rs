//! Who is connected, how long each connection may take, and who gives way when places or memory run
//! short.
//!
//! A place is a connection. It belongs to a stranger until its request has shown a valid token or
//! signature. Each connection has a deadline, and a standing: the time of its last progress, plus a
//! little for the bytes that it sent. When a place or memory is needed, the stranger with the
//! lowest standing gives way at once. A sender that keeps sending stands above everybody who merely
//! holds a place or memory. So strangers, however many, never delay a sender who can sign.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use svc_model::limit;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::limits::Limits;
use crate::log_limit::LogLimit;
use crate::memory::{Held, MemoryBudget};

/// How long the answer to a body past its deadline may take before its connection is cut.
const ANSWER_FOR: Duration = Duration::from_secs(2);

/// How far received bytes may raise a standing above the present: enough for a short pause of the
/// sender, too little to earn a lead.
const LEAD_MAX: Duration = Duration::from_secs(1);

/// The connections of one address. A clone is another handle to them.
#[derive(Clone)]
pub(crate) struct Places(Arc<Shared>);

struct Shared {
    limits: Limits,
    open: Mutex<Open>,
    /// Wakes those who wait for a place or for memory.
    freed: Notify,
    known_bytes: MemoryBudget,
    /// The memory in which the oldest unfinished body can continue when nothing else is left.
    oldest_bytes: MemoryBudget,
    stranger_bytes: MemoryBudget,
    gave_way: LogLimit,
}

#[derive(Default)]
struct Open {
    next: u64,
    records: BTreeMap<u64, Arc<Record>>,
}

struct Record {
    id: u64,
    progress: Mutex<Progress>,
    /// Tells the connection to end.
    end: Notify,
}

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The head of the next request is incomplete.
    Waiting,
    /// A body is arriving.
    Receiving,
    /// The request is complete and being answered, which has deadlines of its own.
    Working,
    /// An answer is being sent; `complete` once all of it was handed over.
    Replying { complete: bool },
    /// The answer was sent, and further bytes are dropped.
    Lingering,
}

#[derive(Clone, Debug)]
struct Progress {
    phase: Phase,
    /// When this phase began.
    since: Instant,
    /// When bytes were last received or sent.
    last: Instant,
    /// The standing among those who may have to give way: the lowest goes first.
    standing: Instant,
    /// The received bytes of the body.
    bytes: u64,
    /// Bytes of memory that the body holds.
    held: usize,
    known: bool,
    /// Whether the body waits for memory.
    waits_for_memory: bool,
    ended: bool,
    stopping: Option<Instant>,
}

impl Progress {
    fn new(now: Instant) -> Self {
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

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.since = Instant::now();
        self.last = self.since;
        // A new request starts with the highest lead, so that a newcomer does not give way to
        // somebody who has just stopped sending.
        self.standing = match phase {
            Phase::Receiving => self.since + LEAD_MAX,
            _ => self.since,
        };
    }

    fn received(&mut self, bytes: usize, limits: &Limits) {
        let now = Instant::now();
        let earned = limits.earned(bytes as u64);
        self.bytes = self.bytes.saturating_add(bytes as u64);
        self.last = now;
        self.standing = (self.standing.max(now) + earned).min(now + LEAD_MAX);
    }

    /// Returns the deadline of the phase; nothing while the connection waits for the service.
    fn deadline(&self, limits: &Limits) -> Option<Instant> {
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
    fn cut_at(&self, limits: &Limits) -> Option<Instant> {
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

impl Record {
    fn new(id: u64) -> Arc<Self> {
        Arc::new(Self {
            id,
            progress: Mutex::new(Progress::new(Instant::now())),
            end: Notify::new(),
        })
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.progress().ended = true;
        self.end.notify_one();
    }
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the selected connection with the lowest standing.
    fn lowest(open: &Open, selects: impl Fn(&Progress) -> bool) -> Option<(Instant, Arc<Record>)> {
        let mut lowest: Option<(Instant, &Arc<Record>)> = None;
        for record in open.records.values() {
            let progress = record.progress();
            let standing = progress.standing;
            if !progress.ended
                && progress.phase != Phase::Working
                && selects(&progress)
                && lowest.is_none_or(|(lowest, _)| standing < lowest)
            {
                lowest = Some((standing, record));
            }
        }
        lowest.map(|(standing, record)| (standing, Arc::clone(record)))
    }

    fn log_gave_way(&self, what: &'static str) {
        if let Some(left_out) = self.gave_way.due() {
            tracing::warn!(short = what, left_out, "connection.gave_way");
        }
    }
}

impl Places {
    pub(crate) fn new(limits: Limits) -> Self {
        Self(Arc::new(Shared {
            open: Mutex::default(),
            freed: Notify::new(),
            known_bytes: MemoryBudget::new(limits.known_bytes_max),
            oldest_bytes: MemoryBudget::new(2 * limit::BODY_BYTES_MAX),
            stranger_bytes: MemoryBudget::new(limits.stranger_bytes_max),
            gave_way: LogLimit::new(),
            limits,
        }))
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Gives a place to a new connection. If none is free, somebody gives way: a stranger, or an
    /// idle known sender if strangers hold no more than the places kept for newcomers. It waits
    /// while everybody is known and busy.
    pub(crate) async fn admit(&self) -> Seat {
        loop {
            let freed = self.0.freed.notified();
            if let Some(place) = self.try_admit() {
                return Seat(place);
            }
            freed.await;
        }
    }

    fn try_admit(&self) -> Option<Place> {
        let mut open = self.0.open();
        if open.records.len() >= self.0.limits.connections_max && !self.make_room(&mut open) {
            return None;
        }
        let id = open.next;
        open.next += 1;
        let record = Record::new(id);
        open.records.insert(id, Arc::clone(&record));
        Some(Place {
            shared: Arc::clone(&self.0),
            record,
        })
    }

    fn make_room(&self, open: &mut Open) -> bool {
        let strangers = open.records.values();
        let strangers = strangers.filter(|record| !record.progress().known).count();
        let stranger = |progress: &Progress| !progress.known;
        let idle = |progress: &Progress| progress.known && progress.phase == Phase::Waiting;
        let lowest = if strangers > self.0.limits.newcomers_min {
            Shared::lowest(open, stranger)
        } else {
            Shared::lowest(open, idle).or_else(|| Shared::lowest(open, stranger))
        };
        let Some((_, record)) = lowest else {
            return false;
        };
        record.end();
        open.records.remove(&record.id);
        self.0.log_gave_way("places");
        true
    }

    /// Ends the stranger with the lowest standing, because the process cannot open more files.
    pub(crate) fn end_lowest(&self) {
        let mut open = self.0.open();
        self.make_room(&mut open);
    }
}

/// The place of a connection, free again when this is dropped.
pub(crate) struct Seat(Place);

impl std::ops::Deref for Seat {
    type Target = Place;
    fn deref(&self) -> &Place {
        &self.0
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let id = self.0.record.id;
        drop(self.0.shared.open().records.remove(&id));
        self.0.shared.freed.notify_waiters();
    }
}

/// A handle to the place of a connection, for reporting the progress of its requests.
#[derive(Clone)]
pub(crate) struct Place {
    shared: Arc<Shared>,
    record: Arc<Record>,
}

impl Place {
    /// Returns the place of a request that did not arrive over a connection of the service.
    pub(crate) fn detached() -> Self {
        let places = Places::new(Limits::service());
        let record = Record::new(0);
        Self {
            shared: places.0,
            record,
        }
    }

    /// Returns the deadline of the current phase.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.record.progress().deadline(&self.shared.limits)
    }

    /// Returns when the connection is cut.
    pub(crate) fn cut_at(&self) -> Option<Instant> {
        self.record.progress().cut_at(&self.shared.limits)
    }

    /// Waits until the connection must give way.
    pub(crate) async fn must_end(&self) {
        self.record.end.notified().await;
    }

    /// Tells the connection to give way.
    pub(crate) fn end(&self) {
        self.record.end();
    }

    /// Records that the server stops.
    pub(crate) fn stop(&self) {
        self.record.progress().stopping = Some(Instant::now());
    }

    /// Records that the head of a request was received. Its sender is a stranger at first.
    pub(crate) fn request_received(&self) {
        let mut progress = self.record.progress();
        progress.enter(Phase::Receiving);
        progress.bytes = 0;
        progress.known = false;
    }

    /// Records that the sender of the request is known.
    pub(crate) fn sender_is_known(&self) {
        self.record.progress().known = true;
    }

    /// Records that bytes of the body were received.
    pub(crate) fn body_received(&self, bytes: usize) {
        let limits = &self.shared.limits;
        self.record.progress().received(bytes, limits);
    }

    /// Records that the body is complete.
    pub(crate) fn body_complete(&self) {
        self.record.progress().enter(Phase::Working);
    }

    /// Records that an answer is being sent.
    pub(crate) fn reply_begins(&self) {
        self.record
            .progress()
            .enter(Phase::Replying { complete: false });
    }

    /// Records that the whole answer was handed over.
    pub(crate) fn reply_handed_over(&self) {
        let mut progress = self.record.progress();
        if let Phase::Replying { complete } = &mut progress.phase {
            *complete = true;
        }
    }

    /// Records that bytes were sent.
    pub(crate) fn sent(&self) {
        self.record.progress().last = Instant::now();
    }

    /// Records that everything handed over was sent.
    pub(crate) fn all_sent(&self) {
        let mut progress = self.record.progress();
        if progress.phase == (Phase::Replying { complete: true }) {
            progress.enter(Phase::Waiting);
        }
    }

    /// Records that further bytes are dropped.
    pub(crate) fn lingers(&self) {
        self.record.progress().enter(Phase::Lingering);
    }

    /// Returns whether no request is being answered.
    pub(crate) fn has_no_request(&self) -> bool {
        self.record.progress().phase == Phase::Waiting
    }

    /// Returns the memory of a body that is about to arrive; it is empty.
    pub(crate) fn body_memory(&self) -> BodyMemory {
        BodyMemory {
            place: self.clone(),
            held: Vec::new(),
        }
    }
}

/// No memory is free for a body, and nobody gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// The memory that a body holds until this is dropped.
pub(crate) struct BodyMemory {
    place: Place,
    held: Vec<Held>,
}

impl BodyMemory {
    fn bytes(&self) -> usize {
        self.held.iter().map(Held::bytes).sum()
    }

    /// Reserves memory up to this many bytes in all. If not enough is free, it waits, or makes
    /// others give way.
    ///
    /// # Errors
    ///
    /// If the body itself must give way, or has waited too long.
    pub(crate) async fn hold(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let more = bytes.saturating_sub(self.bytes());
        if more == 0 {
            return Ok(());
        }
        let known = self.place.record.progress().known;
        let held = if known {
            self.acquire_known(more).await?
        } else {
            self.acquire_stranger(more).await?
        };
        self.held.push(held);
        self.place.record.progress().held = self.bytes();
        Ok(())
    }

    /// Moves the reservation out of the strangers' memory, because the sender is known now. If
    /// there is no room it stays there: the body is complete, so it is held only briefly.
    pub(crate) fn sender_is_known(&mut self) {
        if let Some(held) = self.place.shared.known_bytes.try_acquire(self.bytes()) {
            self.held = vec![held];
            self.place.shared.freed.notify_waiters();
        }
    }

    async fn acquire_stranger(&self, more: usize) -> Result<Held, NoRoom> {
        let shared = &self.place.shared;
        if self.bytes() + more > shared.stranger_bytes.bytes_max() {
            return Err(NoRoom);
        }
        loop {
            let freed = shared.freed.notified();
            if let Some(held) = shared.stranger_bytes.try_acquire(more) {
                return Ok(held);
            }
            let holds = |progress: &Progress| {
                !progress.known && progress.phase == Phase::Receiving && progress.held > 0
            };
            let lowest = Shared::lowest(&shared.open(), holds);
            let (own, due) = {
                let progress = self.place.record.progress();
                (progress.standing, progress.deadline(&shared.limits))
            };
            if let Some((standing, record)) = lowest {
                if record.id == self.place.record.id || standing > own {
                    return Err(NoRoom);
                }
                record.end();
                shared.log_gave_way("memory");
            }
            let due = due.unwrap_or_else(Instant::now);
            timeout_at(due, freed).await.map_err(|_| NoRoom)?;
        }
    }

    async fn acquire_known(&self, more: usize) -> Result<Held, NoRoom> {
        let shared = &self.place.shared;
        let limits = &shared.limits;
        let until = Instant::now() + limits.memory_for;
        let _waiting = Waiting::new(&self.place);
        loop {
            let freed = shared.freed.notified();
            if let Some(held) = shared.known_bytes.try_acquire(more) {
                return Ok(held);
            }
            if self.is_oldest()
                && let Some(held) = shared.oldest_bytes.try_acquire(more)
            {
                return Ok(held);
            }
            let still = limits.body_idle_when_short_for;
            let stalled = |progress: &Progress| {
                progress.phase == Phase::Receiving
                    && progress.held > 0
                    && !progress.waits_for_memory
                    && progress.last.elapsed() > still
            };
            let lowest = Shared::lowest(&shared.open(), stalled);
            if let Some((_, record)) = lowest {
                record.end();
                shared.log_gave_way("memory");
            }
            let now = Instant::now();
            if now >= until {
                return Err(NoRoom);
            }
            // Another body may stall without freeing anything, so it looks again after a while.
            let again = until.min(now + (still / 4).max(Duration::from_millis(10)));
            drop(timeout_at(again, freed).await);
        }
    }

    /// Returns whether this is the oldest unfinished body of a known sender.
    fn is_oldest(&self) -> bool {
        let own = self.place.record.progress().since;
        let open = self.place.shared.open();
        open.records.values().all(|record| {
            let progress = record.progress();
            record.id == self.place.record.id
                || progress.ended
                || !progress.known
                || progress.phase != Phase::Receiving
                || (progress.since, record.id) > (own, self.place.record.id)
        })
    }
}

impl Drop for BodyMemory {
    fn drop(&mut self) {
        if !self.held.is_empty() {
            self.held.clear();
            self.place.record.progress().held = 0;
            self.place.shared.freed.notify_waiters();
        }
    }
}

/// A body that waits for memory. Its sender's deadline does not run meanwhile.
struct Waiting<'p>(&'p Place);

impl<'p> Waiting<'p> {
    fn new(place: &'p Place) -> Self {
        place.record.progress().waits_for_memory = true;
        Self(place)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut progress = self.0.record.progress();
        progress.waits_for_memory = false;
        progress.last = Instant::now();
    }
}
