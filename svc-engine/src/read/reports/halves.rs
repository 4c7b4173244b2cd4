//! Looking up many keys over both connections of a snapshot.
//!
//! It is for what takes a processor's time and leaves little: memory that another thread has taken does
//! not serve this one when it is free again, so large rows are read over one connection.

use crate::store::{Snapshot, StoreError};

/// Takes one row after another.
pub(super) type Take<'t, T> = &'t mut dyn FnMut(T) -> Result<(), StoreError>;

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
    let (mut rows, others) = of_halves(snapshot, keys, rows)?;
    rows.extend(others);
    Ok(rows)
}

/// Does something with each half of keys, one beside the other.
pub(super) fn of_halves<K: Sync, T: Send, E: Send>(
    snapshot: &mut Snapshot<'_>,
    keys: &[K],
    read: impl Fn(&mut Snapshot<'_>, &[K]) -> Result<T, E> + Sync,
) -> Result<(T, T), E> {
    let (first, second) = keys.split_at(keys.len().div_ceil(2));
    let (first, second) = snapshot.both(
        |snapshot| read(snapshot, first),
        |snapshot| read(snapshot, second),
    );
    Ok((first?, second?))
}
