use std::fs;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::error::CommandError;
use crate::help;
use crate::output::{Output, escape};

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The folder that the pages are written to; it is made when it is absent.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// What was written, as a program reads it.
#[derive(Debug, Serialize)]
struct Written {
    folder: String,
    pages: usize,
}

impl Man {
    pub(crate) fn run(&self, output: &mut Output) -> Result<(), CommandError> {
        fs::create_dir_all(&self.folder)?;
        // In a page the commands are a section of their own.
        let command = help::command().help_template("{all-args}{after-help}");
        clap_mangen::generate_to(command, &self.folder)?;
        let is_page = |entry: &fs::DirEntry| {
            let name = entry.file_name();
            name.to_string_lossy().starts_with("svc") && name.to_string_lossy().ends_with(".1")
        };
        let entries = fs::read_dir(&self.folder)?.filter_map(Result::ok);
        let written = Written {
            folder: self.folder.display().to_string(),
            pages: entries.filter(is_page).count(),
        };
        output.value(&written, |written| {
            let folder = escape(&written.folder);
            format!("{} pages in {folder}\n", written.pages)
        })?;
        output.note("they are found when MANPATH has the folder above a folder man1 with them");
        Ok(())
    }
}
