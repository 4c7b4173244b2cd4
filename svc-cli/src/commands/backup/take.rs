use std::path::Path;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;
use svc_engine::backup::{FetchedMirror, Manifest, back_up, unfinished};
use svc_engine::clock::Clock;

use super::{contents, folder, work};
use crate::commands::mirror::{MirrorOptions, refresh_command};
use crate::error::CommandError;
use crate::output::{Output, escape, quote};

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The folder to create for the backup.
    #[arg(value_name = "DIR", value_parser = NonEmptyStringValueParser::new())]
    folder: String,

    #[command(flatten)]
    options: MirrorOptions,
}

/// The backup, for programs.
#[derive(Debug, Serialize)]
struct TakenBackup {
    folder: String,
    manifest: Manifest,
}

impl Backup {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let settings = self.options.settings()?;
        let folder = folder(&self.folder);
        let mirrors = settings.mirror.as_ref().map(|mirror| &*mirror.path);
        let url = &settings.store.url;
        let manifest = work::run(output, "backing up", work::REMOVED, |watch| {
            back_up(url, mirrors, &folder, Clock::system().now(), watch)
        })?;
        let taken = TakenBackup {
            folder: folder.display().to_string(),
            manifest,
        };
        output.value(&taken, |taken| {
            let (store, folder) = (escape(&url.shown()), escape(&taken.folder));
            format!(
                "backed up {store} to {folder}\n{}",
                contents(&taken.manifest).render()
            )
        })?;
        output.next(
            &crate::options::ServiceOptions::default(),
            &[format!("svc verify {}", quote(&taken.folder))],
        );
        let left = unfinished(Path::new(&taken.folder));
        if !left.is_empty() {
            let left: Vec<_> = left
                .iter()
                .map(|left| quote(&left.display().to_string()).into_owned())
                .collect();
            output.warning(&format!(
                "backups that were never finished hold evidence too; if no backup is running: rm -r {}",
                left.join(" ")
            ));
        }
        match (&*taken.manifest.mirrors_missing, mirrors) {
            ([], _) => Ok(()),
            (missing, Some(folder)) => Err(without(missing, folder)),
            (missing, None) => {
                output.warning(&format!(
                    "the mirrors that the service has fetched are not in the backup ({}); to include \
                     them, name their folder: --mirror-path",
                    missing.len()
                ));
                Ok(())
            }
        }
    }
}

/// Returns an error that names the mirrors that were not found. The backup is complete otherwise,
/// but nobody looks at a nightly job unless it fails.
fn without(missing: &[FetchedMirror], folder: &Path) -> CommandError {
    const NAMED_MAX: usize = 10;
    let folder = folder.display();
    let mut names: Vec<String> = missing
        .iter()
        .take(NAMED_MAX)
        .map(|mirror| mirror.repo.clone())
        .collect();
    match missing.len().saturating_sub(NAMED_MAX) {
        0 => {}
        more => names.push(format!("{more} more")),
    }
    let error = CommandError::refused(
        "mirrors_missing",
        format!(
            "the backup is without mirrors that were fetched and are not in {folder}: {}",
            names.join(", ")
        ),
    )
    .hint("if they are in another folder: set SVC_MIRROR_PATH to it");
    match missing {
        [first, ..] => error.hint(format!(
            "to fetch one again: {}",
            refresh_command(&first.repo)
        )),
        [] => error,
    }
}
