//! What the tables of facts hold: one file for each kind of fact.
//!
//! From one description of a kind ([`record`]) follow inserting, reading back, telling a redelivery
//! from a conflict, touching the Session, claiming the names of the repository, counting,
//! quarantine, timelines, erasure, export, and verification. Descriptions run no statement, so that
//! reading and writing cannot differ in what they take a table to be. They use [`crate::pack`] for
//! the forms of their columns and [`crate::sql`] for values and the parts of statements.

pub(crate) mod calls;
pub(crate) mod ci;
pub(crate) mod commit_claims;
pub(crate) mod decisions;
pub(crate) mod edits;
pub(crate) mod event;
pub(crate) mod halves;
pub(crate) mod kind;
pub(crate) mod observations;
pub(crate) mod pull_requests;
pub(crate) mod pushes;
pub(crate) mod record;
pub(crate) mod renames;
pub(crate) mod retries;
pub(crate) mod row;
pub(crate) mod session_claims;
pub(crate) mod sessions;
pub(crate) mod usage;
