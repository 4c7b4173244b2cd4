//! Looking up many keys over both connections of a snapshot.
//!
//! It is for what takes a processor's time. Memory that another thread has taken does not serve this one
//! when it is free again, so what is read should be little, or be needed to the end.

use crate::store::{Snapshot, StoreError};

/// Fewer keys are looked up sooner than a thread starts.
const KEYS_MIN: usize = 64;

/// Takes one row after another.
type Take<'t, T> = &'t mut dyn FnMut(T) -> Result<(), StoreError>;

/// Looks up keys, one half of them beside the other, and returns what is found of both.
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
