//! Facts that are one row each: how they are stored and read back.

use svc_model::id::OrgId;
use svc_model::time::Instant;

use super::StoreError;
use super::append::{Appending, Kind, Outcome};
use super::claims::Place;
use super::organization::Stamp;
use super::redelivery::{self, Key};
use super::row::NewRow;
use super::table::Record;
use super::traces::Traces;

/// A kind of fact with one row per fact, and how to tell its redeliveries from conflicts.
pub(super) trait Fact: Record {
    /// Its natural keys. For a fact without one, nobody needs to know which fact existed before.
    const KEYS: &'static [Key] = &[];

    /// Where its facts name repositories.
    const NAMES: &'static [Place] = &[];

    /// The columns besides a key that must be equal in a redelivery, separated by `, `.
    const IDENTITY: &'static str = "";

    /// Stores rows and returns the outcome of each.
    fn insert(
        appending: &mut Appending<'_, '_>,
        rows: &[&NewRow],
    ) -> Result<Vec<Outcome>, StoreError> {
        insert::<Self>(appending, rows)
    }
}

/// Inserts rows. Where the key of one is taken, the stored fact tells what it is.
pub(super) fn insert<F: Fact>(
    appending: &mut Appending<'_, '_>,
    rows: &[&NewRow],
) -> Result<Vec<Outcome>, StoreError> {
    let values = rows.iter().map(|row| row.values.as_slice());
    let connection = &mut *appending.transaction.connection;
    let inserted = connection.insert(&F::TABLE.insert, values)?;
    rows.iter()
        .zip(inserted)
        .map(|(row, inserted)| match inserted {
            Some(_) => Ok(Outcome::Stored(row.fact_id)),
            None => redelivery::judge(appending, F::TABLE, F::KEYS, F::IDENTITY, row),
        })
        .collect()
}

impl<F: Fact> Kind for F {
    type Prepared = NewRow;

    fn prepare(self: Box<Self>, org_id: &OrgId) -> NewRow {
        NewRow::of(*self, org_id)
    }

    fn weight(row: &NewRow) -> usize {
        row.weight()
    }

    fn stamp(row: &mut NewRow, stamp: Stamp) -> Option<Instant> {
        row.stamp(stamp)
    }

    fn store(
        appending: &mut Appending<'_, '_>,
        rows: &[&NewRow],
    ) -> Result<Vec<Outcome>, StoreError> {
        F::insert(appending, rows)
    }

    fn trace<'a>(row: &'a NewRow, traces: &mut Traces<'a>) {
        traces.row(F::TABLE, row);
    }
}
