use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use serde::Serialize;
use svc_engine::clock::{Clock, Ids};
use svc_engine::store::{LogEntry, NewQuarantineEntry, QuarantineAction};
use svc_model::facts::FactTable;
use svc_model::id::ForeignId;
use svc_model::time::Instant;

use super::store;
use crate::cli::StoreOptions;
use crate::error::CommandError;
use crate::output::{Output, escape};

#[derive(Debug, Args)]
pub(crate) struct Change {
    /// The kind of fact.
    #[arg(value_parser = table_parser())]
    table: FactTable,

    /// The id of the fact.
    fact_id: String,

    /// Why; it stays in the log.
    #[arg(long)]
    reason: String,

    #[command(flatten)]
    store: StoreOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Log {
    /// How many of the latest rows to show.
    #[arg(long, default_value_t = 20, value_name = "ROWS")]
    tail: u64,

    /// Show every row.
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    store: StoreOptions,
}

fn table_parser() -> impl clap::builder::TypedValueParser<Value = FactTable> {
    PossibleValuesParser::new(FactTable::ALL.iter().map(|table| table.as_str()))
        .try_map(|name| FactTable::from_wire(&name).ok_or("no such table"))
}

/// What became of a change, as a program reads it.
#[derive(Debug, Serialize)]
struct Changed {
    action: &'static str,
    table: FactTable,
    fact_id: String,
    quarantine_revision: u64,
    target_found: bool,
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

impl Change {
    pub(crate) fn run(
        self,
        action: QuarantineAction,
        output: &mut Output,
    ) -> Result<(), CommandError> {
        let fact_id = ForeignId::new(&self.fact_id)
            .map_err(|rule| CommandError::argument("the fact id", rule))?;
        if self.reason.trim().is_empty() {
            return Err(CommandError::argument("--reason", "must not be blank"));
        }
        let entry = NewQuarantineEntry {
            quarantine_id: Ids::random().fresh(),
            table: self.table,
            fact_id: fact_id.as_str().to_owned(),
            action,
            reason: self.reason,
            recorded_at: Clock::system().now(),
        };
        let receipts = store::ledger(&self.store)?.quarantine(&[entry])?;
        let Some(receipt) = receipts.first() else {
            return Err(CommandError::refused(
                "not_stored",
                "the log has no new row",
            ));
        };
        let changed = Changed {
            action: action.as_str(),
            table: self.table,
            fact_id: fact_id.to_string(),
            quarantine_revision: receipt.revision,
            target_found: receipt.target_found,
        };
        if !changed.target_found {
            let Changed { table, fact_id, .. } = &changed;
            output.warning(&format!(
                "quarantine_target_not_found: there is no {table}/{fact_id}"
            ));
        }
        output.value(&changed, |changed| {
            let name = format!("{}/{}", changed.table, escape(&changed.fact_id));
            match action {
                QuarantineAction::Quarantine => {
                    format!("quarantined {name} (reversible: svc release)\n")
                }
                QuarantineAction::Release => format!("released {name}\n"),
            }
        })
    }
}

impl Log {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let rows_max = match (self.all, self.tail) {
            (true, _) => u64::MAX,
            (false, 0) => return Err(CommandError::argument("--tail", "must be at least 1")),
            (false, tail) => tail,
        };
        let ledger = store::ledger(&self.store)?;
        let mut snapshot = ledger.snapshot()?;
        let quarantine_revision = snapshot.quarantine_revision()?;
        let (entries, rows) = snapshot.quarantine_log(rows_max)?;
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
