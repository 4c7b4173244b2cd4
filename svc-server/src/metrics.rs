//! Metrics in the text format of Prometheus, at a separate address.
//!
//! The address is for monitoring and needs no credential, so it is disabled unless configured. It
//! exposes counts, routes and reasons, but nothing about the facts.

use std::fmt::{self, Write as _};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use axum::routing::get;
use svc_engine::engine::SlotUse;
use svc_engine::read::MemoryUse;
use svc_engine::search::SearchStatus;
use svc_engine::store::Obstacle;
use svc_model::capture::{CaptureCounts, LogRecordCounts};
use svc_model::problem::Problem;
use svc_model::time::Instant;
use svc_model::version::SERVICE_VERSION;

use crate::app::App;
use crate::problem;

/// Returns the router of the metrics address.
pub(crate) fn router(app: App) -> Router {
    Router::new()
        .route(
            "/metrics",
            get(move || {
                let text = exposition(
                    &app.counts.beside(app.engine.captured_here()),
                    &app.engine.report_memory(),
                    app.engine.store_obstacle(),
                    app.engine.slot_use(),
                    app.engine.search_status().as_ref(),
                );
                async move { respond(text) }
            }),
        )
        .fallback(async || problem::answer(&Problem::NotFound))
}

fn respond(text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"),
    );
    response
}

/// The lines of one metric after another.
struct Exposition(String);

impl Exposition {
    fn metric(&mut self, name: &'static str, kind: &'static str, help: &'static str) -> Metric<'_> {
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
        Metric { text: self, name }
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        writeln!(self.0, "{line}").expect("writing to a string cannot fail");
    }
}

/// Adds what became of records.
fn by_result(mut metric: Metric<'_>, records: LogRecordCounts) {
    for (outcome, count) in [
        ("translated", records.translated),
        ("untranslated", records.untranslated),
        ("malformed", records.malformed),
    ] {
        metric.sample(&[("outcome", outcome)], count);
    }
}

/// One metric, to which samples are added. Label values are routes, closed words and versions, none
/// of which needs escaping.
struct Metric<'e> {
    text: &'e mut Exposition,
    name: &'static str,
}

impl Metric<'_> {
    fn sample(&mut self, labels: &[(&str, &str)], value: impl fmt::Display) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{value}\""))
            .collect();
        let name = self.name;
        self.text
            .line(format_args!("{name}{{{}}} {value}", labels.join(",")));
    }
}

fn seconds(instant: Instant) -> String {
    let microseconds = instant.microseconds();
    format!(
        "{}.{:06}",
        microseconds / 1_000_000,
        microseconds % 1_000_000
    )
}

/// Writes the counts, the use of the reports' caches by kind, why the store cannot be written, and
/// the use of the read slots.
fn exposition(
    counts: &CaptureCounts,
    memory: &[(&'static str, MemoryUse)],
    obstacle: Option<Obstacle>,
    slots: SlotUse,
    search: Option<&SearchStatus>,
) -> String {
    let mut text = Exposition(String::new());
    text.metric("svc_info", "gauge", "The version of the running service.")
        .sample(&[("version", SERVICE_VERSION)], 1);
    text.metric(
        "svc_start_time_seconds",
        "gauge",
        "When the process started counting, in Unix seconds.",
    )
    .sample(&[], seconds(counts.server_since));

    let mut deliveries = text.metric(
        "svc_deliveries_total",
        "counter",
        "Deliveries answered with success.",
    );
    for (source, of) in &counts.sources {
        deliveries.sample(&[("source", source.as_str())], of.deliveries);
    }
    let mut facts = text.metric("svc_facts_total", "counter", "Facts that arrived.");
    for (source, of) in &counts.sources {
        for (table, arrived) in &of.facts {
            for (outcome, count) in [
                ("stored", arrived.stored),
                ("duplicate", arrived.duplicates),
            ] {
                let labels = [
                    ("source", source.as_str()),
                    ("table", table.as_str()),
                    ("outcome", outcome),
                ];
                facts.sample(&labels, count);
            }
        }
    }
    let mut conflicts = text.metric(
        "svc_conflicts_total",
        "counter",
        "Facts that conflict with a stored fact of the same identity.",
    );
    for (source, of) in &counts.sources {
        conflicts.sample(&[("source", source.as_str())], of.conflicts);
    }
    let mut skipped = text.metric(
        "svc_skipped_total",
        "counter",
        "What was skipped with a successful answer, by reason.",
    );
    for (source, of) in &counts.sources {
        for (reason, count) in &of.skipped {
            skipped.sample(&[("source", source.as_str()), ("reason", reason)], count);
        }
    }
    let mut rejected = text.metric(
        "svc_rejected_total",
        "counter",
        "Payloads of a batch that cannot be stored as sent, by reason.",
    );
    for (source, of) in &counts.sources {
        for (reason, count) in &of.rejected {
            rejected.sample(&[("source", source.as_str()), ("reason", reason)], count);
        }
    }
    let log_records = text.metric(
        "svc_log_records_total",
        "counter",
        "Log records, by result.",
    );
    by_result(log_records, counts.log_records);
    if let Some(spans) = counts.span_records {
        let metric = text.metric("svc_spans_total", "counter", "Spans, by result.");
        by_result(metric, spans);
    }
    let mut last = text.metric(
        "svc_last_delivery_time_seconds",
        "gauge",
        "When the last delivery arrived, in Unix seconds.",
    );
    for (source, of) in &counts.sources {
        if let Some(at) = of.last_delivery_at {
            last.sample(&[("source", source.as_str())], seconds(at));
        }
    }
    let mut answers = text.metric("svc_answers_total", "counter", "Requests answered.");
    for (route, statuses) in &counts.answers {
        for (status, count) in statuses {
            answers.sample(&[("route", route), ("status", &status.to_string())], count);
        }
    }
    let mut obstacles = text.metric(
        "svc_store_obstacle",
        "gauge",
        "1 if the last write failed for this cause, which only an operator can remove.",
    );
    for cause in Obstacle::ALL {
        let is_met = obstacle == Some(cause);
        obstacles.sample(&[("cause", cause.as_str())], u8::from(is_met));
    }
    text.metric("svc_read_slots_in_use", "gauge", "Read slots in use.")
        .sample(&[], slots.in_use);
    text.metric(
        "svc_read_slots_refused_total",
        "counter",
        "Reads refused because no slot became free in time.",
    )
    .sample(&[], slots.refused);
    remembered(&mut text, memory);
    if let Some(search) = search {
        search_index(&mut text, search);
    }
    text.0
}

/// Writes how far the search index is.
fn search_index(text: &mut Exposition, search: &SearchStatus) {
    text.metric(
        "svc_search_lag_seconds",
        "gauge",
        "Seconds since the search index last had everything that was captured.",
    )
    .sample(&[], search.lag.as_secs_f64());
    text.metric(
        "svc_search_parts",
        "gauge",
        "Distinct parts in the search index.",
    )
    .sample(&[], search.indexed_parts);
    text.metric(
        "svc_search_bytes",
        "gauge",
        "Bytes of the files of the search index.",
    )
    .sample(&[], search.bytes);
    text.metric(
        "svc_search_complete",
        "gauge",
        "1 unless the search index is being built.",
    )
    .sample(&[], u8::from(search.is_complete()));
    text.metric(
        "svc_search_obstacle",
        "gauge",
        "1 if the search index does not go on; the log says why.",
    )
    .sample(&[], u8::from(search.obstacle.is_some()));
}

/// Writes the use of each cache of reports.
fn remembered(text: &mut Exposition, memory: &[(&'static str, MemoryUse)]) {
    type Number = fn(&MemoryUse) -> u64;
    let metrics: [(&'static str, &'static str, &'static str, Number); 4] = [
        (
            "svc_report_memory_bytes",
            "gauge",
            "Bytes that reports cache.",
            |used| used.bytes,
        ),
        (
            "svc_report_memory_bytes_max",
            "gauge",
            "Maximum bytes that reports cache.",
            |used| used.bytes_max,
        ),
        (
            "svc_report_memory_hits_total",
            "counter",
            "Cache hits of reports.",
            |used| used.hits,
        ),
        (
            "svc_report_memory_misses_total",
            "counter",
            "Cache misses of reports.",
            |used| used.misses,
        ),
    ];
    for (name, kind, help, number) in metrics {
        let mut metric = text.metric(name, kind, help);
        for (cache, used) in memory {
            metric.sample(&[("cache", cache)], number(used));
        }
    }
}

#[cfg(test)]
mod tests {
    use svc_engine::store::{DeliveryCounts, Outcome};
    use svc_model::capture::CaptureSource;
    use svc_model::facts::FactTable;
    use svc_model::id::FactId;

    use super::*;
    use crate::counts::AnswerCounts;

    fn at(microseconds: i64) -> Instant {
        Instant::from_microseconds(microseconds).unwrap()
    }

    #[test]
    fn every_line_is_a_comment_or_a_sample() {
        let counts = AnswerCounts::new(at(1_500_000));
        counts.answered("/v1/logs", 401);
        let mut skipped = DeliveryCounts::new(CaptureSource::Gateway, at(2_000_001));
        skipped.source().skipped.insert("no_session".to_owned(), 1);
        let mut captured = skipped.totals;
        let fact = Outcome::Stored(FactId::new(uuid::Uuid::from_u128(1)));
        let stored = DeliveryCounts::new(CaptureSource::Ci, at(3_000_000));
        captured.add(&stored.with([(FactTable::CiOutcomes, fact)]));
        let used = MemoryUse {
            bytes: 7,
            bytes_max: 8,
            hits: 5,
            misses: 6,
        };
        let text = exposition(
            &counts.beside(captured),
            &[("answers", used)],
            Some(Obstacle::DiskFull),
            SlotUse {
                in_use: 1,
                refused: 2,
            },
            Some(&SearchStatus::default()),
        );
        for line in [
            "svc_start_time_seconds{} 1.500000",
            "svc_answers_total{route=\"/v1/logs\",status=\"401\"} 1",
            "svc_skipped_total{source=\"gateway\",reason=\"no_session\"} 1",
            "svc_facts_total{source=\"ci\",table=\"ci_outcomes\",outcome=\"stored\"} 1",
            "svc_last_delivery_time_seconds{source=\"gateway\"} 2.000001",
            "svc_deliveries_total{source=\"forge_push\"} 0",
            "svc_store_obstacle{cause=\"disk_full\"} 1",
            "svc_store_obstacle{cause=\"standby\"} 0",
            "svc_read_slots_in_use{} 1",
            "svc_read_slots_refused_total{} 2",
            "svc_report_memory_bytes{cache=\"answers\"} 7",
            "svc_report_memory_bytes_max{cache=\"answers\"} 8",
            "svc_report_memory_hits_total{cache=\"answers\"} 5",
            "svc_report_memory_misses_total{cache=\"answers\"} 6",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line} is not in\n{text}"
            );
        }
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            assert!(name.starts_with("svc_") && name.ends_with('}'), "{line}");
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
}
