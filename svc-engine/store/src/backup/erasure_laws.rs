//! Checks erasures: marked content is gone, and each mark has its fact and its row in the log.

use std::collections::HashSet;

use svc_model::facts::FactTable;

use super::finding::{Damage, Findings};
use super::known::key;
use super::scan::{Laws, moment};
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::{Row, Value};
use crate::table::record::Table;
use crate::write::erasure::erased_cell;

/// Checks that the columns of an erased fact hold no captured content.
pub(crate) fn is_empty(
    row: &Row<'_>,
    columns: &[&str],
    table: &Table,
    fact_id: &str,
    found: &mut Findings,
) -> Result<(), StoreError> {
    for (place, column) in columns.iter().enumerate() {
        if table.content.contains(column)
            && !row.holds(place, &Value::OwnBlob(erased_cell(column)))?
        {
            let damage = Damage::ContentRemains;
            found.add(table.name, Some(fact_id), damage, *column);
        }
    }
    Ok(())
}

impl Laws<'_, '_, '_> {
    /// Reads the marks and checks that each has its row in the log.
    pub(crate) fn erasures(&mut self) -> Result<(), StoreError> {
        let mut revisions = HashSet::new();
        let columns = ["erasure_revision", "org_id", "recorded_at_us"];
        self.scan("erasure_log", &columns, |row, _, _| {
            moment(row, 2, "erasure_log")?;
            revisions.insert((row.text(1)?, row.integer(0)?));
            Ok(())
        })?;
        let columns = [
            "fact_id",
            "org_id",
            "fact_table",
            "erasure_revision",
            "byte_count",
            "erased_at_us",
        ];
        self.scan("erased_facts", &columns, |row, known, found| {
            let (fact_id, org_id) = (row.fact_id(0)?.to_string(), row.text(1)?);
            let kind = FactTable::from_wire(&row.text(2)?);
            let kind = kind.ok_or(corrupt("erased_facts", "fact_table"))?;
            row.count(4)?;
            moment(row, 5, "erased_facts")?;
            let revision = row.integer(3)?;
            let key = key(&[&org_id, kind.as_str(), &fact_id]);
            let id = revision.to_string();
            if !revisions.contains(&(org_id, revision))
                && !known.cannot_tell("erasure_log", Some(&id), "erased_facts", found)
            {
                let detail = format!("erasure_log: {revision}");
                found.add(
                    "erased_facts",
                    Some(&fact_id),
                    Damage::ErasureAbsent,
                    detail,
                );
            }
            known.marks.facts.insert(key, (kind, fact_id, false));
            Ok(())
        })
    }

    /// Checks that every fact with a mark exists.
    pub(crate) fn erased_facts_are_there(&mut self) {
        let marks = self.known.marks.facts.values();
        let mut absent: Vec<_> = marks.filter(|(_, _, is_met)| !is_met).collect();
        absent.sort();
        for (kind, fact_id, _) in absent {
            let (table, found) = (kind.as_str(), &mut self.found);
            let is_undecided = self
                .known
                .cannot_tell(table, Some(fact_id), "erased_facts", found);
            if !is_undecided {
                found.add("erased_facts", Some(fact_id), Damage::FactAbsent, table);
            }
        }
    }
}
