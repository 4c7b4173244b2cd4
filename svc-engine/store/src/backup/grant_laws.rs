//! Checks grants: those in force must follow from the log.

use std::collections::{BTreeMap, BTreeSet};

use svc_model::grant::GrantAction;

use super::finding::Damage;
use super::scan::Laws;
use crate::sql::error::{StoreError, corrupt};

/// The token and the organization of a grant.
type Owner = (String, String);

/// The rows in force according to the log, as far as it was read.
#[derive(Default)]
struct InForce {
    rows: BTreeMap<Owner, BTreeSet<i64>>,
    /// The revision of each grant, by organization and id.
    grants: BTreeMap<(String, String), i64>,
    revocations: BTreeMap<Owner, i64>,
}

impl InForce {
    fn add(&mut self, owner: Owner, revision: i64) {
        self.rows.entry(owner).or_default().insert(revision);
    }

    fn end(&mut self, owner: &Owner, revision: Option<i64>) {
        if let Some((rows, revision)) = self.rows.get_mut(owner).zip(revision) {
            rows.remove(&revision);
        }
    }
}

impl Laws<'_, '_, '_> {
    pub(crate) fn grants(&mut self) -> Result<(), StoreError> {
        let mut amount = InForce::default();
        // `scan` reads the log in the order of its revisions.
        let columns = [
            "grant_revision",
            "org_id",
            "token",
            "action",
            "grant_id",
            "removed_grant_id",
        ];
        self.scan("grant_log", &columns, |row, _, _| {
            let revision = row.integer(0)?;
            let (org_id, token) = (row.text(1)?, row.text(2)?);
            let owner = (token, org_id.clone());
            let action = GrantAction::from_wire(&row.text(3)?);
            match action.ok_or(corrupt("grant_log", "action"))? {
                GrantAction::Add => {
                    amount.grants.insert((org_id, row.text(4)?), revision);
                    amount.add(owner, revision);
                }
                GrantAction::Remove => {
                    let removed = row.optional_text(5)?.map(|id| (org_id, id));
                    let removed = removed.and_then(|id| amount.grants.get(&id).copied());
                    amount.end(&owner, removed);
                }
                GrantAction::Revoke => {
                    amount.revocations.insert(owner.clone(), revision);
                    amount.add(owner, revision);
                }
                GrantAction::Restore => {
                    let revoked = amount.revocations.remove(&owner);
                    amount.end(&owner, revoked);
                }
            }
            Ok(())
        })?;
        let columns = ["token", "org_id", "grant_revision"];
        self.scan("grants_in_force", &columns, |row, known, found| {
            let owner = (row.text(0)?, row.text(1)?);
            let revision = row.integer(2)?;
            let rows = amount.rows.get_mut(&owner);
            if !rows.is_some_and(|rows| rows.remove(&revision))
                && !known.cannot_tell("grant_log", None, "grants_in_force", found)
            {
                let detail = format!("revision {revision} is kept, and ended by the log");
                found.add(
                    "grants_in_force",
                    Some(&owner.0),
                    Damage::GrantDiffers,
                    detail,
                );
            }
            Ok(())
        })?;
        for ((token, _), rows) in &amount.rows {
            for revision in rows {
                let detail = format!("revision {revision} of the log is not kept");
                let damage = Damage::GrantDiffers;
                // What ended it may be among the rows of the log that cannot be read.
                let found = &mut self.found;
                let is_undecided = ["grants_in_force", "grant_log"]
                    .iter()
                    .any(|lost| self.known.cannot_tell(lost, None, "grant_log", found));
                if !is_undecided {
                    found.add("grants_in_force", Some(token), damage, detail);
                }
            }
        }
        Ok(())
    }
}
