use super::{DiffSkip, FileChange, FileDiff};

/// The mode of a submodule's commit.
const GITLINK: &[u8] = b"160000";
/// The path that stands for no file.
const NO_FILE: &[u8] = b"/dev/null";

/// One section while its lines are being read.
#[derive(Debug)]
pub(super) struct SectionParser(Result<Section, DiffSkip>);

/// What is known about a section so far.
#[derive(Debug, Default)]
struct Section {
    /// The two paths in the first line, still quoted.
    head: Vec<u8>,
    change: Option<LineChange>,
    renamed_from: Option<Vec<u8>>,
    renamed_to: Option<Vec<u8>>,
    /// The values of `---` and `+++`.
    before: Side,
    after: Side,
    hunk: Option<Hunk>,
    added: AddedText,
}

/// What a section says about its file before or after the commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Side {
    #[default]
    Unnamed,
    NoFile,
    Path(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineChange {
    Added,
    Deleted,
}

/// A hunk: how many of its lines are left, and the earliest place where the next one may begin.
#[derive(Clone, Copy, Debug)]
struct Hunk {
    old_left: u64,
    new_left: u64,
    old_end: u64,
    new_end: u64,
    /// The kind of the last line, because a mark for a missing line break refers to it.
    last: u8,
}

#[derive(Debug, Default)]
struct AddedText {
    text: String,
    has_lines: bool,
    /// Whether the last line ended with a CR that was treated as part of its line break.
    cut: bool,
}

impl SectionParser {
    /// Begins at a line that starts with `diff `.
    pub(super) fn begin(line: &[u8]) -> Self {
        Self(match line.strip_prefix(b"diff --git ") {
            Some(head) => Ok(Section {
                head: head.to_vec(),
                ..Section::default()
            }),
            None => Err(DiffSkip::Unsupported),
        })
    }

    /// Begins a section that cannot be read.
    pub(super) const fn skipped(skip: DiffSkip) -> Self {
        Self(Err(skip))
    }

    /// Reads the next line, without its LF.
    pub(super) fn line(&mut self, line: &[u8]) {
        if let Ok(section) = &mut self.0
            && let Err(skip) = section.line(line)
        {
            self.0 = Err(skip);
        }
    }

    /// Returns the file.
    pub(super) fn finish(self) -> Result<FileDiff, DiffSkip> {
        self.0?.finish()
    }
}

impl Section {
    fn line(&mut self, line: &[u8]) -> Result<(), DiffSkip> {
        if let Some(hunk) = &mut self.hunk
            && !line.starts_with(b"@@ ")
        {
            return hunk.line(line, &mut self.added);
        }
        if let Some(ranges) = line.strip_prefix(b"@@ ") {
            if self.before == Side::Unnamed || self.after == Side::Unnamed {
                return Err(DiffSkip::Malformed);
            }
            self.hunk = Some(Hunk::begin(ranges, self.hunk)?);
            return Ok(());
        }
        self.header(line)
    }

    fn header(&mut self, line: &[u8]) -> Result<(), DiffSkip> {
        let (name, value) = split_header(line).ok_or(DiffSkip::Malformed)?;
        match name {
            "old mode" | "new mode" => mode(value)?,
            "new file mode" => {
                mode(value)?;
                self.change(LineChange::Added)?;
            }
            "deleted file mode" => {
                mode(value)?;
                self.change(LineChange::Deleted)?;
            }
            "index" if value.rsplit(|byte| *byte == b' ').next() == Some(GITLINK) => {
                return Err(DiffSkip::Unsupported);
            }
            "rename from" => self.renamed_from = Some(unquote(value)?),
            "rename to" => self.renamed_to = Some(unquote(value)?),
            "---" => self.before = Side::read(value, b"a/")?,
            "+++" if self.before != Side::Unnamed => self.after = Side::read(value, b"b/")?,
            "+++" => return Err(DiffSkip::Malformed),
            "copy from" | "copy to" | "Binary files" | "GIT binary patch" => {
                return Err(DiffSkip::Unsupported);
            }
            _ => {}
        }
        Ok(())
    }

    fn change(&mut self, change: LineChange) -> Result<(), DiffSkip> {
        match self.change.replace(change) {
            None => Ok(()),
            Some(_) => Err(DiffSkip::Malformed),
        }
    }

    fn finish(self) -> Result<FileDiff, DiffSkip> {
        let malformed = Err(DiffSkip::Malformed);
        if self.hunk.is_some_and(|hunk| !hunk.is_whole())
            || (self.before == Side::Unnamed) != self.hunk.is_none()
            || (self.after == Side::Unnamed) != self.hunk.is_none()
        {
            return malformed;
        }
        let (old, new) = self.paths()?;
        let change = match (self.change, self.renamed_from.is_some()) {
            (None, false) if old != new => return malformed,
            (None, false) => FileChange::Modified,
            (None, true) => FileChange::Renamed { from: text(&old) },
            (Some(_), true) => return malformed,
            (Some(LineChange::Added), false) => FileChange::Added,
            (Some(LineChange::Deleted), false) => FileChange::Deleted,
        };
        // Exactly the side that the change implies has no file.
        let has_hunks = self.hunk.is_some();
        if (self.before == Side::NoFile) != (has_hunks && change == FileChange::Added)
            || (self.after == Side::NoFile) != (has_hunks && change == FileChange::Deleted)
        {
            return malformed;
        }
        let path = if change == FileChange::Deleted {
            old
        } else {
            new
        };
        Ok(FileDiff {
            path: text(&path),
            change,
            added: self.added.text,
        })
    }

    /// Returns the paths before and after. All lines that name a path must agree on it.
    fn paths(&self) -> Result<(Vec<u8>, Vec<u8>), DiffSkip> {
        let agreed = |first: Option<Vec<u8>>, second: Option<Vec<u8>>| match (first, second) {
            (Some(first), Some(second)) if first != second => Err(DiffSkip::Malformed),
            (first, second) => Ok(first.or(second)),
        };
        if self.renamed_from.is_some() != self.renamed_to.is_some() {
            return Err(DiffSkip::Malformed);
        }
        let old = agreed(self.renamed_from.clone(), self.before.path())?;
        let new = agreed(self.renamed_to.clone(), self.after.path())?;
        // If one path is not named, as in a new file, the first line repeats the other.
        let known = match (old, new) {
            (Some(old), Some(new)) => Some((old, new)),
            (Some(one), None) | (None, Some(one)) => Some((one.clone(), one)),
            (None, None) => None,
        };
        let head = self.head.as_slice();
        let (old, new) = match (head.starts_with(b"\""), head.ends_with(b"\"")) {
            // Unquoted names may contain spaces, so the expected paths determine where they are
            // split.
            (false, false) => {
                let (old, new) = known.unwrap_or_else(|| halves(head));
                let spelled = [b"a/", &old[..], b" b/", &new].concat();
                return if spelled == head {
                    Ok((old, new))
                } else {
                    Err(DiffSkip::Malformed)
                };
            }
            (false, true) => split_at(head, find(head, b" \"").ok_or(DiffSkip::Unsupported)?),
            (true, _) => split_at(head, closing(head).ok_or(DiffSkip::Unsupported)?),
        };
        let (old, new) = (unquote(old)?, unquote(new)?);
        match (old.strip_prefix(b"a/"), new.strip_prefix(b"b/")) {
            (Some(old), Some(new)) => {
                let named = (old.to_vec(), new.to_vec());
                let is_agreed = known.map_or(old == new, |known| known == named);
                is_agreed.then_some(named).ok_or(DiffSkip::Malformed)
            }
            _ => Err(DiffSkip::Malformed),
        }
    }
}

impl Side {
    fn read(value: &[u8], prefix: &[u8]) -> Result<Self, DiffSkip> {
        if value == NO_FILE {
            return Ok(Self::NoFile);
        }
        // git appends a tab to a name with a space, because other programs put a date there.
        let value = value.strip_suffix(b"\t").unwrap_or(value);
        let path = unquote(value)?;
        let path = path.strip_prefix(prefix).ok_or(DiffSkip::Malformed)?;
        Ok(Self::Path(path.to_vec()))
    }

    fn path(&self) -> Option<Vec<u8>> {
        match self {
            Self::Path(path) => Some(path.clone()),
            Self::NoFile | Self::Unnamed => None,
        }
    }
}

impl Hunk {
    /// Parses `-A,B +C,D @@`, which must not overlap the previous hunk.
    fn begin(ranges: &[u8], before: Option<Self>) -> Result<Self, DiffSkip> {
        let parsed = || {
            let text = str::from_utf8(ranges.split(|byte| *byte == b'@').next()?).ok()?;
            let mut parts = text.strip_suffix(' ')?.split(' ');
            let old = range(parts.next()?.strip_prefix('-')?)?;
            let new = range(parts.next()?.strip_prefix('+')?)?;
            let ends = ranges.get(text.len()..text.len() + 2) == Some(b"@@");
            (ends && parts.next().is_none()).then_some((old, new))
        };
        let (old, new) = parsed().ok_or(DiffSkip::Malformed)?;
        if let Some(before) = before
            && (!before.is_whole() || old.0 < before.old_end || new.0 < before.new_end)
        {
            return Err(DiffSkip::Malformed);
        }
        Ok(Self {
            old_left: old.1 - old.0,
            new_left: new.1 - new.0,
            old_end: old.1,
            new_end: new.1,
            last: 0,
        })
    }

    const fn is_whole(self) -> bool {
        self.old_left == 0 && self.new_left == 0
    }

    fn line(&mut self, line: &[u8], added: &mut AddedText) -> Result<(), DiffSkip> {
        let (kind, content) = line.split_first().ok_or(DiffSkip::Malformed)?;
        let (old, new) = match kind {
            b' ' => (1, 1),
            b'-' => (1, 0),
            b'+' => (0, 1),
            b'\\' if self.last != 0 && self.last != b'\\' => (0, 0),
            _ => return Err(DiffSkip::Malformed),
        };
        self.old_left = self.old_left.checked_sub(old).ok_or(DiffSkip::Malformed)?;
        self.new_left = self.new_left.checked_sub(new).ok_or(DiffSkip::Malformed)?;
        match (kind, self.last) {
            (b'+', _) => added.line(content),
            (b'\\', b'+') => added.unterminated(),
            _ => {}
        }
        self.last = *kind;
        Ok(())
    }
}

impl AddedText {
    fn line(&mut self, line: &[u8]) {
        let whole = line.strip_suffix(b"\r");
        self.cut = whole.is_some();
        if self.has_lines {
            self.text.push('\n');
        }
        self.has_lines = true;
        self.text
            .push_str(&String::from_utf8_lossy(whole.unwrap_or(line)));
    }

    /// The last line has no line break, so a CR at its end is content after all.
    fn unterminated(&mut self) {
        if self.cut {
            self.text.push('\r');
        }
    }
}

/// Returns the first line of a range and the line after its last. An empty range names the line
/// that it follows.
fn range(text: &str) -> Option<(u64, u64)> {
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<u64>().ok()).flatten()
    };
    let (start, count) = match text.split_once(',') {
        Some((start, count)) => (number(start)?, number(count)?),
        None => (number(text)?, 1),
    };
    let start = start.checked_add(u64::from(count == 0))?;
    Some((start, start.checked_add(count)?))
}

/// Returns the name of a header line and its value; `None` if git never writes such a line.
fn split_header(line: &[u8]) -> Option<(&'static str, &[u8])> {
    const NAMES: [&str; 15] = [
        "old mode",
        "new mode",
        "new file mode",
        "deleted file mode",
        "similarity index",
        "dissimilarity index",
        "rename from",
        "rename to",
        "copy from",
        "copy to",
        "index",
        "---",
        "+++",
        "Binary files",
        "GIT binary patch",
    ];
    NAMES.into_iter().find_map(|name| {
        let rest = line.strip_prefix(name.as_bytes())?;
        match rest {
            [] => Some((name, rest)),
            [b' ', value @ ..] => Some((name, value)),
            _ => None,
        }
    })
}

fn mode(value: &[u8]) -> Result<(), DiffSkip> {
    let octal = |byte: &u8| (b'0'..=b'7').contains(byte);
    if value == GITLINK {
        Err(DiffSkip::Unsupported)
    } else if value.len() == 6 && value.iter().all(octal) {
        Ok(())
    } else {
        Err(DiffSkip::Malformed)
    }
}

/// Returns the name that occurs twice in `a/NAME b/NAME`, if it does.
fn halves(head: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let length = head.len().saturating_sub(b"a/ b/".len()) / 2;
    let name = head.get(2..2 + length).unwrap_or_default().to_vec();
    (name.clone(), name)
}

/// Returns the parts before and after a space.
fn split_at(head: &[u8], blank: usize) -> (&[u8], &[u8]) {
    (&head[..blank], &head[blank + 1..])
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// Returns the position of the space after the quoted name at the beginning.
fn closing(head: &[u8]) -> Option<usize> {
    let mut at = 1;
    while at < head.len() {
        match head[at] {
            b'\\' => at += 2,
            b'"' => return (head.get(at + 1) == Some(&b' ')).then_some(at + 1),
            _ => at += 1,
        }
    }
    None
}

/// Returns the bytes of a name, which git quotes if it contains unusual bytes.
fn unquote(name: &[u8]) -> Result<Vec<u8>, DiffSkip> {
    let Some(quoted) = name.strip_prefix(b"\"") else {
        return Ok(name.to_vec());
    };
    let quoted = quoted.strip_suffix(b"\"").ok_or(DiffSkip::Unsupported)?;
    unescape(quoted).ok_or(DiffSkip::Unsupported)
}

fn unescape(mut quoted: &[u8]) -> Option<Vec<u8>> {
    let mut name = Vec::with_capacity(quoted.len());
    while let Some((byte, rest)) = quoted.split_first() {
        quoted = rest;
        if *byte == b'"' {
            return None;
        }
        if *byte != b'\\' {
            name.push(*byte);
            continue;
        }
        let (escape, rest) = quoted.split_first()?;
        quoted = rest;
        name.push(match escape {
            b'a' => 0x07,
            b'b' => 0x08,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 0x0b,
            b'f' => 0x0c,
            b'r' => b'\r',
            b'"' | b'\\' => *escape,
            b'0'..=b'3' => {
                let (digits, rest) = rest.split_at_checked(2)?;
                quoted = rest;
                digits.iter().try_fold(escape - b'0', |value, digit| {
                    (b'0'..=b'7')
                        .contains(digit)
                        .then(|| value << 3 | (digit - b'0'))
                })?
            }
            _ => return None,
        });
    }
    Some(name)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
