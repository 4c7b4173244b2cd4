//! Tests of the whole service through its interface: the real programs on both backends.
//!
//! They are one program, so that the workspace links it only once. Each module answers one
//! question. What they build on is in `harness/`.

/// Creates two tests from each function that takes a backend. Without PostgreSQL, its test says so
/// and ends.
macro_rules! on_both_backends {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            #[test]
            fn sqlite() {
                super::$name(harness::server::Backend::Sqlite);
            }

            #[test]
            fn postgres() {
                super::$name(harness::server::Backend::Postgres);
            }
        }
    )+};
}

mod access;
mod backends;
mod backup;
mod bad_input;
mod call_halves;
mod calls;
mod capture_counts;
mod cases;
mod cli;
mod commit_claims;
mod concurrency;
mod connections;
mod console;
mod crash;
mod documentation;
mod encodings;
mod erasure;
mod examples;
mod export;
mod forge;
mod forge_examples;
mod full_store;
mod gateway_webhook;
mod generated_clients;
mod grant_attacks;
mod grants;
mod guides;
mod homeless;
mod integrate;
mod investigate;
mod layers;
mod links;
mod login;
mod logs;
mod mcp;
mod memory;
mod mirror;
mod open_telemetry;
mod outage;
mod outbox;
mod overview;
mod own_events;
mod own_gateway;
mod payload_schemas;
mod prices;
mod query;
mod real_repository;
mod report_commands;
mod reports;
mod search;
mod sessions;
mod spend;
mod standby;
mod startup;
mod store_commands;
mod traces;
mod transcript;
mod usage;
