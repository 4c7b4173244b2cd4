//! Settles halves of calls: after a delivery that brought some, and when their time has come.
//!
//! One thread does it, so no sender waits for it. What it settles it settles in one transaction: the
//! call is stored, its halves go, and what was left out is counted. Several servers may settle the
//! halves of a Session at once; the store takes only one of them, and the others look again.
//!
//! Nothing is kept here but the names of Sessions to look at soon. Every open half is due at some
//! moment, so a server that stops or fails loses nothing.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use svc_engine_capture::{PairedCall, paired_call};
use svc_engine_derive::call_pairs::{self, Settled};
use svc_engine_fact::clock::later;
use svc_engine_fact::{CallHalf, HalfKey, HalfSide, HalfState, KeptHalf};
use svc_engine_store::{
    Append, ArrivedHalf, Delivery, DeliveryCounts, SettledHalves, Snapshot, StoreError,
};
use svc_model::capture::{CaptureSource, CaptureTotals};
use svc_model::id::SessionId;
use svc_model::ingest::LogSkip;
use svc_model::json::NodeBudget;
use svc_model::limit::{
    HALVES_BYTES_MAX, REQUEST_MEMORY_BYTES_MAX, SESSION_HALVES_BYTES_MAX, SESSION_HALVES_MAX,
};
use svc_model::time::Instant;

use super::EngineState;
use super::execution::read_deadline;

/// The time between two looks at what is due. Another server may have brought it.
const INTERVAL: Duration = Duration::from_secs(5);
/// The shortest time between two looks.
const PAUSE: Duration = Duration::from_millis(50);
/// How often the halves of a Session are looked at again because others came or went meanwhile.
const ATTEMPTS_MAX: usize = 16;
/// How long a redelivery is recognised after its half was settled.
const REMEMBERED: Duration = Duration::from_hours(24);
/// How much longer, while the Session has open halves.
const REMEMBERED_LONGER: Duration = Duration::from_hours(1);

/// The thread that settles. Dropping it ends it, later.
#[derive(Debug)]
pub(super) struct Pairing {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    woken: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The Sessions that halves have arrived for.
    sessions: BTreeSet<SessionId>,
    is_stopped: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there are Sessions to look at, or for some time. `None` once the thread is to end.
    fn wait(&self, pause: Duration) -> Option<BTreeSet<SessionId>> {
        let is_idle = |waiting: &mut Waiting| waiting.sessions.is_empty() && !waiting.is_stopped;
        let woken = self.woken.wait_timeout_while(self.lock(), pause, is_idle);
        let (mut waiting, _) = woken.unwrap_or_else(PoisonError::into_inner);
        (!waiting.is_stopped).then(|| std::mem::take(&mut waiting.sessions))
    }

    fn stop(&self) {
        self.lock().is_stopped = true;
        self.woken.notify_all();
    }
}

impl Pairing {
    /// Starts the thread.
    pub(super) fn start(inner: Weak<EngineState>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("svc-pairing".to_owned())
            .spawn(move || {
                crate::priority::give_way();
                let mut pause = Duration::ZERO;
                while let Some(sessions) = own.wait(pause) {
                    let Some(inner) = inner.upgrade() else {
                        return;
                    };
                    let settle = AssertUnwindSafe(|| settle_all(&inner, &own, sessions));
                    pause = catch_unwind(settle).unwrap_or_else(|_| {
                        tracing::error!("call_halves.panicked");
                        INTERVAL
                    });
                }
            })?;
        Ok(Self {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Has the halves of Sessions looked at soon.
    pub(super) fn look_at(&self, sessions: impl IntoIterator<Item = SessionId>) {
        self.shared.lock().sessions.extend(sessions);
        self.shared.woken.notify_all();
    }

    /// Ends the thread, after what it is settling.
    pub(super) fn stop(&self) {
        self.shared.stop();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // It catches its own panics.
        drop(thread.map(JoinHandle::join));
    }
}

impl Drop for Pairing {
    fn drop(&mut self) {
        // The thread itself may drop the engine, so it is not waited for.
        self.shared.stop();
    }
}

impl EngineState {
    /// Returns halves as they are stored, and when each is due.
    pub(super) fn arrived(&self, halves: Vec<CallHalf>) -> Vec<ArrivedHalf> {
        let due_at = |half: &CallHalf| {
            let wait = match half.outline.side {
                HalfSide::Request => self.pairing_waits.silence,
                HalfSide::Response => self.pairing_waits.grace,
            };
            later(half.outline.captured_at, wait)
        };
        let arrived = halves.into_iter().map(|half| ArrivedHalf {
            due_at: due_at(&half),
            half,
        });
        arrived.collect()
    }
}

/// Settles what may be settled now, and returns how long to wait.
fn settle_all(inner: &EngineState, shared: &Shared, sessions: BTreeSet<SessionId>) -> Duration {
    let settle = || -> Result<Duration, StoreError> {
        for session_id in sessions {
            if shared.lock().is_stopped {
                return Ok(INTERVAL);
            }
            settle_session(inner, &session_id)?;
        }
        settle_due(inner, shared)?;
        evict(inner, shared)?;
        let next = inner.store.snapshot(&read_deadline())?.next_half_due()?;
        Ok(pause(inner.clock.now(), next))
    };
    settle().unwrap_or_else(|error| {
        let error = &error as &dyn std::error::Error;
        tracing::debug!(error, "call_halves.wait");
        INTERVAL
    })
}

fn pause(now: Instant, next: Option<Instant>) -> Duration {
    let Some(next) = next else {
        return INTERVAL;
    };
    let left = next.microseconds().saturating_sub(now.microseconds());
    Duration::from_micros(u64::try_from(left).unwrap_or(0)).clamp(PAUSE, INTERVAL)
}

/// Settles the halves whose time has come, and forgets what is no longer needed.
fn settle_due(inner: &EngineState, shared: &Shared) -> Result<(), StoreError> {
    let now = inner.clock.now();
    let due = inner.store.snapshot(&read_deadline())?.due_halves(now)?;
    for session_id in &due.sessions {
        if shared.lock().is_stopped {
            return Ok(());
        }
        settle_session(inner, session_id)?;
    }
    if due.settled {
        let remembered_until = later(now, REMEMBERED);
        let kept_until = later(now, REMEMBERED_LONGER);
        inner
            .store
            .forget_halves(now, remembered_until, kept_until)?;
    }
    Ok(())
}

/// Settles the oldest halves of the organization while there are too many.
fn evict(inner: &EngineState, shared: &Shared) -> Result<(), StoreError> {
    loop {
        let mut snapshot = inner.store.snapshot(&read_deadline())?;
        let bytes = snapshot
            .pending_halves()?
            .map_or(0, |pending| pending.bytes);
        let oldest = match bytes.checked_sub(HALVES_BYTES_MAX) {
            None | Some(0) => None,
            Some(_) => snapshot.session_of_oldest_half()?,
        };
        drop(snapshot);
        let Some(session_id) = oldest.filter(|_| !shared.lock().is_stopped) else {
            return Ok(());
        };
        let session = SessionHalves::read(inner, &session_id)?;
        let evicted = call_pairs::evict(&session.kept, 1, 1);
        match session.carry_out(inner, evicted, true) {
            Ok(()) | Err(StoreError::HalvesChanged) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Settles what may be settled of a Session.
fn settle_session(inner: &EngineState, session_id: &SessionId) -> Result<(), StoreError> {
    for _ in 0..ATTEMPTS_MAX {
        let session = SessionHalves::read(inner, session_id)?;
        if session.kept.is_empty() {
            return Ok(());
        }
        let now = inner.clock.now();
        let last_at = session.last_at.unwrap_or(now);
        let mut settled = call_pairs::settle(&session.kept, last_at, now, inner.pairing_waits);
        let mut is_evicted = false;
        if settled.is_empty() {
            let bytes: u64 = session.open().map(|half| half.byte_count).sum();
            let excess = bytes.saturating_sub(SESSION_HALVES_BYTES_MAX);
            let count = session.open().count().saturating_sub(SESSION_HALVES_MAX);
            settled = call_pairs::evict(&session.kept, excess, count);
            is_evicted = true;
        }
        if settled.is_empty() {
            return session.postpone(inner, now, last_at);
        }
        match session.carry_out(inner, settled, is_evicted) {
            // Something may follow from what was settled, and more may have arrived.
            Ok(()) | Err(StoreError::HalvesChanged) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The halves of a Session, as they were read.
struct SessionHalves<'s> {
    session_id: &'s SessionId,
    kept: Vec<KeptHalf>,
    last_at: Option<Instant>,
}

impl<'s> SessionHalves<'s> {
    fn read(inner: &EngineState, session_id: &'s SessionId) -> Result<Self, StoreError> {
        let mut snapshot = inner.store.snapshot(&read_deadline())?;
        Ok(Self {
            session_id,
            kept: snapshot.kept_halves(session_id)?,
            last_at: snapshot.last_half_at(session_id)?,
        })
    }

    fn open(&self) -> impl Iterator<Item = &KeptHalf> {
        let open = |half: &&KeptHalf| half.state == HalfState::Open;
        self.kept.iter().filter(open)
    }

    /// Has the open halves looked at again when the Session has been silent for long.
    fn postpone(
        &self,
        inner: &EngineState,
        now: Instant,
        last_at: Instant,
    ) -> Result<(), StoreError> {
        if self.open().all(|half| half.due_at > now) {
            return Ok(());
        }
        let due_at = later(last_at, inner.pairing_waits.silence);
        let due_at = due_at.max(later(now, Duration::from_secs(1)));
        inner.store.postpone_halves(self.session_id, now, due_at)
    }

    /// Settles halves, one call after another: the bodies of one are in memory at a time.
    fn carry_out(
        &self,
        inner: &EngineState,
        settled: Vec<Settled>,
        is_evicted: bool,
    ) -> Result<(), StoreError> {
        let mut open: Vec<HalfKey> = self.open().map(|half| half.outline.key).collect();
        for settled in settled {
            let mut settlement = self.settlement(inner, &settled)?;
            if is_evicted {
                settlement.skips.push((LogSkip::HalvesEvicted, 1));
            }
            let keys = settlement.keys.clone();
            settlement.store(inner, self.session_id, open.clone())?;
            open.retain(|key| !keys.contains(key));
        }
        Ok(())
    }

    fn settlement(&self, inner: &EngineState, settled: &Settled) -> Result<Settlement, StoreError> {
        let mut settlement = Settlement::default();
        let key = |place: usize| self.kept[place].outline.key;
        match settled {
            Settled::Attempt(request) => {
                settlement.keys = vec![key(*request)];
                settlement.skips = vec![(LogSkip::AttemptWithoutResponse, 1)];
            }
            Settled::Unpaired(response) => {
                settlement.keys = vec![key(*response)];
                settlement.skips = vec![(LogSkip::RequestUnpaired, 1)];
                let response = self.body(inner, *response)?;
                settlement.make(inner, None, response);
            }
            Settled::Call {
                request,
                response,
                attempts,
            } => {
                let all = [*request, *response].into_iter().chain(attempts.clone());
                settlement.keys = all.map(key).collect();
                if !attempts.is_empty() {
                    let count = attempts.len() as u64;
                    settlement.skips = vec![(LogSkip::AttemptWithoutResponse, count)];
                }
                settlement.witness = Some(key(*request));
                let asked = self.body(inner, *request)?;
                let response = self.body(inner, *response)?;
                // Without what was asked, the response is no call: that would claim that it never
                // arrived.
                let response = response.filter(|_| asked.is_some());
                settlement.make(inner, asked, response);
            }
        }
        Ok(settlement)
    }

    /// Returns a half with its body; `None` if the body cannot be read.
    fn body(&self, inner: &EngineState, place: usize) -> Result<Option<CallHalf>, StoreError> {
        let mut snapshot: Snapshot<'_> = inner.store.snapshot(&read_deadline())?;
        match snapshot.call_half(&self.kept[place]) {
            Ok(None) => Err(StoreError::HalvesChanged),
            Err(error @ StoreError::Corrupt { .. }) => {
                let error = &error as &dyn std::error::Error;
                let session_id = self.session_id.as_str();
                tracing::error!(session_id, error, "call_halves.unreadable");
                Ok(None)
            }
            found => found,
        }
    }
}

/// What is settled in one transaction.
#[derive(Debug, Default)]
struct Settlement {
    call: Option<Append>,
    keys: Vec<HalfKey>,
    witness: Option<HalfKey>,
    skips: Vec<(LogSkip, u64)>,
}

impl Settlement {
    /// Makes the call.
    fn make(&mut self, inner: &EngineState, request: Option<CallHalf>, response: Option<CallHalf>) {
        let receipt = inner.receipt();
        let memory = NodeBudget::new(REQUEST_MEMORY_BYTES_MAX);
        let made = response.and_then(|response| paired_call(request, response, receipt, &memory));
        let Some(made) = made else {
            self.skips.push((LogSkip::MalformedBody, 1));
            return;
        };
        log(&made);
        if !made.is_consistent {
            self.skips.push((LogSkip::InconsistentUsage, 1));
        }
        let encoded = inner.store.encode(made.call, receipt.received_at);
        self.call = Some(Append::InferenceCall(Box::new(encoded)));
    }

    fn store(
        self,
        inner: &EngineState,
        session_id: &SessionId,
        open: Vec<HalfKey>,
    ) -> Result<(), StoreError> {
        let now = inner.clock.now();
        let counted = self.counted(now);
        let facts: Vec<Append> = self.call.into_iter().collect();
        let tables: Vec<_> = facts.iter().map(Append::table).collect();
        let settled = SettledHalves {
            session_id: session_id.clone(),
            open,
            settled: self.keys,
            witness: self.witness,
            witness_until: later(now, inner.pairing_waits.grace),
            remembered_until: later(now, REMEMBERED),
        };
        let halves = settled.settled.len();
        let outcomes = inner.store.append_blocking(Delivery {
            facts,
            settled_halves: Some(settled),
            counted: Some(counted.clone()),
            ..Delivery::default()
        })?;
        tracing::debug!(halves, calls = outcomes.len(), "call_halves.settled");
        let captured = counted.with(tables.into_iter().zip(outcomes));
        inner.captured_by_process().add(&captured);
        Ok(())
    }

    /// Returns what to count. The deliveries that brought the halves are counted already.
    fn counted(&self, at: Instant) -> DeliveryCounts {
        let mut counted = DeliveryCounts {
            source: CaptureSource::Logs,
            at,
            totals: CaptureTotals::default(),
        };
        let skipped = &mut counted.source().skipped;
        for (reason, count) in &self.skips {
            *skipped.entry(reason.as_str().to_owned()).or_default() += count;
        }
        counted
    }
}

fn log(made: &PairedCall) {
    if !made.degradation.is_empty() {
        tracing::debug!(degradation = ?made.degradation, "inference_messages_degraded");
    }
    if !made.redactions.is_empty() {
        tracing::info!(redactions = %made.redactions, "fact_redacted");
    }
}
