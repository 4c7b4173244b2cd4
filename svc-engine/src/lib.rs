//! The evidence service without its transport: facts, capture, storage, derivation and reads.
//!
//! Two arrows and nothing else. In ([`ingest`]): a request becomes facts ([`capture`], pure) and facts
//! are appended ([`store`], one writer, group commit). Out: a question opens one snapshot ([`read`]),
//! derives ([`mod@derive`], pure) and becomes a reply. A function belongs to one arrow.

mod admission;
mod background;
pub mod backup;
mod changed_files;
mod commit_claims;
pub mod engine;
pub mod error;
pub mod ingest;
mod priority;
pub mod read;
#[cfg(feature = "testing")]
pub mod testing;

pub use svc_engine_capture as capture;
pub use svc_engine_derive as derive;
pub use svc_engine_fact as fact;
pub use svc_engine_fact::{clock, deadline, private};
pub use svc_engine_mirror as mirror;
pub use svc_engine_search as search;
pub use svc_engine_store as store;
