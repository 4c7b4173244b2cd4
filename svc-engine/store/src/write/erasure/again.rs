//! Repeats earlier erasures in a store that is restored from an older backup.

use std::collections::{BTreeMap, HashMap};

use svc_engine_fact::deadline::Deadline;
use svc_model::facts::FactTable;
use svc_model::id::{FactId, OrgId};
use uuid::Uuid;

use super::apply::{erase_within, log_alone};
use super::halves;
use super::plan::{ErasurePlan, StoreProgress};
use super::select::{ErasedCall, OtherFact, unerased_of};
use super::{ErasedContent, ErasureOrder, claims};
use crate::read::organizations::organizations;
use crate::sql::connection::Connection;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::url::DatabaseUrl;
use crate::write::ledger::Ledger;

const MARKS: &str = "SELECT /* every row */ erasure_revision, fact_table, fact_id FROM erased_facts
    WHERE org_id = $1";
const LOGGED: &str = "SELECT /* every row */ erasure_id, CAST(COUNT(*) AS BIGINT) FROM erasure_log
    WHERE (org_id || '') = $1 GROUP BY erasure_id";

/// The erasures of all organizations of a store.
#[derive(Debug, Default)]
pub struct KeptErasures(Vec<OrganizationErasures>);

#[derive(Debug)]
struct OrganizationErasures {
    org_id: OrgId,
    /// The rows of the log, oldest first, and what was erased.
    orders: Vec<(ErasureOrder, ErasedContent)>,
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
        let kept = organizations.map(|org_id| OrganizationErasures::read(url, org_id, deadline));
        Ok(Self(kept.collect::<Result<_, StoreError>>()?))
    }

    /// Returns whether any fact was erased.
    pub(crate) fn has_facts(&self) -> bool {
        self.0.iter().any(|kept| !kept.facts.is_empty())
    }

    /// Erases again the facts that the store still has, as a part of the transaction that the
    /// connection is in. Every entry of the log that the store lacks is added to its log as it was,
    /// also if none of its facts is there.
    ///
    /// # Errors
    ///
    /// If the store cannot be written, or the deadline passes.
    pub(crate) fn erase_again(
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

impl OrganizationErasures {
    fn read(url: &DatabaseUrl, org_id: OrgId, deadline: &Deadline) -> Result<Self, StoreError> {
        let ledger = Ledger::open(url, org_id.clone())?;
        let mut snapshot = ledger.snapshot_until(deadline)?;
        let mut orders = Vec::new();
        let mut places = HashMap::new();
        for row in snapshot.erasure_log(u64::MAX, None)? {
            let id = Uuid::parse_str(&row.erasure_id);
            places.insert(row.revision, orders.len());
            let order = ErasureOrder {
                erasure_id: id.map_err(|_| corrupt("erasure_log", "erasure_id"))?,
                subject: row.subject,
                reason: row.reason,
                recorded_at: row.recorded_at,
                client_id: row.client_id,
            };
            orders.push((order, row.erased));
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
        let reached = StoreProgress::read(connection)?;
        // One plan for all of them, because a plan reads every call.
        let mut plan = ErasurePlan::new(connection, selected, reached)?;
        let mut of_orders: Vec<(Vec<ErasedCall>, Vec<OtherFact>)> = Vec::new();
        of_orders.resize_with(self.orders.len(), Default::default);
        let (calls, others) = plan.take();
        for call in calls {
            if let Some(order) = self.facts.get(&(FactTable::InferenceCalls, call.id)) {
                of_orders[*order].0.push(call);
            }
        }
        for other in others {
            if let Some(order) = self.facts.get(&(other.kind, other.id)) {
                of_orders[*order].1.push(other);
            }
        }
        let mut logged: HashMap<String, u64> = HashMap::new();
        connection.each(LOGGED, &[self.org_id.as_str().into()], |row| {
            logged.insert(row.text(0)?, row.count(1)?);
            Ok(())
        })?;
        for ((order, before), (calls, others)) in self.orders.iter().zip(of_orders) {
            deadline.check()?;
            let until = Some(order.recorded_at);
            claims::erase(connection, &self.org_id, &order.subject, until)?;
            // The first rows of an erasure are those that the backup has.
            let left = logged.entry(order.erasure_id.to_string()).or_default();
            let is_logged = *left > 0;
            *left = left.saturating_sub(1);
            if !is_logged {
                let halves = halves::select(connection, &self.org_id, &order.subject)?;
                halves::delete(connection, &self.org_id, &halves)?;
            }
            if calls.is_empty() && others.is_empty() {
                if !is_logged {
                    log_alone(connection, &self.org_id, order, before)?;
                }
                continue;
            }
            let facts = (&*calls, &*others);
            let done = erase_within(connection, &self.org_id, &mut plan, facts, (order, before))?;
            erased.facts += done.facts.total();
            erased.last = Some((self.org_id.clone(), order.clone()));
        }
        Ok(())
    }
}
