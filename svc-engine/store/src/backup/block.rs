//! Rows in a file: blocks of about a megabyte, each compressed and with its own digest, so that
//! damage costs no more than the rows of one block.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read as _, Write as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};
use svc_engine_fact::private;

use crate::pack::number;
use crate::sql::value::Value;

/// The first bytes of every file.
const MAGIC: &[u8] = b"svc rows 1\n";
/// A block ends once it has this many bytes.
const BLOCK_BYTES: usize = 1024 * 1024;
/// Maximum size of a block in bytes, before it is compressed and afterwards. A row has at most some tens
/// of megabytes.
const BLOCK_BYTES_MAX: u32 = 64 * 1024 * 1024;
/// A fast level: contents are compressed already, and the rest is not worth the time.
const LEVEL: i32 = 1;

const NULL: u8 = 0;
const INTEGER: u8 = 1;
const REAL: u8 = 2;
const TEXT: u8 = 3;
const BYTES: u8 = 4;

/// The size and digest of a written file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFile {
    /// The number of rows.
    pub rows: u64,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The SHA-256 of the file, in hexadecimal.
    pub sha256: String,
}

/// Writes rows to a new file.
#[derive(Debug)]
pub(crate) struct BlockWriter {
    file: BufWriter<File>,
    digest: Sha256,
    bytes: u64,
    rows: u64,
    plain: Vec<u8>,
    rows_in_block: u32,
}

impl BlockWriter {
    /// Creates the file. Only this account may read it.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = private::create_file(path)?;
        let mut writer = Self {
            file: BufWriter::new(file),
            digest: Sha256::new(),
            bytes: 0,
            rows: 0,
            plain: Vec::with_capacity(BLOCK_BYTES + BLOCK_BYTES / 8),
            rows_in_block: 0,
        };
        writer.put(MAGIC)?;
        Ok(writer)
    }

    pub(crate) fn row(&mut self, values: &[Value<'_>]) -> io::Result<()> {
        for value in values {
            match value {
                Value::Null => self.plain.push(NULL),
                Value::Integer(integer) => {
                    self.plain.push(INTEGER);
                    let zigzag = (integer << 1) ^ (integer >> 63);
                    number::write(zigzag.cast_unsigned(), &mut self.plain);
                }
                Value::Real(real) => {
                    self.plain.push(REAL);
                    self.plain.extend_from_slice(&real.to_bits().to_le_bytes());
                }
                Value::Text(_) | Value::OwnText(_) => self.lengthy(TEXT, value.as_bytes()),
                Value::Blob(_) | Value::OwnBlob(_) | Value::FactId(_) => {
                    self.lengthy(BYTES, value.as_bytes());
                }
            }
        }
        self.rows_in_block += 1;
        if self.plain.len() >= BLOCK_BYTES {
            self.block()?;
        }
        Ok(())
    }

    fn lengthy(&mut self, tag: u8, bytes: &[u8]) {
        self.plain.push(tag);
        number::write(bytes.len() as u64, &mut self.plain);
        self.plain.extend_from_slice(bytes);
    }

    fn block(&mut self) -> io::Result<()> {
        if self.rows_in_block == 0 {
            return Ok(());
        }
        let stored = zstd::bulk::compress(&self.plain, LEVEL)?;
        let length = |bytes: &[u8]| {
            let length = u32::try_from(bytes.len()).ok();
            length
                .filter(|length| *length <= BLOCK_BYTES_MAX)
                .ok_or(ErrorKind::FileTooLarge)
        };
        let head = head(length(&stored)?, length(&self.plain)?, self.rows_in_block);
        let digest = Sha256::new_with_prefix(head).chain_update(&stored);
        self.put(&head)?;
        self.put(&digest.finalize())?;
        self.put(&stored)?;
        self.rows += u64::from(self.rows_in_block);
        self.rows_in_block = 0;
        self.plain.clear();
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.update(bytes);
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    /// Completes the file and syncs it to disk.
    pub(crate) fn finish(mut self) -> io::Result<WrittenFile> {
        self.block()?;
        let file = self
            .file
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(WrittenFile {
            rows: self.rows,
            bytes: self.bytes,
            sha256: hexadecimal(&self.digest.finalize()),
        })
    }
}

const HEAD_BYTES: usize = 12;

fn head(stored: u32, plain: u32, rows: u32) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    for (place, number) in [stored, plain, rows].into_iter().enumerate() {
        head[4 * place..4 * place + 4].copy_from_slice(&number.to_le_bytes());
    }
    head
}

/// Returns bytes in hexadecimal.
pub fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
    }
    text
}

/// The next part of a file.
pub(crate) enum NextRows {
    /// Rows.
    Rows(Block),
    /// Rows that cannot be read, with their number if it is known.
    Damaged(Option<u32>),
    /// Nothing more.
    End,
}

/// The rows of a block.
pub(crate) struct Block {
    plain: Vec<u8>,
    place: usize,
    left: u32,
}

/// Reads the rows of a file, block by block.
pub(crate) struct BlockReader {
    file: BufReader<File>,
    digest: Sha256,
    bytes: u64,
    /// Whether nothing more can be read.
    is_over: bool,
}

impl BlockReader {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: BufReader::with_capacity(256 * 1024, private::open_plain(path)?),
            digest: Sha256::new(),
            bytes: 0,
            is_over: false,
        })
    }

    /// Reads the next block. A damaged block is skipped if its length is known.
    pub(crate) fn next(&mut self) -> io::Result<NextRows> {
        if self.is_over {
            return Ok(NextRows::End);
        }
        if self.bytes == 0 {
            let magic = self.take(MAGIC.len())?;
            if magic != MAGIC {
                self.is_over = true;
                return Ok(NextRows::Damaged(None));
            }
        }
        let head_bytes = self.take(HEAD_BYTES)?;
        if head_bytes.is_empty() {
            self.is_over = true;
            return Ok(NextRows::End);
        }
        let Ok(head) = <[u8; HEAD_BYTES]>::try_from(head_bytes.as_slice()) else {
            self.is_over = true;
            return Ok(NextRows::Damaged(None));
        };
        let number = |place: usize| {
            let mut number = [0; 4];
            number.copy_from_slice(&head[4 * place..4 * place + 4]);
            u32::from_le_bytes(number)
        };
        let (stored, plain, rows) = (number(0), number(1), number(2));
        if stored > BLOCK_BYTES_MAX || plain > BLOCK_BYTES_MAX {
            self.is_over = true;
            return Ok(NextRows::Damaged(None));
        }
        let expected = self.take(32)?;
        let bytes = self.take(stored as usize)?;
        if bytes.len() < stored as usize {
            self.is_over = true;
        }
        let digest = Sha256::new_with_prefix(head).chain_update(&bytes);
        if digest.finalize().as_slice() != expected {
            return Ok(NextRows::Damaged((!self.is_over).then_some(rows)));
        }
        // No more memory is taken than the head says, whatever is said in the frame.
        Ok(match zstd::bulk::decompress(&bytes, plain as usize) {
            Ok(rows_of) if rows_of.len() == plain as usize => NextRows::Rows(Block {
                plain: rows_of,
                place: 0,
                left: rows,
            }),
            Ok(_) | Err(_) => NextRows::Damaged(Some(rows)),
        })
    }

    /// Reads this many bytes, or fewer at the end of the file.
    fn take(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file
            .by_ref()
            .take(count as u64)
            .read_to_end(&mut bytes)?;
        self.digest.update(&bytes);
        self.bytes += bytes.len() as u64;
        Ok(bytes)
    }

    /// Reads the rest, and returns the size of the file in bytes and its SHA-256.
    pub(crate) fn finish(mut self) -> io::Result<(u64, String)> {
        while !self.take(BLOCK_BYTES)?.is_empty() {}
        Ok((self.bytes, hexadecimal(&self.digest.finalize())))
    }
}

impl Block {
    /// Reads the next row, if the block has another row with this number of columns.
    pub(crate) fn row(&mut self, columns: usize, values: &mut Vec<Value<'static>>) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        let mut rest = &self.plain[self.place..];
        values.clear();
        for _ in 0..columns {
            values.push(value(&mut rest)?);
        }
        self.place = self.plain.len() - rest.len();
        Some(())
    }

    /// Returns whether every row was read and nothing follows the last.
    pub(crate) fn is_read(&self) -> bool {
        self.left == 0 && self.place == self.plain.len()
    }
}

fn value(rest: &mut &[u8]) -> Option<Value<'static>> {
    let (tag, after) = rest.split_first()?;
    *rest = after;
    Some(match *tag {
        NULL => Value::Null,
        INTEGER => {
            let written = number::read(rest)?;
            Value::Integer((written >> 1).cast_signed() ^ -(written & 1).cast_signed())
        }
        REAL => {
            let (bits, after) = rest.split_first_chunk()?;
            *rest = after;
            Value::Real(f64::from_bits(u64::from_le_bytes(*bits)))
        }
        tag @ (TEXT | BYTES) => {
            let length = usize::try_from(number::read(rest)?).ok()?;
            let (bytes, after) = rest.split_at_checked(length)?;
            *rest = after;
            match tag {
                TEXT => Value::OwnText(String::from_utf8(bytes.to_vec()).ok()?),
                _ => Value::OwnBlob(bytes.to_vec()),
            }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<Value<'static>>> {
        (0..5_000)
            .map(|number: i64| {
                vec![
                    Value::Integer(
                        number * i64::from(u32::MAX) * if number % 2 == 0 { 1 } else { -1 },
                    ),
                    Value::Null,
                    Value::Real(-0.1),
                    Value::OwnText(format!("caf\u{e9} {number}")),
                    Value::OwnBlob(number.to_le_bytes().repeat(100)),
                ]
            })
            .collect()
    }

    fn written(path: &Path) -> WrittenFile {
        let mut writer = BlockWriter::create(path).unwrap();
        for row in rows() {
            writer.row(&row).unwrap();
        }
        writer.finish().unwrap()
    }

    /// Returns the rows that can be read, the number of damaged blocks, and the digest.
    fn read(path: &Path) -> (Vec<String>, usize, String) {
        let mut reader = BlockReader::open(path).unwrap();
        let (mut found, mut damages, mut values) = (Vec::new(), 0, Vec::new());
        loop {
            match reader.next().unwrap() {
                NextRows::Rows(mut block) => {
                    while block.row(5, &mut values).is_some() {
                        found.push(format!("{values:?}"));
                    }
                    assert!(block.is_read());
                }
                NextRows::Damaged(_) => damages += 1,
                NextRows::End => break,
            }
        }
        (found, damages, reader.finish().unwrap().1)
    }

    #[test]
    fn blocks_that_would_take_too_much_memory_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows");
        let zeros = |bytes: usize| zstd::bulk::compress(&vec![0; bytes], LEVEL).unwrap();
        let unsized_frame = {
            let mut encoder = zstd::Encoder::new(Vec::new(), LEVEL).unwrap();
            encoder.include_contentsize(false).unwrap();
            encoder.write_all(&vec![0; 4 * BLOCK_BYTES]).unwrap();
            encoder.finish().unwrap()
        };
        let max = BLOCK_BYTES_MAX as usize;
        for (stored, plain, is_read) in [
            (zeros(BLOCK_BYTES), BLOCK_BYTES, true),
            (zeros(max + 1), max + 1, false),
            (zeros(max + 1), BLOCK_BYTES, false),
            (zeros(BLOCK_BYTES), 2 * BLOCK_BYTES, false),
            (unsized_frame.clone(), 4 * BLOCK_BYTES, true),
            (unsized_frame, BLOCK_BYTES, false),
        ] {
            let number = |number: usize| u32::try_from(number).unwrap();
            let head = head(number(stored.len()), number(plain), 1);
            let digest = Sha256::new_with_prefix(head)
                .chain_update(&stored)
                .finalize();
            std::fs::write(&path, [MAGIC, &head, &digest, &stored].concat()).unwrap();
            let next = BlockReader::open(&path).unwrap().next().unwrap();
            assert_eq!(matches!(next, NextRows::Rows(_)), is_read, "{plain}");
        }
    }

    #[test]
    fn rows_are_read_back_and_damage_loses_one_block() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows");
        let written = written(&path);
        assert_eq!(written.rows, 5_000);
        let expected: Vec<_> = rows().iter().map(|row| format!("{row:?}")).collect();
        let (found, damages, digest) = read(&path);
        assert_eq!(
            (found, damages, digest),
            (expected, 0, written.sha256.clone())
        );

        let bytes = std::fs::read(&path).unwrap();
        for place in (0..bytes.len()).step_by(bytes.len() / 50) {
            let mut flipped = bytes.clone();
            flipped[place] ^= 0x10;
            std::fs::write(&path, &flipped).unwrap();
            let (found, damages, digest) = read(&path);
            assert!(damages > 0 && found.len() < 5_000, "{place}");
            assert_ne!(digest, written.sha256);
        }
        for length in [0, 5, MAGIC.len() + 3, bytes.len() / 2, bytes.len() - 1] {
            std::fs::write(&path, &bytes[..length]).unwrap();
            let (found, damages, digest) = read(&path);
            assert!(found.len() < 5_000 && damages == 1, "{length}");
            assert_ne!(digest, written.sha256);
        }
    }
}
