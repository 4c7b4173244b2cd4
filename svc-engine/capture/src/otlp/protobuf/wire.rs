//! The wire format of protobuf: a message is a sequence of fields.

use super::super::LogsError;

/// The maximum nesting of unknown groups.
const GROUP_DEPTH_MAX: usize = 100;

/// One field of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct WireField<'m> {
    pub(super) number: u32,
    content: FieldContent<'m>,
}

#[derive(Clone, Copy, Debug)]
enum FieldContent<'m> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'m [u8]),
    /// An obsolete kind of field, which is skipped.
    Group,
    Fixed32(u32),
}

impl<'m> WireField<'m> {
    pub(super) fn bytes(&self) -> Result<&'m [u8], LogsError> {
        match self.content {
            FieldContent::Bytes(bytes) => Ok(bytes),
            _ => Err(LogsError::Malformed),
        }
    }

    pub(super) fn varint(&self) -> Result<u64, LogsError> {
        match self.content {
            FieldContent::Varint(value) => Ok(value),
            _ => Err(LogsError::Malformed),
        }
    }

    /// Returns a 32-bit number. The upper half of the varint has no meaning.
    pub(super) fn uint_32(&self) -> Result<u32, LogsError> {
        let [_, _, _, _, low @ ..] = self.varint()?.to_be_bytes();
        Ok(u32::from_be_bytes(low))
    }

    pub(super) fn int_32(&self) -> Result<i32, LogsError> {
        self.uint_32().map(u32::cast_signed)
    }

    pub(super) fn fixed_64(&self) -> Result<u64, LogsError> {
        match self.content {
            FieldContent::Fixed64(value) => Ok(value),
            _ => Err(LogsError::Malformed),
        }
    }

    pub(super) fn fixed_32(&self) -> Result<u32, LogsError> {
        match self.content {
            FieldContent::Fixed32(value) => Ok(value),
            _ => Err(LogsError::Malformed),
        }
    }
}

/// Returns the fields of a message. No field follows an error.
pub(super) fn fields(message: &[u8]) -> WireFields<'_> {
    WireFields { rest: message }
}

pub(super) struct WireFields<'m> {
    rest: &'m [u8],
}

impl<'m> Iterator for WireFields<'m> {
    type Item = Result<WireField<'m>, LogsError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field(GROUP_DEPTH_MAX).and_then(|field| match field {
            FieldOrEnd::Field(field) => Some(field),
            FieldOrEnd::EndOfGroup(_) => None,
        });
        if field.is_none() {
            self.rest = &[];
        }
        Some(field.ok_or(LogsError::Malformed))
    }
}

enum FieldOrEnd<'m> {
    Field(WireField<'m>),
    EndOfGroup(u32),
}

impl<'m> WireFields<'m> {
    /// Reads a field; `None` if the bytes are invalid.
    fn field(&mut self, depth: usize) -> Option<FieldOrEnd<'m>> {
        let key = u32::try_from(self.varint()?).ok()?;
        let number = key >> 3;
        if number == 0 {
            return None;
        }
        let content = match key & 7 {
            0 => FieldContent::Varint(self.varint()?),
            1 => FieldContent::Fixed64(u64::from_le_bytes(self.chunk()?)),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                let (bytes, rest) = self.rest.split_at_checked(length)?;
                self.rest = rest;
                FieldContent::Bytes(bytes)
            }
            3 => {
                self.group(number, depth)?;
                FieldContent::Group
            }
            4 => return Some(FieldOrEnd::EndOfGroup(number)),
            5 => FieldContent::Fixed32(u32::from_le_bytes(self.chunk()?)),
            _ => return None,
        };
        Some(FieldOrEnd::Field(WireField { number, content }))
    }

    /// Skips a group to its end.
    fn group(&mut self, number: u32, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        loop {
            if let FieldOrEnd::EndOfGroup(ended) = self.field(depth)? {
                return (ended == number).then_some(());
            }
        }
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            // The tenth byte holds only the last of the 64 bits.
            if shift == 63 && *byte > 1 {
                return None;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (chunk, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &[u8]) -> Result<Vec<WireField<'_>>, LogsError> {
        fields(message).collect()
    }

    #[test]
    fn a_varint_has_at_most_ten_bytes() {
        let most = [&[8][..], &[0xff; 9], &[1]].concat();
        assert_eq!(read(&most).unwrap()[0].varint(), Ok(u64::MAX));
        assert_eq!(read(&[8, 0x80, 0x80, 0]).unwrap()[0].varint(), Ok(0));
        let beyond = [&[8][..], &[0xff; 9], &[2]].concat();
        let unended = [&[8][..], &[0xff; 10], &[1]].concat();
        for malformed in [&beyond, &unended, &vec![8, 0x80]] {
            assert!(read(malformed).is_err(), "{malformed:x?}");
        }
    }

    #[test]
    fn an_unknown_group_is_skipped_to_its_end() {
        let group = [0x0b, 0x10, 7, 0x1b, 0x1c, 0x0c, 0x20, 9];
        let found = read(&group).unwrap();
        assert_eq!(found.len(), 2);
        assert!(found[0].bytes().is_err() && found[0].varint().is_err());
        assert_eq!(found[1].varint(), Ok(9));
        let deep = [[0x0b; 99], [0x0c; 99]].concat();
        assert!(read(&deep).is_ok());
        let deeper = [vec![0x0b; 100_000], vec![0x0c; 100_000]].concat();
        for malformed in [&[0x0c][..], &[0x0b], &[0x0b, 0x14], &deeper] {
            assert!(read(malformed).is_err(), "{} bytes", malformed.len());
        }
    }

    #[test]
    fn a_malformed_field_is_an_error() {
        for malformed in [
            &[0x00, 0x00][..],
            &[0x0e],
            &[0x0f],
            &[0x09, 1, 2, 3],
            &[0x0d, 1, 2, 3],
            &[0x0a, 2, 1],
            &[
                0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1,
            ],
            &[0x80, 0x80, 0x80, 0x80, 0x10, 0],
        ] {
            let mut fields = fields(malformed);
            assert!(fields.next().unwrap().is_err(), "{malformed:x?}");
            assert!(fields.next().is_none());
        }
    }
}
