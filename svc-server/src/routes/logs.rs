use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request as HttpRequest;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use http_body_util::BodyExt as _;
use prost::Message as _;
use svc_engine::capture::otlp::{self, CapturedLogs, LogsError, LogsReport};
use svc_engine::store::{Append, Counted, Outcome};
use svc_model::capture::CaptureSource;
use svc_model::endpoint::Logs;
use svc_model::facts::FactTable;
use svc_model::ingest::{LogEvent, LogSkip, LogsReceipt, LogsRequest, PROTOBUF, is_protobuf};
use svc_model::json;
use svc_model::problem::{Detail, Problem, ProblemBody};
use svc_model::time::Instant;

use super::ingest::store;
use crate::app::App;
use crate::counts::count;
use crate::dispatch::{Exchange, bind};
use crate::handler::Handler;

/// Stores an export. Its facts are stored in one transaction. An export whose records give no facts
/// is only counted, without waiting for the store. An export without records does wait, because it
/// is a question.
pub(super) async fn logs(exchange: Exchange, request: LogsRequest) -> Result<LogsReceipt, Problem> {
    let app = &exchange.app;
    let receipt = app.engine.receipt();
    let captured = exchange
        .in_place(|| otlp::capture(request, receipt, &exchange.memory))
        .map_err(|error| match error {
            LogsError::Malformed => Problem::MalformedProtobuf,
            LogsError::TooLarge => Problem::TooManyValues,
        })?;
    let (facts, report) = appends(captured);
    let tables: Vec<FactTable> = facts.iter().map(Append::table).collect();
    let counted = counted(receipt.received_at, &report);
    let is_empty = report.records.received == 0
        && report.records.malformed == 0
        && report.malformed_containers == 0;
    let outcomes = if is_empty {
        // A sender of nothing, such as `svc doctor`, asks whether deliveries are stored.
        app.engine.count_now(&counted).await?;
        Vec::new()
    } else {
        store(app, facts, &counted).await?
    };
    note(app, counted, &report, tables.into_iter().zip(outcomes));
    Ok(LogsReceipt {})
}

/// Returns the facts in the order in which they are stored.
fn appends(captured: CapturedLogs) -> (Vec<Append>, LogsReport) {
    let decisions = captured.decisions.into_iter().map(Box::new);
    let observations = captured.edit_observations.into_iter().map(Box::new);
    let rejections = captured.rejected_edits.into_iter().map(Box::new);
    let linkages = captured.retry_linkages.into_iter().map(Box::new);
    let facts = decisions
        .map(Append::DeveloperDecision)
        .chain(observations.map(Append::EditObservation))
        .chain(rejections.map(Append::RejectedEdit))
        .chain(linkages.map(Append::RetryLinkage))
        .collect();
    (facts, captured.report)
}

/// Returns the counts of an export, apart from its facts.
fn counted(at: Instant, report: &LogsReport) -> Counted {
    let mut counted = Counted::new(CaptureSource::Logs, at);
    let records = &mut counted.totals.log_records;
    records.received = report.records.received;
    records.translated = report.records.translated;
    records.untranslated = report.records.untranslated;
    records.malformed = report.records.malformed;
    records.malformed_containers = report.malformed_containers;
    let source = counted.source();
    for (reason, by) in report.skipped_by_reason() {
        count(&mut source.skipped, reason.as_str(), by);
    }
    counted
}

/// Records the result of an export, as counts, in the log and for the operator.
fn note(
    app: &App,
    counted: Counted,
    report: &LogsReport,
    facts: impl Iterator<Item = (FactTable, Outcome)>,
) {
    let (mut stored, mut duplicates) = (0_u64, 0_u64);
    let facts = facts.inspect(|(_, outcome)| match outcome {
        Outcome::Stored(_) | Outcome::Superseding(_) => stored += 1,
        Outcome::Redelivered(_)
        | Outcome::Overruled(_)
        | Outcome::Differs(..)
        | Outcome::Known
        | Outcome::Conflict(_) => duplicates += 1,
    });
    app.counts.delivered(&counted.with(facts));
    if !report.redactions.is_empty() {
        tracing::info!(redactions = %report.redactions, "fact_redacted");
    }
    // Most tool calls do not edit files. Any other reason suggests a misconfigured sender.
    let usual = |((_, reason), _): (&(LogEvent, LogSkip), &u64)| *reason == LogSkip::NotAnEditTool;
    let unknown_events = report.unknown_events;
    if report.records.malformed > 0
        || report.malformed_containers > 0
        || unknown_events > 0
        || !report.skipped.iter().all(usual)
    {
        let skipped = report.skipped.iter().map(|((event, reason), count)| {
            format!("{}:{}={count}", event.as_str(), reason.as_str())
        });
        let skipped = skipped.collect::<Vec<_>>().join(" ");
        let malformed = report.records.malformed;
        let malformed_containers = report.malformed_containers;
        tracing::info!(
            skipped,
            unknown_events,
            malformed,
            malformed_containers,
            "otlp_records_skipped"
        );
    }
    tracing::debug!(
        records = ?report.records,
        malformed_containers = report.malformed_containers,
        facts = ?report.facts,
        stored,
        duplicates,
        "otlp_logs_received"
    );
}

/// Returns the handler of the route. A request in protobuf gets an answer in protobuf.
pub(super) fn handler() -> Handler {
    let inner = bind::<Logs>();
    Arc::new(move |app, request: HttpRequest| {
        let speaks_protobuf = sends_protobuf(request.headers());
        let answer = inner(app, request);
        Box::pin(async move {
            let response = answer.await;
            if speaks_protobuf {
                in_protobuf(response).await
            } else {
                response
            }
        })
    })
}

fn sends_protobuf(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE);
    content_type.is_some_and(|value| value.to_str().is_ok_and(is_protobuf))
}

/// `google.rpc.Status`, as OTLP over HTTP uses it: the error message for people.
#[derive(Clone, PartialEq, prost::Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
}

/// Converts an answer to protobuf: an empty `ExportLogsServiceResponse`, or a `Status`.
async fn in_protobuf(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let message = if parts.status == StatusCode::OK {
        Vec::new()
    } else {
        let body = body
            .collect()
            .await
            .map(http_body_util::Collected::to_bytes);
        let message = text(&body.unwrap_or_default());
        Status { message }.encode_to_vec()
    };
    let content_type = HeaderValue::from_static(PROTOBUF);
    parts.headers.insert(header::CONTENT_TYPE, content_type);
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(message))
}

/// Returns the fixed text of a problem.
fn text(body: &[u8]) -> String {
    match json::from_slice(body).map(|problem: ProblemBody| problem.detail) {
        Ok(Detail::Text(text)) => text.into_owned(),
        Ok(Detail::Code(detail)) => detail.message.unwrap_or_default().into_owned(),
        Ok(Detail::Fields(_) | Detail::Declined(_)) | Err(_) => String::new(),
    }
}
