//! Sends what agents keep on disk. Nothing leaves this machine unless a folder was named.

mod command;
mod folders;
mod importer;
mod lines;
mod opencode;
mod outcome;
mod places;
mod reading;
mod requests;
mod state;
mod survey;
mod transcript;

pub(crate) use self::command::Import;
pub(crate) use self::folders::{FolderOptions, Folders};
pub(crate) use self::reading::{Advance, Reading, ReadingError};
pub(crate) use self::requests::Requests;
pub(crate) use self::state::StateFolder;
pub(crate) use self::transcript::Transcript;
