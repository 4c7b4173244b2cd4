//! A first look: plant a small session, find it, read it.

mod command;
mod local;
mod report;
mod story;

pub(crate) use self::command::Demo;
