//! Who is connected, how long each connection may take, and who gives way when places or memory run
//! short.
//!
//! A place is a connection. It belongs to a stranger until its request has shown a valid token or
//! signature. Each connection has a deadline and a standing: the time of its last progress, plus a
//! little for the bytes that it sent. When a place or memory is needed, the stranger with the
//! lowest standing gives way at once. A sender that keeps sending stands above everybody who merely
//! holds a place or memory. So strangers, however many, never delay a sender who can sign.
//!
//! The address of a peer plays no part, because behind a proxy all have one. Idle connections of
//! known senders give way only while strangers hold no more than the quarter of the places that is
//! kept for newcomers.

mod memory;
mod place;
mod progress;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use svc_model::limit;
use tokio::sync::Notify;
use tokio::time::Instant;

pub(crate) use self::memory::BodyMemory;
pub(crate) use self::place::ConnectionPlace;
use self::progress::{Phase, Progress};
use crate::limits::Limits;
use crate::log_limit::LogLimit;
use crate::memory::MemoryBudget;

/// The connections of one address. Clones share the same connections.
#[derive(Clone)]
pub(crate) struct Places(Arc<PlacesState>);

struct PlacesState {
    limits: Limits,
    open: Mutex<OpenConnections>,
    /// Wakes those who wait for a place or for memory.
    freed: Notify,
    known_bytes: MemoryBudget,
    /// The memory in which the oldest unfinished body can continue when nothing else is left.
    oldest_bytes: MemoryBudget,
    stranger_bytes: MemoryBudget,
    gave_way: LogLimit,
}

#[derive(Default)]
struct OpenConnections {
    next: u64,
    records: BTreeMap<u64, Arc<ConnectionRecord>>,
}

struct ConnectionRecord {
    id: u64,
    progress: Mutex<Progress>,
    /// Tells the connection to end.
    end: Notify,
}

impl ConnectionRecord {
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

impl PlacesState {
    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the connection with the lowest standing among those that `selects` accepts.
    fn lowest(
        open: &OpenConnections,
        selects: impl Fn(&Progress) -> bool,
    ) -> Option<(Instant, Arc<ConnectionRecord>)> {
        let mut lowest: Option<(Instant, &Arc<ConnectionRecord>)> = None;
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
        Self(Arc::new(PlacesState {
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
    /// idle known sender if strangers hold no more than the places kept for newcomers. Waits while
    /// everybody is known and busy.
    pub(crate) async fn admit(&self) -> Seat {
        loop {
            let freed = self.0.freed.notified();
            if let Some(place) = self.try_admit() {
                return Seat(place);
            }
            freed.await;
        }
    }

    fn try_admit(&self) -> Option<ConnectionPlace> {
        let mut open = self.0.open();
        if open.records.len() >= self.0.limits.connections_max && !self.make_room(&mut open) {
            return None;
        }
        let id = open.next;
        open.next += 1;
        let record = ConnectionRecord::new(id);
        open.records.insert(id, Arc::clone(&record));
        Some(ConnectionPlace {
            shared: Arc::clone(&self.0),
            record,
        })
    }

    fn make_room(&self, open: &mut OpenConnections) -> bool {
        let strangers = open.records.values();
        let strangers = strangers.filter(|record| !record.progress().known).count();
        let stranger = |progress: &Progress| !progress.known;
        let idle = |progress: &Progress| progress.known && progress.phase == Phase::Waiting;
        let lowest = if strangers > self.0.limits.newcomers_min {
            PlacesState::lowest(open, stranger)
        } else {
            PlacesState::lowest(open, idle).or_else(|| PlacesState::lowest(open, stranger))
        };
        let Some((_, record)) = lowest else {
            return false;
        };
        record.end();
        open.records.remove(&record.id);
        self.0.log_gave_way("places");
        true
    }

    /// Ends one connection, as [`Places::admit`] does when no place is free, because the process
    /// cannot open more files.
    pub(crate) fn end_lowest(&self) {
        let mut open = self.0.open();
        self.make_room(&mut open);
    }
}

/// The place of a connection, which is freed on drop.
pub(crate) struct Seat(ConnectionPlace);

impl std::ops::Deref for Seat {
    type Target = ConnectionPlace;
    fn deref(&self) -> &ConnectionPlace {
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
