//! The current repository, through the user's git.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

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

/// Runs git and returns its output, or nothing if it exits with 1, which says that there is none.
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
