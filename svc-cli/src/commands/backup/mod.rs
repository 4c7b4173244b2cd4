//! Backups of the store and its mirrors: make, restore, verify.

mod restore;
mod take;
mod verify;
mod work;

use std::io::ErrorKind;
use std::path::PathBuf;

use svc_engine::backup::{BackupError, Manifest};
use svc_engine::store::StoreError;
use svc_engine::store::backup::CopyError;

pub(crate) use self::restore::Restore;
pub(crate) use self::take::Backup;
pub(crate) use self::verify::Verify;
use crate::error::{CommandError, chain};
use crate::output::Fields;

/// Returns what a backup contains, for people.
fn contents(manifest: &Manifest) -> Fields {
    let mut fields = Fields::default();
    fields.add("taken", manifest.taken_at.to_string());
    for organization in &manifest.organizations {
        let facts = svc_model::facts::FactTable::ALL;
        let facts: u64 = facts
            .iter()
            .map(|kind| organization.facts.get(*kind).total)
            .sum();
        let until = match facts {
            0 => String::new(),
            _ => format!(", up to {}", organization.boundary),
        };
        fields.add(
            "organization",
            format!(
                "{}: {facts} facts of {} Sessions{until}",
                organization.org_id, organization.sessions
            ),
        );
    }
    let mirrors = manifest.mirrors.as_ref();
    let missing = manifest.mirrors_missing.len();
    fields.add(
        "mirrors",
        match mirrors.map(Vec::len) {
            None => "not in it".to_owned(),
            Some(count) if missing == 0 => count.to_string(),
            Some(count) => format!("{count}; {missing} not found"),
        },
    );
    let bytes: u64 = manifest.files().map(|(_, bytes, _)| bytes).sum();
    fields.add("size", shown_bytes(bytes));
    fields
}

pub(super) fn shown_bytes(bytes: u64) -> String {
    #[expect(
        clippy::cast_precision_loss,
        reason = "one digit after the decimal point is shown"
    )]
    let mebibytes = bytes as f64 / (1024.0 * 1024.0);
    format!("{mebibytes:.1} MiB")
}

/// Returns the path that an argument gave.
fn folder(text: &str) -> PathBuf {
    match text.trim_end_matches('/') {
        "" => text.into(),
        trimmed => trimmed.into(),
    }
}

impl From<BackupError> for CommandError {
    fn from(error: BackupError) -> Self {
        let (code, hint) = match error {
            BackupError::Tables(CopyError::Store(error)) => return error.into(),
            BackupError::Tables(CopyError::NotEmpty { .. }) => {
                ("not_empty", Some("to replace everything in it: --replace"))
            }
            BackupError::Tables(CopyError::Damaged { .. }) => ("damaged", None),
            BackupError::OtherFormat(_)
            | BackupError::OtherRevision { .. }
            | BackupError::Tables(CopyError::OtherTables { .. }) => (
                "other_version",
                Some(
                    "restore it with the version that made it, then upgrade it with this one: svc db upgrade",
                ),
            ),
            BackupError::Exists(_) => ("exists", Some("name a folder that does not exist yet")),
            BackupError::NoBackup(_) => ("no_backup", None),
            BackupError::Mirror { .. } => ("mirror", None),
            BackupError::Mirrors { .. } => (
                "mirror_path",
                Some("the folder of the mirrors is set by SVC_MIRROR_PATH"),
            ),
            BackupError::Tables(CopyError::File(ref error)) | BackupError::Folder(ref error) => {
                let is_full = matches!(
                    error.kind(),
                    ErrorKind::StorageFull | ErrorKind::QuotaExceeded
                );
                ("io", is_full.then_some("name a folder on another disk"))
            }
        };
        let refused = Self::refused(code, chain(&error));
        match hint {
            Some(hint) => refused.hint(hint),
            None => refused,
        }
    }
}

/// Returns why the work ended: the operator interrupted it, or something failed.
fn ended(error: BackupError, was_interrupted: bool, left: &str) -> CommandError {
    let stopped = matches!(
        &error,
        BackupError::Tables(CopyError::Store(StoreError::Deadline))
    );
    if was_interrupted && (stopped || matches!(error, BackupError::Mirror { .. })) {
        return CommandError::refused("interrupted", format!("interrupted; {left}"));
    }
    error.into()
}
