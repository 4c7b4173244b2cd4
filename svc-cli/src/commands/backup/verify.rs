use std::collections::BTreeMap;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;
use svc_engine::backup::{verify, verify_backup};
use svc_engine::store::backup::{Finding, Findings};

use super::{folder, work};
use crate::commands::store::settings;
use crate::error::CommandError;
use crate::options::StoreOptions;
use crate::output::{Output, Table, escape};

const UNFINISHED: &str = "not everything was checked, and nothing was changed";

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The folder of a backup; without it, the store is checked.
    #[arg(value_name = "DIR", conflicts_with_all = ["database_url", "org_id"], value_parser = NonEmptyStringValueParser::new())]
    folder: Option<String>,

    #[command(flatten)]
    store: StoreOptions,
}

/// What was found, for programs.
#[derive(Debug, Serialize)]
struct VerifyResult {
    of: String,
    damaged: u64,
    findings: Vec<FindingRow>,
    rows: BTreeMap<String, u64>,
}

#[derive(Debug, Serialize)]
struct FindingRow {
    table: String,
    id: Option<String>,
    damage: &'static str,
    detail: String,
}

impl Verify {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let (of, found) = if let Some(text) = &self.folder {
            let folder = folder(text);
            let found = work::run(output, "verifying", UNFINISHED, |watch| {
                verify_backup(&folder, watch)
            })?;
            (text.clone(), found.1)
        } else {
            let url = settings(&self.store)?.url;
            let found = work::run(output, "verifying", UNFINISHED, |watch| verify(&url, watch))?;
            (url.shown(), found)
        };
        let verified = verified(of, found);
        output.value(&verified, render)?;
        match verified.damaged {
            0 => Ok(()),
            1 => Err(CommandError::refused("damaged", "one problem was found")),
            count => Err(CommandError::refused(
                "damaged",
                format!("{count} problems were found"),
            )),
        }
    }
}

fn verified(of: String, found: Findings) -> VerifyResult {
    let finding = |finding: Finding| FindingRow {
        table: finding.table,
        id: finding.id,
        damage: finding.damage.as_str(),
        detail: finding.detail,
    };
    VerifyResult {
        of,
        damaged: found.total,
        findings: found.findings.into_iter().map(finding).collect(),
        rows: found.rows,
    }
}

fn render(verified: &VerifyResult) -> String {
    let of = escape(&verified.of);
    if verified.damaged == 0 {
        let (rows, tables): (u64, usize) = (verified.rows.values().sum(), verified.rows.len());
        return format!("no damage found in {of}: {rows} rows in {tables} tables\n");
    }
    let mut table = Table::new(["table", "id", "damage", "detail"]);
    for found in &verified.findings {
        table.row([
            found.table.clone(),
            found.id.as_deref().map_or_else(|| "-".to_owned(), escape),
            found.damage.to_owned(),
            escape(&found.detail),
        ]);
    }
    let left = verified.damaged - verified.findings.len() as u64;
    let more = match left {
        0 => String::new(),
        left => format!("... and {left} more\n"),
    };
    table.render() + &more
}
