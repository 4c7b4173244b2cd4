use svc_engine_capture::calls::{self, CapturedCalls};
use svc_engine_store::{Append, DeliveryCounts, Outcome};
use svc_model::capture::{CaptureSource, ReaderCounts};
use svc_model::ingest::{CallsReceipt, CallsRequest, RejectedCall, SkippedCall};
use svc_model::time::Instant;

use super::{BodyBudget, Ingest};
use crate::engine::{Engine, ReportedItems};
use crate::error::Error;

/// The calls of a request are stored in one transaction.
impl Ingest for CallsRequest {
    type Receipt = CallsReceipt;

    async fn ingest(self, engine: &Engine, budget: BodyBudget) -> Result<CallsReceipt, Error> {
        let receipt = engine.receipt();
        let counted = counted(&self, receipt.received_at);
        let (facts, reported) = budget.in_place(|| {
            let captured = calls::capture(self, receipt);
            prepare(engine, captured, receipt.received_at)
        });
        let is_empty = facts.is_empty() && reported.continuations.is_empty();
        let outcomes = if is_empty {
            engine.count_now(&counted).await?;
            Vec::new()
        } else {
            engine.deliver_with(facts, reported, counted).await?
        };
        let mut receipt = CallsReceipt::default();
        for outcome in outcomes {
            add(&mut receipt, outcome);
        }
        tracing::debug!(?receipt, "calls.received");
        Ok(receipt)
    }
}

/// Prepares calls, and what was said besides.
fn prepare(
    engine: &Engine,
    captured: CapturedCalls,
    received_at: Instant,
) -> (Vec<Append>, ReportedItems) {
    if !captured.redactions.is_empty() {
        tracing::info!(redactions = %captured.redactions, "fact_redacted");
    }
    let calls = captured.calls.into_iter();
    let calls = calls.map(|(call, after)| engine.prepare_continued(call, after, received_at));
    let reported = ReportedItems {
        continuations: captured.continuation.into_iter().collect(),
        ..ReportedItems::default()
    };
    (calls.collect(), reported)
}

/// Returns the counts of a request, apart from its calls.
fn counted(request: &CallsRequest, at: Instant) -> DeliveryCounts {
    let mut counted = DeliveryCounts::new(CaptureSource::Calls, at);
    if let Some(reader) = &request.reader {
        let counts = ReaderCounts {
            lines: reader.lines,
            unknown: reader.unknown,
            format_changed: reader.format_changed,
        };
        let agent = request.source.agent.as_str().to_owned();
        counted.totals.readers.insert(agent, counts);
    }
    counted
}

/// Adds the outcome of a call to a receipt.
fn add(receipt: &mut CallsReceipt, outcome: Outcome) {
    let rejected = match outcome {
        Outcome::Stored(_) | Outcome::StoredApart(_) | Outcome::Superseding(_) => {
            receipt.stored += 1;
            return;
        }
        Outcome::Redelivered(_) | Outcome::Overruled(_) | Outcome::Known | Outcome::Differs(..) => {
            receipt.duplicates += 1;
            return;
        }
        Outcome::Copied(_) => {
            *receipt
                .skipped
                .entry(SkippedCall::Copied.into())
                .or_default() += 1;
            return;
        }
        Outcome::Rejected(reason) => reason,
        Outcome::Conflict(_) => RejectedCall::InferenceCallIdentityConflict,
    };
    *receipt.rejected.entry(rejected.into()).or_default() += 1;
}
