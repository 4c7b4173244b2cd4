//! Facts that are one row each: how they are written.

use svc_model::id::OrgId;
use svc_model::json::Json;
use svc_model::time::Instant;

use super::appending::Appending;
use super::kind::Kind;
use super::outcome::Outcome;
use super::traces::Traces;
use super::{redelivery, signed_outcomes};
use crate::sql::error::StoreError;
use crate::table::record::{Fact, Record};
use crate::table::row::{NewRow, Stamp};

impl<F: Fact> Kind for F {
    type Prepared = NewRow;

    fn raw(&self) -> Option<&Json> {
        Record::raw(self)
    }

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
        let connection = &mut *appending.transaction.connection;
        let differences = &mut appending.afterwards.differences;
        if F::SIGNED {
            signed_outcomes::insert(connection, differences, rows)
        } else {
            redelivery::insert::<F>(connection, differences, rows)
        }
    }

    fn trace<'a>(row: &'a NewRow, traces: &mut Traces<'a>) {
        traces.row(F::TABLE, row);
    }
}
