//! What a commit adds to each file, read from git's unified diff of it.
//!
//! Each `diff --git` section stands for itself: one that cannot be read is dropped whole and counted by
//! a closed reason, and the others stand. Lines end at LF, and a CR before it is part of the line
//! break; any other CR is content. Bytes that are not UTF-8 become U+FFFD. How large a diff may be, and
//! of how many files, is decided where it is read from the mirror; here it is read once, front to back,
//! in memory in proportion to what it adds.

mod section;

use self::section::Parsing;

/// Why a section of a diff is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiffSkip {
    /// It breaks the grammar: hunks whose lines are not as many as they say or that overlap, paths that
    /// disagree, lines of a header that are not known.
    Malformed,
    /// It is sound and says nothing of added lines: a binary file, a combined diff, a copy, a commit of
    /// another repository. Or its path is quoted in a way that git does not quote.
    Unsupported,
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// It is new.
    Added,
    /// It has other content, or another mode.
    Modified,
    /// It is gone.
    Deleted,
    /// It lies elsewhere, and may have other content.
    Renamed {
        /// Where it was.
        from: String,
    },
}

/// One file of a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    /// Its path; of a deleted file where it was.
    pub path: String,
    /// What became of it.
    pub change: FileChange,
    /// The lines that were added, of all hunks, joined by `\n` and without one at the end.
    pub added: String,
}

/// The files of a commit that differ from its first parent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitDiff {
    /// The sections that could be read, in their order.
    pub files: Vec<FileDiff>,
    /// Sections that break the grammar.
    pub malformed: u64,
    /// Sections that say nothing of added lines.
    pub unsupported: u64,
}

impl CommitDiff {
    /// Reads what `git diff-tree -p` wrote, with names shown as they are (`core.quotePath` off).
    pub fn parse(diff: &[u8]) -> Self {
        let mut parsed = Self::default();
        let mut open: Option<Parsing> = None;
        for line in diff.split_inclusive(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            // Every line of a file's content begins otherwise.
            if line.starts_with(b"diff ") {
                parsed.close(open.take());
                open = Some(Parsing::begin(line));
            } else {
                // What stands before the first section is none that could be read.
                let parsing = open.get_or_insert_with(|| Parsing::skipped(DiffSkip::Malformed));
                parsing.line(line);
            }
        }
        parsed.close(open);
        parsed
    }

    fn close(&mut self, section: Option<Parsing>) {
        match section.map(Parsing::finish) {
            None => {}
            Some(Ok(file)) => self.files.push(file),
            Some(Err(DiffSkip::Malformed)) => self.malformed += 1,
            Some(Err(DiffSkip::Unsupported)) => self.unsupported += 1,
        }
    }
}

#[cfg(test)]
mod tests;
