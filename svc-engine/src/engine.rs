//! The engine: the service without its transport.

mod config;
mod execution;
mod forgetting;
mod grants;
mod pairing;
mod prices;
mod reads;
mod write;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use svc_engine_capture::redaction::Secrets;
use svc_engine_capture::{Receipt, Redaction};
use svc_engine_derive::call_pairs::PairingWaits;
use svc_engine_fact::clock::{Clock, Ids};
use svc_engine_fact::deadline::Deadline;
use svc_engine_mirror::{MirrorConfig, MirrorReading, Mirrors};
use svc_engine_search::{SearchIndex, SearchStatus};
use svc_engine_store::{Obstacle, Store, StoreError};
use svc_model::capture::CaptureTotals;
use svc_model::id::OrgId;
use svc_model::time::Instant;

use self::forgetting::Forgetting;
use self::pairing::Pairing;
use crate::admission::Admission;
use crate::background::Background;
use crate::changed_files::MirroredFiles;
use crate::commit_claims::CommitClaims;
use crate::read::{CursorKey, MemoryUse, ReportResources, Resources};

pub use self::config::EngineConfig;
pub(crate) use self::write::ReportedItems;
pub use crate::admission::{Reader, SlotUse};

/// How long opening waits for the moment of the last fact.
const LOOK_MAX: Duration = Duration::from_secs(5);

/// The service without its transport, and who reads with this handle. A clone is another handle to
/// the same one.
#[derive(Clone, Debug)]
pub struct Engine(Arc<EngineState>, Reader);

#[derive(Debug)]
struct EngineState {
    // Before the store, which they use until they are dropped, and in this order: the first tells the
    // others of its work.
    mirrors: Option<Mirrors>,
    background: Option<Background>,
    commit_claims: Option<CommitClaims>,
    resources: Resources,
    store: Arc<Store>,
    forgetting: OnceLock<Forgetting>,
    pairing: OnceLock<Pairing>,
    pairing_waits: PairingWaits,
    admission: Admission,
    redaction: Redaction,
    secrets: Secrets,
    clock: Clock,
    ids: Ids,
    /// What this process captured.
    captured: Mutex<CaptureTotals>,
    /// Whether a task is about to write the counts of deliveries that stored nothing.
    counts_wait: AtomicBool,
}

impl Engine {
    /// Opens the store and starts the writer and the mirror workers. It blocks.
    ///
    /// # Errors
    ///
    /// If the store cannot be opened.
    pub fn open(config: &EngineConfig, clock: Clock, ids: Ids) -> Result<Self, StoreError> {
        let store = Arc::new(Store::open_by(&config.store, &clock)?);
        warn_of_moments_ahead(&store, clock.now());
        let reading =
            |mirror: &MirrorConfig| MirrorReading::new(&mirror.path, store.org_id().clone());
        let reports = Arc::new(ReportResources::new(
            config.mirror.as_ref().map(reading),
            config.report_cache_bytes,
        ));
        let (mirrors, background, commit_claims) = match &config.mirror {
            Some(mirror) => {
                let (background, on_refreshed) =
                    Background::start(&store, Arc::clone(&reports), clock.clone(), mirror.settle)?;
                let claims =
                    CommitClaims::start(&store, reading(mirror), clock.clone(), ids.clone())?;
                let on_refreshed = on_refreshed.and(claims.listener());
                let mirrors = Mirrors::start(&store, mirror, &clock, &ids, &on_refreshed)?;
                (Some(mirrors), Some(background), Some(claims))
            }
            None => (None, None, None),
        };
        let cursor_key = match &config.cursor_key {
            Some(key) => key.clone(),
            None => CursorKey::derive(ids.fresh().as_bytes()),
        };
        let search = match &config.search {
            Some(place) => {
                let files = MirroredFiles(config.mirror.as_ref().map(reading));
                let (place, give_way) = (place.clone(), crate::priority::give_way);
                let index = SearchIndex::start(place, &store, Box::new(files), give_way)?;
                Some(Arc::new(index))
            }
            None => None,
        };
        let inner = EngineState {
            mirrors,
            background,
            commit_claims,
            resources: Resources::new(
                Arc::clone(&store),
                config.cache_bytes,
                reports,
                config.scan,
                cursor_key,
                search,
            ),
            store,
            forgetting: OnceLock::new(),
            pairing: OnceLock::new(),
            pairing_waits: config.pairing,
            admission: Admission::new(config.read_slots),
            redaction: config.redaction,
            secrets: config.secrets.clone(),
            clock,
            ids,
            captured: Mutex::default(),
            counts_wait: AtomicBool::new(false),
        };
        let engine = Self(Arc::new(inner), Reader::operator());
        let forgetting = Forgetting::start(Arc::downgrade(&engine.0))?;
        drop(engine.0.forgetting.set(forgetting));
        let pairing = Pairing::start(Arc::downgrade(&engine.0))?;
        drop(engine.0.pairing.set(pairing));
        Ok(engine)
    }

    /// Returns the organization.
    pub fn org_id(&self) -> &OrgId {
        self.0.store.org_id()
    }

    /// Returns a handle for the reads of a reader. Without this, an operator reads.
    #[must_use]
    pub fn read_by(&self, reader: Reader) -> Self {
        Self(Arc::clone(&self.0), reader)
    }

    /// Returns the use of the read slots.
    pub fn slot_use(&self) -> SlotUse {
        self.0.admission.slot_use()
    }

    /// Returns whether the writer is running; without it, nothing is stored until the process
    /// restarts.
    pub fn is_writing(&self) -> bool {
        self.0.store.is_writing()
    }

    /// Returns what kept the last write from being stored that only the operator of the database can
    /// remove.
    pub fn store_obstacle(&self) -> Option<Obstacle> {
        self.0.store.obstacle()
    }

    /// Returns the use of the caches of reports, by kind.
    pub fn report_memory(&self) -> [(&'static str, MemoryUse); 8] {
        self.0.resources.latest_report_memory().uses()
    }

    /// Returns how far the index of searches is, if one is kept.
    pub fn search_status(&self) -> Option<SearchStatus> {
        let index = self.0.resources.search.as_ref();
        index.map(|index| index.status())
    }

    /// Tells the index of searches that the store has changed.
    pub(crate) fn wake_search(&self) {
        if let Some(index) = &self.0.resources.search {
            index.wake();
        }
    }

    /// Returns the current time.
    pub fn now(&self) -> Instant {
        self.0.clock.now()
    }

    /// Returns what capture needs to know about a delivery that arrives now.
    pub(crate) fn receipt(&self) -> Receipt<'_> {
        self.0.receipt()
    }

    /// Returns whether this engine keeps mirrors.
    pub fn keeps_mirrors(&self) -> bool {
        self.0.mirrors.is_some()
    }

    /// Stops the workers, finishes what was accepted and stops the writer. It blocks.
    pub fn close(&self) {
        if let Some(mirrors) = &self.0.mirrors {
            mirrors.stop();
        }
        if let Some(background) = &self.0.background {
            background.stop();
        }
        if let Some(claims) = &self.0.commit_claims {
            claims.stop();
        }
        if let Some(index) = &self.0.resources.search {
            index.stop();
        }
        if let Some(pairing) = self.0.pairing.get() {
            pairing.stop();
        }
        self.0.store.close();
    }
}

impl EngineState {
    fn receipt(&self) -> Receipt<'_> {
        Receipt {
            org_id: self.store.org_id(),
            received_at: self.clock.now(),
            ids: &self.ids,
            redaction: self.redaction,
            secrets: &self.secrets,
        }
    }
}

/// Warns if the last fact was captured ahead of the clock. Whatever keeps the store from answering
/// is reported where it matters.
fn warn_of_moments_ahead(store: &Store, now: Instant) {
    let snapshot = store.snapshot(&Deadline::after(LOOK_MAX));
    let last = snapshot.and_then(|mut snapshot| snapshot.captured_ahead_of(now));
    if let Ok(Some(last)) = last {
        tracing::warn!(
            %last,
            mend = "set the clocks of all servers by NTP; until this moment, new facts are captured at it; \
                 the doctor says what to do",
            "store.captured_ahead"
        );
    }
}
