//! Reads a table for the checks, and keeps what was found.

use svc_model::time::Instant;

use super::Watch;
use super::finding::{Damage, Finding, Findings, error_text, is_of_one_row};
use super::known::KnownRows;
use super::shape::CellKind;
use super::source::Source;
use crate::sql::driver::EachRow;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::Row;

/// The checks of one database: where its rows come from, and what is known and found so far.
pub(crate) struct Laws<'s, 'w, 'p> {
    pub(crate) source: &'s mut dyn Source,
    watch: &'w mut Watch<'p>,
    pub(crate) found: Findings,
    pub(crate) known: KnownRows,
}

impl<'s, 'w, 'p> Laws<'s, 'w, 'p> {
    pub(crate) fn new(
        source: &'s mut dyn Source,
        watch: &'w mut Watch<'p>,
        found: Findings,
    ) -> Self {
        Self {
            source,
            watch,
            found,
            known: KnownRows::default(),
        }
    }

    /// Reads a table. `each` is called with every row and adds findings. The first column names the
    /// row.
    pub(crate) fn scan(
        &mut self,
        table: &str,
        columns: &[&str],
        mut each: impl FnMut(&Row<'_>, &mut KnownRows, &mut Findings) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let Self {
            source,
            watch,
            found,
            known,
        } = self;
        (watch.progress)(table, 0);
        let shape = source.columns(table);
        let first = shape
            .iter()
            .find(|shape| columns.first() == Some(&&*shape.name));
        let kind = first.map_or(CellKind::Text, |first| first.kind);
        let mut rows = 0;
        let mut added = Findings::default();
        let mut look = |row: &Row<'_>| {
            rows += 1;
            watch.row(table, rows)?;
            match each(row, known, &mut added) {
                Err(error) if is_of_one_row(&error) => {
                    let id = named(row, kind);
                    known.lose(table, id.as_deref());
                    added.add(
                        table,
                        id.as_deref(),
                        Damage::RowUnreadable,
                        error_text(&error),
                    );
                    Ok(())
                }
                other => other,
            }
        };
        let look: EachRow<'_> = &mut look;
        let before = found.total;
        source.each(table, columns, found, look)?;
        // These findings are about the whole table, or about rows whose names are unknown.
        if found.total > before {
            known.lose(table, None);
        }
        for ((lost, of), count) in added.undecided {
            *found.undecided.entry((lost, of)).or_default() += count;
        }
        for finding in added.findings {
            let Finding {
                table,
                id,
                damage,
                detail,
            } = finding;
            found.add(&table, id.as_deref(), damage, detail);
            added.total -= 1;
        }
        found.total += added.total;
        found.rows.insert(table.to_owned(), rows);
        Ok(())
    }
}

/// Reads a time.
pub(crate) fn moment(
    row: &Row<'_>,
    place: usize,
    table: &'static str,
) -> Result<Instant, StoreError> {
    Instant::from_microseconds(row.integer(place)?).ok_or(corrupt(table, "a time"))
}

/// Returns the value of the first column, which names the row.
fn named(row: &Row<'_>, kind: CellKind) -> Option<String> {
    match kind {
        CellKind::Integer => row.integer(0).ok().map(|integer| integer.to_string()),
        CellKind::Bytes => row.fact_id(0).ok().map(|id| id.to_string()),
        CellKind::Text | CellKind::Real => row.text(0).ok(),
    }
}
