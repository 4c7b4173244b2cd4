//! The pages, one per file.

pub(super) mod abandonment;
pub(super) mod call;
pub(super) mod calls;
mod caveat;
pub(super) mod commit;
pub(super) mod comparison;
pub(super) mod failures;
pub(super) mod health;
pub(super) mod lifecycle;
pub(super) mod models;
pub(super) mod overview;
pub(super) mod part;
mod past;
mod period;
pub(super) mod quarantine;
mod repository;
pub(super) mod retention;
mod scores;
pub(super) mod search;
pub(super) mod session;
pub(super) mod sessions;
pub(super) mod share;
pub(super) mod spend;
mod timeline;
