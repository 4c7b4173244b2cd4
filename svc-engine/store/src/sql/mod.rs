//! The two databases behind one set of calls.
//!
//! Everything here works on statements, values and connections. Beside the migrations, which make
//! the tables, nothing here knows what a table holds. It uses no other folder, so a question about
//! a driver, a lock or a lost connection is answered here alone. [`driver`] has what both drivers agree on, [`sqlite`] and [`postgres`] are the drivers,
//! and only [`connection`] knows which of them runs.

pub(crate) mod check;
pub(crate) mod checkpoint;
pub(crate) mod clock_fault;
pub(crate) mod connection;
pub(crate) mod driver;
pub(crate) mod error;
pub(crate) mod migrate;
pub(crate) mod pool;
pub(crate) mod postgres;
pub(crate) mod runtime;
pub(crate) mod sqlite;
pub(crate) mod statement;
pub(crate) mod turn;
pub(crate) mod url;
pub(crate) mod value;
