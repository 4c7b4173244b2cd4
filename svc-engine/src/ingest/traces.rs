use svc_engine_capture::otlp::{self, CapturedTraces, TracesReport};
use svc_engine_store::{Append, DeliveryCounts, Outcome};
use svc_model::capture::CaptureSource;
use svc_model::ingest::{TracesReceipt, TracesRequest};
use svc_model::time::Instant;

use super::{BodyBudget, Ingest, count_skipped, record_counts, stored};
use crate::engine::Engine;
use crate::error::Error;

/// The facts of an export are stored in one transaction, as those of log records are.
impl Ingest for TracesRequest {
    type Receipt = TracesReceipt;

    async fn ingest(self, engine: &Engine, budget: BodyBudget) -> Result<TracesReceipt, Error> {
        let receipt = engine.receipt();
        let captured = budget.in_place(|| otlp::capture_traces(self, receipt, &budget.memory))?;
        let (facts, report) = appends(engine, receipt.received_at, captured);
        let counted = counted(receipt.received_at, &report);
        let outcomes = if is_empty(&report) {
            engine.count_now(&counted).await?;
            Vec::new()
        } else {
            engine.deliver(facts, counted).await?
        };
        log(&report, &outcomes);
        Ok(TracesReceipt {})
    }
}

fn appends(
    engine: &Engine,
    received_at: Instant,
    captured: CapturedTraces,
) -> (Vec<Append>, TracesReport) {
    let receipts = captured.usage_receipts.into_iter().map(Box::new);
    let calls = captured.calls.into_iter();
    let calls = calls.map(|call| engine.prepare(call, received_at));
    let facts = receipts.map(Append::UsageReceipt).chain(calls).collect();
    (facts, captured.report)
}

/// Returns whether a sender of nothing asks whether deliveries are stored.
fn is_empty(report: &TracesReport) -> bool {
    report.spans.received == 0 && report.malformed_containers == 0
}

/// Returns the counts of an export, apart from its facts.
fn counted(at: Instant, report: &TracesReport) -> DeliveryCounts {
    let mut counted = DeliveryCounts::new(CaptureSource::Traces, at);
    let spans = record_counts(report.spans, report.malformed_containers);
    counted.totals.span_records = Some(Box::new(spans));
    for (reason, by) in &report.skipped {
        count_skipped(&mut counted, reason.as_str(), *by);
    }
    counted
}

/// Logs the result of an export, as counts.
fn log(report: &TracesReport, outcomes: &[Outcome]) {
    if !report.degradation.is_empty() {
        tracing::debug!(degradation = ?report.degradation, "inference_messages_degraded");
    }
    if !report.redactions.is_empty() {
        tracing::info!(redactions = %report.redactions, "fact_redacted");
    }
    if !report.skipped.is_empty() || report.spans.malformed > 0 || report.malformed_containers > 0 {
        let skipped = report.skipped.iter();
        let skipped = skipped.map(|(reason, count)| format!("{}={count}", reason.as_str()));
        tracing::info!(
            skipped = skipped.collect::<Vec<_>>().join(" "),
            malformed = report.spans.malformed,
            malformed_containers = report.malformed_containers,
            "otlp.spans_skipped"
        );
    }
    let stored = stored(outcomes);
    tracing::debug!(
        spans = ?report.spans,
        stored,
        duplicates = outcomes.len() as u64 - stored,
        "otlp.traces_received"
    );
}
