use svc_engine_capture::otlp::{self, CapturedLogs, LogsReport};
use svc_engine_store::{Append, DeliveryCounts, Outcome};
use svc_model::capture::CaptureSource;
use svc_model::ingest::{LogEvent, LogSkip, LogsReceipt, LogsRequest};
use svc_model::time::Instant;

use super::{BodyBudget, Ingest, count_skipped, record_counts, stored};
use crate::engine::{Engine, ReportedItems};
use crate::error::Error;

/// The facts of an export and its halves of calls are stored in one transaction. An export whose records give no facts is
/// only counted, without waiting for the store. An export without records does wait, because it is
/// a question.
impl Ingest for LogsRequest {
    type Receipt = LogsReceipt;

    async fn ingest(self, engine: &Engine, budget: BodyBudget) -> Result<LogsReceipt, Error> {
        let receipt = engine.receipt();
        let mut captured = budget.in_place(|| otlp::capture(self, receipt, &budget.memory))?;
        let claims = std::mem::take(&mut captured.commit_claims);
        let halves = std::mem::take(&mut captured.halves);
        let (facts, report) = appends(engine, receipt.received_at, captured);
        let counted = counted(receipt.received_at, &report);
        let outcomes = if is_empty(&report) {
            // A sender of nothing, such as `svc doctor`, asks whether deliveries are stored.
            engine.count_now(&counted).await?;
            Vec::new()
        } else {
            let reported = ReportedItems {
                claims,
                halves,
                ..ReportedItems::default()
            };
            engine.deliver_with(facts, reported, counted).await?
        };
        log(&report, &outcomes);
        Ok(LogsReceipt {})
    }
}

/// Returns the facts in the order in which they are stored.
fn appends(
    engine: &Engine,
    received_at: Instant,
    captured: CapturedLogs,
) -> (Vec<Append>, LogsReport) {
    let decisions = captured.decisions.into_iter().map(Box::new);
    let observations = captured.edit_observations.into_iter().map(Box::new);
    let rejections = captured.rejected_edits.into_iter().map(Box::new);
    let linkages = captured.retry_linkages.into_iter().map(Box::new);
    let receipts = captured.usage_receipts.into_iter().map(Box::new);
    let calls = captured.calls.into_iter();
    let calls = calls.map(|call| engine.prepare(call, received_at));
    let facts = decisions
        .map(Append::DeveloperDecision)
        .chain(observations.map(Append::EditObservation))
        .chain(rejections.map(Append::RejectedEdit))
        .chain(linkages.map(Append::RetryLinkage))
        .chain(receipts.map(Append::UsageReceipt))
        .chain(calls)
        .collect();
    (facts, captured.report)
}

fn is_empty(report: &LogsReport) -> bool {
    report.records.received == 0
        && report.records.malformed == 0
        && report.malformed_containers == 0
}

/// Returns the counts of an export, apart from its facts.
fn counted(at: Instant, report: &LogsReport) -> DeliveryCounts {
    let mut counted = DeliveryCounts::new(CaptureSource::Logs, at);
    counted.totals.log_records = record_counts(report.records, report.malformed_containers);
    for (reason, by) in report.skipped_by_reason() {
        count_skipped(&mut counted, reason.as_str(), by);
    }
    counted
}

/// Logs the result of an export, as counts.
fn log(report: &LogsReport, outcomes: &[Outcome]) {
    if !report.degradation.is_empty() {
        tracing::debug!(degradation = ?report.degradation, "inference_messages_degraded");
    }
    if !report.redactions.is_empty() {
        tracing::info!(redactions = %report.redactions, "fact_redacted");
    }
    log_skipped(report);
    let stored = stored(outcomes);
    tracing::debug!(
        records = ?report.records,
        malformed_containers = report.malformed_containers,
        facts = ?report.facts,
        stored,
        duplicates = outcomes.len() as u64 - stored,
        "otlp_logs_received"
    );
}

/// Logs what was skipped. Most tool calls do not edit files; any other reason suggests a
/// misconfigured sender.
fn log_skipped(report: &LogsReport) {
    let usual = |((_, reason), _): (&(LogEvent, LogSkip), &u64)| *reason == LogSkip::NotAnEditTool;
    let unknown_events = report.unknown_events;
    let malformed = report.records.malformed;
    let malformed_containers = report.malformed_containers;
    if malformed > 0
        || malformed_containers > 0
        || unknown_events > 0
        || !report.skipped.iter().all(usual)
    {
        let skipped = report.skipped.iter().map(|((event, reason), count)| {
            format!("{}:{}={count}", event.as_str(), reason.as_str())
        });
        let skipped = skipped.collect::<Vec<_>>().join(" ");
        tracing::info!(
            skipped,
            unknown_events,
            malformed,
            malformed_containers,
            "otlp.records_skipped"
        );
    }
}
