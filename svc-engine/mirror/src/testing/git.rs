//! Repositories as people have them: a work tree, and the bare repository that it pushes to.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// The ref of the service's own notes.
pub const NOTES: &str = "refs/notes/svc";

/// A repository on a forge, and the work tree of somebody who pushes to it. Both are removed on
/// drop.
#[derive(Debug)]
pub struct Repository {
    folder: TempDir,
}

impl Default for Repository {
    fn default() -> Self {
        Self::create()
    }
}

impl Repository {
    /// Creates an empty repository whose branch is `main`.
    pub fn create() -> Self {
        Self::create_with("sha1")
    }

    /// Creates an empty repository with this object format.
    pub fn create_with(format: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let format = format!("--object-format={format}");
        let repository = Self { folder };
        let base = repository.folder.path();
        git(
            base,
            &["init", "-q", "--bare", "-b", "main", &format, "forge.git"],
            "",
        );
        git(base, &["init", "-q", "-b", "main", &format, "work"], "");
        repository.run(&["remote", "add", "origin", "../forge.git"]);
        repository
    }

    /// Returns the path of the bare repository.
    pub fn bare(&self) -> PathBuf {
        self.folder.path().join("forge.git")
    }

    /// Returns the folder that contains the bare repository.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the URL of the bare repository on this machine.
    pub fn url(&self) -> String {
        format!("file://{}", self.bare().display())
    }

    /// Runs git in the work tree and returns what it prints.
    pub fn run(&self, arguments: &[&str]) -> String {
        self.run_with(arguments, "")
    }

    /// Runs git in the work tree with this input and returns what it prints.
    pub fn run_with(&self, arguments: &[&str], input: &str) -> String {
        git(&self.folder.path().join("work"), arguments, input)
    }

    /// Adds a commit to the current branch and returns its id.
    pub fn commit(&self, message: &str) -> String {
        self.run(&["commit", "-q", "--allow-empty", "-m", message]);
        self.run(&["rev-parse", "HEAD"])
    }

    /// Adds a commit of this time, in seconds of Unix time, to the current branch and returns its
    /// id.
    pub fn commit_at(&self, message: &str, seconds: i64) -> String {
        let date = format!("{seconds} +0000");
        let done = command(&self.folder.path().join("work"))
            .args(["commit", "-q", "--allow-empty", "-m", message])
            .env("GIT_AUTHOR_DATE", &date)
            .env("GIT_COMMITTER_DATE", &date)
            .status()
            .expect("git starts");
        assert!(done.success(), "git commit");
        self.run(&["rev-parse", "HEAD"])
    }

    /// Sets a commit's note, replacing any earlier one.
    pub fn note(&self, notes: &str, commit: &str, note: &str) {
        let blob = self.run_with(&["hash-object", "-w", "--stdin"], note);
        let notes = format!("--ref={notes}");
        self.run(&["notes", &notes, "add", "-f", "-C", &blob, commit]);
    }

    /// Stamps a commit as the work of these Sessions.
    pub fn stamp(&self, commit: &str, session_ids: &[&str]) {
        self.note(NOTES, commit, &stamp(session_ids));
    }

    /// Forces a push of all branches and all notes.
    pub fn push(&self) {
        self.run(&[
            "push",
            "-q",
            "--force",
            "--prune",
            "origin",
            "refs/*:refs/*",
        ]);
    }

    /// Adds this many commits to `main`, each stamped as the work of Session `PREFIX-NUMBER`.
    /// Pushes them and returns their ids, oldest first.
    pub fn add_stamped(&self, count: usize, prefix: &str) -> Vec<String> {
        let mut stream = Vec::new();
        let mut write = |text: String| stream.push(text);
        for number in 1..=count {
            let time = 1_700_000_000 + number;
            write(format!("blob\nmark :{}\n", count + number));
            write(data(&stamp(&[&format!("{prefix}-{number}")])));
            write(format!("commit refs/heads/main\nmark :{number}\n"));
            write(format!("committer A <a@example.test> {time} +0000\n"));
            write(data(&format!("{prefix} {number}")));
            write(String::from("\n"));
        }
        write(format!("commit {NOTES}\n"));
        write("committer A <a@example.test> 1700000000 +0000\n".to_owned());
        write(data("Notes"));
        for number in 1..=count {
            write(format!("N :{} :{number}\n", count + number));
        }
        let marks = self.folder.path().join("marks");
        let export = format!("--export-marks={}", marks.display());
        self.run_with(
            &["fast-import", "--quiet", "--force", &export],
            &stream.concat(),
        );
        self.push();
        let marks = std::fs::read_to_string(marks).expect("the marks");
        let mut commits = vec![String::new(); count];
        for line in marks.lines() {
            let (mark, id) = line.split_once(' ').expect("a mark and an id");
            let mark: usize = mark.trim_start_matches(':').parse().expect("a number");
            if mark <= count {
                id.clone_into(&mut commits[mark - 1]);
            }
        }
        commits
    }
}

/// Returns a note for a commit that these Sessions worked on.
pub fn stamp(session_ids: &[&str]) -> String {
    let sessions: Vec<String> = session_ids
        .iter()
        .map(|id| {
            format!(r#"{{"tool":"t","session_id":"{id}","stamped_at":"2026-01-01T00:00:00Z"}}"#)
        })
        .collect();
    format!(r#"{{"v":1,"sessions":[{}]}}"#, sessions.join(","))
}

fn data(text: &str) -> String {
    format!("data {}\n{text}\n", text.len())
}

/// Runs git without any user configuration and returns what it prints, without the last line break.
pub fn git(folder: &Path, arguments: &[&str], input: &str) -> String {
    let mut child = command(folder)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("git starts");
    let mut stdin = child.stdin.take().expect("a piped input");
    let input = input.as_bytes().to_vec();
    // git may ignore its input.
    let writing = std::thread::spawn(move || stdin.write_all(&input).is_ok());
    let output = child.wait_with_output().expect("git ends");
    writing.join().expect("the input is written");
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim_end_matches('\n').to_owned()
}

/// Returns a git command in a folder, without any user configuration.
pub fn command(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GIT_") {
            command.env_remove(name);
        }
    }
    command.envs([
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_AUTHOR_NAME", "A"),
        ("GIT_AUTHOR_EMAIL", "a@example.test"),
        ("GIT_COMMITTER_NAME", "A"),
        ("GIT_COMMITTER_EMAIL", "a@example.test"),
        ("LC_ALL", "C"),
    ]);
    command
}
