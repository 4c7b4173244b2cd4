use clap::Args;
use serde::Serialize;
use svc_engine::clock::Clock;
use svc_engine::mirror::{
    CollectedMirror, GC_POLICY_VERSION, GcAction, GcError, GcReason, MirrorFolder, MirrorRetention,
    collect,
};
use svc_model::query::LifetimeIdentity;
use svc_model::time::Instant;

use super::{MirrorOptions, required};
use crate::commands::store::ledger;
use crate::error::{CommandError, chain};
use crate::output::{Output, Table, escape};

#[derive(Debug, Args)]
pub(crate) struct Gc {
    /// Keep mirrors that were pushed to in the last DAYS days.
    #[arg(
        long,
        default_value_t = 90,
        value_name = "DAYS",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    retention_days: u32,

    /// Remove the others instead of only listing them.
    #[arg(long)]
    apply: bool,

    #[command(flatten)]
    options: MirrorOptions,
}

/// What happens to one mirror, for programs.
#[derive(Debug, Serialize)]
struct CollectedRow {
    org_id: String,
    repo: Option<String>,
    action: &'static str,
    last_push_captured_at: Option<Instant>,
    skip_reason: Option<&'static str>,
    repository_identity: Option<LifetimeIdentity>,
    dry_run: bool,
    retention_days: u32,
    policy_version: &'static str,
}

impl Gc {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let settings = self.options.settings()?;
        let config = required(settings.mirror)?;
        let org_id = settings.store.org_id;
        let folder = MirrorFolder::new(&config.path, org_id.clone());
        let ledger = ledger(&settings.store.url, &org_id, output)?;
        let retention = MirrorRetention {
            now: Clock::system().now(),
            days: self.retention_days,
        };
        let apply = self.apply.then_some(&ledger);
        let collected = collect(&folder, &mut ledger.snapshot()?, retention, apply)?;
        let row = |collected: CollectedMirror| CollectedRow {
            org_id: org_id.to_string(),
            repo: collected.repo.map(String::from),
            action: match collected.action {
                GcAction::Removed => "removed",
                GcAction::Kept(_) => "kept",
            },
            last_push_captured_at: collected.last_push_at,
            skip_reason: match collected.action {
                GcAction::Removed => None,
                GcAction::Kept(reason) => Some(GcReason::as_str(reason)),
            },
            repository_identity: collected
                .lifetime
                .identity()
                .cloned()
                .map(LifetimeIdentity::from),
            dry_run: !self.apply,
            retention_days: self.retention_days,
            policy_version: GC_POLICY_VERSION,
        };
        let rows: Vec<CollectedRow> = collected.into_iter().map(row).collect();
        output.value(&rows, |rows| render(rows))?;
        if !self.apply && rows.iter().any(|row| row.action == "removed") {
            output.note("nothing was removed; to remove them, add --apply");
        }
        Ok(())
    }
}

fn render(rows: &[CollectedRow]) -> String {
    if rows.is_empty() {
        return "no mirrors\n".to_owned();
    }
    let mut table = Table::new(["repository", "identity", "action", "last push", "why"]);
    for row in rows {
        let identity = row.repository_identity.as_ref();
        let dash = || "-".to_owned();
        table.row([
            row.repo.as_deref().map_or_else(dash, escape),
            identity.map_or_else(dash, ToString::to_string),
            row.action.to_owned(),
            row.last_push_captured_at
                .map_or_else(dash, |at| at.to_string()),
            row.skip_reason.unwrap_or_default().to_owned(),
        ]);
    }
    table.render()
}

impl From<GcError> for CommandError {
    fn from(error: GcError) -> Self {
        match error {
            GcError::Store(error) => error.into(),
            GcError::Folder(_) => Self::refused("mirror_path", chain(&error)),
        }
    }
}
