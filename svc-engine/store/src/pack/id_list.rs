//! The list of a call's content ids, in as few bytes as possible.

use super::number;
use crate::sql::error::{StoreError, corrupt};

/// Writes ids as differences between neighbours, each in as few bytes as possible. A history that
/// was stored in order takes about a byte per message.
pub(crate) fn write_ids(ids: impl IntoIterator<Item = i64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut previous = 0_i64;
    for id in ids {
        let difference = id.wrapping_sub(previous);
        previous = id;
        // The sign goes to the lowest bit.
        number::write(
            ((difference << 1) ^ (difference >> 63)).cast_unsigned(),
            &mut bytes,
        );
    }
    bytes
}

/// Reads what [`write_ids`] wrote.
pub(crate) fn read_ids(bytes: &[u8]) -> Result<Vec<i64>, StoreError> {
    let mut ids = Vec::with_capacity(bytes.len());
    for id in IdReader::of(bytes) {
        ids.push(id.ok_or(corrupt("inference_calls", "its list of contents"))?);
    }
    Ok(ids)
}

/// Reads one id after another; `None` where the bytes are malformed.
struct IdReader<'b> {
    rest: &'b [u8],
    previous: i64,
}

impl<'b> IdReader<'b> {
    const fn of(bytes: &'b [u8]) -> Self {
        Self {
            rest: bytes,
            previous: 0,
        }
    }
}

impl Iterator for IdReader<'_> {
    type Item = Option<i64>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let Some(written) = number::read(&mut self.rest) else {
            self.rest = &[];
            return Some(None);
        };
        let difference = (written >> 1).cast_signed() ^ -(written & 1).cast_signed();
        self.previous = self.previous.wrapping_add(difference);
        Some(Some(self.previous))
    }
}

/// A call's content ids as they are stored. The calls of a long Session repeat its history, so this
/// takes an eighth of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdList(Box<[u8]>);

impl IdList {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, StoreError> {
        let is_whole = IdReader::of(bytes).all(|id| id.is_some());
        let list = is_whole.then(|| Self(bytes.into()));
        list.ok_or(corrupt("inference_calls", "its list of contents"))
    }

    /// Returns the ids, in order.
    pub fn iter(&self) -> impl Iterator<Item = i64> {
        IdReader::of(&self.0).flatten()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ids_are_read_back(ids in proptest::collection::vec(any::<i64>(), 0..50)) {
            prop_assert_eq!(read_ids(&write_ids(ids.iter().copied())).unwrap(), ids);
        }

        #[test]
        fn malformed_id_lists_are_an_error(
            bytes in proptest::collection::vec(any::<u8>(), 0..50),
        ) {
            let ids = read_ids(&bytes).ok();
            let list = IdList::read(&bytes).ok();
            prop_assert_eq!(list.map(|list| list.iter().collect()), ids);
        }
    }

    #[test]
    fn a_history_needs_about_one_byte_per_message() {
        assert_eq!(write_ids(1_000..1_100).len(), 101);
    }
}
