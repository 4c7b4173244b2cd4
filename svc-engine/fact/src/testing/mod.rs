//! What tests build on: facts with sensible defaults.
#![expect(
    clippy::missing_panics_doc,
    reason = "a test panics when anything is not as it should be"
)]

pub mod builders;
pub mod processes;
