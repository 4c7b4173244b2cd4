//! Erases captured content. Facts stay; what people, models and machines said in them is deleted.
//!
//! Calls share contents, and each call lists the ids of the contents that it needs. So an erasure
//! first reads all calls of the database ([`ErasurePlan`]): which calls to erase, which contents
//! these need, and which of those contents another call also needs. Then it erases the calls in
//! transactions of bounded size ([`Ledger::erase`](crate::Ledger::erase)). Each transaction adds a
//! row to the log, marks its facts, empties them, and deletes the contents that no remaining call
//! needs. A committed transaction is final. After a crash, the next plan finds what is left to
//! erase.
//!
//! Nobody else writes while such a transaction runs. Before it deletes anything, it reads the calls
//! that were stored since the plan was made. After it, writers forget which contents they have
//! stored ([`crate::write::witness`]).
//!
//! The restore of a backup repeats the erasures of the store that it replaces ([`KeptErasures`]), all
//! of them in the transaction that loads the tables.
//!
//! Deleted bytes stay in the files of a database until they are overwritten, so an erasure ends
//! with [`Ledger::compact`](crate::Ledger::compact).

mod again;
mod apply;
mod claims;
mod compact;
mod halves;
mod log;
mod plan;
mod select;

use svc_model::facts::FactTable;
use svc_model::id::{SessionId, UserId};
use svc_model::time::Instant;
use uuid::Uuid;

use crate::table::kind;

pub use self::again::{ErasedAgain, KeptErasures};
pub(crate) use self::compact::{check_compaction, compact};
pub use self::log::ErasureRow;
pub use self::plan::ErasurePlan;
pub(crate) use self::select::erased_cell;

/// Which facts lose their content in an erasure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErasureSubject {
    /// The facts of a Session.
    Session(SessionId),
    /// The facts that name a user, and the facts that name no user in a Session where nobody else
    /// is named.
    User(UserId),
    /// The facts that were captured before a moment.
    OlderThan(Instant),
}

/// An erasure to carry out.
#[derive(Clone, Debug)]
pub struct ErasureOrder {
    /// A fresh id. All rows of the erasure in the log have it.
    pub erasure_id: Uuid,
    /// Which facts to erase.
    pub subject: ErasureSubject,
    /// The reason, exactly as the operator wrote it.
    pub reason: String,
    /// When it is recorded.
    pub recorded_at: Instant,
    /// Who erases.
    pub client_id: String,
}

/// The number of facts of each kind that holds captured content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasedFacts([u64; FactTable::ALL.len()]);

impl ErasedFacts {
    /// Returns the number of facts of a kind.
    pub const fn get(&self, kind: FactTable) -> u64 {
        self.0[kind as usize]
    }

    /// Returns the kinds that hold captured content, and the number of facts of each.
    pub fn iter(&self) -> impl Iterator<Item = (FactTable, u64)> {
        kind::with_content().map(|kind| (kind, self.get(kind)))
    }

    /// Returns the number of facts of all kinds.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Adds to the number of facts of a kind.
    pub(crate) const fn count(&mut self, kind: FactTable, more: u64) {
        self.0[kind as usize] += more;
    }

    fn add(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum += more;
        }
    }
}

/// What an erasure would delete, and what it would leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasureForecast {
    /// The number of Sessions that the facts belong to.
    pub sessions: u64,
    /// The facts whose content would be deleted.
    pub facts: ErasedFacts,
    /// The distinct messages and pieces of payloads that would be deleted.
    pub contents: u64,
    /// The halves of calls that would be deleted.
    pub halves: u64,
    /// The stored bytes that would be freed, without indexes.
    pub stored_bytes: u64,
    /// Contents that stay because other calls of their Session need them.
    pub shared_in_session: u64,
    /// Contents that stay because other calls need them and that all Sessions share: system
    /// prompts, definitions of tools, and the like.
    pub shared_by_all: u64,
}

/// What was erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasedContent {
    /// The facts whose content was erased.
    pub facts: ErasedFacts,
    /// The distinct messages and pieces of payloads that were deleted.
    pub contents: u64,
    /// The halves of calls that were deleted. The log does not say.
    pub halves: u64,
    /// The stored bytes that were freed, without indexes.
    pub stored_bytes: u64,
}

impl ErasedContent {
    /// Adds the counts of another erasure.
    pub fn add(&mut self, other: &Self) {
        self.facts.add(&other.facts);
        self.contents += other.contents;
        self.halves += other.halves;
        self.stored_bytes += other.stored_bytes;
    }
}
