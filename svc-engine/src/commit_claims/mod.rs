//! Decides the commits that clients reported, for which nobody waits.
//!
//! A claim is looked up in all mirrors when it arrives. After a refresh, the open claims are looked
//! up in the refreshed mirror, and only those that it has in the others. One thread does both, with
//! a connection of its own and no read slot. Whatever fails leaves claims open: the next refresh of
//! their repository looks again.

mod search;

use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use svc_engine_fact::clock::{Clock, Ids};
use svc_engine_fact::deadline::{Cancellation, Deadline};
use svc_engine_fact::{Lifetime, Push};
use svc_engine_mirror::MirrorReading;
use svc_engine_store::Store;
use svc_model::id::FactId;
use svc_model::repository::RepositoryName;

use self::search::{Occasion, Search};

/// How long the mirrors are searched on one occasion.
const SEARCH_MAX: Duration = Duration::from_mins(1);
/// New claims that may wait for the thread. Any more wait for the next refresh.
const ARRIVED_MAX: usize = 10_000;

/// The thread. Dropping it ends it.
pub(crate) struct CommitClaims {
    desk: Arc<Desk>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for CommitClaims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CommitClaims")
    }
}

/// Where work waits for the thread.
#[derive(Default)]
struct Desk {
    waiting: Mutex<Waiting>,
    rung: Condvar,
    cancellation: Cancellation,
}

#[derive(Default)]
struct Waiting {
    arrived: Vec<FactId>,
    refreshed: BTreeSet<Lifetime>,
}

impl Waiting {
    /// Takes the next work. New claims come first.
    fn next(&mut self) -> Option<Occasion> {
        if self.arrived.is_empty() {
            return self.refreshed.pop_first().map(Occasion::Refreshed);
        }
        Some(Occasion::Arrived(std::mem::take(&mut self.arrived)))
    }
}

impl Desk {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for work; `None` when the service stops.
    fn next(&self) -> Option<Occasion> {
        let mut waiting = self.waiting();
        loop {
            if self.cancellation.is_cancelled() {
                return None;
            }
            if let Some(occasion) = waiting.next() {
                return Some(occasion);
            }
            let rung = self.rung.wait(waiting);
            waiting = rung.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn refreshed(&self, pushes: &[Push]) {
        let lifetimes = pushes.iter().filter_map(|push| {
            let name = RepositoryName::new(&push.repo)?;
            Some(Lifetime::of(push.repository.as_ref(), &name))
        });
        self.waiting().refreshed.extend(lifetimes);
        self.rung.notify_one();
    }
}

impl CommitClaims {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub(crate) fn start(
        store: &Arc<Store>,
        mirrors: MirrorReading,
        clock: Clock,
        ids: Ids,
    ) -> std::io::Result<Self> {
        let desk = Arc::new(Desk::default());
        let worker = Worker {
            desk: Arc::clone(&desk),
            store: Arc::clone(store),
            mirrors,
            clock,
            ids,
        };
        let thread = thread::Builder::new()
            .name("svc-commit-claims".to_owned())
            .spawn(move || worker.run())?;
        Ok(Self {
            desk,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Returns what refreshes report to.
    pub(crate) fn listener(&self) -> impl Fn(&[Push]) + Send + Sync + use<> {
        let desk = Arc::clone(&self.desk);
        move |pushes| desk.refreshed(pushes)
    }

    /// Has claims looked up that were just stored.
    pub(crate) fn arrived(&self, claims: Vec<FactId>) {
        let mut waiting = self.desk.waiting();
        let room = ARRIVED_MAX.saturating_sub(waiting.arrived.len());
        waiting.arrived.extend(claims.into_iter().take(room));
        self.desk.rung.notify_one();
    }

    /// Ends the thread and its current search.
    pub(crate) fn stop(&self) {
        self.desk.cancellation.cancel();
        // The lock is taken so that the thread is not between its check and its wait.
        drop(self.desk.waiting());
        self.desk.rung.notify_all();
        let thread = self.thread.lock();
        let thread = thread.unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("commit_claims.panicked");
        }
    }
}

impl Drop for CommitClaims {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Worker {
    desk: Arc<Desk>,
    store: Arc<Store>,
    mirrors: MirrorReading,
    clock: Clock,
    ids: Ids,
}

impl Worker {
    fn run(self) {
        crate::priority::give_way();
        while let Some(occasion) = self.desk.next() {
            let done = catch_unwind(AssertUnwindSafe(|| self.look(&occasion)));
            if done.is_err() {
                tracing::error!("commit_claims.search_panicked");
            }
        }
    }

    fn look(&self, occasion: &Occasion) {
        let cancellation = self.desk.cancellation.child();
        let search = Search {
            store: &self.store,
            mirrors: &self.mirrors,
            clock: &self.clock,
            ids: &self.ids,
            deadline: Deadline::after(SEARCH_MAX).cancelled_by(&cancellation),
        };
        match search.run(occasion) {
            Ok(settled) if settled.is_empty() => {}
            Ok(settled) => tracing::info!(
                resolved = settled.resolved,
                ambiguous = settled.ambiguous,
                "commit_claims.settled"
            ),
            Err(_) if self.desk.cancellation.is_cancelled() => {}
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "commit_claims.not_searched");
            }
        }
    }
}
