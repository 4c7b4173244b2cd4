//! Checks what holds for any bytes. The tests of the readers check the same on damaged files.

use std::path::Path;

use svc_transcripts::{Agent, TranscriptReader};

/// Reads a file to its end, and once more from the bookmark that was made in the middle.
pub(super) fn check(agent: Agent, file: &[u8]) {
    let name = Path::new("session.jsonl");
    let mut reader = TranscriptReader::new(agent, name);
    let lines: Vec<&[u8]> = file.split_inclusive(|byte| *byte == b'\n').collect();
    let (first, rest) = lines.split_at(lines.len() / 2);
    if !read(&mut reader, 0, first) {
        return;
    }
    reader.take();
    let bookmark = reader.bookmark();
    let middle: usize = first.iter().map(|line| line.len()).sum();
    let offset = usize::try_from(bookmark.offset).expect("the offset is inside the file");
    assert!(offset <= middle + 1);
    if read(&mut reader, middle, rest) {
        reader.end();
        reader.take();
        assert!(reader.take().is_empty());
    }
    let resumed = TranscriptReader::resume(agent, name, &bookmark);
    let mut resumed = resumed.expect("a reader reads its bookmark");
    let unread = file.get(offset..).unwrap_or_default();
    let lines: Vec<&[u8]> = unread.split_inclusive(|byte| *byte == b'\n').collect();
    if read(&mut resumed, offset, &lines) {
        resumed.end();
        resumed.take();
    }
}

/// Gives lines to a reader. Returns whether it could read them.
fn read(reader: &mut TranscriptReader, mut offset: usize, lines: &[&[u8]]) -> bool {
    for line in lines {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        if reader.line(offset as u64, text).is_err() {
            return false;
        }
        offset += line.len();
    }
    true
}
