//! The reads of an engine, and how each is admitted.

use svc_engine_store::{MirrorStatus, Snapshot};
use svc_model::reports::{AbandonmentReport, AttributionShareReport, MergeRetentionReport};
use svc_model::time::Instant;

use super::{Engine, EngineState};
use crate::error::Error;
use crate::read::{self, AdmissionKind, Answer, Extent, Reach, ReadContext, Repeats};

impl EngineState {
    /// Returns what a read of a snapshot may use.
    pub(super) fn reading<'r, 's>(
        &'r self,
        snapshot: &'r mut Snapshot<'s>,
        reach: &'r Reach,
        repeats: Repeats,
    ) -> ReadContext<'r, 's> {
        ReadContext {
            snapshot,
            now: self.clock.now(),
            reach,
            repeats,
            resources: &self.resources,
        }
    }
}

impl Engine {
    /// Answers a route's request from one snapshot, for an operator.
    ///
    /// # Errors
    ///
    /// As [`answer_within`](Self::answer_within).
    pub async fn answer<E: Answer>(&self, request: E::Request) -> Result<E::Reply, Error> {
        self.answer_within::<E>(Reach::All, Repeats::Once, request)
            .await
    }

    /// Answers a route's request from one snapshot, within what the caller may read.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if no slot is free, [`Error::OutsideGrant`] if the Session is out of reach,
    /// and those of [`Answer::answer`].
    pub async fn answer_within<E: Answer>(
        &self,
        reach: Reach,
        repeats: Repeats,
        request: E::Request,
    ) -> Result<E::Reply, Error> {
        let read = move |inner: &EngineState, snapshot: &mut Snapshot<'_>| {
            if let Some(session_id) = E::session(&request) {
                read::check_reach(snapshot, &inner.resources.grants, &reach, session_id)?;
            }
            E::answer(&mut inner.reading(snapshot, &reach, repeats), request)
        };
        match E::ADMISSION {
            AdmissionKind::Short => self.short(read).await,
            AdmissionKind::Slot => self.scan(read).await,
            AdmissionKind::SlotOfTwo => self.scan_of_two(read).await,
            AdmissionKind::Report => self.report(read).await,
        }
    }

    /// See [`read::abandonment`].
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if no slot is free, and the errors of the function. The same holds for every
    /// report here.
    pub async fn abandonment(&self, extent: Extent) -> Result<AbandonmentReport, Error> {
        self.report(move |inner, snapshot| {
            let extent = extent.bounded(snapshot, inner.clock.now())?;
            read::abandonment(snapshot, &extent)
        })
        .await
    }

    /// See [`read::merge_retention`].
    pub async fn merge_retention(&self, extent: Extent) -> Result<MergeRetentionReport, Error> {
        self.report(move |inner, snapshot| {
            let extent = extent.bounded(snapshot, inner.clock.now())?;
            let mut reading = inner.reading(snapshot, &Reach::All, Repeats::Once);
            let memory = reading.report_memory()?;
            let sources = reading.report_sources(&memory);
            read::merge_retention(reading.snapshot, sources, &extent)
        })
        .await
    }

    /// See [`read::attribution_share`].
    pub async fn attribution_share(
        &self,
        as_of: Instant,
        cases_min: u64,
    ) -> Result<AttributionShareReport, Error> {
        self.report(move |inner, snapshot| {
            let mut reading = inner.reading(snapshot, &Reach::All, Repeats::Once);
            let as_of = reading.bound(as_of)?;
            let memory = reading.report_memory()?;
            let sources = reading.report_sources(&memory);
            read::attribution_share(reading.snapshot, sources, as_of, cases_min)
        })
        .await
    }

    /// Returns the state of each repository's mirror, by repository. Takes no slot.
    ///
    /// # Errors
    ///
    /// If the store does not answer.
    pub async fn mirrors(&self) -> Result<Vec<MirrorStatus>, Error> {
        self.short(|inner, snapshot| Ok(snapshot.mirrors(inner.clock.now())?))
            .await
    }
}
