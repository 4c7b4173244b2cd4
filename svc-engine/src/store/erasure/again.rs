//! Repeats earlier erasures in a store that was restored from an older backup.

use std::collections::{BTreeMap, BTreeSet};

use svc_model::facts::FactTable;
use svc_model::id::{FactId, OrgId};
use uuid::Uuid;

use super::{Erased, ErasureOrder};
use crate::deadline::Deadline;
use crate::store::backup::organizations;
use crate::store::error::corrupt;
use crate::store::{DatabaseUrl, Ledger, StoreError};

const MARKS: &str = "SELECT /* every row */ erasure_revision, fact_table, fact_id FROM erased_facts
    WHERE org_id = $1";

/// The erasures of all organizations of a store.
#[derive(Debug, Default)]
pub struct KeptErasures(Vec<KeptErasure>);

#[derive(Debug)]
struct KeptErasure {
    org_id: OrgId,
    order: ErasureOrder,
    facts: BTreeSet<(FactTable, FactId)>,
}

impl KeptErasures {
    /// Reads the erasures of a store.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub fn of(url: &DatabaseUrl, deadline: &Deadline) -> Result<Self, StoreError> {
        let mut kept = Vec::new();
        for org_id in organizations(url, deadline)? {
            let ledger = Ledger::open(url, org_id.clone())?;
            let mut snapshot = ledger.snapshot_until(deadline)?;
            let mut marks: BTreeMap<u64, BTreeSet<(FactTable, FactId)>> = BTreeMap::new();
            let keys = [org_id.as_str().into()];
            snapshot.connection()?.each(MARKS, &keys, |row| {
                let kind = FactTable::from_wire(&row.text(1)?);
                let kind = kind.ok_or(corrupt("erased_facts", "fact_table"))?;
                let fact = (kind, row.fact_id(2)?);
                marks.entry(row.count(0)?).or_default().insert(fact);
                Ok(())
            })?;
            for row in snapshot.erasure_log(u64::MAX, None)? {
                let id = Uuid::parse_str(&row.erasure_id);
                kept.push(KeptErasure {
                    org_id: org_id.clone(),
                    facts: marks.remove(&row.revision).unwrap_or_default(),
                    order: ErasureOrder {
                        erasure_id: id.map_err(|_| corrupt("erasure_log", "erasure_id"))?,
                        subject: row.subject,
                        reason: row.reason,
                        recorded_at: row.recorded_at,
                        client_id: row.client_id,
                    },
                });
            }
        }
        Ok(Self(kept))
    }

    /// Returns the erasures, in the order of each organization's log. An erasure that took several
    /// transactions is returned once.
    pub fn orders(&self) -> Vec<(OrgId, ErasureOrder)> {
        let mut orders: Vec<(OrgId, ErasureOrder)> = Vec::new();
        for kept in &self.0 {
            let id = kept.order.erasure_id;
            if orders.iter().all(|(_, order)| order.erasure_id != id) {
                orders.push((kept.org_id.clone(), kept.order.clone()));
            }
        }
        orders
    }

    /// Erases again the facts that the store still has, and logs them with the original reason,
    /// time and author.
    ///
    /// # Errors
    ///
    /// If the store cannot be written, or the deadline passes. What is erased by then stays erased.
    pub fn erase_again(
        &self,
        url: &DatabaseUrl,
        deadline: &Deadline,
    ) -> Result<Erased, StoreError> {
        let mut erased = Erased::default();
        for kept in &self.0 {
            let ledger = Ledger::open(url, kept.org_id.clone())?;
            let plan = ledger.plan(deadline, |snapshot| snapshot.unerased_of(&kept.facts))?;
            erased.add(&ledger.erase(plan, &kept.order, deadline, &mut |_| {})?);
        }
        if let Some(kept) = self.0.first().filter(|_| erased.facts.total() > 0) {
            Ledger::open(url, kept.org_id.clone())?.compact()?;
        }
        Ok(erased)
    }
}
