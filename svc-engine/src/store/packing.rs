//! Bytes as they are kept: compressed where that pays.

use std::cell::RefCell;

use super::StoreError;
use super::error::corrupt;

/// Below this many bytes compression does not pay.
const COMPRESSED_FROM: usize = 1_024;
/// The fastest of the ordinary levels: the bytes repeat, so most are never compressed at all.
const COMPRESSION_LEVEL: i32 = 1;

/// How bytes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    /// As they are.
    Plain,
    /// Compressed with zstd.
    Zstd,
}

impl Codec {
    const fn byte(self) -> u8 {
        match self {
            Self::Plain => 0,
            Self::Zstd => 1,
        }
    }

    pub(super) fn number(self) -> i64 {
        i64::from(self.byte())
    }

    fn from_number(number: i64) -> Option<Self> {
        match number {
            0 => Some(Self::Plain),
            1 => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// Bytes as they are kept.
#[derive(Clone, Debug)]
pub(super) struct Packed {
    pub(super) codec: Codec,
    pub(super) byte_count: usize,
    pub(super) bytes: Vec<u8>,
}

thread_local! {
    /// Making one costs more than using it.
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

impl Packed {
    /// Compresses where it pays.
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        let byte_count = bytes.len();
        if byte_count >= COMPRESSED_FROM
            && let Some(compressed) = compress(&bytes)
            && compressed.len() < byte_count
        {
            return Self {
                codec: Codec::Zstd,
                byte_count,
                bytes: compressed,
            };
        }
        Self {
            codec: Codec::Plain,
            byte_count,
            bytes,
        }
    }
}

fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|compressor| {
        if compressor.is_none() {
            *compressor = zstd::bulk::Compressor::new(COMPRESSION_LEVEL).ok();
        }
        compressor.as_mut()?.compress(bytes).ok()
    })
}

fn decompress(bytes: &[u8], length: usize) -> Option<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|decompressor| {
        if decompressor.is_none() {
            *decompressor = zstd::bulk::Decompressor::new().ok();
        }
        decompressor.as_mut()?.decompress(bytes, length).ok()
    })
}

/// Returns the bytes that were packed.
pub(super) fn unpack(codec: i64, byte_count: u64, bytes: Vec<u8>) -> Result<Vec<u8>, StoreError> {
    let length = usize::try_from(byte_count).map_err(|_| corrupt("content", "its length"))?;
    let bytes = match Codec::from_number(codec).ok_or(corrupt("content", "its codec"))? {
        Codec::Plain => bytes,
        Codec::Zstd => decompress(&bytes, length).ok_or(corrupt("content", "its bytes"))?,
    };
    if bytes.len() == length {
        Ok(bytes)
    } else {
        Err(corrupt("content", "its length"))
    }
}

/// Packs bytes into one column: the codec, the length when they are compressed, and the bytes.
pub(super) fn cell(bytes: Vec<u8>) -> Vec<u8> {
    let packed = Packed::new(bytes);
    let mut cell = Vec::with_capacity(packed.bytes.len() + 9);
    cell.push(packed.codec.byte());
    if packed.codec == Codec::Zstd {
        cell.extend((packed.byte_count as u64).to_be_bytes());
    }
    cell.extend(packed.bytes);
    cell
}

/// Returns the bytes that were packed into one column.
pub(super) fn of_cell(cell: &[u8]) -> Result<Vec<u8>, StoreError> {
    let (codec, rest) = cell.split_first().ok_or(corrupt("a cell", "its codec"))?;
    if *codec == Codec::Plain.byte() {
        return Ok(rest.to_vec());
    }
    let (length, bytes) = rest
        .split_first_chunk()
        .ok_or(corrupt("a cell", "its length"))?;
    unpack(
        i64::from(*codec),
        u64::from_be_bytes(*length),
        bytes.to_vec(),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn packed_bytes_come_back(bytes in proptest::collection::vec(0..8_u8, 0..3_000)) {
            let packed = Packed::new(bytes.clone());
            let count = packed.byte_count as u64;
            prop_assert_eq!(&unpack(packed.codec.number(), count, packed.bytes).unwrap(), &bytes);
            prop_assert_eq!(of_cell(&cell(bytes.clone())).unwrap(), bytes);
        }
    }

    #[test]
    fn what_repeats_is_compressed_and_what_is_short_is_not() {
        assert_eq!(Packed::new(vec![7; 2_000]).codec, Codec::Zstd);
        assert_eq!(Packed::new(vec![7; 200]).codec, Codec::Plain);
        assert!(unpack(9, 1, vec![0]).is_err(), "no such codec");
        assert!(unpack(0, 2, vec![0]).is_err(), "not as long as it says");
        assert_eq!(cell(vec![7; 200]).len(), 201);
        for malformed in [&[][..], &[9], &[1, 0], &[1, 0, 0, 0, 0, 0, 0, 0, 1, 7]] {
            assert!(of_cell(malformed).is_err(), "{malformed:?}");
        }
    }
}
