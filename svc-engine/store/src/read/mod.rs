//! Reading: a snapshot, and one file for each question that is asked of it.
//!
//! Each file has the statements of its question and the methods of [`snapshot::Snapshot`] that run
//! them. Reading uses the descriptions of tables and all that is below them, and nothing that
//! writes: whatever is in this folder cannot change a row.

pub(crate) mod boundary;
pub(crate) mod calls;
pub(crate) mod cohort;
pub(crate) mod commit_claims;
pub(crate) mod compatibility;
pub(crate) mod contents;
pub(crate) mod continuations;
pub(crate) mod counts;
pub(crate) mod deliveries;
pub(crate) mod dossier;
pub(crate) mod export;
pub(crate) mod halves;
pub(crate) mod history;
pub(crate) mod inferred;
pub(crate) mod observations;
pub(crate) mod organizations;
pub(crate) mod outcomes;
pub(crate) mod owners;
pub(crate) mod prices;
pub(crate) mod pull_requests;
pub(crate) mod report;
pub(crate) mod repositories;
pub(crate) mod search;
pub(crate) mod session_claims;
pub(crate) mod session_pages;
pub(crate) mod sessions;
pub(crate) mod snapshot;
pub(crate) mod usage;
