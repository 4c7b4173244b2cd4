//! Turns facts into results: synchronous functions over values, with no store, clock, I/O or
//! logging.
//!
//! Nothing derived is stored. It is computed for one answer, from one snapshot.

pub mod attribution;
pub mod attribution_share;
pub mod call_outcome;
pub mod call_pairs;
pub mod ci;
pub mod cohort;
pub mod commit_message;
pub mod comparison;
pub mod decision;
pub mod declined;
pub mod diff;
pub mod dossier;
pub mod fate;
pub mod lifecycle;
pub mod merge_retention;
pub mod model_report;
pub mod observed;
pub mod overview;
pub mod patch;
pub mod place;
pub mod policy;
pub mod price;
pub mod pull_requests;
pub mod rank;
pub mod repository;
pub mod retention_report;
pub mod retention_scores;
pub mod reverts;
pub mod score;
pub mod search_tokens;
mod sent;
pub mod session_status;
pub mod session_usage;
pub mod share_report;
pub mod silence;
pub mod spend;
pub mod statistics;
pub mod title;
pub mod usage;
