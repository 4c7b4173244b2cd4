//! CI outcomes as they are written: what the forge signed answers for the run.
//!
//! What a token reports of the forge's own run is not what the forge itself says, under its
//! signature. If the two differ, the signed one is stored beside the other and answers for the run.
//! A report that differs from a signed outcome is not stored.

use std::collections::HashSet;

use svc_engine_fact::CiOutcome;
use svc_model::problem::Code;

use super::outcome::Outcome;
use super::redelivery::{self, Difference};
use crate::sql::connection::{Connection, Lookup};
use crate::sql::error::StoreError;
use crate::sql::value::Value;
use crate::table::record::{Fact as _, Record as _};
use crate::table::row::NewRow;

/// Inserts CI outcomes, and returns what became of each.
pub(crate) fn insert(
    connection: &mut Connection,
    differences: &mut Vec<Difference>,
    rows: &[&NewRow],
) -> Result<Vec<Outcome>, StoreError> {
    let mut outcomes = vec![None; rows.len()];
    // The signed ones come first: the others are compared with them.
    for signed in [1, 0] {
        let is_of_group = |row: &NewRow| row.integer(CiOutcome::TABLE, "signed") == Some(signed);
        let group: Vec<usize> = (0..rows.len())
            .filter(|place| is_of_group(rows[*place]))
            .collect();
        let runs = runs_with(
            connection,
            1 - signed,
            group.iter().map(|place| rows[*place]),
        )?;
        let mut inserting = Vec::with_capacity(group.len());
        for place in group {
            let row = rows[place];
            let run_id = row.text(CiOutcome::TABLE, "run_id");
            let beside = if run_id.is_some_and(|run_id| runs.contains(run_id)) {
                beside(connection, differences, signed, row)?
            } else {
                CounterpartOutcome::Nothing
            };
            match beside {
                CounterpartOutcome::Settled(outcome) => outcomes[place] = Some(outcome),
                CounterpartOutcome::Nothing => inserting.push((place, false)),
                CounterpartOutcome::Differing => inserting.push((place, true)),
            }
        }
        let new: Vec<&NewRow> = inserting.iter().map(|(place, _)| rows[*place]).collect();
        let inserted = redelivery::insert::<CiOutcome>(connection, differences, &new)?;
        for ((place, differs), outcome) in inserting.into_iter().zip(inserted) {
            outcomes[place] = Some(match outcome {
                Outcome::Stored(fact_id) if differs => Outcome::Superseding(fact_id),
                outcome => outcome,
            });
        }
    }
    let outcomes: Option<Vec<Outcome>> = outcomes.into_iter().collect();
    outcomes.ok_or(StoreError::NotStored)
}

/// The runs of stored outcomes that are signed or not.
const RUNS: Lookup<'_> = Lookup {
    select: "SELECT o.run_id FROM ci_outcomes o
        WHERE COALESCE(o.org_id, '') = $1 AND o.signed = $2 AND o.run_id",
    then: "",
};

/// Returns the run ids of these rows for which a signed outcome, or one that is not, is stored.
fn runs_with<'r>(
    connection: &mut Connection,
    signed: i64,
    rows: impl Iterator<Item = &'r NewRow>,
) -> Result<HashSet<String>, StoreError> {
    let mut org_id = None;
    let mut run_ids = Vec::new();
    for row in rows {
        org_id = row.value(CiOutcome::TABLE, "org_id").cloned();
        run_ids.extend(row.value(CiOutcome::TABLE, "run_id").cloned());
    }
    let mut found = HashSet::new();
    let Some(org_id) = org_id else {
        return Ok(found);
    };
    connection.lookup(&RUNS, &[org_id, signed.into()], &run_ids, |row| {
        found.insert(row.text(0)?);
        Ok(())
    })?;
    Ok(found)
}

/// What is stored of a run beside a row: an outcome that is signed if the row is not, or the reverse.
enum CounterpartOutcome {
    /// Nothing that matters, or the row's own key is taken.
    Nothing,
    /// One that differs, and that the row supersedes.
    Differing,
    /// One that settles what becomes of the row. It is not stored.
    Settled(Outcome),
}

/// Compares a row with what is stored of its run beside it.
fn beside(
    connection: &mut Connection,
    differences: &mut Vec<Difference>,
    signed: i64,
    row: &NewRow,
) -> Result<CounterpartOutcome, StoreError> {
    let (table, keys) = (CiOutcome::TABLE, CiOutcome::KEYS);
    let mut stored = |signed: i64| {
        redelivery::counterpart(
            connection,
            table,
            keys,
            row,
            ("signed", &Value::Integer(signed)),
        )
    };
    if stored(signed)?.is_some() {
        return Ok(CounterpartOutcome::Nothing);
    }
    let Some(difference) = stored(1 - signed)? else {
        return Ok(CounterpartOutcome::Nothing);
    };
    let is_conflict = difference.is_conflict(table, CiOutcome::IDENTITY, row);
    let differs = is_conflict || difference.columns().contains(&"result");
    let fact_id = difference.fact_id();
    // They differ in whether they are signed.
    if difference.columns().len() > 1 {
        differences.push(difference);
    }
    Ok(match (signed, differs) {
        (1, true) => CounterpartOutcome::Differing,
        (_, false) => CounterpartOutcome::Settled(Outcome::Redelivered(fact_id)),
        _ if is_conflict => {
            CounterpartOutcome::Settled(Outcome::Conflict(Code::RepositoryIdentityConflict))
        }
        _ => CounterpartOutcome::Settled(Outcome::Overruled(fact_id)),
    })
}
