//! What tests build on: repositories, and the servers that people fetch them from.
#![expect(
    clippy::missing_panics_doc,
    reason = "a test panics when anything is not as it should be"
)]

pub mod git;
pub mod git_server;
