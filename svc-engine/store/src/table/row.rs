//! Rows on their way into a table.

use svc_model::id::{FactId, OrgId};
use svc_model::time::Instant;

use super::record::{Record, Table};
use crate::sql::value::Value;

/// A row of at most this many bytes is small.
const SMALL_ROW_BYTES: usize = 8_192;

/// A row to insert.
#[derive(Debug)]
pub(crate) struct NewRow {
    pub(crate) fact_id: FactId,
    /// When it was received, and the index of the column with its capture time.
    captured: Option<(Instant, usize)>,
    /// The organization, followed by the columns of the table.
    pub(crate) values: Vec<Value<'static>>,
}

impl NewRow {
    /// Returns the row of a fact.
    pub(crate) fn of<R: Record>(fact: R, org_id: &OrgId) -> Self {
        let fact_id = fact.id();
        let mut values = Vec::with_capacity(R::TABLE.insert.columns);
        values.push(Value::OwnText(org_id.as_str().to_owned()));
        fact.write(&mut values);
        let place = R::TABLE.place("captured_at_us");
        let captured = place.and_then(|place| match values.get(place)? {
            Value::Integer(received) => Some((Instant::from_microseconds(*received)?, place)),
            _ => None,
        });
        Self {
            fact_id,
            captured,
            values,
        }
    }

    /// Sets when the fact is captured, and returns that moment.
    pub(crate) fn stamp(&mut self, stamp: Stamp) -> Option<Instant> {
        let (received_at, place) = self.captured?;
        let captured_at = stamp.of(received_at);
        *self.values.get_mut(place)? = captured_at.into();
        Some(captured_at)
    }

    /// Returns the cost of inserting the row, in units of a small row.
    pub(crate) fn weight(&self) -> usize {
        let bytes = self.values.iter().map(|value| value.as_bytes().len());
        1 + bytes.sum::<usize>() / SMALL_ROW_BYTES
    }

    /// Returns a column, if it exists.
    pub(crate) fn value(&self, table: &Table, column: &str) -> Option<&Value<'static>> {
        self.values.get(table.place(column)?)
    }

    /// Returns a column, if it exists and holds a text.
    pub(crate) fn text(&self, table: &Table, column: &str) -> Option<&str> {
        self.value(table, column)?.as_str()
    }

    /// Returns a column, if it exists and holds an integer.
    pub(crate) fn integer(&self, table: &Table, column: &str) -> Option<i64> {
        match self.value(table, column)? {
            Value::Integer(integer) => Some(*integer),
            _ => None,
        }
    }

    /// Returns whether a column exists and has a value.
    pub(crate) fn given(&self, table: &Table, column: &str) -> bool {
        !matches!(self.value(table, column), None | Some(Value::Null))
    }
}

/// How the capture times of a transaction are determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// The time of receipt, but no earlier than this.
    NotBefore(Instant),
    /// The time of receipt.
    #[cfg(any(test, feature = "testing"))]
    AsReceived,
}

impl Stamp {
    /// Returns the capture time of a fact.
    pub(crate) fn of(self, received_at: Instant) -> Instant {
        match self {
            Self::NotBefore(earliest) => received_at.max(earliest),
            #[cfg(any(test, feature = "testing"))]
            Self::AsReceived => received_at,
        }
    }
}
