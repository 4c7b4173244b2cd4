//! What reads use besides their snapshot.

use std::sync::Arc;

use svc_engine_mirror::MirrorReading;
use svc_engine_search::SearchIndex;
use svc_engine_store::{ErasureEnd, Store};

use super::remembered::Remembered;
use super::{
    ContentCache, CursorKey, PriceMemory, ReportMemory, ReportSources, ScanBounds, SeenGrants,
};
use crate::background::Sources;

/// What reads use besides their snapshot: caches, mirrors, bounds and keys.
#[derive(Debug)]
pub(crate) struct Resources {
    store: Arc<Store>,
    content: Remembered<ContentCache>,
    reports: Arc<ReportResources>,
    pub(crate) scan: ScanBounds,
    pub(crate) cursor_key: CursorKey,
    pub(crate) grants: SeenGrants,
    pub(crate) prices: PriceMemory,
    /// The index of searches, if one is kept.
    pub(crate) search: Option<Arc<SearchIndex>>,
}

/// What reports read besides the store, and their caches.
#[derive(Debug)]
pub(crate) struct ReportResources {
    mirrors: Option<MirrorReading>,
    memory: Remembered<ReportMemory>,
}

impl ReportResources {
    /// Returns the resources of reports, with caches of about this many bytes.
    pub(crate) fn new(mirrors: Option<MirrorReading>, cache_bytes: u64) -> Self {
        Self {
            mirrors,
            memory: Remembered::new(move || ReportMemory::new(cache_bytes)),
        }
    }
}

impl Sources for Arc<ReportResources> {
    fn mirrors(&self) -> Option<&MirrorReading> {
        self.mirrors.as_ref()
    }

    fn memory(&self, erasure: ErasureEnd) -> Arc<ReportMemory> {
        self.memory.at(erasure)
    }
}

impl Resources {
    /// Returns the resources of reads of a store, with a cache of about this many bytes of content.
    pub(crate) fn new(
        store: Arc<Store>,
        cache_bytes: u64,
        reports: Arc<ReportResources>,
        scan: ScanBounds,
        cursor_key: CursorKey,
        search: Option<Arc<SearchIndex>>,
    ) -> Self {
        Self {
            store,
            content: Remembered::new(move || ContentCache::new(cache_bytes)),
            reports,
            scan,
            cursor_key,
            grants: SeenGrants::default(),
            prices: PriceMemory::default(),
            search,
        }
    }

    /// Returns what is remembered of messages, for a read of a state of the log of erasures.
    pub(super) fn content(&self, erasure: ErasureEnd) -> Arc<ContentCache> {
        if self.content.is_behind(erasure) {
            // Otherwise a call that is prepared from what was erased would have to be sent again.
            self.store.forget_contents();
        }
        self.content.at(erasure)
    }

    /// Returns what reports remember, for a read of a state of the log of erasures.
    pub(super) fn report_memory(&self, erasure: ErasureEnd) -> Arc<ReportMemory> {
        self.reports.memory.at(erasure)
    }

    /// Returns what a report reads besides the store.
    pub(super) fn report_sources<'m>(&'m self, memory: &'m ReportMemory) -> ReportSources<'m> {
        ReportSources {
            mirrors: self.reports.mirrors.as_ref(),
            memory,
        }
    }

    /// Returns what reports remember of the latest state.
    pub(crate) fn latest_report_memory(&self) -> Arc<ReportMemory> {
        self.reports.memory.latest()
    }

    /// Returns what is remembered of messages in the latest state.
    #[cfg(test)]
    pub(crate) fn latest_content(&self) -> Arc<ContentCache> {
        self.content.latest()
    }

    /// Drops what is remembered of another state of the log of erasures than the present one.
    pub(crate) fn settle(&self, erasure: ErasureEnd) {
        drop(self.content(erasure));
        self.content.settle(erasure);
        self.reports.memory.settle(erasure);
    }
}
