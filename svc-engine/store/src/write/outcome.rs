//! What becomes of a fact that is appended.

use svc_model::id::FactId;
use svc_model::ingest::{CallMember, RejectedCall};
use svc_model::problem::Code;

/// The outcome of appending a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is stored.
    Stored(FactId),
    /// It is stored, without an id that another call has.
    StoredApart(FactId),
    /// It is stored, and supersedes a fact of lesser authority that says something else.
    Superseding(FactId),
    /// It was stored before, under this id.
    Redelivered(FactId),
    /// It is not stored: this fact of greater authority says something else.
    Overruled(FactId),
    /// It was stored before, under this id, with other values of these members, which stand.
    Differs(FactId, &'static [CallMember]),
    /// It was stored before. No answer names such a fact, so nobody needs its id.
    Known,
    /// A different fact with the same identity is stored.
    Conflict(Code),
    /// It is not stored: this call of another Session is the same, and its Session continues that one.
    Copied(FactId),
    /// It is not stored, because it cannot be.
    Rejected(RejectedCall),
}

impl Outcome {
    /// Returns the id of the fact if it is stored now.
    pub fn stored(self) -> Option<FactId> {
        match self {
            Self::Stored(fact_id) | Self::StoredApart(fact_id) | Self::Superseding(fact_id) => {
                Some(fact_id)
            }
            Self::Redelivered(_)
            | Self::Overruled(_)
            | Self::Differs(..)
            | Self::Known
            | Self::Conflict(_)
            | Self::Copied(_)
            | Self::Rejected(_) => None,
        }
    }
}

/// What becomes of a call, given the stored calls that share an id with it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verdict {
    /// None does, so it is stored.
    New,
    /// All that share the model's id started at other times, so it is stored too, under this id.
    Further(FactId),
    /// Another call has its first key, so it is stored under this id.
    Apart(FactId),
    /// It is not stored.
    Decided(Outcome),
}
