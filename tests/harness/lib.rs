//! What the tests of the whole service stand on: the real programs, real stores, and a client that
//! may be rude.
//!
//! | Module | What it gives |
//! |---|---|
//! | [`programs`], [`server`], [`process`] | the programs under test, started, killed and watched |
//! | [`foreign`] | programs of others, where they can be installed |
//! | [`postgres`] | one PostgreSQL cluster for the whole run |
//! | [`own_cluster`] | a PostgreSQL server of one test, to be filled, killed, copied and promoted |
//! | [`git`](mod@git), [`git_server`], [`processes`] | repositories, forges good and bad, and what is left running |
//! | [`http`] | requests that a polite client would not send |
//! | [`network`] | a network in front of the database that can fall silent, lose an answer or lead elsewhere |
//! | [`case`](mod@case), [`variables`], [`pattern`], [`player`] | the black-box cases of `cases/` |
//! | [`delivery`] | gateway calls and CI outcomes as senders make them |
//! | [`schemas`] | every answer checked against what is published |
//! | [`small_disk`] | a disk that is soon full, or can only be read |
//! | [`random`] | seeded randomness |
//!
//! The tests know the service by its interface only: they start programs and speak HTTP. From
//! `svc-model` they take the exact JSON and the list of endpoints, from `svc-server` the list of the
//! console's pages, nothing else.
#![expect(
    clippy::missing_panics_doc,
    reason = "a test harness panics when anything is not as it should be"
)]

pub mod case;
pub mod delivery;
pub mod foreign;
pub mod http;
pub mod network;
pub mod own_cluster;
pub mod pattern;
pub mod player;
pub use svc_engine::testing::{git, git_server, postgres, processes};
pub mod process;
pub mod programs;
pub mod random;
pub mod schemas;
pub mod server;
pub mod small_disk;
pub mod variables;
