//! A first look: load sample evidence, find it, read it.

mod command;
mod conversation;
mod local;
mod organization;
mod planting;
mod report;
mod story;

pub(crate) use self::command::Demo;
