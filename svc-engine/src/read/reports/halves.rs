//! Looking up many keys over both connections of a snapshot.
//!
//! Meant for work that is limited by the processor. Memory that another thread allocated and freed
//! cannot be reused by this one, so the rows should be small, or be needed to the end.

use svc_engine_store::{Snapshot, StoreError};

/// Below this many keys, a look-up is faster than starting a thread.
const KEYS_MIN: usize = 64;

/// Takes one row after another.
type Take<'t, T> = &'t mut dyn FnMut(T) -> Result<(), StoreError>;

/// Looks up both halves of the keys in parallel, and returns the rows of both.
pub(super) fn look_up<K: Sync, T: Send>(
    snapshot: &mut Snapshot<'_>,
    keys: &[K],
    look_up: impl Fn(&mut Snapshot<'_>, &[K], Take<'_, T>) -> Result<(), StoreError> + Sync,
) -> Result<Vec<T>, StoreError> {
    let rows = |snapshot: &mut Snapshot<'_>, keys: &[K]| {
        let mut rows = Vec::new();
        look_up(snapshot, keys, &mut |row| {
            rows.push(row);
            Ok(())
        })?;
        Ok::<_, StoreError>(rows)
    };
    if keys.len() < KEYS_MIN {
        return rows(snapshot, keys);
    }
    let (first, second) = keys.split_at(keys.len().div_ceil(2));
    let (first, second) = snapshot.both(
        |snapshot| rows(snapshot, first),
        |snapshot| rows(snapshot, second),
    );
    let mut rows = first?;
    rows.extend(second?);
    Ok(rows)
}
