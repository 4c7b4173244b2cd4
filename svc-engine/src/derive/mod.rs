//! Facts become results: synchronous functions over values, without store, clock, I/O or logging.
//!
//! What is derived is never stored. It is computed for one answer, from one snapshot.

pub mod attribution;
pub mod diff;
pub mod dossier;
pub mod fate;
pub mod rank;
pub mod repository;
pub mod score;
pub mod statistics;
pub mod tokens;
