//! How a route is answered by one read.

use std::sync::Arc;

use svc_engine_store::Snapshot;
use svc_model::endpoint::Endpoint;
use svc_model::id::SessionId;
use svc_model::time::Instant;

use super::resources::Resources;
use super::{ContentCache, Reach, Repeats, ReportMemory, ReportSources};
use crate::error::Error;

/// How a read is admitted, and where it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionKind {
    /// It takes no slot, and may wait for its turn.
    Short,
    /// It takes a slot.
    Slot,
    /// It takes a slot, and reads over two connections.
    SlotOfTwo,
    /// It takes a slot, and runs over two connections on a low-priority thread of its own: a report
    /// takes seconds of processor time, and capture must not wait for that.
    Report,
}

/// A route that one read answers. Whoever implements it has said all that the engine, the server
/// and the tools need: the engine admits and runs it, and the server binds it.
pub trait Answer: Endpoint<Request: Send, Reply: Send> {
    /// How it is admitted.
    const ADMISSION: AdmissionKind;

    /// Returns the only Session that the request is about, if it names one. It is read only within
    /// the caller's reach.
    fn session(_request: &Self::Request) -> Option<&SessionId> {
        None
    }

    /// Answers a request. It blocks.
    ///
    /// # Errors
    ///
    /// If a bound is exceeded, the request conflicts with stored facts, the deadline passes, or the
    /// store does not answer.
    fn answer(
        reading: &mut ReadContext<'_, '_>,
        request: Self::Request,
    ) -> Result<Self::Reply, Error>;
}

/// What a read may use besides its request.
#[derive(Debug)]
pub struct ReadContext<'r, 's> {
    pub(crate) snapshot: &'r mut Snapshot<'s>,
    /// The current time.
    pub(crate) now: Instant,
    /// What the caller may read.
    pub(crate) reach: &'r Reach,
    /// How a scan counts content that is repeated.
    pub(crate) repeats: Repeats,
    pub(crate) resources: &'r Resources,
}

impl<'r> ReadContext<'r, '_> {
    /// Returns what is remembered of messages.
    pub(crate) fn content(&mut self) -> Result<Arc<ContentCache>, Error> {
        Ok(self.resources.content(self.snapshot.revisions()?.erasure))
    }

    /// Returns what reports remember.
    pub(crate) fn report_memory(&mut self) -> Result<Arc<ReportMemory>, Error> {
        let erasure = self.snapshot.revisions()?.erasure;
        Ok(self.resources.report_memory(erasure))
    }

    /// Returns what a report reads besides the store.
    pub(crate) fn report_sources<'m>(&self, memory: &'m ReportMemory) -> ReportSources<'m>
    where
        'r: 'm,
    {
        self.resources.report_sources(memory)
    }

    /// Returns the bound of a question that was asked for; see [`Snapshot::bound`].
    pub(crate) fn bound(&mut self, asked: Instant) -> Result<Instant, Error> {
        Ok(self.snapshot.bound(asked, self.now)?)
    }
}
