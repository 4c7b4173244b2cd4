//! Giving back the space of what was erased, and with it the bytes that lie there still.

use crate::store::{Ledger, StoreError};

/// The tables that hold captured content.
const TABLES: [&str; 7] = [
    "content",
    "raw_payloads",
    "inference_calls",
    "developer_decisions",
    "edit_observations",
    "rejected_edits",
    "retry_linkages",
];

/// Whether the files of a database hold nothing any more of what was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compaction {
    /// They hold nothing of it.
    Done,
    /// Somebody reads what was there before, and something of it may be left. The same again, later, is
    /// done with it.
    InUse,
}

impl Ledger {
    /// Rewrites the files of the database without what was deleted: all of SQLite's and its log, the
    /// tables of captured content of PostgreSQL. Nobody can write while that goes on, and of PostgreSQL
    /// nobody reads these tables; it takes about as much free space as the database has.
    ///
    /// # Errors
    ///
    /// If the schema is not at head, or the database cannot be rewritten. Nothing is lost then.
    pub fn compact(&self) -> Result<Compaction, StoreError> {
        self.writing_at_head()?.compact(&TABLES)
    }
}
