//! One command, one file.

pub(crate) mod backup;
pub(crate) mod capture;
pub(crate) mod ci;
pub(crate) mod commit;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod context;
pub(crate) mod db;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod erase;
pub(crate) mod evidence;
pub(crate) mod export;
pub(crate) mod facts;
mod git_hooks;
pub(crate) mod grant;
pub(crate) mod hook;
#[cfg(test)]
mod import {
    mod opencode;
}
pub(crate) mod install;
mod interruption;
pub(crate) mod investigate;
pub(crate) mod login;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod me;
pub(crate) mod mirror;
mod moment;
pub(crate) mod note;
mod one_of;
pub(crate) mod outbox;
mod place;
pub(crate) mod quarantine;
pub(crate) mod report;
mod repository;
mod revision;
pub(crate) mod schema;
mod sending;
pub(crate) mod serve;
pub(crate) mod service;
pub(crate) mod session;
pub(crate) mod sessions;
mod store;
mod suggestion;
pub(crate) mod transcript;
