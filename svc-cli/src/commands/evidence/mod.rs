//! Exact evidence: the calls of a Session, the messages of a call, and the parts themselves.

mod ask;
mod command;
mod file;
mod inventory;
pub(crate) mod manifest;
mod read;
mod selection;

pub(super) use self::ask::{ask, read};
pub(crate) use self::command::Evidence;
pub(super) use self::read::render_read;
