//! The configuration of an engine.

use svc_engine_capture::Redaction;
use svc_engine_capture::redaction::Secrets;
use svc_engine_derive::call_pairs::PairingWaits;
use svc_engine_mirror::MirrorConfig;
use svc_engine_search::SearchPlace;
use svc_engine_store::{DatabaseUrl, StoreConfig};
use svc_model::id::OrgId;
use svc_model::limit::READ_SLOTS_DEFAULT;

use crate::admission::Admission;
use crate::read::{CursorKey, ScanBounds};

/// The configuration of an engine.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The store.
    pub store: StoreConfig,
    /// How many reads that take a slot may run at once.
    pub read_slots: usize,
    /// The bounds of context scans.
    pub scan: ScanBounds,
    /// Size in bytes of the cache of decoded content.
    pub cache_bytes: u64,
    /// Size in bytes of what reports remember.
    pub report_cache_bytes: u64,
    /// Whether credentials are redacted before storage.
    pub redaction: Redaction,
    /// The service's own secrets, which are redacted everywhere.
    pub secrets: Secrets,
    /// The key for cursors. Without one, cursors are valid for this engine only.
    pub cursor_key: Option<CursorKey>,
    /// The configuration of mirrors, if enabled.
    pub mirror: Option<MirrorConfig>,
    /// How long halves of calls wait for each other.
    pub pairing: PairingWaits,
    /// Where the index of searches is, if one is kept.
    pub search: Option<SearchPlace>,
}

impl EngineConfig {
    /// Returns the defaults for a store.
    pub fn new(url: DatabaseUrl, org_id: OrgId) -> Self {
        Self {
            store: StoreConfig {
                url,
                org_id,
                migrate: true,
                readers: Admission::connections(READ_SLOTS_DEFAULT),
            },
            read_slots: READ_SLOTS_DEFAULT,
            scan: ScanBounds::default(),
            cache_bytes: 64 * 1024 * 1024,
            report_cache_bytes: 84 * 1024 * 1024,
            redaction: Redaction::On,
            secrets: Secrets::default(),
            cursor_key: None,
            mirror: None,
            pairing: PairingWaits::default(),
            search: None,
        }
    }

    /// Sets how many reads may run at once.
    #[must_use]
    pub fn with_read_slots(mut self, slots: usize) -> Self {
        self.read_slots = slots;
        self.store.readers = Admission::connections(slots);
        self
    }
}
