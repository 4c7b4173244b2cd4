use clap::Args;
use svc_engine::read;
use svc_model::limit::QUARANTINE_LOG_MAX;
use svc_model::quarantine::{QuarantineLog, QuarantineLogRequest};

use crate::commands::place::{DefaultPlace, StoreOrService, check_organization};
use crate::commands::service;
use crate::error::CommandError;
use crate::options::{ServiceOptions, StoreOptions};
use crate::output::{Output, escape};

#[derive(Debug, Args)]
pub(crate) struct Log {
    /// How many of the latest rows to show.
    #[arg(
        long,
        default_value_t = 20,
        allow_negative_numbers = true,
        value_name = "ROWS"
    )]
    tail: i64,

    /// Show every row.
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    service: ServiceOptions,

    #[command(flatten)]
    store: StoreOptions,
}

impl Log {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let rows_max = match (self.all, u64::try_from(self.tail)) {
            (true, _) => u64::MAX,
            (false, Ok(tail)) if tail > 0 => tail,
            _ => return Err(CommandError::argument("--tail", "must be at least 1")),
        };
        let place = StoreOrService::find(&self.service, &self.store, DefaultPlace::Store, output)?;
        let log = match &place {
            StoreOrService::Store(opened) => {
                let mut snapshot = opened.ledger.snapshot()?;
                if snapshot.has_table("quarantine_log")? {
                    latest(rows_max, |request| {
                        Ok(read::quarantine_log(&mut snapshot, request)?)
                    })?
                } else {
                    // An older schema has no quarantine log.
                    QuarantineLog {
                        org_id: opened.org_id.clone(),
                        quarantine_revision: 0,
                        rows: 0,
                        entries: Vec::new(),
                        next_before: None,
                    }
                }
            }
            StoreOrService::Service(client) => {
                service::block_on(check_organization(client, &self.store))?;
                latest(rows_max, |request| {
                    service::block_on(async { Ok(client.quarantine_log(request).await?) })
                })?
            }
        };
        output.value(&log, render_log)
    }
}

/// Reads the latest rows, page by page.
fn latest(
    rows_max: u64,
    mut page: impl FnMut(QuarantineLogRequest) -> Result<QuarantineLog, CommandError>,
) -> Result<QuarantineLog, CommandError> {
    let wanted = |so_far: usize| {
        rows_max
            .saturating_sub(so_far as u64)
            .min(QUARANTINE_LOG_MAX)
    };
    let mut log = page(QuarantineLogRequest {
        limit: wanted(0),
        before: None,
    })?;
    while let Some(before) = log.next_before.filter(|_| wanted(log.entries.len()) > 0) {
        let mut earlier = page(QuarantineLogRequest {
            limit: wanted(log.entries.len()),
            before: Some(before),
        })?;
        log.next_before = earlier.next_before;
        earlier.entries.append(&mut log.entries);
        log.entries = earlier.entries;
    }
    Ok(log)
}

fn render_log(log: &QuarantineLog) -> String {
    let mut lines = Vec::new();
    let shown = log.entries.len();
    if log.rows > shown as u64 {
        lines.push(format!(
            "... showing last {shown} of {} rows (--all for all)\n",
            log.rows
        ));
    }
    for row in &log.entries {
        lines.push(format!(
            "{}  {}  {:<10} {}/{}  {}\n",
            row.recorded_at,
            escape(&row.client_id),
            escape(&row.action),
            escape(&row.table),
            escape(&row.fact_id),
            escape(&row.reason),
        ));
    }
    let revision = log.quarantine_revision;
    lines.push(format!(
        "{} rows; quarantine_revision: {revision}\n",
        log.rows
    ));
    lines.concat()
}

#[cfg(test)]
mod tests {
    use svc_model::id::OrgId;
    use svc_model::quarantine::QuarantineLogEntry;
    use svc_model::time::Instant;

    use super::*;

    fn row(revision: u64, action: &str, reason: &str) -> QuarantineLogEntry {
        QuarantineLogEntry {
            quarantine_revision: revision,
            recorded_at: Instant::parse("2026-01-15T09:30:00Z").expect("an instant"),
            client_id: "operator".to_owned(),
            action: action.to_owned(),
            table: "inference_calls".to_owned(),
            fact_id: "f".to_owned(),
            reason: reason.to_owned(),
        }
    }

    fn log(revision: u64, rows: u64, entries: Vec<QuarantineLogEntry>) -> QuarantineLog {
        QuarantineLog {
            org_id: OrgId::new("acme").expect("an organization"),
            quarantine_revision: revision,
            rows,
            entries,
            next_before: None,
        }
    }

    #[test]
    fn the_log_shows_who_acted_escapes_reasons_and_counts_omitted_rows() {
        let entries = vec![
            row(1, "quarantine", "a\u{1b}[2J\nb"),
            row(2, "release", "c"),
        ];
        assert_eq!(
            render_log(&log(7, 3, entries)),
            "... showing last 2 of 3 rows (--all for all)\n\
             2026-01-15T09:30:00Z  operator  quarantine inference_calls/f  a\\u{1b}[2J\\nb\n\
             2026-01-15T09:30:00Z  operator  release    inference_calls/f  c\n\
             3 rows; quarantine_revision: 7\n"
        );
    }

    #[test]
    fn an_empty_log_is_one_line() {
        assert_eq!(
            render_log(&log(0, 0, Vec::new())),
            "0 rows; quarantine_revision: 0\n"
        );
    }

    #[test]
    fn the_latest_rows_are_read_page_by_page() {
        // A log of 2,500 rows, which the service returns page by page.
        let read = |rows_max: u64| {
            let log = latest(rows_max, |request| {
                let end = request.before.unwrap_or(2_501);
                let first = end.saturating_sub(request.limit).max(1);
                let mut page = log(
                    2_500,
                    2_500,
                    (first..end)
                        .map(|revision| row(revision, "release", "r"))
                        .collect(),
                );
                page.next_before = (first > 1).then_some(first);
                Ok(page)
            });
            let log = log.expect("a log");
            let numbers: Vec<_> = log
                .entries
                .iter()
                .map(|entry| entry.quarantine_revision)
                .collect();
            assert!(numbers.is_sorted(), "oldest first");
            (numbers.first().copied(), numbers.len())
        };
        assert_eq!(read(20), (Some(2_481), 20));
        assert_eq!(read(1_500), (Some(1_001), 1_500));
        assert_eq!(read(u64::MAX), (Some(1), 2_500));
    }
}
