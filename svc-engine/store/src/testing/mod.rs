//! What tests build on: throw-away stores on both backends.
#![expect(
    clippy::missing_panics_doc,
    reason = "a test panics when anything is not as it should be"
)]

mod facts;
pub mod plan_check;
pub mod postgres;
mod sql;
mod stores;

pub use facts::{
    append, append_all, append_one, count, entry, erasure_order, filled, price_table, session, set,
};
pub use sql::{change_rows, run_sql, schema_digest};
pub use stores::{Backend, TestStore, postgres_with_schema};
