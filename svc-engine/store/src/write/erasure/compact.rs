//! Rewrites the files of a database, so that they no longer hold the bytes of deleted content.
//!
//! SQLite overwrites deleted cells (`secure_delete`), but pages that were split earlier may hold
//! copies: hence `VACUUM` and an empty log. PostgreSQL skips with a warning what a role may not
//! rewrite; that a table has another file afterwards is the proof.

use crate::sql::connection::Connection;
use crate::sql::driver::Compaction;
use crate::sql::error::StoreError;
use crate::table::kind;
use crate::write::ledger::Ledger;

/// Returns the tables that hold captured content.
fn tables() -> Vec<&'static str> {
    let mut tables = vec!["content", "raw_payloads", "call_halves", "half_pieces"];
    tables.extend(kind::with_content().map(|kind| kind::table(kind).name));
    tables
}

impl Ledger {
    /// Rewrites the files of the database without deleted data: the whole SQLite file and its log,
    /// or PostgreSQL's tables of captured content. Nobody can write meanwhile, and on PostgreSQL
    /// nobody can read these tables. It needs about as much free space as the database takes.
    ///
    /// # Errors
    ///
    /// If the schema is not at head, or the database is not rewritten, as
    /// [`StoreError::NotOwner`]. Then nothing is lost.
    pub fn compact(&self) -> Result<Compaction, StoreError> {
        compact(&mut self.writing_at_head()?)
    }

    /// Checks that [`Ledger::compact`] may rewrite the files. Whoever erases content checks this
    /// first.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotOwner`], or if the store cannot be reached.
    pub fn check_compaction(&self) -> Result<(), StoreError> {
        check_compaction(&mut self.writing_at_head()?)
    }
}

/// Refuses a connection that could erase content and not rewrite the files that hold it.
pub(crate) fn check_compaction(connection: &mut Connection) -> Result<(), StoreError> {
    connection.check_compaction(&tables())
}

/// Does what [`Ledger::compact`] does.
pub(crate) fn compact(connection: &mut Connection) -> Result<Compaction, StoreError> {
    connection.compact(&tables())
}
