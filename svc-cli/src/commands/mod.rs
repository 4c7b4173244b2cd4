//! One command, one file.

pub(crate) mod capture;
pub(crate) mod ci;
pub(crate) mod commit;
pub(crate) mod context;
pub(crate) mod db;
pub(crate) mod demo;
pub(crate) mod evidence;
pub(crate) mod facts;
mod git_hooks;
pub(crate) mod hook;
pub(crate) mod install;
pub(crate) mod investigate;
pub(crate) mod login;
pub(crate) mod me;
pub(crate) mod mirror;
mod moment;
pub(crate) mod note;
mod one_of;
pub(crate) mod quarantine;
pub(crate) mod report;
mod repository;
pub(crate) mod serve;
mod service;
pub(crate) mod session;
mod store;
