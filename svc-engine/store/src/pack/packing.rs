//! Stored bytes, compressed if that saves space.
//!
//! A frame has neither zstd's magic number nor its length, which the row has anyway. Stored bytes
//! name their dictionary by number.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io;

use zstd::bulk::{Compressor, Decompressor};

use super::{dictionary, number};
use crate::sql::error::{StoreError, corrupt};

/// Shorter bytes are not worth compressing.
const COMPRESSED_FROM: usize = 32;
/// Texts of at least this many bytes are compressed without a dictionary.
const ALONE_FROM: usize = 32 * 1_024;
/// A long text is compressed once and referred to often, but a sender waits for the compression.
const ALONE_LEVEL: i32 = 3;

/// Begins a column of bytes that is not a cell. No codec has this number, and the numbers are
/// stored.
pub(crate) const NO_CELL: u64 = 257;

/// The encoding of stored bytes. The numbers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    /// Uncompressed: 0.
    Plain,
    /// Compressed with zstd: 1.
    Zstd,
    /// Compressed with zstd and the dictionary of this number: 1 more than the number.
    ZstdWith(u8),
}

impl Codec {
    pub(crate) const fn number(self) -> i64 {
        match self {
            Self::Plain => 0,
            Self::Zstd => 1,
            Self::ZstdWith(dictionary) => 1 + dictionary as i64,
        }
    }

    fn from_number(number: i64) -> Option<Self> {
        match number {
            0 => Some(Self::Plain),
            1 => Some(Self::Zstd),
            number => Some(Self::ZstdWith(u8::try_from(number.checked_sub(1)?).ok()?)),
        }
    }

    const fn for_length(byte_count: usize) -> Self {
        match byte_count {
            ..COMPRESSED_FROM => Self::Plain,
            COMPRESSED_FROM..ALONE_FROM => Self::ZstdWith(dictionary::CURRENT),
            ALONE_FROM.. => Self::Zstd,
        }
    }

    fn compress(self, bytes: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Plain => None,
            Self::Zstd => compress(&ALONE, bytes, || bare(Compressor::new(ALONE_LEVEL))),
            Self::ZstdWith(_) => compress(&WITH_DICTIONARY, bytes, || {
                bare(Compressor::with_prepared_dictionary(dictionary::encoder()?))
            }),
        }
    }

    fn decompress(self, bytes: Cow<'_, [u8]>, length: usize) -> Option<Vec<u8>> {
        let dictionary = match self {
            Self::Plain => return Some(bytes.into_owned()),
            Self::Zstd => 0,
            Self::ZstdWith(dictionary) => dictionary,
        };
        DECOMPRESSORS.with_borrow_mut(|decompressors| {
            let known = decompressors.iter().position(|(of, _)| *of == dictionary);
            let place = if let Some(place) = known {
                place
            } else {
                let decompressor = if dictionary == 0 {
                    Decompressor::new()
                } else {
                    Decompressor::with_prepared_dictionary(dictionary::decoder(dictionary)?)
                };
                let mut decompressor = decompressor.ok()?;
                decompressor.include_magicbytes(false).ok()?;
                decompressors.push((dictionary, decompressor));
                decompressors.len() - 1
            };
            decompressors[place].1.decompress(&bytes, length).ok()
        })
    }
}

/// Leaves out of each frame what is stored beside it: that it is zstd's, its dictionary, and its
/// length. That is 5 bytes of a short message.
fn bare(compressor: io::Result<Compressor<'static>>) -> Option<Compressor<'static>> {
    let mut compressor = compressor.ok()?;
    compressor.include_magicbytes(false).ok()?;
    compressor.include_dictid(false).ok()?;
    compressor.include_contentsize(false).ok()?;
    Some(compressor)
}

/// Encoded bytes.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    pub(crate) codec: Codec,
    pub(crate) byte_count: usize,
    pub(crate) bytes: Vec<u8>,
}

type ThreadCompressor = RefCell<Option<Compressor<'static>>>;

thread_local! {
    /// Creating a compressor costs more than using it.
    static ALONE: ThreadCompressor = const { RefCell::new(None) };
    static WITH_DICTIONARY: ThreadCompressor = const { RefCell::new(None) };
    /// By the number of the dictionary; 0 is without one.
    static DECOMPRESSORS: RefCell<Vec<(u8, Decompressor<'static>)>> =
        const { RefCell::new(Vec::new()) };
}

fn compress(
    compressor: &'static std::thread::LocalKey<ThreadCompressor>,
    bytes: &[u8],
    make: impl FnOnce() -> Option<Compressor<'static>>,
) -> Option<Vec<u8>> {
    compressor.with_borrow_mut(|compressor| {
        if compressor.is_none() {
            *compressor = make();
        }
        compressor.as_mut()?.compress(bytes).ok()
    })
}

impl Packed {
    /// Compresses the bytes if that saves space.
    pub(crate) fn new<'b>(bytes: impl Into<Cow<'b, [u8]>>) -> Self {
        let bytes = bytes.into();
        let byte_count = bytes.len();
        let codec = Codec::for_length(byte_count);
        match codec.compress(&bytes) {
            Some(compressed) if compressed.len() < byte_count => Self {
                codec,
                byte_count,
                bytes: compressed,
            },
            _ => Self {
                codec: Codec::Plain,
                byte_count,
                bytes: bytes.into_owned(),
            },
        }
    }
}

/// Returns the original bytes.
pub(crate) fn unpack<'b>(
    codec: i64,
    byte_count: u64,
    bytes: impl Into<Cow<'b, [u8]>>,
) -> Result<Vec<u8>, StoreError> {
    let length = usize::try_from(byte_count).map_err(|_| corrupt("content", "its length"))?;
    let codec = Codec::from_number(codec).ok_or(corrupt("content", "its codec"))?;
    let bytes = codec
        .decompress(bytes.into(), length)
        .ok_or(corrupt("content", "its bytes"))?;
    if bytes.len() == length {
        Ok(bytes)
    } else {
        Err(corrupt("content", "its length"))
    }
}

/// Encodes bytes as one column: the codec, the length if they are compressed, and the bytes.
pub(crate) fn cell(bytes: Vec<u8>) -> Vec<u8> {
    let packed = Packed::new(bytes);
    let mut cell = Vec::with_capacity(packed.bytes.len() + 4);
    number::write(packed.codec.number().cast_unsigned(), &mut cell);
    if packed.codec != Codec::Plain {
        number::write(packed.byte_count as u64, &mut cell);
    }
    cell.extend(packed.bytes);
    cell
}

/// Decodes the bytes of one column.
pub(crate) fn of_cell(cell: &[u8]) -> Result<Vec<u8>, StoreError> {
    let mut rest = cell;
    let codec = number::read(&mut rest).ok_or(corrupt("a cell", "its codec"))?;
    if codec == Codec::Plain.number().cast_unsigned() {
        return Ok(rest.to_vec());
    }
    let length = number::read(&mut rest).ok_or(corrupt("a cell", "its length"))?;
    let codec = i64::try_from(codec).map_err(|_| corrupt("a cell", "its codec"))?;
    unpack(codec, length, rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn packed_bytes_are_unpacked_unchanged(bytes in proptest::collection::vec(0..8_u8, 0..3_000)) {
            let packed = Packed::new(bytes.clone());
            let count = packed.byte_count as u64;
            prop_assert_eq!(&unpack(packed.codec.number(), count, packed.bytes).unwrap(), &bytes);
            prop_assert_eq!(of_cell(&cell(bytes.clone())).unwrap(), bytes);
        }
    }

    #[test]
    fn the_codec_is_chosen_by_the_length() {
        assert_eq!(Packed::new(vec![7; 40_000]).codec, Codec::Zstd);
        let short = Packed::new(vec![7; 200]);
        assert_eq!(short.codec, Codec::ZstdWith(dictionary::CURRENT));
        assert_eq!(Packed::new(vec![7; 20]).codec, Codec::Plain);
        assert_eq!(cell(vec![7; 20]).len(), 21);
        assert!(unpack(9, 1, vec![0]).is_err(), "no such dictionary");
        assert!(unpack(-1, 1, vec![0]).is_err(), "no such codec");
        assert!(unpack(0, 2, vec![0]).is_err(), "not as long as it says");
        for malformed in [&[][..], &[9], &[1], &[1, 1, 7], &[2, 1, 7], &[0x80]] {
            assert!(of_cell(malformed).is_err(), "{malformed:?}");
        }
    }

    /// Bytes as they were stored with each dictionary that ever existed, and the text they stand
    /// for.
    #[test]
    fn content_of_every_dictionary_is_unpacked() {
        const SAID: &[u8] = include_bytes!("../../tests/stored/message.json");
        const STORED: [&[u8]; 1] = [include_bytes!("../../tests/stored/dictionary-1.cell")];
        for (stored, number) in STORED.into_iter().zip(1..) {
            let (codec, _) = stored.split_first().unwrap();
            assert_eq!(i64::from(*codec), Codec::ZstdWith(number).number());
            assert_eq!(of_cell(stored).unwrap(), SAID, "{number}");
        }
        assert_eq!(STORED.len(), usize::from(dictionary::CURRENT));
    }
}
