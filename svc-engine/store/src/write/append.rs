//! Appends facts: what may be appended, and the outcome of each fact.
//!
//! Content is written in sorted order, and then the row of the organization is locked, so servers
//! on one database never wait in a circle.

use svc_engine_fact::{CallHalf, CommitClaim, SessionContinuation};
use svc_model::capture::{CaptureSource, CaptureTotals, SourceCounts};
use svc_model::facts::FactTable;
use svc_model::id::OrgId;
use svc_model::ingest::{LogSkip, SkippedCall};
use svc_model::time::Instant;

use super::appending::Appending;
use super::commit_claims::{self, SettledClaim};
use super::content::Encoded;
use super::continuations;
use super::halves::{self, SettledHalves};
use super::jobs::{self, RefreshRequest};
use super::kind::Kind;
use super::outcome::Outcome;
use super::traces::Traces;
use super::transaction::Transaction;
use crate::sql::error::StoreError;
use crate::table::halves::PreparedHalf;
use crate::table::kind::kinds;
use crate::table::row::{NewRow, Stamp};

/// Returns the facts of one kind, with their positions.
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

/// Declares what can be appended, and how each kind is written.
macro_rules! append {
    ($($(#[$doc:meta])* $kind:ident($fact:ty) in $table:ident,)+) => {
        /// A fact to store.
        #[derive(Debug)]
        pub enum Append {
            $($(#[$doc])* $kind(Box<$fact>),)+
        }

        /// A fact that is ready to be written.
        pub(crate) enum Prepared {
            $($kind(<$fact as Kind>::Prepared),)+
        }

        impl Prepared {
            /// Returns the cost of writing the fact, in units of a small row.
            pub(crate) fn weight(&self) -> usize {
                match self {
                    $(Self::$kind(fact) => <$fact as Kind>::weight(fact),)+
                }
            }

            fn table(&self) -> FactTable {
                match self {
                    $(Self::$kind(_) => FactTable::$table,)+
                }
            }

            /// Sets the capture time of the fact, and returns it.
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

            /// Returns whether preparing the fact takes almost no time, because there is little to
            /// serialise and compress.
            pub(crate) fn is_small(&self) -> bool {
                let raw = match self {
                    $(Self::$kind(fact) => fact.raw(),)+
                };
                raw.is_none_or(|raw| raw.fits(SMALL_BYTES_MAX))
            }

            /// Prepares the fact.
            pub(crate) fn prepare(self, org_id: &OrgId) -> Prepared {
                match self {
                    $(Self::$kind(fact) => Prepared::$kind(fact.prepare(org_id)),)+
                }
            }
        }

        /// Stores what can be stored before the organization's row is locked.
        fn stage_facts(
            appending: &mut Appending<'_, '_>,
            facts: &[&Prepared],
        ) -> Result<(), StoreError> {
            $({
                let (_, of_kind) = of_kind!($kind, facts);
                if !of_kind.is_empty() {
                    appending.enter(FactTable::$table)?;
                    <$fact as Kind>::stage(appending, &of_kind)?;
                    appending.leave(FactTable::$table)?;
                }
            })+
            Ok(())
        }

        /// Writes facts, one kind after another, and then claims. Returns the outcome of each fact.
        fn write_facts(
            appending: &mut Appending<'_, '_>,
            facts: &[&Prepared],
            claims: &[&NewRow],
            continuations: &[&SessionContinuation],
            captured_at: Instant,
        ) -> Result<Vec<Outcome>, StoreError> {
            let mut outcomes = vec![None; facts.len()];
            let mut traces = Traces::default();
            $({
                let (places, of_kind) = of_kind!($kind, facts);
                if !of_kind.is_empty() {
                    appending.enter(FactTable::$table)?;
                    let stored = <$fact as Kind>::store(appending, &of_kind)?;
                    let mut fact_ids = Vec::new();
                    for ((place, fact), outcome) in places.into_iter().zip(of_kind).zip(stored) {
                        if let Some(fact_id) = outcome.stored() {
                            fact_ids.push(fact_id);
                            <$fact as Kind>::trace(fact, &mut traces);
                        }
                        outcomes[place] = Some(outcome);
                    }
                    appending.leave(FactTable::$table)?;
                    let transaction = &mut *appending.transaction;
                    transaction.add_facts(FactTable::$table, &fact_ids, captured_at)?;
                }
            })+
            if !claims.is_empty() {
                let transaction = &mut *appending.transaction;
                commit_claims::insert(transaction, claims, &mut traces, captured_at)?;
            }
            let copied = std::mem::take(&mut appending.calls.copied);
            if !(copied.is_empty() && continuations.is_empty()) {
                let transaction = &mut *appending.transaction;
                continuations::write(transaction, &copied, continuations, &mut traces, captured_at)?;
            }
            traces.write(appending, captured_at)?;
            let outcomes: Option<Vec<Outcome>> = outcomes.into_iter().collect();
            outcomes.ok_or(StoreError::NotStored)
        }
    };
}

/// The maximum canonical bytes of a raw payload that is prepared without a thread of its own.
const SMALL_BYTES_MAX: usize = 64 * 1024;

kinds! { append
    /// A model call.
    InferenceCall(Encoded) in InferenceCalls,
}

/// The delivery of one sender. It is stored as a whole or not at all.
#[derive(Debug, Default)]
pub struct Delivery {
    /// The facts, in the order of the outcomes.
    pub facts: Vec<Append>,
    /// The mirrors to refresh because of the facts, or of pushes that are already stored.
    pub refreshes: Vec<RefreshRequest>,
    /// The commits that a client reported.
    pub claims: Vec<CommitClaim>,
    /// The Sessions that continue others, as their senders say.
    pub continuations: Vec<SessionContinuation>,
    /// What became of earlier claims.
    pub settled_claims: Vec<SettledClaim>,
    /// Halves of calls, which wait for each other.
    pub halves: Vec<ArrivedHalf>,
    /// The halves that the facts were made of. If they are no longer what they were, nothing of the
    /// delivery is stored.
    pub settled_halves: Option<SettledHalves>,
    /// What to count besides the facts, for a delivery from a source.
    pub counted: Option<DeliveryCounts>,
}

/// Half of a call, and when something may become of it if no other half comes.
#[derive(Debug)]
pub struct ArrivedHalf {
    /// The half.
    pub half: CallHalf,
    /// When it is due.
    pub due_at: Instant,
}

/// What to count for a delivery besides its facts.
#[derive(Clone, Debug)]
pub struct DeliveryCounts {
    /// Its source.
    pub source: CaptureSource,
    /// When it arrived.
    pub at: Instant,
    /// The delivery itself, and what was skipped or rejected.
    pub totals: CaptureTotals,
}

impl DeliveryCounts {
    /// Returns the counts of a delivery, with nothing skipped or rejected yet.
    pub fn new(source: CaptureSource, at: Instant) -> Self {
        Self {
            source,
            at,
            totals: CaptureTotals::delivery(source, at),
        }
    }

    /// Returns the counts of its source, so that skipped and rejected items can be added.
    pub fn source(&mut self) -> &mut SourceCounts {
        self.totals.of(self.source)
    }

    /// Returns the counts, with the outcomes of the facts added.
    pub fn with(mut self, facts: impl IntoIterator<Item = (FactTable, Outcome)>) -> CaptureTotals {
        let at = self.at;
        let counts = self.source();
        for (table, outcome) in facts {
            let is_conflict = matches!(outcome, Outcome::Superseding(_) | Outcome::Overruled(_));
            counts.conflicts += u64::from(is_conflict);
            if let Outcome::StoredApart(_) = outcome {
                let shared = LogSkip::SharedResponseId.as_str().to_owned();
                *counts.skipped.entry(shared).or_default() += 1;
            }
            match outcome {
                Outcome::Stored(_) | Outcome::StoredApart(_) | Outcome::Superseding(_) => {
                    counts.facts.entry(table.into()).or_default().stored += 1;
                    counts.last_stored_at = Some(at);
                }
                Outcome::Redelivered(_) | Outcome::Overruled(_) | Outcome::Known => {
                    counts.facts.entry(table.into()).or_default().duplicates += 1;
                }
                Outcome::Differs(..) | Outcome::Conflict(_) => counts.conflicts += 1,
                Outcome::Copied(_) => {
                    let copied = SkippedCall::Copied.as_str().to_owned();
                    *counts.skipped.entry(copied).or_default() += 1;
                }
                Outcome::Rejected(reason) => {
                    let reason = reason.as_str().to_owned();
                    *counts.rejected.entry(reason).or_default() += 1;
                }
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
    pub(crate) fn prepare(self, org_id: &OrgId) -> PreparedDelivery {
        let facts = self.facts.into_iter();
        let claims = self.claims.into_iter();
        PreparedDelivery {
            facts: facts.map(|fact| fact.prepare(org_id)).collect(),
            refreshes: self.refreshes,
            claims: claims.map(|claim| NewRow::of(claim, org_id)).collect(),
            continuations: self.continuations,
            halves: self
                .halves
                .into_iter()
                .map(|arrived| PreparedHalf::of(org_id, arrived.half, arrived.due_at))
                .collect(),
            settled_claims: self.settled_claims,
            settled_halves: self.settled_halves.map(Box::new),
            counted: self.counted,
        }
    }
}

/// A delivery that is ready to be written.
pub(crate) struct PreparedDelivery {
    facts: Vec<Prepared>,
    refreshes: Vec<RefreshRequest>,
    claims: Vec<NewRow>,
    continuations: Vec<SessionContinuation>,
    settled_claims: Vec<SettledClaim>,
    halves: Vec<PreparedHalf>,
    settled_halves: Option<Box<SettledHalves>>,
    counted: Option<DeliveryCounts>,
}

impl PreparedDelivery {
    pub(crate) fn is_empty(&self) -> bool {
        self.facts.is_empty()
            && self.refreshes.is_empty()
            && self.claims.is_empty()
            && self.continuations.is_empty()
            && self.settled_claims.is_empty()
            && self.halves.is_empty()
            && self.settled_halves.is_none()
    }

    /// Removes what others have settled meanwhile, with its observations.
    fn retain_open(&mut self, transaction: &mut Transaction<'_>) -> Result<(), StoreError> {
        if self.settled_claims.is_empty() {
            return Ok(());
        }
        let closed = commit_claims::retain_open(transaction, &mut self.settled_claims)?;
        self.facts.retain(|fact| match fact {
            Prepared::SessionCommitObservation(row) => !closed.contains(&row.fact_id),
            _ => true,
        });
        Ok(())
    }

    /// Settles the claims, after their observations are stored.
    fn settle(&self, transaction: &mut Transaction<'_>) -> Result<(), StoreError> {
        for SettledClaim {
            claim_id,
            observation_id,
        } in &self.settled_claims
        {
            let observation = self.facts.iter().find_map(|fact| match fact {
                Prepared::SessionCommitObservation(row) => {
                    (Some(row.fact_id) == *observation_id).then_some(row)
                }
                _ => None,
            });
            commit_claims::settle(transaction, *claim_id, observation)?;
        }
        Ok(())
    }

    /// Adds the counts of the delivery, with the outcomes of its facts.
    pub(crate) fn count(&self, outcomes: &[Outcome], totals: &mut CaptureTotals) {
        if let Some(counted) = &self.counted {
            let tables = self.facts.iter().map(Prepared::table);
            totals.add(&counted.clone().with(tables.zip(outcomes.iter().copied())));
        }
    }

    /// Returns whether it has facts of this kind.
    pub(crate) fn has(&self, table: FactTable) -> bool {
        self.facts.iter().any(|fact| fact.table() == table)
    }

    /// Returns the cost of writing it, in units of a small row.
    pub(crate) fn weight(&self) -> usize {
        let facts: usize = self.facts.iter().map(Prepared::weight).sum();
        let halves: usize = self.halves.iter().map(PreparedHalf::weight).sum();
        let settled = self.settled_claims.len() + usize::from(self.settled_halves.is_some());
        facts
            + self.refreshes.len()
            + self.claims.len()
            + self.continuations.len()
            + halves
            + settled
    }
}

/// Writes deliveries, and returns the outcomes of the facts of each.
pub(crate) fn write(
    appending: &mut Appending<'_, '_>,
    deliveries: &mut [&mut PreparedDelivery],
) -> Result<Vec<Vec<Outcome>>, StoreError> {
    stage_facts(appending, &facts(deliveries))?;
    // From here on, an organization's transactions run one after another.
    appending.transaction.organization()?;
    for delivery in deliveries.iter_mut() {
        delivery.retain_open(appending.transaction)?;
    }
    // Before others arrive, which a settlement cannot know of.
    for settled in deliveries
        .iter()
        .filter_map(|delivery| delivery.settled_halves.as_deref())
    {
        halves::settle(appending.transaction, settled)?;
    }
    let has_rows = |delivery: &&mut PreparedDelivery| {
        !(delivery.facts.is_empty()
            && delivery.claims.is_empty()
            && delivery.continuations.is_empty())
    };
    let stamp = deliveries
        .iter()
        .any(has_rows)
        .then(|| appending.transaction.stamp())
        .transpose()?;
    let captured_at = stamp.and_then(|stamp| stamp_all(deliveries, stamp));
    let mut outcomes = match captured_at {
        Some(captured_at) => {
            let claims = deliveries.iter().flat_map(|delivery| &delivery.claims);
            let claims: Vec<&NewRow> = claims.collect();
            let continuations = deliveries
                .iter()
                .flat_map(|delivery| &delivery.continuations);
            let continuations: Vec<&SessionContinuation> = continuations.collect();
            write_facts(
                appending,
                &facts(deliveries),
                &claims,
                &continuations,
                captured_at,
            )?
        }
        None => Vec::new(),
    }
    .into_iter();
    for delivery in deliveries.iter() {
        delivery.settle(appending.transaction)?;
    }
    let refreshes: Vec<&RefreshRequest> = deliveries
        .iter()
        .flat_map(|delivery| &delivery.refreshes)
        .collect();
    jobs::request(appending.transaction, &refreshes)?;
    let arrived: Vec<&PreparedHalf> = deliveries
        .iter()
        .flat_map(|delivery| &delivery.halves)
        .collect();
    halves::receive(appending.transaction, &arrived)?;
    Ok(deliveries
        .iter()
        .map(|delivery| outcomes.by_ref().take(delivery.facts.len()).collect())
        .collect())
}

/// Sets the capture times of facts and claims, and returns the last one.
fn stamp_all(deliveries: &mut [&mut PreparedDelivery], stamp: Stamp) -> Option<Instant> {
    let times = deliveries.iter_mut().filter_map(|delivery| {
        let facts = delivery
            .facts
            .iter_mut()
            .filter_map(|fact| fact.stamp(stamp))
            .max();
        let claims = delivery
            .claims
            .iter_mut()
            .filter_map(|claim| claim.stamp(stamp))
            .max();
        let continuations = delivery.continuations.iter();
        let continuations = continuations.map(|said| stamp.of(said.received_at)).max();
        facts.max(claims).max(continuations)
    });
    times.max()
}

fn facts<'d>(deliveries: &'d [&mut PreparedDelivery]) -> Vec<&'d Prepared> {
    deliveries
        .iter()
        .flat_map(|delivery| &delivery.facts)
        .collect()
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::testing::builders::{decision, edit, outcome, push};
    use svc_model::json::{Json, Object};

    use super::*;

    #[test]
    fn a_fact_with_a_large_raw_payload_is_not_small() {
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
