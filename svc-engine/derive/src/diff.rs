//! What a commit adds to each file, parsed from git's unified diff.
//!
//! Each `diff --git` section stands alone: one that cannot be read is dropped whole and counted
//! under a closed reason, and the others remain. Lines end at LF, and a CR before it is part of the
//! line break; any other CR is content. Bytes that are not UTF-8 become U+FFFD. The code that reads
//! the diff from the mirror limits its size and number of files; here it is read once, front to
//! back, in memory proportional to what it adds.

mod section;

use self::section::SectionParser;

/// Why a section of a diff was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiffSkip {
    /// It breaks the grammar: hunks that overlap or have more or fewer lines than they claim, paths
    /// that disagree, unknown header lines.
    Malformed,
    /// It is valid but does not show added lines: a binary file, a combined diff, a copy, a commit
    /// of another repository. Or its path is quoted in a way that git never quotes.
    Unsupported,
}

/// What happened to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// It is new.
    Added,
    /// Its content or its mode changed.
    Modified,
    /// It was deleted.
    Deleted,
    /// It was moved, and its content may have changed.
    Renamed {
        /// Its old path.
        from: String,
    },
}

/// One file of a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    /// Its path; for a deleted file, the old one.
    pub path: String,
    /// What happened to it.
    pub change: FileChange,
    /// The lines added by all hunks, joined by `\n`, without one at the end.
    pub added: String,
}

/// The files in which a commit differs from its first parent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitDiff {
    /// The sections that could be read, in order.
    pub files: Vec<FileDiff>,
    /// Number of sections that break the grammar.
    pub malformed: u64,
    /// Number of sections that do not show added lines.
    pub unsupported: u64,
}

impl CommitDiff {
    /// Parses the output of `git diff-tree -p` with unquoted names (`core.quotePath` off).
    pub fn parse(diff: &[u8]) -> Self {
        let mut parsed = Self::default();
        let mut open: Option<SectionParser> = None;
        for line in diff.split_inclusive(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            // Lines of a file's content always begin with another character.
            if line.starts_with(b"diff ") {
                parsed.close(open.take());
                open = Some(SectionParser::begin(line));
            } else {
                // Anything before the first section is malformed.
                let parsing =
                    open.get_or_insert_with(|| SectionParser::skipped(DiffSkip::Malformed));
                parsing.line(line);
            }
        }
        parsed.close(open);
        parsed
    }

    fn close(&mut self, section: Option<SectionParser>) {
        match section.map(SectionParser::finish) {
            None => {}
            Some(Ok(file)) => self.files.push(file),
            Some(Err(DiffSkip::Malformed)) => self.malformed += 1,
            Some(Err(DiffSkip::Unsupported)) => self.unsupported += 1,
        }
    }
}

#[cfg(test)]
mod tests;
