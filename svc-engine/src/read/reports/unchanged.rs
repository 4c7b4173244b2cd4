//! The state of the store in which something is known; and the owners of the ids that decisions
//! name, which are known only while nothing is stored, because any call of the organization may
//! change them.

use std::sync::Arc;

use svc_engine_derive::decision::CallOwner;
use svc_engine_store::{ErasureEnd, Snapshot, StoreError, WriterCommits};
use svc_model::time::Instant;

use super::memory::{Bytes, ReportMemory};
use crate::error::Error;

/// Changes with every commit of a transaction, and with every row of the quarantine and erasure
/// logs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StoreState {
    written: WriterCommits,
    /// The end of the quarantine log.
    pub(super) quarantine: Option<Arc<str>>,
    erasure: ErasureEnd,
}

impl StoreState {
    /// Returns whether facts may have been stored since an earlier state, but nothing else was
    /// changed.
    pub(super) fn follows(&self, earlier: &Self) -> bool {
        self.quarantine == earlier.quarantine
            && self.erasure == earlier.erasure
            && self.written.follows(&earlier.written)
    }
}

/// The state of a snapshot, and what is known in it.
pub(super) struct Unchanged<'m> {
    pub(super) memory: &'m ReportMemory,
    pub(super) state: Arc<StoreState>,
}

/// The owners of ids among the calls observed by a moment.
#[derive(Clone, Debug)]
pub(super) struct KnownOwners {
    state: Arc<StoreState>,
    ids: Arc<[Arc<str>]>,
    owners: Arc<Vec<CallOwner>>,
}

impl Bytes for KnownOwners {
    fn bytes(&self) -> u64 {
        // The ids are shared with the remembered decisions.
        256 + (16 * self.ids.len() + 88 * self.owners.len()) as u64
    }
}

impl<'m> Unchanged<'m> {
    pub(super) fn of(
        snapshot: &mut Snapshot<'_>,
        memory: &'m ReportMemory,
    ) -> Result<Self, StoreError> {
        let state = StoreState {
            quarantine: snapshot.quarantine_log_end()?.map(Arc::from),
            written: snapshot.written()?,
            erasure: snapshot.revisions()?.erasure,
        };
        Ok(Self {
            memory,
            state: Arc::new(state),
        })
    }

    /// Returns the owners of ids among the calls observed by a moment, reading them if unknown.
    pub(super) fn owners(
        &self,
        ids: Vec<Arc<str>>,
        observed_by: Instant,
        read: impl FnOnce(&[Arc<str>]) -> Result<Vec<CallOwner>, Error>,
    ) -> Result<Arc<Vec<CallOwner>>, Error> {
        if ids.is_empty() {
            return Ok(Arc::default());
        }
        let is_right = |known: &KnownOwners| known.state == self.state && *known.ids == *ids;
        if let Some(known) = self.memory.owners.get_if(&observed_by, is_right) {
            return Ok(known.owners);
        }
        let owners = Arc::new(read(&ids)?);
        let known = KnownOwners {
            state: Arc::clone(&self.state),
            ids: ids.into(),
            owners: Arc::clone(&owners),
        };
        self.memory.owners.insert(observed_by, known);
        Ok(owners)
    }
}
