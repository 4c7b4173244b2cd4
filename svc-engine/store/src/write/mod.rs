//! Writing: what the process's one writer and an operator's commands store, change and erase.
//!
//! [`append`] writes facts, in the transaction that [`worker`] began. [`quarantine`], [`grants`],
//! [`erasure`], [`halves`] and [`jobs`] each own the rows of a log or a queue, so they also have the methods
//! that read these rows, and the methods of [`store::Store`] and [`ledger::Ledger`] that change
//! them. Writing stands above reading because it often reads first: an erasure selects what it
//! erases, a writer recalls what a Session has.

pub(crate) mod append;
pub(crate) mod appending;
pub(crate) mod bulk;
pub(crate) mod call_keys;
pub(crate) mod calls;
pub(crate) mod claims;
pub(crate) mod clock_check;
pub(crate) mod command;
pub(crate) mod commit_claims;
pub(crate) mod composition;
pub(crate) mod content;
pub(crate) mod continuations;
pub(crate) mod erasure;
pub(crate) mod facts;
pub(crate) mod grants;
pub(crate) mod halves;
pub(crate) mod jobs;
pub(crate) mod kind;
pub(crate) mod known_contents;
pub(crate) mod ledger;
pub(crate) mod organization;
pub(crate) mod outcome;
pub(crate) mod prices;
pub(crate) mod quarantine;
pub(crate) mod recall;
pub(crate) mod redelivery;
pub(crate) mod retained_calls;
pub(crate) mod session_claims;
pub(crate) mod sessions;
pub(crate) mod signed_outcomes;
pub(crate) mod store;
pub(crate) mod traces;
pub(crate) mod transaction;
pub(crate) mod uncounted;
pub(crate) mod witness;
pub(crate) mod worker;
pub(crate) mod writer;
