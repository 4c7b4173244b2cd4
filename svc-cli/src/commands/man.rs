use std::fs;
use std::io;
use std::path::PathBuf;

use clap::{Args, Command};
use serde::Serialize;

use crate::error::CommandError;
use crate::output::{Output, escape};

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The folder to write the pages to; it is created if necessary.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// What was written, for programs.
#[derive(Debug, Serialize)]
struct ManPages {
    folder: String,
    pages: usize,
}

impl Man {
    /// Writes the pages of a command line.
    pub(crate) fn run(
        &self,
        command_line: Command,
        output: &mut Output,
    ) -> Result<(), CommandError> {
        let within = |error: io::Error| {
            CommandError::refused("io", format!("{}: {error}", self.folder.display()))
        };
        fs::create_dir_all(&self.folder).map_err(within)?;
        // A manual page has a separate section for the commands.
        let command = command_line.help_template("{all-args}{after-help}");
        clap_mangen::generate_to(command, &self.folder).map_err(within)?;
        let is_page = |entry: &fs::DirEntry| {
            let name = entry.file_name();
            name.to_string_lossy().starts_with("svc") && name.to_string_lossy().ends_with(".1")
        };
        let entries = fs::read_dir(&self.folder).map_err(within)?;
        let entries = entries.filter_map(Result::ok);
        let written = ManPages {
            folder: self.folder.display().to_string(),
            pages: entries.filter(is_page).count(),
        };
        output.value(&written, |written| {
            let folder = escape(&written.folder);
            format!("{} pages in {folder}\n", written.pages)
        })?;
        output.note("man finds them in a folder man1 whose parent is in MANPATH");
        Ok(())
    }
}
