//! How a source of evidence is told where to send it.

mod command;
mod snippet;

pub(crate) use self::command::Install;
