//! One transaction of facts: what may be appended, and what becomes of it.

use std::collections::HashMap;

use svc_model::facts::FactTable;
use svc_model::id::{FactId, OrgId};
use svc_model::problem::Code;

use super::StoreError;
use super::claims::{KnownClaim, KnownClaims};
use super::connection::Connection;
use super::content::{ContentDigest, Encoded, Encoder};
use super::jobs::RefreshRequest;
use super::redelivery::Difference;
use super::traces::Traces;
use crate::fact::{
    CiOutcome, DeveloperDecision, EditObservation, PullRequestMerge, PullRequestRevision, Push,
    RejectedEdit, RepositoryRename, RetryLinkage, SessionCommitObservation,
};

/// What became of one fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is stored.
    Stored(FactId),
    /// It was stored before, under this id.
    Redelivered(FactId),
    /// It was stored before. Of facts that no answer names, nobody asks under which id.
    Known,
    /// Its identity says otherwise than a stored fact.
    Conflict(Code),
}

/// A kind of fact: how it is prepared on the sender's thread and written by the writer's.
pub(super) trait Kind: Sized {
    /// As the writer takes it.
    type Prepared;

    /// Returns what writing it costs, in units of a small row.
    fn weight(fact: &Self::Prepared) -> usize;

    /// Prepares it. What costs more than writing it is done here.
    fn prepare(self: Box<Self>, org_id: &OrgId) -> Self::Prepared;

    /// Stores facts of this kind and says what became of each.
    fn store(
        transaction: &mut Transaction<'_>,
        facts: &[&Self::Prepared],
    ) -> Result<Vec<Outcome>, StoreError>;

    /// Tells what a stored fact leaves beside its row.
    fn trace<'a>(fact: &'a Self::Prepared, traces: &mut Traces<'a>);
}

/// Declares the kinds of fact, in the order in which a transaction writes them.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($fact:ty) in $table:ident,)+) => {
        /// One fact that is to be stored.
        #[derive(Debug)]
        pub enum Append {
            $($(#[$doc])* $kind(Box<$fact>),)+
        }

        /// One fact that is ready to be written.
        pub(super) enum Prepared {
            $($kind(<$fact as Kind>::Prepared),)+
        }

        impl Prepared {
            /// Returns what writing the fact costs, in units of a small row.
            pub(super) fn weight(&self) -> usize {
                match self {
                    $(Self::$kind(fact) => <$fact as Kind>::weight(fact),)+
                }
            }
        }

        impl Append {
            /// Returns the table of the fact.
            pub fn table(&self) -> FactTable {
                match self {
                    $(Self::$kind(_) => FactTable::$table,)+
                }
            }

            /// Prepares the fact.
            pub(super) fn prepare(self, org_id: &OrgId) -> Prepared {
                match self {
                    $(Self::$kind(fact) => Prepared::$kind(fact.prepare(org_id)),)+
                }
            }
        }

        /// Writes facts, kind after kind, and says what became of each.
        pub(super) fn write(
            transaction: &mut Transaction<'_>,
            facts: &[&Prepared],
        ) -> Result<Vec<Outcome>, StoreError> {
            let mut outcomes = vec![None; facts.len()];
            let mut traces = Traces::default();
            $({
                let (places, of_kind): (Vec<usize>, Vec<_>) = facts
                    .iter()
                    .enumerate()
                    .filter_map(|(place, fact)| {
                        if let Prepared::$kind(fact) = fact { Some((place, fact)) } else { None }
                    })
                    .unzip();
                if !of_kind.is_empty() {
                    let stored = <$fact as Kind>::store(transaction, &of_kind)?;
                    for ((place, fact), outcome) in places.into_iter().zip(of_kind).zip(stored) {
                        if let Outcome::Stored(_) = outcome {
                            <$fact as Kind>::trace(fact, &mut traces);
                        }
                        outcomes[place] = Some(outcome);
                    }
                }
            })+
            traces.write(transaction)?;
            let outcomes: Option<Vec<Outcome>> = outcomes.into_iter().collect();
            outcomes.ok_or(StoreError::NotStored)
        }
    };
}

/// Canonical bytes of what a fact keeps up to which it is prepared beside other requests.
const SMALL_BYTES_MAX: usize = 64 * 1024;

impl Append {
    /// Returns whether the fact is prepared in no time: whether little is left to be serialised and
    /// compressed.
    pub(super) fn is_small(&self) -> bool {
        let raw = match self {
            Self::DeveloperDecision(fact) => &fact.raw,
            Self::EditObservation(fact) => &fact.raw,
            Self::RejectedEdit(fact) => &fact.raw,
            Self::RetryLinkage(fact) => &fact.raw,
            Self::CiOutcome(fact) => &fact.raw,
            // A call is encoded already; the others hold nothing of any size.
            Self::InferenceCall(_)
            | Self::Push(_)
            | Self::RefreshRequest(_)
            | Self::PullRequestRevision(_)
            | Self::PullRequestMerge(_)
            | Self::RepositoryRename(_)
            | Self::SessionCommitObservation(_) => return true,
        };
        raw.fits(SMALL_BYTES_MAX)
    }
}

kinds! {
    /// A model call.
    InferenceCall(Encoded) in InferenceCalls,
    /// What was decided about an edit.
    DeveloperDecision(DeveloperDecision) in DeveloperDecisions,
    /// What became of an applied edit.
    EditObservation(EditObservation) in EditObservations,
    /// A refused edit.
    RejectedEdit(RejectedEdit) in RejectedEdits,
    /// A refused edit that was tried again with success.
    RetryLinkage(RetryLinkage) in RetryLinkages,
    /// A push to a branch.
    Push(Push) in Pushes,
    /// That a pushed repository is to be fetched. It is no fact, but about one.
    RefreshRequest(RefreshRequest) in Pushes,
    /// A pull request as it was opened or changed.
    PullRequestRevision(PullRequestRevision) in PullRequestRevisions,
    /// A pull request as it was merged.
    PullRequestMerge(PullRequestMerge) in PullRequestMerges,
    /// A repository's change of name.
    RepositoryRename(RepositoryRename) in RepositoryRenames,
    /// The outcome of a CI run.
    CiOutcome(CiOutcome) in CiOutcomes,
    /// A link between a Session and a commit.
    SessionCommitObservation(SessionCommitObservation) in SessionCommitObservations,
}

/// The transaction that is being written.
pub(super) struct Transaction<'t> {
    pub(super) connection: &'t mut Connection,
    pub(super) org_id: &'t OrgId,
    pub(super) encoder: &'t Encoder,
    pub(super) known_claims: &'t KnownClaims,
    pub(super) afterwards: Afterwards,
}

/// What is done once the transaction is committed, and not done when it fails.
#[derive(Debug, Default)]
pub(super) struct Afterwards {
    /// The content that it stored.
    pub(super) content: HashMap<ContentDigest, i64>,
    /// The claims on names that it stored.
    pub(super) claims: Vec<KnownClaim>,
    /// The redeliveries that say otherwise than what is stored.
    pub(super) differences: Vec<Difference>,
}

impl Afterwards {
    /// Remembers what is stored now, and tells what differs from it.
    pub(super) fn run(self, encoder: &Encoder, known_claims: &mut KnownClaims) {
        for (digest, content_id) in self.content {
            encoder.remember(digest, content_id);
        }
        for claim in self.claims {
            known_claims.remember(claim);
        }
        for difference in self.differences {
            difference.log();
        }
    }
}

#[cfg(test)]
mod tests {
    use svc_model::json::{Json, Object};

    use super::*;
    use crate::testing::builders::{decision, edit, outcome, push};

    #[test]
    fn a_fact_that_keeps_much_is_not_prepared_beside_other_requests() {
        let raw = |bytes: usize| Json::from(Object::from_iter([("raw", "x".repeat(bytes))]));
        let facts = |raw: &Json| {
            let mut decision = decision(1);
            decision.raw.clone_from(raw);
            let mut edit = edit(2, "c");
            edit.raw.clone_from(raw);
            let mut outcome = outcome(3, "r");
            outcome.raw.clone_from(raw);
            [
                Append::DeveloperDecision(Box::new(decision)),
                Append::EditObservation(Box::new(edit)),
                Append::CiOutcome(Box::new(outcome)),
            ]
        };
        assert!(facts(&raw(1_024)).iter().all(Append::is_small));
        assert!(!facts(&raw(20 * 1024 * 1024)).iter().any(Append::is_small));
        assert!(Append::Push(Box::new(push(4))).is_small());
    }
}
