//! The engine: what a server, or any other program, asks of the service.

mod forgetting;
mod grants;
mod remembered;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use svc_model::capture::CaptureTotals;
use svc_model::context::{
    ContextDiscoveryRequest, ContextResult, ContextSelectedRequest, DiscoveryResult,
};
use svc_model::evidence::{
    EvidenceRead, EvidenceReadRequest, Inventory, InventoryRequest, Manifest, ManifestRequest,
};
use svc_model::facts::{
    CompatibilityEvidence, FactsCounts, SessionFactsCounts, SessionInferenceCalls, SessionRequest,
};
use svc_model::id::OrgId;
use svc_model::limit::{READ_DEADLINE_SECONDS, READ_SLOTS_DEFAULT};
use svc_model::problem::QueryFault;
use svc_model::quarantine::{
    QuarantineAction, QuarantineLog, QuarantineLogRequest, QuarantineReceipt, QuarantineRequest,
};
use svc_model::query::{
    CiFailures, CiFailuresRequest, CiOutcomeAnswer, CiOutcomeRequest, CiRuns, CiRunsRequest,
    CommitEvidence, CommitRequest, SessionAnswer, SessionDossierRequest, SessionList,
    SessionsRequest,
};
use svc_model::reports::{
    AcceptedWorkLifecycle, AttributionShareReport, MergeRetentionReport, ModelOutcomes,
    ReportRequest,
};
use svc_model::time::Instant;
use tokio::sync::oneshot;

use self::forgetting::Forgetting;
use self::remembered::Remembered;

use crate::admission::{Admission, Place};
use crate::background::{Background, Sources};
use crate::capture::redaction::Secrets;
use crate::capture::{Receipt, Redaction};
use crate::clock::{Clock, Ids};
use crate::deadline::Deadline;
use crate::error::Error;
use crate::fact::PullRequestMerge;
use crate::mirror::{MirrorConfig, MirrorReading, Mirrors};
use crate::priority;
use crate::read::{
    self, ContentCache, CursorKey, MemoryUse, Reach, ReportMemory, ReportSources, ScanLimits,
    SeenRevocations, UncheckedPullRequests,
};
use crate::store::{
    Append, Counted, Delivery, MirrorStatus, NewQuarantineEntry, NoTarget, Outcome, Snapshot,
    Store, StoreConfig, StoreError, WhenAbsent,
};

/// What an engine is opened with.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The store.
    pub store: StoreConfig,
    /// Evidence and context reads that may run at once.
    pub read_slots: usize,
    /// The bounds of a context scan.
    pub scan: ScanLimits,
    /// Bytes of decoded content that are kept in memory.
    pub cache_bytes: u64,
    /// Bytes that are kept in memory between reports.
    pub report_cache_bytes: u64,
    /// Whether credentials are redacted before storage.
    pub redaction: Redaction,
    /// The secrets of the service itself, which are redacted wherever they stand.
    pub secrets: Secrets,
    /// The key under which cursors are made. Without one they are good for this engine alone.
    pub cursor_key: Option<CursorKey>,
    /// How mirrors are kept, when they are.
    pub mirror: Option<MirrorConfig>,
}

impl EngineConfig {
    /// Returns the defaults for a store.
    pub fn new(url: crate::store::DatabaseUrl, org_id: OrgId) -> Self {
        Self {
            store: StoreConfig {
                url,
                org_id,
                migrate: true,
                readers: Admission::connections(READ_SLOTS_DEFAULT),
            },
            read_slots: READ_SLOTS_DEFAULT,
            scan: ScanLimits::default(),
            cache_bytes: 64 * 1024 * 1024,
            report_cache_bytes: 112 * 1024 * 1024,
            redaction: Redaction::On,
            secrets: Secrets::default(),
            cursor_key: None,
            mirror: None,
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
    content: Remembered<ContentCache>,
    forgetting: OnceLock<Forgetting>,
    admission: Admission,
    scan: ScanLimits,
    redaction: Redaction,
    secrets: Secrets,
    cursor_key: CursorKey,
    revocations: SeenRevocations,
    clock: Clock,
    ids: Ids,
    /// Whether somebody is about to write what stored nothing.
    counts_wait: AtomicBool,
}

/// What reports read beside the store, and what they remember of it.
#[derive(Debug)]
struct BesideStore {
    mirrors: Option<MirrorReading>,
    memory: Remembered<ReportMemory>,
}

impl Sources for Arc<BesideStore> {
    fn mirrors(&self) -> Option<&MirrorReading> {
        self.mirrors.as_ref()
    }

    fn memory(&self, erasure_revision: u64) -> Arc<ReportMemory> {
        self.memory.at(erasure_revision)
    }
}

impl Inner {
    /// Returns what is remembered of messages, for a read of a revision of the log of erasures.
    fn content_of(&self, erasure_revision: u64) -> Arc<ContentCache> {
        if self.content.is_behind(erasure_revision) {
            // Otherwise a call that is prepared from what was erased would have to be sent again.
            self.store.forget_contents();
        }
        self.content.at(erasure_revision)
    }

    /// Lends what is remembered of messages to a read.
    fn with_content<T>(
        &self,
        snapshot: &mut Snapshot<'_>,
        read: impl FnOnce(&mut Snapshot<'_>, &ContentCache) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let content = self.content_of(snapshot.revisions()?.erasure);
        read(snapshot, &content)
    }

    /// Lends what reports read beside the store, and remember of it, to one.
    fn with_sources<T>(
        &self,
        snapshot: &mut Snapshot<'_>,
        read: impl FnOnce(&mut Snapshot<'_>, ReportSources<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let memory = self.reports.memory.at(snapshot.revisions()?.erasure);
        let sources = ReportSources {
            mirrors: self.reports.mirrors.as_ref(),
            memory: &memory,
        };
        read(snapshot, sources)
    }
}

impl Engine {
    /// Opens the store and starts the writer, and the workers of the mirrors. It blocks.
    ///
    /// # Errors
    ///
    /// When the store cannot be opened.
    pub fn open(config: &EngineConfig, clock: Clock, ids: Ids) -> Result<Self, StoreError> {
        let store = Arc::new(Store::open(&config.store)?);
        let reading =
            |mirror: &MirrorConfig| MirrorReading::new(&mirror.path, store.org_id().clone());
        let reports = Arc::new(BesideStore {
            mirrors: config.mirror.as_ref().map(reading),
            memory: {
                let bytes = config.report_cache_bytes;
                Remembered::new(move || ReportMemory::new(bytes))
            },
        });
        let cache_bytes = config.cache_bytes;
        let (mirrors, background) = match &config.mirror {
            Some(mirror) => {
                let (background, tell) =
                    Background::start(&store, Arc::clone(&reports), clock.clone(), mirror.settle)?;
                let mirrors = Mirrors::start(&store, mirror, &clock, &ids, &tell)?;
                (Some(mirrors), Some(background))
            }
            None => (None, None),
        };
        let engine = Self(Arc::new(Inner {
            mirrors,
            background,
            reports,
            store,
            content: Remembered::new(move || ContentCache::new(cache_bytes)),
            forgetting: OnceLock::new(),
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
        }));
        let forgetting = Forgetting::start(Arc::downgrade(&engine.0))?;
        drop(engine.0.forgetting.set(forgetting));
        Ok(engine)
    }

    /// Returns the organization.
    pub fn org_id(&self) -> &OrgId {
        self.0.store.org_id()
    }

    /// Returns whether the writer is there: without it nothing is stored until the process starts
    /// anew.
    pub fn is_writing(&self) -> bool {
        self.0.store.is_writing()
    }

    /// Returns how much reports remember of what never changes, by its kind.
    pub fn report_memory(&self) -> [(&'static str, MemoryUse); 6] {
        self.0.reports.memory.latest().uses()
    }

    /// Returns the present moment.
    pub fn now(&self) -> Instant {
        self.0.clock.now()
    }

    /// Returns what capture is told of a delivery that arrives now.
    pub fn receipt(&self) -> Receipt<'_> {
        Receipt {
            org_id: self.org_id(),
            received_at: self.0.clock.now(),
            ids: &self.0.ids,
            redaction: self.0.redaction,
            secrets: &self.0.secrets,
        }
    }

    /// Prepares a call for [`Engine::append`], on the caller's thread.
    pub fn prepare(&self, call: crate::fact::InferenceCall, received_at: Instant) -> Append {
        Append::InferenceCall(Box::new(self.0.store.encode(call, received_at)))
    }

    /// Appends facts and waits until they have reached the disk. A push makes its mirror due in the
    /// same transaction, and nobody waits for more than that.
    ///
    /// # Errors
    ///
    /// When the facts were not stored; then none is acknowledged.
    pub async fn append(
        &self,
        facts: Vec<Append>,
        counted: Counted,
    ) -> Result<Vec<Outcome>, Error> {
        let mut delivery = Delivery {
            counted: Some(counted),
            ..Delivery::from(facts)
        };
        let Some(mirrors) = &self.0.mirrors else {
            let outcomes = self.0.store.append(delivery).await?;
            self.count_soon();
            return Ok(outcomes);
        };
        let pushes = delivery.facts.iter().filter_map(|fact| match fact {
            Append::Push(push) => Some(mirrors.request(push)),
            _ => None,
        });
        delivery.refreshes = pushes.collect();
        let refreshes = !delivery.refreshes.is_empty();
        let merges = delivery.facts.iter().filter_map(|fact| match fact {
            Append::PullRequestMerge(merge) => Some(PullRequestMerge::clone(merge)),
            _ => None,
        });
        let merges: Vec<PullRequestMerge> = merges.collect();
        let outcomes = self.0.store.append(delivery).await?;
        if refreshes {
            mirrors.wake();
        }
        if let Some(background) = &self.0.background {
            for merge in merges {
                background.merged(merge);
            }
        }
        self.count_soon();
        Ok(outcomes)
    }

    /// Counts a delivery that has no facts. It does not wait for the store: it is written with what is
    /// stored next, and within a second otherwise.
    pub fn count(&self, counted: &Counted) {
        self.0.store.count(&counted.totals);
        self.count_soon();
    }

    /// Sees to it that what stored nothing, as a redelivery does, is counted in the store before long.
    fn count_soon(&self) {
        let inner = &self.0;
        if inner.store.has_uncounted() && !inner.counts_wait.swap(true, Ordering::AcqRel) {
            tokio::spawn(write_counts(Arc::downgrade(inner)));
        }
    }

    /// Returns what arrived by source, in all servers of the organization: what this one has not
    /// written yet is written first.
    ///
    /// # Errors
    ///
    /// When the store gives no answer.
    pub async fn captured(&self) -> Result<CaptureTotals, Error> {
        self.0.store.write_counts().await?;
        self.short(|_, snapshot| Ok(snapshot.capture_totals()?))
            .await
    }

    /// Takes a fact out of every answer, or shows it again, in the name of a client. It is written
    /// by the writer, in order with the facts.
    ///
    /// # Errors
    ///
    /// When the request names no fact, or several; or when it was not recorded.
    pub async fn quarantine(
        &self,
        request: QuarantineRequest,
        action: QuarantineAction,
        client_id: String,
    ) -> Result<QuarantineReceipt, Error> {
        let absent = if request.force {
            WhenAbsent::Record
        } else {
            WhenAbsent::Refuse
        };
        let entry = NewQuarantineEntry {
            quarantine_id: self.0.ids.fresh(),
            table: request.table,
            fact_id: request.fact_id.into(),
            action,
            reason: request.reason.into(),
            recorded_at: self.0.clock.now(),
            client_id,
        };
        let recorded = self.0.store.quarantine(entry, absent).await?;
        let recorded = recorded.map_err(|reason| match reason {
            NoTarget::Absent => QueryFault::TargetAbsent,
            NoTarget::Ambiguous => QueryFault::TargetAmbiguous,
        })?;
        Ok(QuarantineReceipt {
            org_id: self.org_id().clone(),
            action: action.into(),
            table: request.table.into(),
            fact_id: recorded.fact_id,
            target_found: recorded.target_found,
            unchanged: recorded.unchanged,
            quarantine_revision: recorded.revision,
        })
    }

    /// Stops the workers of the mirrors, finishes what was accepted and stops the writer. It blocks.
    pub fn close(&self) {
        if let Some(mirrors) = &self.0.mirrors {
            mirrors.stop();
        }
        if let Some(background) = &self.0.background {
            background.stop();
        }
        self.0.store.close();
    }

    /// Runs a read that takes a slot, without waiting for one.
    async fn scan<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Inner, &mut Snapshot<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let place = self.0.admission.slot()?;
        self.read(place, read_deadline(), read).await
    }

    /// Runs a short read, which takes no slot and may wait for its turn.
    async fn short<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Inner, &mut Snapshot<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let deadline = read_deadline();
        let place = self.0.admission.short(&deadline).await?;
        self.read(place, deadline, read).await
    }

    /// Runs a read that takes a slot on a thread of its own, which gives way to everything else: a
    /// report takes seconds of a processor, and nobody's capture waits for that.
    async fn report<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Inner, &mut Snapshot<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let place = self.0.admission.slot()?;
        let deadline = read_deadline();
        let _caller = CancelledWhenDropped(deadline.clone());
        let work = self.work(place, deadline, read);
        let (answer, answered) = oneshot::channel();
        let run = move || {
            priority::give_way();
            // Nobody waits any more when the caller has gone.
            drop(answer.send(work()));
        };
        let thread = thread::Builder::new().name("svc-report".to_owned());
        match thread.spawn(run) {
            Ok(_) => answered.await.unwrap_or_else(|_| {
                tracing::error!(panicked = true, "read.failed");
                Err(Error::Store(StoreError::Closed))
            }),
            Err(error) => {
                tracing::error!(%error, "read.failed");
                Err(Error::Busy)
            }
        }
    }

    /// Runs a read on a blocking thread.
    async fn read<T: Send + 'static>(
        &self,
        place: Place,
        deadline: Deadline,
        read: impl FnOnce(&Inner, &mut Snapshot<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let _caller = CancelledWhenDropped(deadline.clone());
        match tokio::task::spawn_blocking(self.work(place, deadline, read)).await {
            Ok(result) => result,
            Err(failure) => {
                tracing::error!(panicked = failure.is_panic(), "read.failed");
                Err(Error::Store(StoreError::Closed))
            }
        }
    }

    /// Returns what a read does on its thread: it is of one snapshot, which is stopped at the deadline,
    /// or when the caller has gone.
    fn work<T, R>(
        &self,
        place: Place,
        deadline: Deadline,
        read: R,
    ) -> impl FnOnce() -> Result<T, Error> + use<T, R>
    where
        R: FnOnce(&Inner, &mut Snapshot<'_>) -> Result<T, Error>,
    {
        let inner = Arc::clone(&self.0);
        // The log ties what happens there to the request.
        let span = tracing::Span::current();
        move || {
            // Held until the work has ended, also when the caller has gone.
            let _place = place;
            let _entered = span.entered();
            let mut snapshot = inner.store.snapshot(&deadline)?;
            read(&inner, &mut snapshot)
        }
    }

    /// See [`read::inventory`].
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] without a free slot; [`Error::OutsideGrant`] where the Session is not reached;
    /// otherwise as the function says. So for every read here.
    pub async fn inventory(
        &self,
        reach: Reach,
        request: InventoryRequest,
    ) -> Result<Inventory, Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            read::check_reach(snapshot, &inner.revocations, &reach, &request.session_id)?;
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
            read::check_reach(snapshot, &inner.revocations, &reach, &request.session_id)?;
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
            read::check_reach(snapshot, &inner.revocations, &reach, &request.session_id)?;
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
        request: ContextSelectedRequest,
    ) -> Result<ContextResult, Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            read::check_reach(snapshot, &inner.revocations, &reach, &request.session_id)?;
            inner.with_content(snapshot, |snapshot, content| {
                read::selected(snapshot, content, &inner.scan, request)
            })
        };
        self.scan(read).await
    }

    /// See [`read::discover`].
    pub async fn discover(
        &self,
        reach: Reach,
        request: ContextDiscoveryRequest,
    ) -> Result<DiscoveryResult, Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            let grant = read::reached(snapshot, &inner.revocations, &reach)?;
            inner.with_content(snapshot, |snapshot, content| {
                read::discover(snapshot, content, &inner.scan, &grant, request)
            })
        };
        self.scan(read).await
    }

    /// See [`read::session_dossier`].
    pub async fn session_dossier(
        &self,
        request: SessionDossierRequest,
    ) -> Result<SessionAnswer, Error> {
        let read =
            move |_: &Inner, snapshot: &mut Snapshot<'_>| read::session_dossier(snapshot, request);
        self.scan(read).await
    }

    /// See [`read::commit_evidence`].
    pub async fn commit_evidence(&self, request: CommitRequest) -> Result<CommitEvidence, Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            inner.with_sources(snapshot, |snapshot, sources| {
                read::commit_evidence(snapshot, sources, request)
            })
        };
        self.scan(read).await
    }

    /// See [`read::model_outcomes`].
    pub async fn model_outcomes(&self, request: ReportRequest) -> Result<ModelOutcomes, Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            inner.with_sources(snapshot, |snapshot, sources| {
                read::model_outcomes(snapshot, sources, &request)
            })
        };
        self.report(read).await
    }

    /// See [`read::accepted_work_lifecycle`].
    pub async fn accepted_work_lifecycle(
        &self,
        request: ReportRequest,
    ) -> Result<AcceptedWorkLifecycle, Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            inner.with_sources(snapshot, |snapshot, sources| {
                read::accepted_work_lifecycle(snapshot, sources, &request)
            })
        };
        self.report(read).await
    }

    /// See [`read::merge_retention`].
    pub async fn merge_retention(
        &self,
        as_of: Instant,
    ) -> Result<(MergeRetentionReport, Vec<UncheckedPullRequests>), Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            inner.with_sources(snapshot, |snapshot, sources| {
                read::merge_retention(snapshot, sources, as_of)
            })
        };
        self.scan(read).await
    }

    /// See [`read::attribution_share`].
    pub async fn attribution_share(
        &self,
        as_of: Instant,
        cases_min: u64,
    ) -> Result<AttributionShareReport, Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            inner.with_sources(snapshot, |snapshot, sources| {
                read::attribution_share(snapshot, sources, as_of, cases_min)
            })
        };
        self.scan(read).await
    }

    /// Returns whether this engine keeps mirrors.
    pub fn keeps_mirrors(&self) -> bool {
        self.0.mirrors.is_some()
    }

    /// Returns how far the mirror of each repository is, by repository. It takes no slot.
    pub async fn mirrors(&self) -> Result<Vec<MirrorStatus>, Error> {
        let read =
            |inner: &Inner, snapshot: &mut Snapshot<'_>| Ok(snapshot.mirrors(inner.clock.now())?);
        self.short(read).await
    }

    /// See [`read::ci_outcome`]. It takes no slot.
    pub async fn ci_outcome(&self, request: CiOutcomeRequest) -> Result<CiOutcomeAnswer, Error> {
        let read =
            move |_: &Inner, snapshot: &mut Snapshot<'_>| read::ci_outcome(snapshot, &request);
        self.short(read).await
    }

    /// See [`read::ci_runs`]. It takes no slot.
    pub async fn ci_runs(&self, request: CiRunsRequest) -> Result<CiRuns, Error> {
        let read = move |_: &Inner, snapshot: &mut Snapshot<'_>| read::ci_runs(snapshot, &request);
        self.short(read).await
    }

    /// See [`read::ci_failures`]. It takes no slot.
    pub async fn ci_failures(&self, request: CiFailuresRequest) -> Result<CiFailures, Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            read::ci_failures(snapshot, &inner.cursor_key, &request)
        };
        self.short(read).await
    }

    /// See [`read::sessions`]. It takes no slot.
    pub async fn sessions(&self, request: SessionsRequest) -> Result<SessionList, Error> {
        let read = move |inner: &Inner, snapshot: &mut Snapshot<'_>| {
            read::sessions(snapshot, &inner.cursor_key, &request)
        };
        self.short(read).await
    }

    /// See [`read::quarantine_log`]. It takes no slot.
    pub async fn quarantine_log(
        &self,
        request: QuarantineLogRequest,
    ) -> Result<QuarantineLog, Error> {
        self.short(move |_, snapshot| read::quarantine_log(snapshot, request))
            .await
    }

    /// See [`read::facts`]. It takes no slot.
    pub async fn facts(&self) -> Result<FactsCounts, Error> {
        self.short(|_, snapshot| read::facts(snapshot)).await
    }

    /// See [`read::session_facts`]. It takes no slot.
    pub async fn session_facts(
        &self,
        request: SessionRequest,
    ) -> Result<SessionFactsCounts, Error> {
        self.short(|_, snapshot| read::session_facts(snapshot, request))
            .await
    }

    /// See [`read::session_inference_calls`]. It takes no slot.
    pub async fn session_inference_calls(
        &self,
        request: SessionRequest,
    ) -> Result<SessionInferenceCalls, Error> {
        self.short(|_, snapshot| read::session_inference_calls(snapshot, request))
            .await
    }

    /// See [`read::compatibility_evidence`]. It takes no slot.
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

/// Writes what was counted, until it is written or the engine has gone.
async fn write_counts(inner: Weak<Inner>) {
    let mut pause = COUNTS_WAIT;
    loop {
        tokio::time::sleep(pause).await;
        let Some(inner) = inner.upgrade() else {
            return;
        };
        // Before it is written: what comes meanwhile is for another time.
        inner.counts_wait.store(false, Ordering::Release);
        match inner.store.write_counts().await {
            Ok(()) | Err(StoreError::Closed) => return,
            Err(error) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "store.counts_wait"
                );
            }
        }
        if inner.counts_wait.swap(true, Ordering::AcqRel) {
            return;
        }
        pause = COUNTS_RETRY;
    }
}

/// How long what stored nothing waits to be counted in the store.
const COUNTS_WAIT: Duration = Duration::from_secs(1);
/// How long it waits after the store did not take it.
const COUNTS_RETRY: Duration = Duration::from_secs(10);

fn read_deadline() -> Deadline {
    Deadline::after(Duration::from_secs(READ_DEADLINE_SECONDS))
}

/// Ends the work of a deadline when nobody waits for it any more.
struct CancelledWhenDropped(Deadline);

impl Drop for CancelledWhenDropped {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
