use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;
use svc_engine::backup::{Manifest, back_up};
use svc_engine::clock::Clock;

use super::{contents, folder, work};
use crate::commands::mirror::MirrorOptions;
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

/// The backup, as a program reads it.
#[derive(Debug, Serialize)]
struct Taken {
    folder: String,
    manifest: Manifest,
}

impl Backup {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let settings = self.options.settings()?;
        let folder = folder(&self.folder);
        let mirrors = settings.mirror.as_ref().map(|mirror| &*mirror.path);
        let url = &settings.store.url;
        let manifest = work::run(output, "backing up", |watch| {
            back_up(url, mirrors, &folder, Clock::system().now(), watch)
        })?;
        let taken = Taken {
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
        Ok(())
    }
}
