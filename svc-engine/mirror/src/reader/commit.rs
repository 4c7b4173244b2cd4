use svc_model::repository::CommitSha;

/// A commit, as its object describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitObject {
    /// The id of its tree.
    pub tree: CommitSha,
    /// Its parents, in order. The first commit of a history has none.
    pub parents: Vec<CommitSha>,
    /// Who wrote it, as a name and an address in any encoding. Empty if it does not say.
    pub author: Vec<u8>,
    /// When it was written, in seconds since 1970. `None` if the time cannot be read, because old
    /// programs wrote invalid times.
    pub authored_at: Option<i64>,
    /// When it was committed, in seconds since 1970. `None` if the time cannot be read.
    pub committed_at: Option<i64>,
    /// Its message, unchanged, in any encoding.
    pub message: Vec<u8>,
}

impl CommitObject {
    /// Parses a commit object.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let (headers, message) = match find(text, b"\n\n") {
            Some(end) => (&text[..end], &text[end + 2..]),
            // A commit without a message may end with its headers.
            None => (
                text.strip_suffix(b"\n").unwrap_or(text),
                &text[text.len()..],
            ),
        };
        let mut lines = headers.split(|byte| *byte == b'\n');
        let tree = id(lines.next()?.strip_prefix(b"tree ")?)?;
        let mut commit = Self {
            tree,
            parents: Vec::new(),
            author: Vec::new(),
            authored_at: None,
            committed_at: None,
            message: message.to_owned(),
        };
        for line in lines {
            if let Some(parent) = line.strip_prefix(b"parent ") {
                commit.parents.push(id(parent)?);
            } else if let Some(author) = line.strip_prefix(b"author ") {
                let person = person_and_time(author).map_or(author, |(person, _)| person);
                person.clone_into(&mut commit.author);
                commit.authored_at = moment(author);
            } else if let Some(committer) = line.strip_prefix(b"committer ") {
                commit.committed_at = moment(committer);
            }
        }
        Some(commit)
    }
}

fn id(digits: &[u8]) -> Option<CommitSha> {
    CommitSha::new(str::from_utf8(digits).ok()?)
}

/// Splits `NAME <ADDRESS> SECONDS ZONE` before the time.
fn person_and_time(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = line.iter().rposition(|byte| *byte == b'>')?;
    Some(line.split_at(end + 1))
}

/// Parses the time in `NAME <ADDRESS> SECONDS ZONE`.
fn moment(line: &[u8]) -> Option<i64> {
    let (_, time) = person_and_time(line)?;
    let time = str::from_utf8(time).ok()?;
    time.split_ascii_whitespace().next()?.parse().ok()
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|part| part == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_written_by_old_programs_are_parsed() {
        let tree = "a".repeat(40);
        let parent = "b".repeat(40);
        let read = |text: String| CommitObject::parse(text.as_bytes());
        let whole = read(format!(
            "tree {tree}\nparent {parent}\nparent {tree}\nauthor A > B <a@x> 12 +0100\n\
             committer <c@x> -5 +051800\ngpgsig -----BEGIN\n parent no\n\nfirst\n\nsecond\r\n"
        ))
        .unwrap();
        assert_eq!(whole.tree.as_str(), tree);
        assert_eq!(whole.parents.len(), 2);
        assert_eq!(whole.author, b"A > B <a@x>");
        assert_eq!(
            (whole.authored_at, whole.committed_at),
            (Some(12), Some(-5))
        );
        assert_eq!(whole.message, b"first\n\nsecond\r\n");
        let odd = read(format!(
            "tree {tree}\nauthor nobody\ncommitter C <c> 99999999999999999999 +0000\n"
        ))
        .unwrap();
        assert_eq!((odd.authored_at, odd.committed_at), (None, None));
        assert_eq!((odd.parents.len(), odd.message.len()), (0, 0));
        for wrong in ["", "tree x\n", "author A <a> 1 +0\n"] {
            assert_eq!(read(wrong.to_owned()), None);
        }
        assert_eq!(read(format!("tree {tree}\nparent x\n\nm")), None);
    }
}
