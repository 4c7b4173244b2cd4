//! The lines of a transcript, read one at a time: memory does not grow with the file.

use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom};
use std::mem;
use std::path::Path;

use fs_err::File;

use super::opencode::{SessionLines, StoredLine};

/// The maximum size of a line in bytes.
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The maximum size of an archive in bytes, once it is decompressed.
const ARCHIVE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// One complete line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// The line, without its line end.
    Whole { offset: u64, bytes: Vec<u8> },
    /// A line of more than 64 MiB.
    TooLong { offset: u64 },
}

/// Where the lines come from.
pub(super) enum Lines {
    /// A file of lines, or an archive of one.
    File(FileLines),
    /// A file that is one document.
    Document(Option<Vec<u8>>),
    /// A Session of a store.
    Stored(SessionLines),
}

impl Lines {
    /// Opens a file whose lines are read from an offset on.
    pub(super) fn of_file(path: &Path, from: u64) -> io::Result<Self> {
        FileLines::open(path, from).map(Self::File)
    }

    /// Opens a file that is one document.
    pub(super) fn of_document(path: &Path) -> io::Result<Self> {
        let mut bytes = Vec::new();
        let limit = LINE_BYTES_MAX as u64;
        let file = File::open(path)?;
        file.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(Self::Document(Some(bytes)))
    }

    /// Returns the next line; `None` at the end. A last line without line end is left, and read
    /// when the rest of it is there.
    pub(super) fn next(&mut self) -> io::Result<Option<Line>> {
        match self {
            Self::File(lines) => lines.next(),
            Self::Document(document) => {
                let whole = |bytes| Line::Whole { offset: 0, bytes };
                Ok(document.take().map(whole))
            }
            Self::Stored(lines) => Ok(lines.next().transpose()?.map(Line::from)),
        }
    }
}

impl From<StoredLine> for Line {
    fn from(line: StoredLine) -> Self {
        let StoredLine { offset, bytes } = line;
        match bytes {
            Some(bytes) => Self::Whole { offset, bytes },
            None => Self::TooLong { offset },
        }
    }
}

/// The lines of a file.
pub(super) struct FileLines {
    reader: Box<dyn BufRead>,
    /// The offset behind the last line.
    offset: u64,
    /// The beginning of a line whose rest is not there yet.
    partial: Vec<u8>,
    /// The bytes of that line that are not kept, because it is too long.
    dropped: u64,
}

impl FileLines {
    fn open(path: &Path, from: u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let is_archive = path.extension().is_some_and(|ending| ending == "zst");
        let reader: Box<dyn BufRead> = if is_archive {
            let archive = Bounded {
                reader: zstd::stream::read::Decoder::new(file)?,
                left: ARCHIVE_BYTES_MAX,
            };
            let mut reader = BufReader::new(archive);
            io::copy(&mut reader.by_ref().take(from), &mut io::sink())?;
            Box::new(reader)
        } else {
            file.seek(SeekFrom::Start(from))?;
            Box::new(BufReader::with_capacity(256 * 1024, file))
        };
        Ok(Self {
            reader,
            offset: from,
            partial: Vec::new(),
            dropped: 0,
        })
    }

    fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let chunk = self.reader.fill_buf()?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let taken = &chunk[..end.unwrap_or(chunk.len())];
            if self.dropped > 0 || self.partial.len() + taken.len() > LINE_BYTES_MAX {
                self.dropped += (mem::take(&mut self.partial).len() + taken.len()) as u64;
            } else {
                self.partial.extend_from_slice(taken);
            }
            let consumed = taken.len() + usize::from(end.is_some());
            self.reader.consume(consumed);
            if end.is_some() {
                return Ok(Some(self.line()));
            }
        }
    }

    /// Returns the line that has just ended.
    fn line(&mut self) -> Line {
        let offset = self.offset;
        let mut bytes = mem::take(&mut self.partial);
        let dropped = mem::take(&mut self.dropped);
        self.offset += bytes.len() as u64 + dropped + 1;
        if dropped > 0 {
            return Line::TooLong { offset };
        }
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        Line::Whole { offset, bytes }
    }
}

/// A reader that fails after a number of bytes: an archive may be far larger than its file.
struct Bounded<R> {
    reader: R,
    left: u64,
}

impl<R: io::Read> io::Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            let why = "the archive has more than 1 GiB";
            io::Error::new(io::ErrorKind::FileTooLarge, why)
        })?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn all(lines: &mut Lines) -> Vec<(u64, String)> {
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push(match line {
                Line::Whole { offset, bytes } => (offset, String::from_utf8(bytes).unwrap()),
                Line::TooLong { offset } => (offset, "too long".to_owned()),
            });
        }
        all
    }

    fn owned(lines: &[(u64, &str)]) -> Vec<(u64, String)> {
        let owned = lines.iter();
        owned.map(|(at, line)| (*at, (*line).to_owned())).collect()
    }

    #[test]
    fn half_a_line_is_read_when_the_rest_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let mut file = File::create(&path).unwrap();
        file.write_all(b"one\r\n\ntw").unwrap();
        let mut lines = Lines::of_file(&path, 0).unwrap();
        assert_eq!(all(&mut lines), owned(&[(0, "one"), (5, "")]));
        file.write_all(b"o\nthree").unwrap();
        assert_eq!(all(&mut lines), owned(&[(6, "two")]));
        let mut later = Lines::of_file(&path, 5).unwrap();
        assert_eq!(all(&mut later), owned(&[(5, ""), (6, "two")]));
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let mut file = File::create(&path).unwrap();
        file.write_all(&vec![b'x'; LINE_BYTES_MAX + 1]).unwrap();
        file.write_all(b"\nnext\n").unwrap();
        let mut lines = Lines::of_file(&path, 0).unwrap();
        let next = LINE_BYTES_MAX as u64 + 2;
        assert_eq!(all(&mut lines), owned(&[(0, "too long"), (next, "next")]));
    }

    #[test]
    fn an_archive_is_read_as_its_content_and_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl.zst");
        std::fs::write(&path, zstd::encode_all(&b"one\ntwo\n"[..], 1).unwrap()).unwrap();
        let mut lines = Lines::of_file(&path, 0).unwrap();
        assert_eq!(all(&mut lines), owned(&[(0, "one"), (4, "two")]));
        assert_eq!(all(&mut Lines::of_file(&path, 4).unwrap()).len(), 1);
        let mut bounded = Bounded {
            reader: &b"12345"[..],
            left: 4,
        };
        let error = io::copy(&mut bounded, &mut io::sink()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
