//! The list of a call's contents, in as few bytes as it needs.

use super::StoreError;
use super::error::corrupt;

/// Writes ids as the differences between neighbours, each in as few bytes as it needs: a history
/// that was stored in order takes about a byte a message.
pub(super) fn write_ids(ids: impl IntoIterator<Item = i64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut previous = 0_i64;
    for id in ids {
        let difference = id.wrapping_sub(previous);
        previous = id;
        #[expect(clippy::cast_sign_loss, reason = "the sign goes to the lowest bit")]
        let mut rest = ((difference << 1) ^ (difference >> 63)) as u64;
        while rest >= 0x80 {
            #[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        #[expect(clippy::cast_possible_truncation, reason = "below 128")]
        bytes.push(rest as u8);
    }
    bytes
}

/// Reads what [`write_ids`] wrote.
pub(super) fn read_ids(bytes: &[u8]) -> Result<Vec<i64>, StoreError> {
    let mut ids = Vec::with_capacity(bytes.len());
    let mut previous = 0_i64;
    let mut rest = 0_u64;
    let mut shift = 0;
    for byte in bytes {
        if shift > 63 {
            return Err(corrupt("inference_calls", "its list of contents"));
        }
        rest |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 != 0 {
            shift += 7;
            continue;
        }
        #[expect(
            clippy::cast_possible_wrap,
            reason = "the sign comes from the lowest bit"
        )]
        let difference = (rest >> 1) as i64 ^ -((rest & 1) as i64);
        previous = previous.wrapping_add(difference);
        ids.push(previous);
        (rest, shift) = (0, 0);
    }
    if shift == 0 {
        Ok(ids)
    } else {
        Err(corrupt("inference_calls", "its list of contents"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ids_come_back(ids in proptest::collection::vec(any::<i64>(), 0..50)) {
            prop_assert_eq!(read_ids(&write_ids(ids.iter().copied())).unwrap(), ids);
        }

        #[test]
        fn bytes_that_are_no_ids_are_an_error_not_a_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..50),
        ) {
            drop(read_ids(&bytes));
        }
    }

    #[test]
    fn a_history_takes_about_a_byte_a_message() {
        assert_eq!(write_ids(1_000..1_100).len(), 101);
    }
}
