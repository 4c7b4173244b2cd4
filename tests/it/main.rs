//! Tests of the whole service by its interface: the real programs on both backends.
//!
//! One program, so that the workspace links it once. Each module is one question; what they stand
//! on is in `harness/`.

/// Makes two tests of each function that takes a backend. Where there is no PostgreSQL, its test
/// says so and ends.
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
mod capture_counts;
mod cases;
mod cli;
mod concurrency;
mod connections;
mod console;
mod crash;
mod documentation;
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
mod login;
mod logs;
mod mcp;
mod memory;
mod mirror;
mod outage;
mod outbox;
mod own_events;
mod own_gateway;
mod payload_schemas;
mod query;
mod real_repository;
mod report_commands;
mod reports;
mod sessions;
mod standby;
mod startup;
mod store_commands;
mod transcript;
