//! The current repository, through the user's git.

use std::io::{self, Read, Write as _};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::CommandError;

/// Runs git and returns its output without the last line break.
pub(in super::super) fn git(arguments: &[&str]) -> Result<String, CommandError> {
    let output = run(arguments, None)?;
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(failed(arguments, &output))
    }
}

/// Runs git and returns its output, or `None` if it exits with 1, which means that there is none.
pub(in super::super) fn ask(arguments: &[&str]) -> Result<Option<String>, CommandError> {
    let output = run(arguments, None)?;
    match output.status.code() {
        Some(0) => Ok(Some(text(&output.stdout))),
        Some(1) => Ok(None),
        _ => Err(failed(arguments, &output)),
    }
}

/// Runs git with this input.
pub(super) fn git_with(arguments: &[&str], input: &str) -> Result<(), CommandError> {
    let output = run(arguments, Some(input))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(failed(arguments, &output))
    }
}

/// Returns the bytes of a blob.
pub(super) fn blob(id: &str) -> Result<Vec<u8>, CommandError> {
    let arguments = ["cat-file", "blob", id];
    let output = run(&arguments, None)?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(failed(&arguments, &output))
    }
}

/// Returns the path of a file in the repository's git folder.
pub(in super::super) fn own_path(name: &str) -> Result<PathBuf, CommandError> {
    Ok(PathBuf::from(git(&["rev-parse", "--git-path", name])?))
}

/// Returns whether the current folder is in a work tree.
pub(in super::super) fn is_work_tree() -> Result<bool, CommandError> {
    Ok(run(&["rev-parse", "--is-inside-work-tree"], None)?
        .status
        .success())
}

/// Returns the full id of a commit.
pub(in super::super) fn commit(name: &str) -> Result<String, CommandError> {
    let peeled = format!("{name}^{{commit}}");
    let found = ask(&[
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        &peeled,
    ])?;
    found.ok_or_else(|| CommandError::argument("COMMIT", "is not a commit of this repository"))
}

/// Returns the parents of a commit, the first one first.
pub(super) fn parents(commit: &str) -> Result<Vec<String>, CommandError> {
    let line = git(&["rev-list", "--parents", "--max-count=1", commit])?;
    let parents = line.split_whitespace().skip(1);
    Ok(parents.map(str::to_owned).collect())
}

/// Returns the commit that was checked out before this one, if this one is checked out and git
/// remembers the other.
pub(super) fn head_before(commit: &str) -> Result<Option<String>, CommandError> {
    let head = ask(&["rev-parse", "--verify", "--quiet", "HEAD"])?;
    if head.as_deref() != Some(commit) {
        return Ok(None);
    }
    let before = run(
        &["rev-parse", "--verify", "--quiet", "HEAD@{1}^{commit}"],
        None,
    )?;
    let id = text(&before.stdout);
    Ok((before.status.success() && id != commit).then_some(id))
}

/// Returns the id of the empty tree, which every repository knows.
pub(super) fn empty_tree() -> Result<String, CommandError> {
    git(&["hash-object", "-t", "tree", "--stdin"])
}

/// The longest text in bytes that [`texts`] passes on whole. No file that git can check out has a
/// longer name.
const TEXT_BYTES_MAX: usize = 4_096;

/// Runs git, for at most `patience`, and passes on the texts that it prints, each ended by NUL.
/// Longer texts are cut to one byte more than [`TEXT_BYTES_MAX`].
pub(super) fn texts(
    arguments: &[&str],
    patience: Duration,
    mut each: impl FnMut(&[u8]),
) -> Result<(), CommandError> {
    let mut child = Command::new("git")
        .args(arguments)
        // It is not worth waiting for a server to send what a partial clone lacks.
        .env("GIT_NO_LAZY_FETCH", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| CommandError::refused("git_unusable", format!("git: {error}")))?;
    let verb = arguments.first().copied().unwrap_or_default();
    let read = match child.stdout.take() {
        Some(stdout) => receive(stdout, patience, &mut each),
        None => Ok(false),
    };
    match read {
        Ok(true) if child.wait()?.success() => Ok(()),
        Ok(true) => Err(CommandError::refused(
            "git_failed",
            format!("git {verb} failed"),
        )),
        Ok(false) => {
            drop(child.kill());
            child.wait()?;
            Err(CommandError::refused(
                "git_slow",
                format!("git {verb} took longer than {} s", patience.as_secs()),
            ))
        }
        Err(error) => {
            drop(child.kill());
            child.wait()?;
            Err(error)
        }
    }
}

/// Reads texts, and returns whether that was finished in time.
fn receive(
    from: impl Read + Send + 'static,
    patience: Duration,
    each: &mut impl FnMut(&[u8]),
) -> Result<bool, CommandError> {
    let end = Instant::now() + patience;
    let (sender, receiver) = mpsc::sync_channel(4);
    // Reading from a pipe has no timeout.
    thread::Builder::new().spawn(move || forward(from, &sender))?;
    let mut text = Vec::new();
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        match receiver.recv_timeout(left) {
            Ok(read) => split(&read?, &mut text, each),
            Err(RecvTimeoutError::Timeout) => return Ok(false),
            Err(RecvTimeoutError::Disconnected) => return Ok(true),
        }
    }
}

fn forward(mut from: impl Read, to: &SyncSender<io::Result<Vec<u8>>>) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => Ok(buffer[..length].to_vec()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let has_failed = read.is_err();
        if to.send(read).is_err() || has_failed {
            return;
        }
    }
}

/// Passes on the texts that end in these bytes. The first one continues `text`, and the unfinished
/// last one is left there.
fn split(bytes: &[u8], text: &mut Vec<u8>, each: &mut impl FnMut(&[u8])) {
    for part in bytes.split_inclusive(|byte| *byte == 0) {
        let (piece, is_ended) = match part {
            [piece @ .., 0] => (piece, true),
            piece => (piece, false),
        };
        let room = (TEXT_BYTES_MAX + 1).saturating_sub(text.len());
        text.extend(&piece[..piece.len().min(room)]);
        if is_ended {
            each(text);
            text.clear();
        }
    }
}

/// Returns the note of a commit.
pub(super) fn note(notes: &str, commit: &str) -> Result<Option<Vec<u8>>, CommandError> {
    let notes = format!("--ref={notes}");
    match ask(&["notes", &notes, "list", commit])? {
        Some(id) => blob(&id).map(Some),
        None => Ok(None),
    }
}

fn run(arguments: &[&str], input: Option<&str>) -> Result<Output, CommandError> {
    let mut child = Command::new("git")
        .args(arguments)
        .stdin(if input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| CommandError::refused("git_unusable", format!("git: {error}")))?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        stdin.write_all(input.as_bytes())?;
    }
    Ok(child.wait_with_output()?)
}

fn failed(arguments: &[&str], output: &Output) -> CommandError {
    let complaint = text(&output.stderr);
    let complaint = complaint.lines().next().unwrap_or("no word");
    let verb = arguments.first().copied().unwrap_or_default();
    CommandError::refused("git_failed", format!("git {verb}: {complaint}"))
}

fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim_end_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers one read after the other, and ends after the last.
    struct Scripted(std::vec::IntoIter<io::Result<&'static [u8]>>);

    impl Read for Scripted {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.next().unwrap_or(Ok(b""))?.read(buffer)
        }
    }

    #[test]
    fn a_failed_read_is_not_the_end_of_the_list() {
        let received = |reads: Vec<io::Result<&'static [u8]>>| {
            let mut texts = Vec::new();
            let scripted = Scripted(reads.into_iter());
            let ended = receive(scripted, Duration::from_mins(1), &mut |text| {
                texts.push(text.to_vec());
            });
            (ended.ok(), texts)
        };
        let interrupted = || Err(io::ErrorKind::Interrupted.into());
        let (ended, texts) = received(vec![Ok(b"a\0"), interrupted(), Ok(b"b\0")]);
        assert_eq!(
            (ended, texts),
            (Some(true), vec![b"a".to_vec(), b"b".to_vec()])
        );
        let (ended, _) = received(vec![Ok(b"a\0"), Err(io::ErrorKind::Other.into())]);
        assert_eq!(ended, None);
    }

    #[test]
    fn texts_end_at_nul_and_have_a_maximum_length() {
        let passed = |parts: &[&[u8]]| {
            let (mut text, mut all) = (Vec::new(), Vec::new());
            for part in parts {
                split(part, &mut text, &mut |text| all.push(text.to_vec()));
            }
            all
        };
        assert_eq!(
            passed(&[b"M\0a\nb", b"\0\0c\0cut"]),
            [&b"M"[..], b"a\nb", b"", b"c"]
        );
        let long = vec![b'x'; TEXT_BYTES_MAX];
        let exact = [&long[..], b"\0"].concat();
        assert_eq!(passed(&[&exact]), std::slice::from_ref(&long));
        let lengths: Vec<usize> = passed(&[&long, &long, b"\0a\0"])
            .iter()
            .map(Vec::len)
            .collect();
        assert_eq!(lengths, [TEXT_BYTES_MAX + 1, 1]);
    }

    #[test]
    fn a_slow_command_is_abandoned() {
        let patience = Duration::from_millis(50);
        let silent = std::io::pipe().expect("a pipe");
        let ended = receive(silent.0, patience, &mut |_| {});
        assert!(!ended.expect("it is read"));
        // It never stops.
        let ended = receive(std::io::repeat(b'x'), patience, &mut |_| {});
        assert!(!ended.expect("it is read"));
        let all = receive(&b"a\0"[..], Duration::from_mins(1), &mut |_| {});
        assert!(all.expect("it is read"));
    }
}
