//! The writes of an engine: facts, the counts of deliveries, and the quarantine.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use svc_engine_fact::{
    CallHalf, CommitClaim, ContinuedInput, InferenceCall, PullRequestMerge, SessionContinuation,
};
use svc_engine_store::{
    Append, Delivery, DeliveryCounts, NewQuarantineEntry, NoTarget, Obstacle, Outcome, Snapshot,
    StoreError, WhenAbsent,
};
use svc_model::capture::{CaptureTotals, CommitClaimCounts, PendingHalves};
use svc_model::facts::FactTable;
use svc_model::id::{FactId, SessionId};
use svc_model::problem::QueryFault;
use svc_model::quarantine::{QuarantineAction, QuarantineReceipt, QuarantineRequest};
use svc_model::time::Instant;

use super::{Engine, EngineState};
use crate::error::Error;

/// What a client reported besides facts.
#[derive(Debug, Default)]
pub(crate) struct ReportedItems {
    /// Commits that it made.
    pub(crate) claims: Vec<CommitClaim>,
    /// Requests and responses that wait for each other.
    pub(crate) halves: Vec<CallHalf>,
    /// Sessions that continue others.
    pub(crate) continuations: Vec<SessionContinuation>,
}

impl Engine {
    /// Prepares a call for [`Engine::deliver`], on the caller's thread.
    pub(crate) fn prepare(&self, call: InferenceCall, received_at: Instant) -> Append {
        Append::InferenceCall(Box::new(self.0.store.encode(call, received_at)))
    }

    /// Prepares a call whose input begins with all that another call sent and received, on the
    /// caller's thread.
    pub(crate) fn prepare_continued(
        &self,
        call: InferenceCall,
        continued: Option<ContinuedInput>,
        received_at: Instant,
    ) -> Append {
        let store = &self.0.store;
        Append::InferenceCall(Box::new(store.encode_continued(
            call,
            continued,
            received_at,
        )))
    }

    /// Stores the facts of a delivery together with its counts, and waits until they are on disk. A
    /// delivery without facts is only counted.
    ///
    /// # Errors
    ///
    /// If the facts were not stored; then none is acknowledged, and the delivery is not counted.
    pub(crate) async fn deliver(
        &self,
        facts: Vec<Append>,
        counted: DeliveryCounts,
    ) -> Result<Vec<Outcome>, Error> {
        self.deliver_with(facts, ReportedItems::default(), counted)
            .await
    }

    /// Does what [`Engine::deliver`] does, with what a client reported besides facts. Soon
    /// afterwards, it is looked at which halves belong together, and which commits are known.
    ///
    /// # Errors
    ///
    /// See [`Engine::deliver`].
    pub(crate) async fn deliver_with(
        &self,
        facts: Vec<Append>,
        reported: ReportedItems,
        counted: DeliveryCounts,
    ) -> Result<Vec<Outcome>, Error> {
        let ReportedItems {
            claims,
            halves,
            continuations,
        } = reported;
        let is_empty = facts.is_empty() && claims.is_empty();
        if is_empty && halves.is_empty() && continuations.is_empty() {
            self.count(&counted);
            return Ok(Vec::new());
        }
        let tables: Vec<FactTable> = facts.iter().map(Append::table).collect();
        let claim_ids: Vec<FactId> = claims.iter().map(|claim| claim.claim_id).collect();
        let sessions: BTreeSet<SessionId> = halves
            .iter()
            .map(|half| half.outline.session_id.clone())
            .collect();
        let delivery = Delivery {
            claims,
            continuations,
            halves: self.0.arrived(halves),
            counted: Some(counted.clone()),
            ..Delivery::from(facts)
        };
        let outcomes = self.append(delivery).await?;
        if let Some(pairing) = self.0.pairing.get().filter(|_| !sessions.is_empty()) {
            pairing.look_at(sessions);
        }
        let looked_at = self.0.commit_claims.as_ref();
        if let Some(claims) = looked_at.filter(|_| !claim_ids.is_empty()) {
            claims.arrived(claim_ids);
        }
        let facts = tables.into_iter().zip(outcomes.iter().copied());
        self.captured_by_process().add(&counted.with(facts));
        Ok(outcomes)
    }

    /// Appends facts and waits until they are on disk. A push makes its mirror due in the same
    /// transaction, and nobody waits for more than that.
    async fn append(&self, mut delivery: Delivery) -> Result<Vec<Outcome>, Error> {
        let Some(mirrors) = &self.0.mirrors else {
            let outcomes = self.0.store.append(delivery).await?;
            self.wake_search();
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
        self.wake_search();
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

    /// Counts a delivery without facts. Does not wait for the store: the count is written with the
    /// next transaction, or within a second.
    pub(crate) fn count(&self, counted: &DeliveryCounts) {
        self.captured_by_process().add(&counted.totals);
        self.0.store.count(&counted.totals);
        self.count_soon();
    }

    /// Counts an empty delivery and waits until the count is stored, so that the sender learns
    /// whether a delivery would be stored.
    ///
    /// # Errors
    ///
    /// If the store cannot be written. The count is kept for the next transaction.
    pub(crate) async fn count_now(&self, counted: &DeliveryCounts) -> Result<(), Error> {
        self.0.store.count(&counted.totals);
        self.0.store.write_counts_as_facts().await?;
        self.captured_by_process().add(&counted.totals);
        Ok(())
    }

    /// Ensures that deliveries that stored nothing, such as redeliveries, are soon counted in the
    /// store.
    fn count_soon(&self) {
        let inner = &self.0;
        if inner.store.has_uncounted() && !inner.counts_wait.swap(true, Ordering::AcqRel) {
            tokio::spawn(write_counts(Arc::downgrade(inner)));
        }
    }

    /// Returns what arrived at this process by source. Prometheus sums over processes itself.
    pub fn captured_here(&self) -> CaptureTotals {
        self.captured_by_process().clone()
    }

    fn captured_by_process(&self) -> MutexGuard<'_, CaptureTotals> {
        self.0.captured_by_process()
    }

    /// Returns how many halves of calls wait; `None` before the first arrived.
    ///
    /// # Errors
    ///
    /// If the store does not answer.
    pub async fn pending_halves(&self) -> Result<Option<PendingHalves>, Error> {
        self.short(|_, snapshot| Ok(snapshot.pending_halves()?))
            .await
    }

    /// Returns what arrived by source, on all servers of the organization, after writing this
    /// server's pending counts. While the store can only be read, they are added without being
    /// written.
    ///
    /// # Errors
    ///
    /// If the store does not answer.
    pub async fn captured(&self) -> Result<CaptureTotals, Error> {
        let pending = match self.0.store.write_counts().await {
            Ok(()) => CaptureTotals::default(),
            Err(error)
                if error
                    .obstacle()
                    .is_some_and(|obstacle| obstacle != Obstacle::NoAnswer) =>
            {
                self.0.store.uncounted()
            }
            Err(error) => return Err(error.into()),
        };
        let read = |_: &EngineState, snapshot: &mut Snapshot<'_>| Ok(snapshot.capture_totals()?);
        let mut totals = self.short(read).await?;
        totals.add(&pending);
        Ok(totals)
    }

    /// Returns what became of the commits that clients reported; nothing while there are none.
    ///
    /// # Errors
    ///
    /// If the store does not answer.
    pub async fn commit_claims(&self) -> Result<Option<CommitClaimCounts>, Error> {
        let now = self.now();
        let read = move |_: &EngineState, snapshot: &mut Snapshot<'_>| {
            Ok(snapshot.commit_claim_counts(now)?)
        };
        self.short(read).await
    }

    /// Quarantines or releases a fact on behalf of a client. The writer records it, in order with
    /// the facts.
    ///
    /// # Errors
    ///
    /// If the request names no fact or several, or if it was not recorded.
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
        self.wake_search();
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
}

impl EngineState {
    /// Adding cannot fail half-way, so the counts stay valid after a panic elsewhere.
    pub(super) fn captured_by_process(&self) -> MutexGuard<'_, CaptureTotals> {
        self.captured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Retries until the pending counts are written or the engine is gone.
async fn write_counts(inner: Weak<EngineState>) {
    let mut pause = COUNTS_WAIT;
    loop {
        tokio::time::sleep(pause).await;
        let Some(inner) = inner.upgrade() else {
            return;
        };
        // Before the write, so that later counts start a new task.
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

/// The delay before the counts of deliveries that stored nothing are written.
const COUNTS_WAIT: Duration = Duration::from_secs(1);
/// The delay after a failed write.
const COUNTS_RETRY: Duration = Duration::from_secs(10);
