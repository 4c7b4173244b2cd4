//! What tests build on: throw-away stores on both backends, and facts with sensible defaults.
#![expect(
    clippy::missing_panics_doc,
    reason = "a test panics when anything is not as it should be"
)]

pub mod builders;
pub mod git;
pub mod git_server;
pub mod otlp;
pub mod postgres;
pub mod processes;
mod stores;

pub use stores::{Backend, TestStore, postgres_with_schema};
