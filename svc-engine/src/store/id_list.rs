//! The list of a call's content ids, in as few bytes as possible.

use super::StoreError;
use super::error::corrupt;
use super::number;

/// Writes ids as differences between neighbours, each in as few bytes as possible. A history that
/// was stored in order takes about a byte per message.
pub(super) fn write_ids(ids: impl IntoIterator<Item = i64>) -> Vec<u8> {
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
pub(super) fn read_ids(bytes: &[u8]) -> Result<Vec<i64>, StoreError> {
    let mut ids = Vec::with_capacity(bytes.len());
    let mut previous = 0_i64;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written =
            number::read(&mut rest).ok_or(corrupt("inference_calls", "its list of contents"))?;
        let difference = (written >> 1).cast_signed() ^ -(written & 1).cast_signed();
        previous = previous.wrapping_add(difference);
        ids.push(previous);
    }
    Ok(ids)
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
            drop(read_ids(&bytes));
        }
    }

    #[test]
    fn a_history_needs_about_one_byte_per_message() {
        assert_eq!(write_ids(1_000..1_100).len(), 101);
    }
}
