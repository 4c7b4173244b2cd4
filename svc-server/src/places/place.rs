//! The place of a connection, as the code that serves its requests sees it.

use std::sync::Arc;

use tokio::time::Instant;

use super::memory::BodyMemory;
use super::progress::Phase;
use super::{ConnectionRecord, Places, PlacesState};
use crate::limits::Limits;

/// A handle to a connection's place, for reporting the progress of its requests.
#[derive(Clone)]
pub(crate) struct ConnectionPlace {
    pub(super) shared: Arc<PlacesState>,
    pub(super) record: Arc<ConnectionRecord>,
}

impl ConnectionPlace {
    /// Returns a place for a request that did not arrive over a connection of the service.
    pub(crate) fn detached() -> Self {
        let places = Places::new(Limits::service());
        let record = ConnectionRecord::new(0);
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

    /// Records that the server is stopping.
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

    /// Records that the whole answer was handed over for sending.
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

    /// Records that everything that was handed over has been sent.
    pub(crate) fn all_sent(&self) {
        let mut progress = self.record.progress();
        if progress.phase == (Phase::Replying { complete: true }) {
            progress.enter(Phase::Waiting);
        }
    }

    /// Records that any further bytes are dropped.
    pub(crate) fn lingers(&self) {
        self.record.progress().enter(Phase::Lingering);
    }

    /// Returns whether no request is being answered.
    pub(crate) fn has_no_request(&self) -> bool {
        self.record.progress().phase == Phase::Waiting
    }

    /// Returns the memory, empty so far, for a body that is about to arrive.
    pub(crate) fn body_memory(&self) -> BodyMemory {
        BodyMemory {
            place: self.clone(),
            held: Vec::new(),
        }
    }
}
