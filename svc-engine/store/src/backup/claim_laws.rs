//! Checks the commits that clients reported: each has its Session, and a resolved one its observation.

use svc_engine_fact::CommitClaim;
use svc_model::facts::FactTable;
use svc_model::id::OrgId;

use super::finding::Damage;
use super::known::key;
use super::scan::Laws;
use crate::pack::column::Columns;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::Value;
use crate::table::record::Record as _;
use crate::table::row::NewRow;
use crate::write::traces::Traces;

impl Laws<'_, '_, '_> {
    /// Checks every claim. The observations were read before.
    pub(crate) fn commit_claims(&mut self) -> Result<(), StoreError> {
        let table = CommitClaim::TABLE;
        let mut columns = table.members.to_vec();
        columns.extend(["org_id", "state", "resolved_observation_id"]);
        let [of_org, of_state, of_observation] = [3, 2, 1].map(|end| columns.len() - end);
        self.scan(table.name, &columns, |row, known, found| {
            let (id, org) = (row.fact_id(0)?.to_string(), row.text(of_org)?);
            let org_id = OrgId::new(&org).map_err(|_| corrupt(table.name, "org_id"))?;
            let claim = CommitClaim::read(&mut Columns::of(row, table.name, table.members))?;
            let written = NewRow::of(claim, &org_id);
            let mut traces = Traces::default();
            traces.row(table, &written);
            for (session_id, claims) in traces.sessions.claims() {
                if let Some(number) = known.session(table.name, &id, &org, session_id, found) {
                    for (kind, value) in claims {
                        known.claim(table.name, &id, (number, *kind, value), found);
                    }
                }
            }
            let has_observation = !row.holds(of_observation, &Value::Null)?;
            let is_resolved = match &*row.text(of_state)? {
                "resolved" => true,
                "open" | "ambiguous" | "expired" => false,
                _ => return Err(corrupt(table.name, "state")),
            };
            if is_resolved != has_observation {
                return Err(corrupt(table.name, "resolved_observation_id"));
            }
            if is_resolved {
                let observation = row.fact_id(of_observation)?.to_string();
                let observations = FactTable::SessionCommitObservations.as_str();
                if !known.observations.contains(&key(&[&org, &observation]))
                    && !known.cannot_tell(observations, Some(&observation), table.name, found)
                {
                    let damage = Damage::ObservationAbsent;
                    found.add(table.name, Some(&id), damage, observation);
                }
            }
            Ok(())
        })
    }
}
