//! What the tests of the whole service build on: the real programs, real stores, and a client that
//! can be rude.
//!
//! | Module | What it gives |
//! |---|---|
//! | [`programs`], [`server`], [`process`] | the programs under test, started, killed and watched |
//! | [`foreign`] | other people's programs, where they can be installed |
//! | [`postgres`] | one PostgreSQL cluster for the whole run |
//! | [`own_cluster`] | a PostgreSQL server for one test, to fill, kill, copy and promote |
//! | [`git`](mod@git), [`git_server`], [`processes`] | repositories, good and bad forges, and what was left running |
//! | [`forge`] | a forge with a real repository, which reports to a service |
//! | [`http`] | requests that a polite client would not send |
//! | [`network`] | a network in front of the database that can go silent, lose an answer or lead elsewhere |
//! | [`case`](mod@case), [`variables`], [`pattern`], [`player`] | the black-box cases of `cases/` |
//! | [`delivery`] | gateway calls and CI outcomes as senders make them |
//! | [`schemas`] | checks of every answer against the published schemas |
//! | [`small_disk`] | a disk that fills up quickly, or is read-only |
//! | [`random`] | seeded randomness |
//!
//! The tests know only the interface of the service: they start programs and speak HTTP. They use
//! only the exact JSON and the list of endpoints from `svc-model`, and the list of the console's
//! pages from `svc-server`.
#![expect(
    clippy::missing_panics_doc,
    reason = "a test harness panics when anything is not as it should be"
)]

pub mod case;
pub mod delivery;
pub mod foreign;
pub mod forge;
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
