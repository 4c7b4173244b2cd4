use svc_engine_capture::Receipt;
use svc_engine_capture::gateway::{self, Captured, GatewayError, PayloadNotes};
use svc_engine_fact::InferenceCall;
use svc_engine_store::{Append, DeliveryCounts};
use svc_model::capture::CaptureSource;
use svc_model::ingest::{
    GatewayIngestRequest, GatewayProvider, IngestReceipt, RejectedPayload, SkipReason,
};
use svc_model::json::NodeBudget;
use svc_model::time::Instant;

use super::{BodyBudget, Ingest, count_rejected, count_skipped, skip, store_one};
use crate::engine::Engine;
use crate::error::Error;

impl Ingest for GatewayIngestRequest {
    type Receipt = IngestReceipt;

    async fn ingest(self, engine: &Engine, budget: BodyBudget) -> Result<IngestReceipt, Error> {
        let receipt = engine.receipt();
        let at = receipt.received_at;
        let compare = self.compare;
        let prepared = budget.in_place(|| prepare(engine, self, receipt, None, &budget.memory));
        match prepared {
            Ok(PreparedPayload::Fact { fact, is_empty }) => {
                let mut counted = DeliveryCounts::new(CaptureSource::Gateway, at);
                count_empty(&mut counted, u64::from(is_empty));
                let mut stored = store_one(engine, fact, counted).await?;
                if !compare {
                    stored.differs.clear();
                }
                Ok(IngestReceipt::Fact(stored))
            }
            Ok(PreparedPayload::Skipped(reason)) => {
                Ok(skip(engine, CaptureSource::Gateway, at, reason))
            }
            Err(error) => {
                if error == GatewayError::InvalidPayload {
                    reject(engine, at, RejectedPayload::InvalidPayload);
                }
                Err(error.into())
            }
        }
    }
}

/// The result of capturing one payload.
pub(super) enum PreparedPayload {
    Fact {
        fact: Append,
        /// Whether nothing that was said could be read.
        is_empty: bool,
    },
    Skipped(SkipReason),
}

/// Captures one payload, which may contain the time of its call, and encodes its call.
pub(super) fn prepare(
    engine: &Engine,
    request: GatewayIngestRequest,
    receipt: Receipt<'_>,
    made_at: Option<Instant>,
    memory: &NodeBudget,
) -> Result<PreparedPayload, GatewayError> {
    let provider = request.provider;
    let (captured, notes) = gateway::capture(request, receipt, memory)?;
    log_notes(&notes);
    Ok(match captured {
        Captured::Call(mut call) => {
            call.observed_at = made_at.unwrap_or(call.observed_at);
            let is_empty = is_empty(&call);
            PreparedPayload::Fact {
                fact: engine.prepare(*call, receipt.received_at),
                is_empty,
            }
        }
        Captured::Skipped {
            reason,
            model_call_id,
        } => {
            log_skipped(provider, reason, model_call_id.as_deref());
            PreparedPayload::Skipped(reason)
        }
    })
}

fn log_notes(notes: &PayloadNotes) {
    if !notes.degradation.is_empty() {
        tracing::debug!(degradation = ?notes.degradation, "inference_messages_degraded");
    }
    if !notes.redactions.is_empty() {
        tracing::info!(redactions = %notes.redactions, "fact_redacted");
    }
}

/// Returns whether nothing that was said in a call could be read, which is logged.
fn is_empty(call: &InferenceCall) -> bool {
    let mut messages = call.input_messages.iter().chain(&call.output_messages);
    let is_empty = messages.all(|message| message.parts.is_empty());
    if is_empty {
        let call_id = call.model_call_id.as_deref();
        tracing::info!(call_id, "gateway.call_without_content");
    }
    is_empty
}

fn log_skipped(provider: GatewayProvider, reason: SkipReason, call_id: Option<&str>) {
    tracing::info!(
        provider = provider.as_str(),
        call_id,
        reason = reason.as_str(),
        "{}",
        match reason {
            SkipReason::NoSession => "gateway_ingest_skipped_no_session",
            _ => "gateway.call_skipped",
        }
    );
}

/// Counts a delivery whose payload can never be stored.
fn reject(engine: &Engine, at: Instant, reason: RejectedPayload) {
    let mut counted = DeliveryCounts::new(CaptureSource::Gateway, at);
    count_rejected(&mut counted, reason.as_str(), 1);
    engine.count(&counted);
    log_rejected(reason, 1, None);
}

/// Logs why payloads can never be stored, and the position of the first of them in a batch.
pub(super) fn log_rejected(reason: RejectedPayload, payloads: u64, first: Option<usize>) {
    tracing::info!(
        reason = reason.as_str(),
        payloads,
        first,
        "gateway_ingest_invalid_payload"
    );
}

/// Counts calls that are stored although nothing that was said could be read.
pub(super) fn count_empty(counted: &mut DeliveryCounts, calls: u64) {
    if calls > 0 {
        count_skipped(counted, SkipReason::NoContent.as_str(), calls);
    }
}
