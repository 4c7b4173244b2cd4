//! Reports: what became of the work of agents, counted from facts.
//!
//! A report is computed for one answer and stored nowhere. Only recorded evidence counts, so
//! what was not recorded is never a negative outcome.

mod fate;

pub use fate::Fate;
