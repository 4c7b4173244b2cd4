//! What operators decided in a store after a backup was made. A restore of the backup undoes it.

use std::collections::BTreeMap;

use svc_engine_fact::deadline::Deadline;
use svc_model::id::OrgId;

use crate::read::organizations::organizations;
use crate::sql::error::StoreError;
use crate::sql::url::DatabaseUrl;
use crate::write::grants::GrantRow;
use crate::write::ledger::Ledger;
use crate::write::quarantine::{LogEntry, QuarantineAction};

/// The decisions of operators that are in force in a store: for each fact, whether it is hidden;
/// what tokens may read; which tokens are revoked.
#[derive(Debug, Default)]
pub struct OperatorDecisions(Vec<OrganizationDecisions>);

#[derive(Debug)]
struct OrganizationDecisions {
    org_id: OrgId,
    /// The latest row of the log about each fact, by the kind and id of the fact.
    facts: BTreeMap<(String, String), LogEntry>,
    /// The rows of the grant log that are in force, by id.
    grants: BTreeMap<String, GrantRow>,
}

/// A decision that a restore has undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoneDecision {
    /// The organization.
    pub org_id: OrgId,
    /// What was undone.
    pub what: Undone,
}

/// What a restore has undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone {
    /// The latest row of the quarantine log about a fact. The fact is in the other state again, or
    /// will be once it is stored.
    Fact(LogEntry),
    /// A row of the grant log was in force, and is no longer: a grant is missing, or a revoked token
    /// is valid again.
    GrantMissing(GrantRow),
    /// A row of the grant log was no longer in force, and is again: a removed grant is back, or a
    /// restored token is revoked again.
    GrantBack(GrantRow),
}

impl OperatorDecisions {
    /// Reads the decisions that are in force in a store.
    ///
    /// # Errors
    ///
    /// If the store cannot be read, or the deadline passes.
    pub fn of(url: &DatabaseUrl, deadline: &Deadline) -> Result<Self, StoreError> {
        let mut decisions = Vec::new();
        for org_id in organizations(url, deadline)? {
            let ledger = Ledger::open(url, org_id.clone())?;
            let mut snapshot = ledger.snapshot_until(deadline)?;
            let (rows, _) = snapshot.quarantine_log(u64::MAX, None)?;
            // A later row replaces an earlier one.
            let facts = rows
                .into_iter()
                .map(|row| ((row.fact_table.clone(), row.fact_id.clone()), row));
            let grants = snapshot.grant_rows(None, false, u64::MAX, None)?;
            let grants = grants.into_iter().map(|row| (row.grant_id.clone(), row));
            decisions.push(OrganizationDecisions {
                facts: facts.collect(),
                grants: grants.collect(),
                org_id,
            });
        }
        Ok(Self(decisions))
    }

    /// Returns what is undone if the store has only these other decisions. What an organization
    /// decided that the other store does not know is undone, too.
    pub fn undone(self, left: &Self) -> Vec<UndoneDecision> {
        let is_hidden = |row: &LogEntry| row.action == QuarantineAction::Quarantine.as_str();
        let mut undone = Vec::new();
        for before in self.0 {
            let after = left
                .0
                .iter()
                .find(|organization| organization.org_id == before.org_id);
            let facts = before.facts.into_iter().filter_map(|(fact, row)| {
                let is_hidden_after = after
                    .and_then(|organization| organization.facts.get(&fact))
                    .is_some_and(is_hidden);
                (is_hidden(&row) != is_hidden_after).then_some(Undone::Fact(row))
            });
            let mut what: Vec<Undone> = facts.collect();
            let back = after
                .into_iter()
                .flat_map(|organization| organization.grants.values());
            let back = back.filter(|row| !before.grants.contains_key(&row.grant_id));
            what.extend(in_order(back.cloned()).map(Undone::GrantBack));
            let is_missing = |row: &GrantRow| {
                after.is_none_or(|after| !after.grants.contains_key(&row.grant_id))
            };
            let missing = before.grants.into_values().filter(is_missing);
            what.extend(in_order(missing).map(Undone::GrantMissing));
            undone.extend(what.into_iter().map(|what| UndoneDecision {
                org_id: before.org_id.clone(),
                what,
            }));
        }
        undone
    }
}

/// Returns rows in the order of the log.
fn in_order(rows: impl Iterator<Item = GrantRow>) -> impl Iterator<Item = GrantRow> {
    let mut rows: Vec<GrantRow> = rows.collect();
    rows.sort_unstable_by_key(|row| row.revision);
    rows.into_iter()
}
