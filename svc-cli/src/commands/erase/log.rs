//! The log of erasures.

use clap::Args;
use serde::Serialize;
use svc_engine::store::{ErasedContent, ErasedFacts, ErasureRow, ErasureSubject};
use svc_model::facts::FactTable;
use svc_model::id::OrgId;
use svc_model::limit::QUARANTINE_LOG_MAX;
use svc_model::time::Instant;

use super::{Subject, by_kind, named, store};
use crate::error::CommandError;
use crate::options::StoreOptions;
use crate::output::{Output, Table, clock, escape, shown_bytes};

#[derive(Debug, Args)]
pub(super) struct Log {
    #[command(flatten)]
    store: StoreOptions,
}

/// The log, for programs.
#[derive(Debug, Serialize)]
struct Erasures {
    org_id: OrgId,
    erasures: Vec<ErasureEntry>,
}

/// One erasure, made up of its rows in the log.
#[derive(Debug, Serialize)]
struct ErasureEntry {
    erasure_id: String,
    erasure_revision: u64,
    recorded_at: Instant,
    client_id: String,
    of: Subject,
    #[serde(serialize_with = "by_kind")]
    facts: ErasedFacts,
    contents: u64,
    stored_bytes: u64,
    reason: String,
    #[serde(skip)]
    subject: ErasureSubject,
}

impl Log {
    pub(super) fn run(&self, output: &mut Output) -> Result<(), CommandError> {
        let (opened, _) = store(&self.store, output)?;
        let mut snapshot = opened.ledger.snapshot()?;
        let mut rows: Vec<ErasureRow> = Vec::new();
        loop {
            let before = rows.first().map(|row| row.revision);
            let mut page = snapshot.erasure_log(QUARANTINE_LOG_MAX, before)?;
            let is_last = (page.len() as u64) < QUARANTINE_LOG_MAX;
            page.append(&mut rows);
            rows = page;
            if is_last {
                break;
            }
        }
        let log = Erasures {
            org_id: opened.org_id.clone(),
            erasures: together(rows),
        };
        output.value(&log, render)
    }
}

/// Combines the rows of each erasure into one entry.
fn together(rows: Vec<ErasureRow>) -> Vec<ErasureEntry> {
    let mut entries: Vec<(ErasureRow, ErasedContent)> = Vec::new();
    for row in rows {
        let erased = row.erased;
        match entries.last_mut() {
            Some((last, sum)) if last.erasure_id == row.erasure_id => {
                sum.add(&erased);
                last.revision = row.revision;
            }
            _ => entries.push((row, erased)),
        }
    }
    let entry = |(row, erased): (ErasureRow, ErasedContent)| ErasureEntry {
        erasure_id: row.erasure_id,
        erasure_revision: row.revision,
        recorded_at: row.recorded_at,
        client_id: row.client_id,
        of: (&row.subject).into(),
        facts: erased.facts,
        contents: erased.contents,
        stored_bytes: erased.stored_bytes,
        reason: row.reason,
        subject: row.subject,
    };
    entries.into_iter().map(entry).collect()
}

fn render(log: &Erasures) -> String {
    if log.erasures.is_empty() {
        return "nothing was erased\n".to_owned();
    }
    let mut table = Table::new(["when", "who", "of", "calls", "other facts", "size", "why"]);
    for entry in &log.erasures {
        let calls = entry.facts.get(FactTable::InferenceCalls);
        let others = entry.facts.total() - calls;
        table.row([
            clock(entry.recorded_at),
            escape(&entry.client_id),
            named(&entry.subject),
            calls.to_string(),
            others.to_string(),
            shown_bytes(entry.stored_bytes),
            escape(&entry.reason),
        ]);
    }
    table.render()
}
