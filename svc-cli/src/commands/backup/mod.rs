//! Backups of the store and its mirrors: make, restore, verify.

mod restore;
mod take;
mod undone;
mod verify;
mod work;

use std::io::ErrorKind;
use std::path::PathBuf;

use svc_engine::backup::{BackupError, BytesLeft, Manifest, UndoneDecision};
use svc_engine::store::StoreError;
use svc_engine::store::backup::CopyError;

pub(crate) use self::restore::Restore;
pub(crate) use self::take::Backup;
pub(crate) use self::verify::Verify;
use crate::commands::suggestion;
use crate::error::{CommandError, chain};
use crate::output::{Fields, shown_bytes};

/// Undone decisions that are named with a command each.
const NAMED_MAX: usize = 10;

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

/// Returns a hint for each of the first undone decisions: the command that repeats it.
fn hints(undone: &[UndoneDecision]) -> Vec<String> {
    let named = undone.iter().take(NAMED_MAX);
    let mut hints: Vec<String> = named
        .map(|decision| {
            let command = undone::command(decision);
            format!("the restore undid a later decision; to repeat it: {command}")
        })
        .collect();
    if let more @ 1.. = undone.len().saturating_sub(NAMED_MAX) {
        hints.push(format!(
            "{more} more later decisions are undone: compare svc quarantine-log and svc grant list \
             --history with what you keep of them"
        ));
    }
    hints
}

/// Returns a warning that the files of a restored database may still hold the bytes of what was
/// erased again, and the command that rewrites them.
fn bytes_left(left: &BytesLeft) -> (String, String) {
    let cause = left.cause.as_ref().map_or_else(
        || "a reader still used the old state".to_owned(),
        |error| chain(error),
    );
    let warning = format!(
        "what was erased again may have left bytes in the files of the database, which were not \
         rewritten ({cause}); to rewrite them"
    );
    let (org_id, order) = &left.order;
    (warning, suggestion::erase(org_id, order))
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
            BackupError::Tables(CopyError::Damaged { .. }) | BackupError::Foreign { .. } => {
                ("damaged", None)
            }
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
            BackupError::MirrorNotRestored { ref restored, .. } => {
                let refused = Self::refused("mirrors_not_restored", chain(&error)).hint(
                    "the service fetches them with the next push; sooner: svc mirror refresh OWNER/NAME",
                );
                let bytes_left = restored.bytes_left.as_ref().map(|left| {
                    let (warning, command) = bytes_left(left);
                    format!("{warning}: {command}")
                });
                let undone = hints(restored.undone.as_deref().unwrap_or_default());
                let hints = bytes_left.into_iter().chain(undone);
                return hints.fold(refused, Self::hint);
            }
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

/// Returns why the work ended: the operator interrupted it, or something failed. `left` is what an
/// interruption leaves, unless the error says otherwise.
fn ended(error: BackupError, was_interrupted: bool, left: &str) -> CommandError {
    let stopped = matches!(
        &error,
        BackupError::Tables(CopyError::Store(StoreError::Deadline))
    );
    if was_interrupted && (stopped || matches!(error, BackupError::Mirror { .. })) {
        return CommandError::refused("interrupted", format!("interrupted; {left}"));
    }
    let is_restored = matches!(&error, BackupError::MirrorNotRestored { .. });
    let ended = CommandError::from(error);
    if was_interrupted && is_restored {
        return ended.after("interrupted");
    }
    ended
}

#[cfg(test)]
mod tests {
    use svc_engine::store::{ErasureOrder, ErasureSubject};
    use svc_model::id::{OrgId, SessionId};
    use svc_model::time::Instant;

    use super::*;

    #[test]
    fn bytes_that_were_left_are_named_with_the_command_that_rewrites_the_files() {
        let order = ErasureOrder {
            erasure_id: uuid::Uuid::nil(),
            subject: ErasureSubject::Session(SessionId::new("a b").unwrap()),
            reason: "it's asked for".to_owned(),
            recorded_at: Instant::parse("2026-01-31T09:30:00Z").unwrap(),
            client_id: "shell (ann)".to_owned(),
        };
        let mut left = BytesLeft {
            order: (OrgId::new("acme").unwrap(), order),
            cause: None,
        };
        let (warning, command) = bytes_left(&left);
        assert_eq!(
            warning,
            "what was erased again may have left bytes in the files of the database, which were not \
             rewritten (a reader still used the old state); to rewrite them"
        );
        assert_eq!(
            command,
            r"svc erase --session 'a b' --org acme --reason 'it'\''s asked for' --apply"
        );
        left.cause = Some(StoreError::Deadline);
        let (warning, _) = bytes_left(&left);
        assert!(warning.contains("(the deadline has passed)"), "{warning}");
    }
}
