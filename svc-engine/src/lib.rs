//! The evidence service without its transport: facts, capture, storage, derivation and reads.
//!
//! Two arrows and nothing else. In: a request becomes facts ([`capture`], pure) and facts are
//! appended ([`store`], one writer, group commit). Out: a question opens one snapshot ([`read`]),
//! derives ([`mod@derive`], pure) and becomes a reply. A function belongs to one arrow.

mod admission;
mod background;
pub mod backup;
pub mod capture;
pub mod clock;
pub mod deadline;
pub mod derive;
pub mod engine;
pub mod error;
pub mod fact;
pub mod mirror;
mod priority;
pub mod private;
pub mod read;
pub mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod threads;
