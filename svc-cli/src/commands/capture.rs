use clap::Args;
use svc_engine::clock::Clock;
use svc_model::capture::{CaptureCounts, SearchIndexState};
use svc_model::endpoint;
use svc_model::request::NoParameters;
use svc_model::time::Instant;
use svc_view::{SHELL, declined, duplicates, stored};

use super::service;
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Output, Table, escape, relative, shown_bytes};

#[derive(Debug, Args)]
pub(crate) struct Capture {
    #[command(flatten)]
    service: ServiceOptions,
}

impl Capture {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let client = service::client(&self.service)?;
        let reply = service::block_on(async {
            Ok(client.call_raw::<endpoint::Capture>(&NoParameters).await?)
        })?;
        let now = Clock::system().now();
        output.reply(&reply, |counts| render(counts, now))?;
        for hint in SHELL.capture_hints(&reply.value) {
            output.note(&format!("{}: {}", hint.found, hint.mend));
        }
        Ok(())
    }
}

fn render(counts: &CaptureCounts, now: Instant) -> String {
    let mut blocks = vec![
        match counts.since {
            Some(since) => format!("since {since}, {}, on all servers\n", relative(since, now)),
            None => "nothing was delivered yet\n".to_owned(),
        },
        sources(counts, now),
    ];
    let records = SHELL.log_records(counts.log_records);
    blocks.extend(records.map(|records| format!("log records: {records}\n")));
    let spans = counts
        .span_records
        .and_then(|spans| SHELL.log_records(spans));
    blocks.extend(spans.map(|spans| format!("spans: {spans}\n")));
    let readers = SHELL.readers(counts).into_iter();
    blocks.extend(readers.map(|reader| format!("transcripts of {reader}\n")));
    let pending = counts
        .pending_halves
        .and_then(|pending| SHELL.pending_halves(pending));
    blocks.extend(pending.map(|pending| format!("waiting for each other: {pending}\n")));
    let claims = counts
        .commit_claims
        .map(|claims| SHELL.commit_claims(claims));
    blocks.extend(claims.map(|claims| format!("reported commits: {claims}\n")));
    let search = counts.search.as_ref().map(search_index);
    blocks.extend(search.map(|search| format!("search index: {search}\n")));
    blocks.extend(reasons(counts));
    blocks.extend(refused(counts));
    blocks.join("\n")
}

/// Says how far a search index is.
pub(crate) fn search_index(search: &SearchIndexState) -> String {
    let size = shown_bytes(search.bytes);
    let parts = search.indexed_parts;
    let state = match (&search.obstacle, search.indexed_up_to) {
        (Some(obstacle), _) => format!("does not go on: {}", escape(obstacle)),
        (None, None) => "is being built".to_owned(),
        (None, Some(moment)) => format!("everything up to {moment}"),
    };
    format!("{parts} distinct parts, {size}, {state}")
}

fn sources(counts: &CaptureCounts, now: Instant) -> String {
    let mut table = Table::new([
        "source",
        "deliveries",
        "stored",
        "duplicates",
        "skipped",
        "rejected",
        "conflicts",
        "last delivery",
    ])
    .numbers(&[1, 2, 3, 4, 5, 6]);
    for (source, of) in &counts.sources {
        table.row([
            source.to_string(),
            of.deliveries.to_string(),
            stored(of).to_string(),
            duplicates(of).to_string(),
            of.skipped.values().sum::<u64>().to_string(),
            of.rejected.values().sum::<u64>().to_string(),
            of.conflicts.to_string(),
            of.last_delivery_at
                .map_or_else(|| "never".to_owned(), |at| relative(at, now)),
        ]);
    }
    table.render()
}

/// Returns why deliveries were declined, if any were.
fn reasons(counts: &CaptureCounts) -> Option<String> {
    let mut table = Table::new(["source", "declined", "reason", "count"]).numbers(&[3]);
    let mut any = false;
    for (source, of) in &counts.sources {
        for (how, reason, count) in declined(of) {
            any = true;
            table.row([
                source.to_string(),
                how.to_owned(),
                escape(reason),
                count.to_string(),
            ]);
        }
    }
    any.then(|| table.render())
}

/// Returns which requests were refused, if any were.
fn refused(counts: &CaptureCounts) -> Option<String> {
    let mut table = Table::new(["path", "answered", "count"]).numbers(&[2]);
    let mut any = false;
    for (path, statuses) in &counts.answers {
        for (status, count) in statuses.iter().filter(|(status, _)| **status != 200) {
            any = true;
            table.row([escape(path), status.to_string(), count.to_string()]);
        }
    }
    let since = counts.server_since;
    let heading = format!("answered by this server since {since}\n\n");
    any.then(|| heading + &table.render())
}

#[cfg(test)]
mod tests {
    use svc_model::json;

    use super::*;

    #[test]
    fn skipped_records_are_shown_with_their_reason() {
        let counts = r#"{
            "since":"2026-01-02T03:04:05Z","server_since":"2026-01-02T04:04:05Z",
            "sources":{
                "gateway":{"deliveries":3,"facts":{"inference_calls":{"stored":2,"duplicates":1}},"conflicts":0,
                    "skipped":{"no_session":4},"rejected":{},"last_delivery_at":"2026-01-02T04:00:00Z","last_stored_at":null},
                "ci":{"deliveries":0,"facts":{},"conflicts":0,"skipped":{},"rejected":{},"last_delivery_at":null,"last_stored_at":null}
            },
            "log_records":{"received":0,"translated":0,"untranslated":0,"malformed":0,"malformed_containers":0},
            "answers":{"/v1/logs":{"200":1,"401":5}}
        }"#;
        let mut counts: CaptureCounts = json::from_slice(counts.as_bytes()).unwrap();
        let now = Instant::parse("2026-01-02T05:00:00Z").unwrap();
        assert_eq!(
            render(&counts, now),
            "since 2026-01-02T03:04:05Z, 1h ago, on all servers\n\n\
             source   deliveries  stored  duplicates  skipped  rejected  conflicts  last delivery\n\
             gateway           3       2           1        4         0          0  1h ago\n\
             ci                0       0           0        0         0          0  never\n\
             \nsource   declined  reason      count\n\
             gateway  skipped   no_session      4\n\
             \nanswered by this server since 2026-01-02T04:04:05Z\n\n\
             path      answered  count\n\
             /v1/logs  401           5\n"
        );
        let claims = r#"{"open":1,"resolved":20,"ambiguous":3,"expired":4}"#;
        counts.commit_claims = json::from_slice(claims.as_bytes()).unwrap();
        assert!(render(&counts, now).contains(
            "\nreported commits: 1 open, 20 linked to their Sessions, 3 ambiguous, 4 expired\n"
        ));
    }
}
