use std::collections::BTreeMap;

use svc_engine_capture::gateway::{self, Adapter, GatewayError};
use svc_engine_store::{Append, DeliveryCounts, Outcome};
use svc_model::capture::CaptureSource;
use svc_model::ingest::{
    GatewayBatchReceipt, GatewayBatchRequest, GatewayIngestRequest, GatewayProvider,
    RejectedPayload,
};
use svc_model::json::{Json, NodeBudget, Object};

use super::gateway::{PreparedPayload, count_empty, log_rejected, prepare};
use super::{BodyBudget, Ingest, count_rejected, count_skipped};
use crate::engine::Engine;
use crate::error::Error;

/// The result of capturing one item.
type ItemResult = Result<PreparedPayload, RejectedPayload>;

impl Ingest for GatewayBatchRequest {
    type Receipt = GatewayBatchReceipt;

    async fn ingest(
        self,
        engine: &Engine,
        budget: BodyBudget,
    ) -> Result<GatewayBatchReceipt, Error> {
        let adapter = gateway::adapter(self.provider)?;
        let items = budget.in_place(|| {
            let of_item = |payload| match payload {
                Ok(payload) => item(engine, self.provider, adapter, payload, &budget.memory),
                Err(reason) => Ok(Err(reason)),
            };
            let items: Result<Vec<ItemResult>, Error> =
                self.payloads.into_iter().map(of_item).collect();
            items
        })?;
        let mut batch = Batch::of(items);
        let counted = batch.counted(engine);
        let outcomes = engine.deliver(batch.facts, counted).await?;
        for outcome in outcomes {
            add(&mut batch.receipt, outcome);
        }
        Ok(batch.receipt)
    }
}

/// Captures one item.
///
/// # Errors
///
/// If the batch needs too much memory. Then the whole batch is refused.
fn item(
    engine: &Engine,
    provider: GatewayProvider,
    adapter: &dyn Adapter,
    payload: Object,
    memory: &NodeBudget,
) -> Result<ItemResult, Error> {
    let receipt = engine.receipt();
    let made_at = adapter.delivery_moment(&payload);
    let request = GatewayIngestRequest {
        provider,
        session_id: None,
        user_id: None,
        capture: adapter.delivery_name(&payload, receipt.received_at),
        payload: Json::Object(payload),
        compare: false,
    };
    match prepare(engine, request, receipt, made_at, memory) {
        Ok(prepared) => Ok(Ok(prepared)),
        Err(GatewayError::InvalidPayload) => Ok(Err(RejectedPayload::InvalidPayload)),
        Err(error) => Err(error.into()),
    }
}

/// The facts of a batch, and what its receipt says of the rest.
#[derive(Default)]
struct Batch {
    facts: Vec<Append>,
    /// The calls in which nothing that was said could be read.
    empty: u64,
    receipt: GatewayBatchReceipt,
}

impl Batch {
    /// Sorts the items. Rejected ones are logged by reason, however many a batch has.
    fn of(items: Vec<ItemResult>) -> Self {
        let mut batch = Self::default();
        let mut rejected: BTreeMap<RejectedPayload, (u64, usize)> = BTreeMap::new();
        for (place, item) in items.into_iter().enumerate() {
            match item {
                Ok(PreparedPayload::Fact { fact, is_empty }) => {
                    batch.facts.push(fact);
                    batch.empty += u64::from(is_empty);
                }
                Ok(PreparedPayload::Skipped(reason)) => {
                    *batch.receipt.skipped.entry(reason.into()).or_default() += 1;
                }
                Err(reason) => rejected.entry(reason).or_insert((0, place)).0 += 1,
            }
        }
        for (reason, (payloads, first)) in rejected {
            log_rejected(reason, payloads, Some(first));
            batch.receipt.rejected.insert(reason.into(), payloads);
        }
        batch
    }

    /// Returns the counts of the batch, apart from its facts.
    fn counted(&self, engine: &Engine) -> DeliveryCounts {
        let mut counted = DeliveryCounts::new(CaptureSource::Gateway, engine.now());
        count_empty(&mut counted, self.empty);
        for (reason, by) in &self.receipt.skipped {
            count_skipped(&mut counted, reason.as_str(), *by);
        }
        for (reason, by) in &self.receipt.rejected {
            count_rejected(&mut counted, reason.as_str(), *by);
        }
        counted
    }
}

/// Adds the outcome of a fact to a receipt.
fn add(receipt: &mut GatewayBatchReceipt, outcome: Outcome) {
    match outcome {
        Outcome::Stored(_) | Outcome::StoredApart(_) | Outcome::Superseding(_) => {
            receipt.stored += 1;
        }
        Outcome::Redelivered(_) | Outcome::Overruled(_) | Outcome::Known => {
            receipt.duplicates += 1;
        }
        // It is not stored, so it must not look like a mere repetition.
        Outcome::Differs(..) | Outcome::Conflict(_) | Outcome::Copied(_) | Outcome::Rejected(_) => {
            let reason = RejectedPayload::InferenceCallIdentityConflict;
            *receipt.rejected.entry(reason.into()).or_default() += 1;
        }
    }
}
