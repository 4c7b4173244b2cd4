//! Facts on their way into a transaction: what may be appended, and what becomes of it.

use std::cell::Cell;
use std::collections::HashMap;

use svc_model::capture::{CaptureSource, CaptureTotals, SourceCounts};
use svc_model::facts::FactTable;
use svc_model::id::{FactId, OrgId};
use svc_model::problem::Code;
use svc_model::time::Instant;

use super::StoreError;
use super::claims::{KnownClaim, KnownClaims};
use super::content::{ContentDigest, Encoded, Encoder};
use super::jobs::{self, RefreshRequest};
use super::organization::Stamp;
use super::redelivery::Difference;
use super::session_claims::{KnownSessionClaim, KnownSessionClaims};
use super::traces::Traces;
use super::transaction::Transaction;
use super::witness::Epoch;
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

    /// Stores what may be stored before the organization's row is locked: what is not captured at
    /// any moment.
    fn stage(
        _appending: &mut Appending<'_, '_>,
        _facts: &[&Self::Prepared],
    ) -> Result<(), StoreError> {
        Ok(())
    }

    /// Sets when a fact is captured, and returns that.
    fn stamp(fact: &mut Self::Prepared, stamp: Stamp) -> Option<Instant>;

    /// Stores facts of this kind and says what became of each.
    fn store(
        appending: &mut Appending<'_, '_>,
        facts: &[&Self::Prepared],
    ) -> Result<Vec<Outcome>, StoreError>;

    /// Tells what a stored fact leaves beside its row.
    fn trace<'a>(fact: &'a Self::Prepared, traces: &mut Traces<'a>);
}

/// Returns the facts of one kind among others, with their places.
macro_rules! of_kind {
    ($kind:ident, $facts:expr) => {
        $facts
            .iter()
            .enumerate()
            .filter_map(|(place, fact)| match fact {
                Prepared::$kind(fact) => Some((place, fact)),
                _ => None,
            })
            .unzip::<usize, _, Vec<_>, Vec<_>>()
    };
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

            fn table(&self) -> FactTable {
                match self {
                    $(Self::$kind(_) => FactTable::$table,)+
                }
            }

            /// Sets when the fact is captured, and returns that.
            fn stamp(&mut self, stamp: Stamp) -> Option<Instant> {
                match self {
                    $(Self::$kind(fact) => <$fact as Kind>::stamp(fact, stamp),)+
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

        /// Stores what may be stored before the organization's row is locked.
        fn stage_facts(
            appending: &mut Appending<'_, '_>,
            facts: &[&Prepared],
        ) -> Result<(), StoreError> {
            $({
                let (_, of_kind) = of_kind!($kind, facts);
                if !of_kind.is_empty() {
                    appending.table.set(Some(FactTable::$table));
                    <$fact as Kind>::stage(appending, &of_kind)?;
                    appending.table.set(None);
                }
            })+
            Ok(())
        }

        /// Writes facts, kind after kind, and says what became of each.
        fn write_facts(
            appending: &mut Appending<'_, '_>,
            facts: &[&Prepared],
            captured_at: Instant,
        ) -> Result<Vec<Outcome>, StoreError> {
            let mut outcomes = vec![None; facts.len()];
            let mut traces = Traces::default();
            $({
                let (places, of_kind) = of_kind!($kind, facts);
                if !of_kind.is_empty() {
                    appending.table.set(Some(FactTable::$table));
                    let stored = <$fact as Kind>::store(appending, &of_kind)?;
                    let mut fact_ids = Vec::new();
                    for ((place, fact), outcome) in places.into_iter().zip(of_kind).zip(stored) {
                        if let Outcome::Stored(fact_id) = outcome {
                            fact_ids.push(fact_id);
                            <$fact as Kind>::trace(fact, &mut traces);
                        }
                        outcomes[place] = Some(outcome);
                    }
                    appending.table.set(None);
                    let transaction = &mut *appending.transaction;
                    transaction.add_facts(FactTable::$table, &fact_ids, captured_at)?;
                }
            })+
            traces.write(appending, captured_at)?;
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

/// What one sender delivers. It is stored as a whole or not at all.
#[derive(Debug, Default)]
pub struct Delivery {
    /// The facts, in the order of the outcomes.
    pub facts: Vec<Append>,
    /// The mirrors that are to be refreshed because of them, or of pushes that are stored already.
    pub refreshes: Vec<RefreshRequest>,
    /// What is counted of it beside its facts, when it is a delivery of a source.
    pub counted: Option<Counted>,
}

/// What is counted of a delivery beside its facts.
#[derive(Clone, Debug)]
pub struct Counted {
    /// Where it came from.
    pub source: CaptureSource,
    /// When.
    pub at: Instant,
    /// Itself, and what of it was skipped or rejected.
    pub totals: CaptureTotals,
}

impl Counted {
    /// Returns a delivery of a source, of which nothing was skipped or rejected so far.
    pub fn new(source: CaptureSource, at: Instant) -> Self {
        Self {
            source,
            at,
            totals: CaptureTotals::delivery(source, at),
        }
    }

    /// Returns the counts of its source, for what was skipped or rejected.
    pub fn source(&mut self) -> &mut SourceCounts {
        self.totals.of(self.source)
    }

    /// Returns it with what became of its facts.
    pub fn with(mut self, facts: impl IntoIterator<Item = (FactTable, Outcome)>) -> CaptureTotals {
        let at = self.at;
        let counts = self.source();
        for (table, outcome) in facts {
            match outcome {
                Outcome::Stored(_) => {
                    counts.facts.entry(table.into()).or_default().stored += 1;
                    counts.last_stored_at = Some(at);
                }
                Outcome::Redelivered(_) | Outcome::Known => {
                    counts.facts.entry(table.into()).or_default().duplicates += 1;
                }
                Outcome::Conflict(_) => counts.conflicts += 1,
            }
        }
        self.totals
    }
}

impl From<Vec<Append>> for Delivery {
    fn from(facts: Vec<Append>) -> Self {
        Self {
            facts,
            ..Self::default()
        }
    }
}

impl Delivery {
    /// Prepares the facts.
    pub(super) fn prepare(self, org_id: &OrgId) -> PreparedDelivery {
        let facts = self.facts.into_iter();
        PreparedDelivery {
            facts: facts.map(|fact| fact.prepare(org_id)).collect(),
            refreshes: self.refreshes,
            counted: self.counted,
        }
    }
}

/// A delivery that is ready to be written.
pub(super) struct PreparedDelivery {
    facts: Vec<Prepared>,
    refreshes: Vec<RefreshRequest>,
    counted: Option<Counted>,
}

impl PreparedDelivery {
    pub(super) fn is_empty(&self) -> bool {
        self.facts.is_empty() && self.refreshes.is_empty()
    }

    /// Adds what is counted of it, with what became of its facts.
    pub(super) fn count(&self, outcomes: &[Outcome], totals: &mut CaptureTotals) {
        if let Some(counted) = &self.counted {
            let tables = self.facts.iter().map(Prepared::table);
            totals.add(&counted.clone().with(tables.zip(outcomes.iter().copied())));
        }
    }

    /// Returns whether it has facts of a kind.
    pub(super) fn has(&self, table: FactTable) -> bool {
        self.facts.iter().any(|fact| fact.table() == table)
    }

    /// Returns what writing it costs, in units of a small row.
    pub(super) fn weight(&self) -> usize {
        let facts: usize = self.facts.iter().map(Prepared::weight).sum();
        facts + self.refreshes.len()
    }
}

/// Writes deliveries, and says what became of the facts of each.
pub(super) fn write(
    appending: &mut Appending<'_, '_>,
    deliveries: &mut [&mut PreparedDelivery],
) -> Result<Vec<Vec<Outcome>>, StoreError> {
    stage_facts(appending, &facts(deliveries))?;
    // From here on the transactions of the organization are written one after the other.
    let stamp = appending.transaction.stamp()?;
    let received = deliveries
        .iter_mut()
        .flat_map(|delivery| &mut delivery.facts);
    let captured_at = received.filter_map(|fact| fact.stamp(stamp)).max();
    let mut outcomes = match captured_at {
        Some(captured_at) => write_facts(appending, &facts(deliveries), captured_at)?,
        None => Vec::new(),
    }
    .into_iter();
    let refreshes: Vec<&RefreshRequest> = deliveries
        .iter()
        .flat_map(|delivery| &delivery.refreshes)
        .collect();
    jobs::request(appending.transaction, &refreshes)?;
    Ok(deliveries
        .iter()
        .map(|delivery| outcomes.by_ref().take(delivery.facts.len()).collect())
        .collect())
}

fn facts<'d>(deliveries: &'d [&mut PreparedDelivery]) -> Vec<&'d Prepared> {
    deliveries
        .iter()
        .flat_map(|delivery| &delivery.facts)
        .collect()
}

/// Facts that are being written, in their transaction.
pub(super) struct Appending<'a, 't> {
    pub(super) transaction: &'a mut Transaction<'t>,
    pub(super) encoder: &'a Encoder,
    pub(super) known_claims: &'a KnownClaims,
    pub(super) known_session_claims: &'a KnownSessionClaims,
    pub(super) epoch: &'a mut Epoch,
    /// The kind of fact whose table is being written.
    pub(super) table: &'a Cell<Option<FactTable>>,
    /// The calls that are stored already, as the content of the others was.
    pub(super) retained_calls: Vec<Option<Outcome>>,
    pub(super) afterwards: Afterwards,
}

/// What is done once the transaction is committed, and not done when it fails.
#[derive(Debug, Default)]
pub(super) struct Afterwards {
    /// The content that it stored.
    pub(super) content: HashMap<ContentDigest, i64>,
    /// The claims on names that it stored.
    pub(super) claims: Vec<KnownClaim>,
    /// What it stored of what facts say of Sessions.
    pub(super) session_claims: Vec<KnownSessionClaim>,
    /// The Sessions that nobody knew before.
    pub(super) new_sessions: Vec<String>,
    /// The redeliveries that say otherwise than what is stored.
    pub(super) differences: Vec<Difference>,
}

impl Afterwards {
    /// Names the new Sessions, and tells what differs from what is stored.
    pub(super) fn tell(&self) {
        for session_id in &self.new_sessions {
            tracing::debug!(session_id, "session_stored");
        }
        for difference in &self.differences {
            difference.log();
        }
    }

    /// Remembers what is stored now.
    pub(super) fn remember(
        self,
        encoder: &Encoder,
        known_claims: &mut KnownClaims,
        known_session_claims: &mut KnownSessionClaims,
    ) {
        for (digest, content_id) in self.content {
            encoder.remember(digest, content_id);
        }
        for claim in self.claims {
            known_claims.remember(claim);
        }
        for claim in self.session_claims {
            known_session_claims.remember(claim);
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
