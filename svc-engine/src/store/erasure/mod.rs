//! Erasure of captured content. Facts stay; what people, models and machines said in them goes.
//!
//! Contents are shared, and a list of ids says which a call needs. So an erasure first looks at all
//! calls of the database ([`ErasurePlan`]): which of them it is of, which contents these need, and which
//! of those any other call needs too. Then it goes on call by call in transactions of bounded size
//! ([`Ledger::erase`]). Each writes its row of the log, marks its facts, empties them, and deletes the
//! contents that no call is left to need. What one transaction has erased is erased for good, and what
//! a crash has left undone is found by the next plan.
//!
//! Nobody else writes while such a transaction runs. Calls that were stored since the plan was made are
//! looked at before anything is deleted, and what writers remember of contents ends with it
//! ([`super::witness`]).
//!
//! Deleted bytes stay in the files of a database until something is written over them, so an erasure
//! ends with [`Ledger::compact`].

mod again;
mod apply;
mod compact;
mod log;
mod plan;
mod select;

use svc_model::id::{SessionId, UserId};
use svc_model::time::Instant;
use uuid::Uuid;

pub use self::again::KeptErasures;
pub use self::compact::Compaction;
pub use self::log::ErasureRow;
pub use self::plan::ErasurePlan;
pub(in crate::store) use self::select::erased_cell;

/// Of which facts the content is erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErasureSubject {
    /// Of those of a Session.
    Session(SessionId),
    /// Of those that name a user, and of those that name none in a Session where nobody else is named.
    User(UserId),
    /// Of those that were captured before a moment.
    OlderThan(Instant),
}

/// An erasure that is to be carried out.
#[derive(Clone, Debug)]
pub struct ErasureOrder {
    /// A fresh id, under which its rows stand in the log.
    pub erasure_id: Uuid,
    /// Of what.
    pub subject: ErasureSubject,
    /// Why, exactly as the operator wrote it.
    pub reason: String,
    /// When.
    pub recorded_at: Instant,
    /// Who does it.
    pub client_id: String,
}

/// Facts by kind, of those that hold captured content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasedFacts {
    /// Model calls.
    pub inference_calls: u64,
    /// Decisions.
    pub developer_decisions: u64,
    /// Edit observations.
    pub edit_observations: u64,
    /// Refused edits.
    pub rejected_edits: u64,
    /// Retry linkages.
    pub retry_linkages: u64,
}

impl ErasedFacts {
    /// Returns how many there are.
    pub const fn total(&self) -> u64 {
        self.inference_calls
            + self.developer_decisions
            + self.edit_observations
            + self.rejected_edits
            + self.retry_linkages
    }

    fn add(&mut self, other: &Self) {
        self.inference_calls += other.inference_calls;
        self.developer_decisions += other.developer_decisions;
        self.edit_observations += other.edit_observations;
        self.rejected_edits += other.rejected_edits;
        self.retry_linkages += other.retry_linkages;
    }
}

/// What an erasure would take away, and what it would leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasureForecast {
    /// The Sessions of the facts.
    pub sessions: u64,
    /// The facts whose content goes.
    pub facts: ErasedFacts,
    /// Distinct messages and pieces of payloads that go.
    pub contents: u64,
    /// Bytes as they are kept, without indexes.
    pub stored_bytes: u64,
    /// Contents that stay because other calls of their Session need them.
    pub shared_in_session: u64,
    /// Contents that stay because calls of other Sessions need them: system prompts, definitions of
    /// tools, and the like.
    pub shared_by_all: u64,
}

/// What was erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// The facts.
    pub facts: ErasedFacts,
    /// Distinct messages and pieces of payloads.
    pub contents: u64,
    /// Bytes as they were kept, without indexes.
    pub stored_bytes: u64,
}

impl Erased {
    /// Adds what else was erased.
    pub fn add(&mut self, other: &Self) {
        self.facts.add(&other.facts);
        self.contents += other.contents;
        self.stored_bytes += other.stored_bytes;
    }
}
