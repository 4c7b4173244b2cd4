//! Repeats earlier erasures in a store that is restored from an older backup.

use std::collections::{BTreeMap, HashMap};

use svc_model::facts::FactTable;
use svc_model::id::{FactId, OrgId};
use uuid::Uuid;

use super::ErasureOrder;
use super::apply::erase_within;
use super::plan::{ErasurePlan, Reached};
use super::select::{Call, Other, unerased_of};
use crate::deadline::Deadline;
use crate::store::backup::organizations;
use crate::store::connection::Connection;
use crate::store::error::corrupt;
use crate::store::{DatabaseUrl, Ledger, StoreError};

const MARKS: &str = "SELECT /* every row */ erasure_revision, fact_table, fact_id FROM erased_facts
    WHERE org_id = $1";

/// The erasures of all organizations of a store.
#[derive(Debug, Default)]
pub struct KeptErasures(Vec<OfOrganization>);

#[derive(Debug)]
struct OfOrganization {
    org_id: OrgId,
    /// The rows of the log, oldest first.
    orders: Vec<ErasureOrder>,
    /// The index in `orders` of the row that erased a fact.
    facts: BTreeMap<(FactTable, FactId), usize>,
}

/// What was erased again.
#[derive(Clone, Debug, Default)]
pub struct ErasedAgain {
    /// The number of facts.
    pub facts: u64,
    /// The last erasure of which something was erased again, and its organization.
    pub last: Option<(OrgId, ErasureOrder)>,
}

impl KeptErasures {
    /// Reads the erasures of a store.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub fn of(url: &DatabaseUrl, deadline: &Deadline) -> Result<Self, StoreError> {
        let organizations = organizations(url, deadline)?.into_iter();
        let kept = organizations.map(|org_id| OfOrganization::read(url, org_id, deadline));
        Ok(Self(kept.collect::<Result<_, StoreError>>()?))
    }

    /// Erases again the facts that the store still has, as a part of the transaction that the
    /// connection is in, and logs them with the original reason, time and author.
    ///
    /// # Errors
    ///
    /// If the store cannot be written, or the deadline passes.
    pub(in crate::store) fn erase_again(
        &self,
        connection: &mut Connection,
        deadline: &Deadline,
    ) -> Result<ErasedAgain, StoreError> {
        let mut erased = ErasedAgain::default();
        for kept in &self.0 {
            kept.erase_again(connection, deadline, &mut erased)?;
        }
        Ok(erased)
    }
}

impl OfOrganization {
    fn read(url: &DatabaseUrl, org_id: OrgId, deadline: &Deadline) -> Result<Self, StoreError> {
        let ledger = Ledger::open(url, org_id.clone())?;
        let mut snapshot = ledger.snapshot_until(deadline)?;
        let mut orders = Vec::new();
        let mut places = HashMap::new();
        for row in snapshot.erasure_log(u64::MAX, None)? {
            let id = Uuid::parse_str(&row.erasure_id);
            places.insert(row.revision, orders.len());
            orders.push(ErasureOrder {
                erasure_id: id.map_err(|_| corrupt("erasure_log", "erasure_id"))?,
                subject: row.subject,
                reason: row.reason,
                recorded_at: row.recorded_at,
                client_id: row.client_id,
            });
        }
        let mut facts = BTreeMap::new();
        let keys = [org_id.as_str().into()];
        snapshot.connection()?.each(MARKS, &keys, |row| {
            let kind = FactTable::from_wire(&row.text(1)?);
            let kind = kind.ok_or(corrupt("erased_facts", "fact_table"))?;
            let order = places.get(&row.count(0)?);
            let order = order.ok_or(corrupt("erased_facts", "erasure_revision"))?;
            facts.insert((kind, row.fact_id(2)?), *order);
            Ok(())
        })?;
        drop(snapshot);
        Ok(Self {
            org_id,
            orders,
            facts,
        })
    }

    fn erase_again(
        &self,
        connection: &mut Connection,
        deadline: &Deadline,
        erased: &mut ErasedAgain,
    ) -> Result<(), StoreError> {
        let selected = unerased_of(connection, &self.org_id, &self.facts)?;
        let reached = Reached::read(connection)?;
        // One plan for all of them, because a plan reads every call.
        let mut plan = ErasurePlan::new(connection, selected, reached)?;
        let mut of_orders: Vec<(Vec<Call>, Vec<Other>)> = Vec::new();
        of_orders.resize_with(self.orders.len(), Default::default);
        let (calls, others) = plan.take();
        for call in calls {
            if let Some(order) = self.facts.get(&(FactTable::InferenceCalls, call.id)) {
                of_orders[*order].0.push(call);
            }
        }
        for other in others {
            if let Some(order) = self.facts.get(&(other.kept.kind, other.id)) {
                of_orders[*order].1.push(other);
            }
        }
        for (order, (calls, others)) in self.orders.iter().zip(of_orders) {
            deadline.check()?;
            let facts = (&*calls, &*others);
            let done = erase_within(connection, &self.org_id, &mut plan, facts, order)?;
            if done.facts.total() > 0 {
                erased.facts += done.facts.total();
                erased.last = Some((self.org_id.clone(), order.clone()));
            }
        }
        Ok(())
    }
}
