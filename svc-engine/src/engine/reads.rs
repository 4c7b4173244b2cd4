//! The reads of an engine, and how each is admitted.

use svc_engine_store::{MirrorStatus, Snapshot};
use svc_model::context::{
    ContextDiscoveryRequest, ContextResult, ContextSelectedRequest, DiscoveryResult,
};
use svc_model::evidence::{
    EvidenceRead, EvidenceReadRequest, Inventory, InventoryRequest, Manifest, ManifestRequest,
};
use svc_model::facts::{
    CompatibilityEvidence, FactsCounts, SessionFactsCounts, SessionInferenceCalls, SessionRequest,
};
use svc_model::quarantine::{QuarantineLog, QuarantineLogRequest};
use svc_model::query::{
    CiFailures, CiFailuresRequest, CiOutcomeAnswer, CiOutcomeRequest, CiRuns, CiRunsRequest,
    CommitEvidence, CommitRequest, SessionAnswer, SessionDossierRequest, SessionList,
    SessionsRequest,
};
use svc_model::reports::{
    AbandonmentReport, AcceptedWorkLifecycle, AttributionShareReport, MergeRetentionReport,
    ModelOutcomes, ReportRequest,
};
use svc_model::time::Instant;

use super::{Engine, Inner};
use crate::error::Error;
use crate::read::{self, Extent, Reach, Repeats};

impl Engine {
    /// See [`read::inventory`].
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if no slot is free, [`Error::OutsideGrant`] if the Session is out of reach,
    /// and the errors of the function. The same holds for every read here.
    pub async fn inventory(
        &self,
        reach: Reach,
        request: InventoryRequest,
    ) -> Result<Inventory, Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            read::check_reach(snapshot, &inner.grants, &reach, &request.session_id)?;
            read::inventory(snapshot, request)
        };
        self.scan(read).await
    }

    /// See [`read::manifest`].
    pub async fn manifest(
        &self,
        reach: Reach,
        request: ManifestRequest,
    ) -> Result<Manifest, Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            read::check_reach(snapshot, &inner.grants, &reach, &request.session_id)?;
            inner.with_content(snapshot, |snapshot, content| {
                read::manifest(snapshot, content, request)
            })
        };
        self.scan(read).await
    }

    /// See [`read::read`].
    pub async fn evidence(
        &self,
        reach: Reach,
        request: EvidenceReadRequest,
    ) -> Result<EvidenceRead, Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            read::check_reach(snapshot, &inner.grants, &reach, &request.session_id)?;
            inner.with_content(snapshot, |snapshot, content| {
                read::read(snapshot, content, request)
            })
        };
        self.scan(read).await
    }

    /// See [`read::selected`].
    pub async fn selected(
        &self,
        reach: Reach,
        repeats: Repeats,
        request: ContextSelectedRequest,
    ) -> Result<ContextResult, Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            read::check_reach(snapshot, &inner.grants, &reach, &request.session_id)?;
            inner.with_content(snapshot, |snapshot, content| {
                read::selected(snapshot, content, inner.scan.of(repeats), request)
            })
        };
        self.scan(read).await
    }

    /// See [`read::discover`].
    pub async fn discover(
        &self,
        reach: Reach,
        repeats: Repeats,
        request: ContextDiscoveryRequest,
    ) -> Result<DiscoveryResult, Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            let grant = read::reached(snapshot, &inner.grants, &reach)?;
            inner.with_content(snapshot, |snapshot, content| {
                read::discover(snapshot, content, inner.scan.of(repeats), &grant, request)
            })
        };
        self.scan(read).await
    }

    /// See [`read::session_dossier`].
    pub async fn session_dossier(
        &self,
        request: SessionDossierRequest,
    ) -> Result<SessionAnswer, Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            read::session_dossier(snapshot, request, inner.clock.now())
        };
        self.scan(read).await
    }

    /// See [`read::commit_evidence`].
    pub async fn commit_evidence(&self, request: CommitRequest) -> Result<CommitEvidence, Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            inner.with_sources(snapshot, |snapshot, sources| {
                read::commit_evidence(snapshot, sources, request, inner.clock.now())
            })
        };
        self.scan_of_two(read).await
    }

    /// See [`read::model_outcomes`].
    pub async fn model_outcomes(&self, mut request: ReportRequest) -> Result<ModelOutcomes, Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            request.scope.as_of = snapshot.bound(request.scope.as_of, inner.clock.now())?;
            inner.with_sources(snapshot, |snapshot, sources| {
                read::model_outcomes(snapshot, sources, &request)
            })
        };
        self.report(read).await
    }

    /// See [`read::accepted_work_lifecycle`].
    pub async fn accepted_work_lifecycle(
        &self,
        mut request: ReportRequest,
    ) -> Result<AcceptedWorkLifecycle, Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            request.scope.as_of = snapshot.bound(request.scope.as_of, inner.clock.now())?;
            inner.with_sources(snapshot, |snapshot, sources| {
                read::accepted_work_lifecycle(snapshot, sources, &request)
            })
        };
        self.report(read).await
    }

    /// See [`read::abandonment`].
    pub async fn abandonment(&self, extent: Extent) -> Result<AbandonmentReport, Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            let extent = extent.bounded(snapshot, inner.clock.now())?;
            read::abandonment(snapshot, &extent)
        };
        self.report(read).await
    }

    /// See [`read::merge_retention`].
    pub async fn merge_retention(&self, extent: Extent) -> Result<MergeRetentionReport, Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            let extent = extent.bounded(snapshot, inner.clock.now())?;
            inner.with_sources(snapshot, |snapshot, sources| {
                read::merge_retention(snapshot, sources, &extent)
            })
        };
        self.report(read).await
    }

    /// See [`read::attribution_share`].
    pub async fn attribution_share(
        &self,
        as_of: Instant,
        cases_min: u64,
    ) -> Result<AttributionShareReport, Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            let as_of = snapshot.bound(as_of, inner.clock.now())?;
            inner.with_sources(snapshot, |snapshot, sources| {
                read::attribution_share(snapshot, sources, as_of, cases_min)
            })
        };
        self.report(read).await
    }

    /// Returns the state of each repository's mirror, by repository. Takes no slot.
    pub async fn mirrors(&self) -> Result<Vec<MirrorStatus>, Error> {
        let read =
            |inner: &Inner, snapshot: &mut Snapshot<'_>| Ok(snapshot.mirrors(inner.clock.now())?);
        self.short(read).await
    }

    /// See [`read::ci_outcome`]. Takes no slot.
    pub async fn ci_outcome(&self, request: CiOutcomeRequest) -> Result<CiOutcomeAnswer, Error> {
        let read =
            move |_: &Inner, snapshot: &mut Snapshot<'_>| read::ci_outcome(snapshot, &request);
        self.short(read).await
    }

    /// See [`read::ci_runs`]. Takes no slot.
    pub async fn ci_runs(&self, request: CiRunsRequest) -> Result<CiRuns, Error> {
        let read = move |_: &Inner, snapshot: &mut Snapshot<'_>| read::ci_runs(snapshot, &request);
        self.short(read).await
    }

    /// See [`read::ci_failures`]. Takes no slot.
    pub async fn ci_failures(&self, mut request: CiFailuresRequest) -> Result<CiFailures, Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            let now = inner.clock.now();
            request.captured_before = snapshot.bound(request.captured_before, now)?;
            if let Some(as_of) = &mut request.as_of {
                *as_of = snapshot.bound(*as_of, now)?;
            }
            read::ci_failures(snapshot, &inner.cursor_key, &request)
        };
        self.short(read).await
    }

    /// See [`read::sessions`]. Takes no slot.
    pub async fn sessions(&self, request: SessionsRequest) -> Result<SessionList, Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            read::sessions(snapshot, &inner.cursor_key, &request)
        };
        self.short(read).await
    }

    /// See [`read::quarantine_log`]. Takes no slot.
    pub async fn quarantine_log(
        &self,
        request: QuarantineLogRequest,
    ) -> Result<QuarantineLog, Error> {
        self.short(move |_, snapshot| read::quarantine_log(snapshot, request))
            .await
    }

    /// See [`read::facts`]. Takes no slot.
    pub async fn facts(&self) -> Result<FactsCounts, Error> {
        self.short(|_, snapshot| read::facts(snapshot)).await
    }

    /// See [`read::session_facts`]. Takes no slot.
    pub async fn session_facts(
        &self,
        request: SessionRequest,
    ) -> Result<SessionFactsCounts, Error> {
        self.short(|_, snapshot| read::session_facts(snapshot, request))
            .await
    }

    /// See [`read::session_inference_calls`]. Takes no slot.
    pub async fn session_inference_calls(
        &self,
        request: SessionRequest,
    ) -> Result<SessionInferenceCalls, Error> {
        self.short(|_, snapshot| read::session_inference_calls(snapshot, request))
            .await
    }

    /// See [`read::compatibility_evidence`]. Takes no slot.
    pub async fn compatibility_evidence(
        &self,
        request: SessionRequest,
    ) -> Result<CompatibilityEvidence, Error> {
        let read = |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            inner.with_content(snapshot, |snapshot, content| {
                read::compatibility_evidence(snapshot, content, request)
            })
        };
        self.short(read).await
    }
}
