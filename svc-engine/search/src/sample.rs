//! Checks a sample of an index against the store.

use std::collections::HashSet;
use std::path::Path;

use svc_engine_store::{Snapshot, written_message};

use crate::error::IndexError;
use crate::file::open_reading;
use crate::part::PartDigest;

/// What became of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexSample {
    /// Parts that were compared.
    pub parts: u64,
    /// Parts that the store has differently, or not at all.
    pub differing: u64,
}

/// Compares so many parts of an index, spread over all of them, with the messages in the store. The
/// index need not be locked.
///
/// # Errors
///
/// If the file or the store cannot be read.
pub fn sample(
    path: &Path,
    snapshot: &mut Snapshot<'_>,
    parts_max: u64,
) -> Result<IndexSample, IndexError> {
    let connection = open_reading(path)?;
    let end: i64 = connection.query_row("SELECT COALESCE(MAX(part), 0) FROM parts", [], |row| {
        row.get(0)
    })?;
    let mut next = connection.prepare(
        "SELECT p.part, p.digest, o.content, o.part_index FROM parts p \
        JOIN occurrences o ON o.part = p.part WHERE p.part >= ?1 ORDER BY p.part LIMIT 1",
    )?;
    let mut seen = HashSet::new();
    let mut found = IndexSample::default();
    let parts = i64::try_from(parts_max).unwrap_or(i64::MAX);
    for number in 0..parts {
        let start = 1 + (end / parts.max(1)).saturating_mul(number);
        let mut rows = next.query([start])?;
        let Some(row) = rows.next()? else {
            break;
        };
        let part: i64 = row.get(0)?;
        if !seen.insert(part) {
            continue;
        }
        let digest = PartDigest(row.get(1)?);
        let (content, part_index): (i64, i64) = (row.get(2)?, row.get(3)?);
        let mut is_same = false;
        snapshot.content(&[content], |_, bytes| {
            let message = written_message(bytes)?;
            let place = usize::try_from(part_index).unwrap_or(usize::MAX);
            let part = message.parts.get(place);
            is_same = part.is_some_and(|part| PartDigest::of(part) == digest);
            Ok(())
        })?;
        found.parts += 1;
        found.differing += u64::from(!is_same);
    }
    Ok(found)
}
