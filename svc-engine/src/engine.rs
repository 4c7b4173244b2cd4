//! The engine: the service without its transport.

mod config;
mod execution;
mod grants;
mod reads;
mod write;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use svc_model::id::OrgId;
use svc_model::time::Instant;

use crate::admission::Admission;
use crate::background::{Background, Sources};
use crate::capture::redaction::Secrets;
use crate::capture::{Receipt, Redaction};
use crate::clock::{Clock, Ids};
use crate::mirror::{MirrorConfig, MirrorReading, Mirrors};
use crate::read::{
    ContentCache, CursorKey, MemoryUse, ReportMemory, ReportSources, ScanLimits, SeenRevocations,
};
use crate::store::{Store, StoreError};

pub use self::config::EngineConfig;

/// The service without its transport. Cloning gives another handle to the same one.
#[derive(Clone, Debug)]
pub struct Engine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    // Before the store, which both use until they are dropped, and in this order: the first tells the
    // second of its work.
    mirrors: Option<Mirrors>,
    background: Option<Background>,
    reports: Arc<BesideStore>,
    store: Arc<Store>,
    content: ContentCache,
    admission: Admission,
    scan: ScanLimits,
    redaction: Redaction,
    secrets: Secrets,
    cursor_key: CursorKey,
    revocations: SeenRevocations,
    clock: Clock,
    ids: Ids,
    /// Whether a task is about to write the counts of deliveries that stored nothing.
    counts_wait: AtomicBool,
}

/// What reports read besides the store, and their caches.
#[derive(Debug)]
struct BesideStore {
    mirrors: Option<MirrorReading>,
    memory: ReportMemory,
}

impl Sources for Arc<BesideStore> {
    fn sources(&self) -> ReportSources<'_> {
        ReportSources {
            mirrors: self.mirrors.as_ref(),
            memory: &self.memory,
        }
    }
}

impl Inner {
    fn report_sources(&self) -> ReportSources<'_> {
        self.reports.sources()
    }
}

impl Engine {
    /// Opens the store and starts the writer and the mirror workers. It blocks.
    ///
    /// # Errors
    ///
    /// If the store cannot be opened.
    pub fn open(config: &EngineConfig, clock: Clock, ids: Ids) -> Result<Self, StoreError> {
        let store = Arc::new(Store::open(&config.store)?);
        let reading =
            |mirror: &MirrorConfig| MirrorReading::new(&mirror.path, store.org_id().clone());
        let reports = Arc::new(BesideStore {
            mirrors: config.mirror.as_ref().map(reading),
            memory: ReportMemory::new(config.report_cache_bytes),
        });
        let (mirrors, background) = match &config.mirror {
            Some(mirror) => {
                let (background, tell) =
                    Background::start(&store, Arc::clone(&reports), clock.clone(), mirror.settle)?;
                let mirrors = Mirrors::start(&store, mirror, &clock, &ids, &tell)?;
                (Some(mirrors), Some(background))
            }
            None => (None, None),
        };
        Ok(Self(Arc::new(Inner {
            mirrors,
            background,
            reports,
            store,
            content: ContentCache::new(config.cache_bytes),
            admission: Admission::new(config.read_slots),
            scan: config.scan,
            redaction: config.redaction,
            secrets: config.secrets.clone(),
            cursor_key: match &config.cursor_key {
                Some(key) => key.clone(),
                None => CursorKey::derive(ids.fresh().as_bytes()),
            },
            revocations: SeenRevocations::default(),
            clock,
            ids,
            counts_wait: AtomicBool::new(false),
        })))
    }

    /// Returns the organization.
    pub fn org_id(&self) -> &OrgId {
        self.0.store.org_id()
    }

    /// Returns whether the writer is running; without it, nothing is stored until the process
    /// restarts.
    pub fn is_writing(&self) -> bool {
        self.0.store.is_writing()
    }

    /// Returns the use of the caches of reports, by kind.
    pub fn report_memory(&self) -> [(&'static str, MemoryUse); 6] {
        self.0.reports.memory.uses()
    }

    /// Returns the current time.
    pub fn now(&self) -> Instant {
        self.0.clock.now()
    }

    /// Returns what capture needs to know about a delivery that arrives now.
    pub fn receipt(&self) -> Receipt<'_> {
        Receipt {
            org_id: self.org_id(),
            received_at: self.0.clock.now(),
            ids: &self.0.ids,
            redaction: self.0.redaction,
            secrets: &self.0.secrets,
        }
    }

    /// Returns whether this engine keeps mirrors.
    pub fn keeps_mirrors(&self) -> bool {
        self.0.mirrors.is_some()
    }

    /// Stops the mirror workers, finishes what was accepted and stops the writer. It blocks.
    pub fn close(&self) {
        if let Some(mirrors) = &self.0.mirrors {
            mirrors.stop();
        }
        if let Some(background) = &self.0.background {
            background.stop();
        }
        self.0.store.close();
    }
}
