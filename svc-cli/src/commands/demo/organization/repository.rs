//! The organization's repository, which is created from scratch each time, with identical contents.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use fs_err as fs;
use svc_engine::capture::notes::{NotesRef, Stamp, addition};
use svc_model::id::SessionId;
use svc_model::repository::CommitSha;
use svc_model::time::Instant;

use super::Timeline;
use super::change::{CHANGES, Change, ChangeFate, Oddity};
use crate::error::CommandError;

/// The commits of the repository.
#[derive(Clone, Debug)]
pub(super) struct Commits {
    pub(super) base: CommitSha,
    /// The commits of each change, in the order of the changes.
    pub(super) changes: Vec<Option<ChangeCommits>>,
    /// How many notes there are.
    pub(super) notes: u64,
}

/// The commits of a change.
#[derive(Clone, Debug)]
pub(super) struct ChangeCommits {
    pub(super) code: CommitSha,
    pub(super) tests: CommitSha,
    /// The main branch before the change was merged and after it.
    pub(super) merge: Option<(CommitSha, CommitSha)>,
    /// The commit of the notes once this change has its own.
    pub(super) notes: Option<CommitSha>,
}

/// The numbers under which git's importer knows the commits of a change.
#[derive(Clone, Copy, Debug)]
struct ImportMarks {
    code: usize,
    tests: usize,
    merge: Option<(usize, usize)>,
    notes: Option<usize>,
}

/// A stream for git's importer.
#[derive(Debug, Default)]
struct Stream {
    bytes: Vec<u8>,
    marks: usize,
}

impl Stream {
    fn line(&mut self, line: &str) {
        self.bytes.extend_from_slice(line.as_bytes());
        self.bytes.push(b'\n');
    }

    fn data(&mut self, text: &str) {
        self.line(&format!("data {}", text.len()));
        self.line(text);
    }

    /// Begins the next commit of a ref.
    fn begin(&mut self, name: &str, (user, at): (&str, Instant), message: &str) {
        self.marks += 1;
        self.line(&format!("commit {name}"));
        self.line(&format!("mark :{}", self.marks));
        self.signed(user, at);
        self.data(message);
    }

    /// Adds a commit of the notes, with these notes on commits, and returns its number.
    fn notes(&mut self, signed: (&str, Instant), notes: &[(usize, String)]) -> usize {
        self.begin(NotesRef::Svc.as_str(), signed, "Notes");
        for (commit, note) in notes {
            self.line(&format!("N inline :{commit}"));
            self.data(note);
        }
        self.marks
    }

    /// Begins a commit of a branch and returns its number.
    fn commit(
        &mut self,
        branch: &str,
        (user, at): (&str, Instant),
        message: &str,
        parents: &[usize],
    ) -> usize {
        self.begin(&format!("refs/heads/{branch}"), (user, at), message);
        for (place, parent) in parents.iter().enumerate() {
            let word = if place == 0 { "from" } else { "merge" };
            self.line(&format!("{word} :{parent}"));
        }
        self.marks
    }

    fn signed(&mut self, user: &str, at: Instant) {
        let seconds = at.microseconds() / 1_000_000;
        for role in ["author", "committer"] {
            self.line(&format!(
                "{role} {user} <{user}@orders.example> {seconds} +0000"
            ));
        }
    }

    fn file(&mut self, path: &str, text: &str) {
        self.line(&format!("M 100644 inline {path}"));
        self.data(text);
    }
}

/// Creates the repository in a folder, replacing an existing one.
pub(super) fn make(folder: &Path, timeline: Timeline) -> Result<Commits, CommandError> {
    let mut stream = Stream::default();
    let mut noted = 0;
    let base = stream.commit("main", ("ada", timeline.begin()), "Begin with orders", &[]);
    stream.file(
        "README.md",
        "# orders\n\nWhat customers ordered, and what became of it.\n",
    );
    stream.file("orders/__init__.py", "\"\"\"Orders.\"\"\"\n");
    let mut main = base;
    let mut marks: Vec<Option<ImportMarks>> = Vec::new();
    for (number, change) in CHANGES.iter().enumerate() {
        if change.way == ChangeFate::Abandoned {
            marks.push(None);
            continue;
        }
        let at = |minutes| timeline.change(number, minutes);
        let user = change.author.user;
        let branch = change.branch();
        let code = stream.commit(&branch, (user, at(14)), change.title, &[main]);
        stream.file(&change.code_path(), &change.committed());
        let message = format!("Test {}", change.name);
        let tests = stream.commit(&branch, (user, at(26)), &message, &[code]);
        stream.file(&change.tests_path(), change.tests);
        let merge = merge(&mut stream, change, number, (main, tests), at(40));
        let before = main;
        main = merge.unwrap_or(main);
        if number == 3 {
            // Agents do not make everything.
            main = stream.commit("main", ("bob", at(50)), "Say how to run the tests", &[main]);
            stream.file("CONTRIBUTING.md", "Run `pytest`.\n");
        }
        let notes = if change.oddity == Oddity::Unstamped {
            None
        } else {
            let mut notes = Vec::new();
            for (commit, kind) in [(code, "code"), (tests, "tests")] {
                notes.push((commit, note(change, kind, at(27))?));
            }
            noted += 2;
            Some(stream.notes((user, at(27)), &notes))
        };
        marks.push(Some(ImportMarks {
            code,
            tests,
            merge: merge.map(|merge| (before, merge)),
            notes,
        }));
    }
    let shas = import(folder, &stream)?;
    let sha = |mark: usize| shas[mark - 1].clone();
    let changes = marks.into_iter().map(|marks| {
        marks.map(|marks| ChangeCommits {
            code: sha(marks.code),
            tests: sha(marks.tests),
            merge: marks.merge.map(|(before, after)| (sha(before), sha(after))),
            notes: marks.notes.map(sha),
        })
    });
    Ok(Commits {
        base: sha(base),
        changes: changes.collect(),
        notes: noted,
    })
}

/// Merges a change and returns the main branch's new head; `None` if it is not merged.
fn merge(
    stream: &mut Stream,
    change: &Change,
    number: usize,
    (main, tests): (usize, usize),
    at: Instant,
) -> Option<usize> {
    let signed = (change.author.user, at);
    let title = format!("{} (#{})", change.title, super::pr_number(number));
    let end = match change.way {
        ChangeFate::Merged => stream.commit("main", signed, &title, &[main, tests]),
        ChangeFate::Squashed | ChangeFate::SquashedElsewhere => {
            stream.commit("main", signed, &title, &[main])
        }
        ChangeFate::Rebased => {
            let code = stream.commit("main", signed, change.title, &[main]);
            stream.file(&change.code_path(), &change.committed());
            let message = format!("Test {}", change.name);
            let tests = stream.commit("main", signed, &message, &[code]);
            stream.file(&change.tests_path(), change.tests);
            return Some(tests);
        }
        ChangeFate::Open | ChangeFate::Abandoned => return None,
    };
    stream.file(&change.merged_path(), &change.committed());
    stream.file(&change.tests_path(), change.tests);
    Some(end)
}

fn note(change: &Change, kind: &str, at: Instant) -> Result<String, CommandError> {
    let stamp = Stamp {
        tool: change.author.agent.as_str().to_owned(),
        session_id: session_id(change, kind),
    };
    let line = addition(None, &[stamp], at)?;
    Ok(format!("{}\n", line.unwrap_or_default()))
}

/// Returns the Session that did this kind of work for a change.
pub(super) fn session_id(change: &Change, kind: &str) -> SessionId {
    let name = format!("orders-{}-{kind}", change.branch());
    SessionId::new(&name).expect("a name without blanks")
}

/// Writes the stream into a new repository, and returns the commits in the order of their numbers.
fn import(folder: &Path, stream: &Stream) -> Result<Vec<CommitSha>, CommandError> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    let marks = folder.join("demo-marks");
    git(
        folder,
        &[
            "init",
            "--quiet",
            "--bare",
            "--object-format=sha1",
            "--initial-branch=main",
            ".",
        ],
        b"",
    )?;
    let export = format!("--export-marks={}", marks.display());
    git(folder, &["fast-import", "--quiet", &export], &stream.bytes)?;
    let text = fs::read_to_string(&marks)?;
    let mut numbered: Vec<(usize, CommitSha)> = text
        .lines()
        .filter_map(|line| {
            let (mark, sha) = line.strip_prefix(':')?.split_once(' ')?;
            Some((mark.parse().ok()?, CommitSha::new(sha)?))
        })
        .collect();
    numbered.sort_unstable_by_key(|(mark, _)| *mark);
    if numbered.len() == stream.marks {
        Ok(numbered.into_iter().map(|(_, sha)| sha).collect())
    } else {
        Err(CommandError::refused(
            "git_failed",
            "git did not make every commit",
        ))
    }
}

/// Removes every ref, so that the repository can grow again as it once did.
pub(in super::super) fn empty(folder: &Path, pushes: &[&Refs]) -> Result<(), CommandError> {
    let names = pushes
        .iter()
        .flat_map(|refs| refs.iter())
        .map(|(name, _)| name);
    let names: BTreeSet<&String> = names.collect();
    update(
        folder,
        names.into_iter().map(|name| format!("delete {name}\n")),
    )
}

/// Refs, and the commits that a push moves them to.
pub(in super::super) type Refs = Vec<(String, CommitSha)>;

/// Moves refs as a push does.
pub(in super::super) fn push(folder: &Path, refs: &Refs) -> Result<(), CommandError> {
    let refs = refs.iter();
    update(
        folder,
        refs.map(|(name, commit)| format!("update {name} {commit}\n")),
    )
}

fn update(folder: &Path, commands: impl Iterator<Item = String>) -> Result<(), CommandError> {
    let commands: String = commands.collect();
    git(folder, &["update-ref", "--stdin"], commands.as_bytes())
}

fn git(folder: &Path, arguments: &[&str], input: &[u8]) -> Result<(), CommandError> {
    let unusable =
        |error: std::io::Error| CommandError::refused("git_unusable", format!("git: {error}"));
    let mut git = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(arguments)
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(unusable)?;
    let written = git
        .stdin
        .take()
        .map_or(Ok(()), |mut stdin| stdin.write_all(input));
    let output = git.wait_with_output().map_err(unusable)?;
    if output.status.success() {
        return written.map_err(unusable);
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let complaint = complaint.lines().next().unwrap_or_default().to_owned();
    Err(CommandError::refused(
        "git_failed",
        format!("git {}: {complaint}", arguments[0]),
    ))
}
