//! Configuration snippets and hooks for sources of evidence.

mod command;
mod snippet;

pub(crate) use self::command::Install;
