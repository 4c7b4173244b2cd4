//! The pages, one per file.

pub(super) mod call;
pub(super) mod calls;
pub(super) mod commit;
pub(super) mod failures;
pub(super) mod lifecycle;
pub(super) mod models;
pub(super) mod overview;
pub(super) mod part;
mod period;
mod repository;
pub(super) mod retention;
mod scores;
pub(super) mod session;
pub(super) mod sessions;
pub(super) mod share;
mod timeline;
