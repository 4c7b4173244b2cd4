use clap::Args;
use serde::Serialize;
use svc_engine::clock::{Clock, Ids};
use svc_engine::store::{NewQuarantineEntry, QuarantineAction};
use svc_model::facts::FactTable;
use svc_model::id::ForeignId;

use super::check_reason;
use crate::commands::one_of::one_of;
use crate::commands::store;
use crate::error::CommandError;
use crate::options::StoreOptions;
use crate::output::{Output, escape};

#[derive(Debug, Args)]
pub(crate) struct Change {
    /// The kind of fact.
    #[arg(value_parser = one_of(FactTable::ALL, FactTable::as_str))]
    table: FactTable,

    /// The id of the fact.
    fact_id: String,

    /// Why; it stays in the log.
    #[arg(long)]
    reason: String,

    #[command(flatten)]
    store: StoreOptions,
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

impl Change {
    pub(crate) fn run(
        self,
        action: QuarantineAction,
        output: &mut Output,
    ) -> Result<(), CommandError> {
        let fact_id = ForeignId::new(&self.fact_id)
            .map_err(|rule| CommandError::argument("the fact id", rule))?;
        check_reason(&self.reason)?;
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
