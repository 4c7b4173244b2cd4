use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;
use svc_engine::backup::{Manifest, restore};
use svc_engine::store::DatabaseUrl;

use super::{NAMED_MAX, bytes_left, contents, folder, undone, work};
use crate::commands::erase::NOT_REWRITTEN;
use crate::commands::mirror::{MirrorOptions, refresh_command};
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Output, escape, quote};

#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The folder of the backup.
    #[arg(value_name = "DIR", conflicts_with = "org_id", value_parser = NonEmptyStringValueParser::new())]
    folder: String,

    /// Replace the store if it is not empty.
    ///
    /// The old SQLite file is kept beside the new one under another name. Stop the servers first.
    #[arg(long)]
    replace: bool,

    #[command(flatten)]
    options: MirrorOptions,
}

/// What was restored, for programs.
#[derive(Debug, Serialize)]
struct RestoreResult {
    store: String,
    replaced: Option<String>,
    mirrors_restored: u64,
    mirrors_kept: u64,
    /// Facts whose content was erased again, because it had been erased before.
    #[serde(skip_serializing_if = "Option::is_none")]
    erased_again: Option<u64>,
    /// `in_use` or `not_rewritten` if the files may still hold the bytes of what was erased again.
    #[serde(skip_serializing_if = "Option::is_none")]
    space: Option<&'static str>,
    /// The commands that repeat the operators' decisions that are not in the backup. `None` if the
    /// decisions of the replaced store could not be read.
    undone: Option<Vec<String>>,
    manifest: Manifest,
}

impl Restore {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let settings = self.options.settings()?;
        let folder = folder(&self.folder);
        let mirrors = settings.mirror.as_ref().map(|mirror| &*mirror.path);
        let url = &settings.store.url;
        let restored = work::run(output, "restoring", work::REMOVED, |watch| {
            restore(&folder, url, mirrors, self.replace, watch)
        })
        .map_err(|error| match error.code() {
            "damaged" => {
                let folder = quote(&self.folder);
                error.hint(format!("see what is damaged: svc verify {folder}"))
            }
            _ => error,
        })?;
        let erased_again = restored.erased_again;
        let space = restored.bytes_left.as_ref().map(|left| match left.cause {
            Some(_) => NOT_REWRITTEN,
            None => "in_use",
        });
        let bytes_left = restored.bytes_left.as_ref().map(bytes_left);
        let restored = RestoreResult {
            erased_again: erased_again.filter(|facts| *facts > 0),
            space,
            store: url.shown(),
            replaced: restored.replaced.map(|path| path.display().to_string()),
            mirrors_restored: restored.mirrors_restored,
            mirrors_kept: restored.mirrors_kept,
            undone: restored
                .undone
                .map(|undone| undone.iter().map(undone::command).collect()),
            manifest: restored.manifest,
        };
        output.value(&restored, |restored| {
            let store = escape(&restored.store);
            let contents = contents(&restored.manifest).render();
            format!("restored {} into {store}\n{contents}", escape(&self.folder))
        })?;
        if let (DatabaseUrl::Sqlite(_), Some(server)) = (url, svc_server::running_at(url)) {
            output.warning(&format!(
                "the service at {server} has the database that was there still open, and refuses \
                 everything until it is started anew"
            ));
        }
        if let Some(replaced) = &restored.replaced {
            output.note(&format!("the old database is now {replaced}"));
        }
        match erased_again {
            Some(0) => {}
            Some(facts) => output.note(&format!(
                "what had been erased of the store that was there is erased again, of {facts} facts"
            )),
            None => output.warning(
                "it could not be read what had been erased of the store that was there; what was erased \
                 after the backup was made is there again",
            ),
        }
        if restored.mirrors_kept > 0 {
            output.note(&format!(
                "{} mirrors already existed and were left unchanged",
                restored.mirrors_kept
            ));
        }
        let in_backup = restored.manifest.mirrors.as_ref().map_or(0, Vec::len);
        if mirrors.is_none() && in_backup > 0 {
            output.note("the mirrors were not restored; name their folder: --mirror-path");
        }
        if let (Some(first), Some(_)) = (restored.manifest.mirrors_missing.first(), mirrors) {
            output.warning(&format!(
                "mirrors that had been fetched are not in the backup ({}); to fetch one again: {}",
                restored.manifest.mirrors_missing.len(),
                refresh_command(&first.repo)
            ));
        }
        // Commands come last.
        let mut next = Vec::new();
        if let Some((warning, command)) = bytes_left {
            output.warning(&format!("{warning}:"));
            next.push(command);
        }
        match restored.undone.as_deref() {
            Some([]) => {}
            Some(undone) => {
                let (count, named) = (undone.len(), undone.len().min(NAMED_MAX));
                let all = if count > named { " --json prints all." } else { "" };
                output.warning(&format!(
                    "{count} decisions of operators are not in the backup and no longer in force.{all} \
                     To repeat them in this store:"
                ));
                next.extend_from_slice(&undone[..named]);
            }
            None => output.warning(
                "the quarantine log and the grants of the store that was there could not be read; what \
                 was quarantined, removed or revoked after the backup was made is as it was then",
            ),
        }
        output.next(&ServiceOptions::default(), &next);
        if space == Some(NOT_REWRITTEN) {
            return Err(CommandError::refused(
                NOT_REWRITTEN,
                "the backup is restored, but the files of the database were not rewritten",
            ));
        }
        Ok(())
    }
}
