use clap::Args;
use serde::Serialize;
use svc_engine::store::LogEntry;
use svc_model::time::Instant;

use crate::commands::store;
use crate::error::CommandError;
use crate::options::StoreOptions;
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
    store: StoreOptions,
}

/// The log, as a program reads it.
#[derive(Debug, Serialize)]
struct Shown {
    quarantine_revision: u64,
    rows: u64,
    entries: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    quarantine_revision: u64,
    recorded_at: Instant,
    action: String,
    table: String,
    fact_id: String,
    reason: String,
}

impl From<LogEntry> for Row {
    fn from(entry: LogEntry) -> Self {
        Self {
            quarantine_revision: entry.revision,
            recorded_at: entry.recorded_at,
            action: entry.action,
            table: entry.fact_table,
            fact_id: entry.fact_id,
            reason: entry.reason,
        }
    }
}

impl Log {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let rows_max = match (self.all, u64::try_from(self.tail)) {
            (true, _) => u64::MAX,
            (false, Ok(tail)) if tail > 0 => tail,
            _ => return Err(CommandError::argument("--tail", "must be at least 1")),
        };
        let ledger = store::ledger(&self.store)?;
        let mut snapshot = ledger.snapshot()?;
        let (quarantine_revision, (entries, rows)) = if snapshot.has_table("quarantine_log")? {
            let revision = snapshot.quarantine_revision()?;
            (revision, snapshot.quarantine_log(rows_max)?)
        } else {
            (0, (Vec::new(), 0))
        };
        let entries = entries.into_iter().map(Row::from).collect();
        output.value(
            &Shown {
                quarantine_revision,
                rows,
                entries,
            },
            render_log,
        )
    }
}

fn render_log(log: &Shown) -> String {
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
            "{}  {:<10} {}/{}  {}\n",
            row.recorded_at,
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
    use super::*;

    fn row(action: &str, reason: &str) -> Row {
        Row {
            quarantine_revision: 1,
            recorded_at: Instant::parse("2026-01-15T09:30:00Z").expect("an instant"),
            action: action.to_owned(),
            table: "inference_calls".to_owned(),
            fact_id: "f".to_owned(),
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn the_log_says_what_it_leaves_out_and_escapes_reasons() {
        let log = Shown {
            quarantine_revision: 7,
            rows: 3,
            entries: vec![row("quarantine", "a\u{1b}[2J\nb"), row("release", "c")],
        };
        assert_eq!(
            render_log(&log),
            "... showing last 2 of 3 rows (--all for all)\n\
             2026-01-15T09:30:00Z  quarantine inference_calls/f  a\\u{1b}[2J\\nb\n\
             2026-01-15T09:30:00Z  release    inference_calls/f  c\n\
             3 rows; quarantine_revision: 7\n"
        );
    }

    #[test]
    fn an_empty_log_is_one_line() {
        let log = Shown {
            quarantine_revision: 0,
            rows: 0,
            entries: Vec::new(),
        };
        assert_eq!(render_log(&log), "0 rows; quarantine_revision: 0\n");
    }
}
