//! Numbers in as few bytes as they need: seven bits per byte, lowest first.

/// Appends a number.
pub(crate) fn write(number: u64, out: &mut Vec<u8>) {
    let mut rest = number;
    while rest >= 0x80 {
        #[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    #[expect(clippy::cast_possible_truncation, reason = "below 128")]
    out.push(rest as u8);
}

/// Removes a number from the front; `None` if there is none.
pub(crate) fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_read_back(numbers in proptest::collection::vec(any::<u64>(), 0..20)) {
            let mut bytes = Vec::new();
            for number in &numbers {
                write(*number, &mut bytes);
            }
            let mut rest = bytes.as_slice();
            for number in &numbers {
                prop_assert_eq!(read(&mut rest), Some(*number));
            }
            prop_assert_eq!(read(&mut rest), None);
        }
    }

    #[test]
    fn malformed_numbers_are_rejected() {
        assert_eq!(read(&mut &[0x80][..]), None, "unterminated");
        assert_eq!(read(&mut &[0xff; 11][..]), None, "it is too long");
    }
}
