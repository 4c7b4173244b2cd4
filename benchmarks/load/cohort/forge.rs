//! The repositories of a cohort, each created in one go and served by git's own daemon.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use harness::git::git;
use svc_model::repository::CommitSha;

use super::code::{EDIT_LINES, FILE_LINES, committed};
use super::{Cohort, PullRequest, PullRequestCommits};
use crate::Failure;

/// The number of files that many commits change, and of the parts of such a file, each of which
/// changes as a whole.
const SHARED: u64 = 40;
const PARTS: u64 = 10;
/// The time of the first commit. The service does not rely on git's times.
const COMMITTED: u64 = 1_788_000_000;
/// The Session that the note of each repository's first commit names. Once it is observed, the
/// repository is mirrored.
pub(crate) const WITNESS: &str = "witness";

/// The repositories.
#[derive(Debug)]
pub(crate) struct Forge {
    folder: PathBuf,
    /// The pull requests of each repository, in order.
    pub(crate) merged: Vec<Vec<PullRequestCommits>>,
}

impl Forge {
    /// Creates the repositories in a folder.
    pub(crate) fn create(cohort: &Cohort, folder: PathBuf) -> Result<Self, Failure> {
        let mut merged = Vec::new();
        for repository in 0..cohort.shape.repositories {
            merged.push(History::new(cohort, repository).import(&folder)?);
        }
        Ok(Self { folder, merged })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the folder of a repository.
    pub(crate) fn name(repository: u64) -> String {
        format!("service-{repository}.git")
    }
}

/// The location of a file, and the part of it that a commit changes.
struct FileLocation {
    path: String,
    /// The part of a shared file, or `None` for a new file.
    part: Option<(u64, u64)>,
    lines: u64,
}

/// Returns the place of a commit's file. Every other file is new.
fn place(cohort: &Cohort, pull_request: PullRequest, commit: u64, file: u64) -> FileLocation {
    if file.is_multiple_of(2) {
        let path = format!("src/work_{}/part_{commit}_{file}.rs", pull_request.place);
        return FileLocation {
            path,
            part: None,
            lines: FILE_LINES,
        };
    }
    // No two files of a pull request are in the same part.
    let number = pull_request.place * 7 + commit * cohort.shape.files + file;
    let (shared, part) = (number % SHARED, number / SHARED % PARTS);
    FileLocation {
        path: format!("src/shared_{shared}.rs"),
        part: Some((shared, part)),
        lines: EDIT_LINES,
    }
}

/// A repository that is being created, as input for `git fast-import`.
struct History<'c> {
    cohort: &'c Cohort,
    repository: u64,
    stream: String,
    /// The last mark that was used.
    mark: u64,
    commits: u64,
    /// The parts of the shared files.
    shared: Vec<Vec<String>>,
}

/// The marks of a pull request's commits.
struct Marks {
    base: u64,
    commits: Vec<u64>,
    merge: u64,
}

impl<'c> History<'c> {
    fn new(cohort: &'c Cohort, repository: u64) -> Self {
        Self {
            cohort,
            repository,
            stream: String::new(),
            mark: 0,
            commits: 0,
            shared: (0..SHARED)
                .map(|file| {
                    (0..PARTS)
                        .map(|part| format!("// part {part} of file {file}\n"))
                        .collect()
                })
                .collect(),
        }
    }

    /// Creates the repository and returns its pull requests.
    fn import(mut self, folder: &Path) -> Result<Vec<PullRequestCommits>, Failure> {
        let path = folder.join(Forge::name(self.repository));
        fs::create_dir_all(&path)?;
        git(&path, &["init", "-q", "--bare", "-b", "main", "."], "");
        let first = self.first();
        let mut base = first;
        let mut marked = Vec::new();
        let cohort = *self.cohort;
        for pull_request in cohort.pull_requests() {
            if pull_request.repository == self.repository {
                let marks = self.pull_request(pull_request, base);
                base = marks.merge;
                marked.push(marks);
            }
        }
        self.note(first);
        let marks = path.join("marks");
        let export = format!("--export-marks={}", marks.display());
        git(
            &path,
            &["fast-import", "--quiet", "--force", &export],
            &self.stream,
        );
        let text = fs::read_to_string(marks)?;
        let mut ids = vec![None; self.mark as usize + 1];
        for line in text.lines() {
            let (mark, id) = line.split_once(' ').ok_or("a mark without an id")?;
            let mark: usize = mark.trim_start_matches(':').parse()?;
            ids[mark] = CommitSha::new(id);
        }
        let id = |mark: u64| ids[mark as usize].clone().ok_or("a mark without a commit");
        let mut merged = Vec::new();
        for marks in marked {
            let commits: Result<Vec<CommitSha>, _> = marks.commits.into_iter().map(id).collect();
            merged.push(PullRequestCommits {
                base: id(marks.base)?,
                commits: commits?,
                merge: id(marks.merge)?,
            });
        }
        Ok(merged)
    }

    /// Writes the first commit.
    fn first(&mut self) -> u64 {
        let files: Vec<(String, u64)> = (0..SHARED)
            .map(|shared| {
                (
                    format!("src/shared_{shared}.rs"),
                    self.blob(&self.shared[shared as usize].concat()),
                )
            })
            .collect();
        self.commit("main", &[], &files)
    }

    /// Writes the commits of a pull request and the commit that merges it. Every other one is a
    /// merge, and the rest are squashed.
    fn pull_request(&mut self, pull_request: PullRequest, base: u64) -> Marks {
        let cohort = self.cohort;
        let branch = format!("work-{}", pull_request.place);
        let mut commits = Vec::new();
        let mut last = base;
        let mut changed: Vec<(String, u64)> = Vec::new();
        for commit in 0..cohort.shape.commits {
            let files: Vec<(String, u64)> = (0..cohort.shape.files)
                .map(|file| self.file(pull_request, commit, file))
                .collect();
            last = self.commit(&branch, &[last], &files);
            commits.push(last);
            changed.extend(files);
        }
        if pull_request.place.is_multiple_of(3) {
            // Somebody made a change while merging.
            let last = "    // reviewed\n".to_owned();
            let session = cohort.session_of(0);
            let seed = cohort.seed(pull_request, session, cohort.call_of(0, 0));
            let mut lines = committed(cohort.shape.texts, seed, FILE_LINES);
            lines.truncate(FILE_LINES as usize / 2);
            lines.push(last);
            let blob = self.blob(&lines.concat());
            changed.push((place(cohort, pull_request, 0, 0).path, blob));
        }
        let parents: &[u64] = if pull_request.place.is_multiple_of(2) {
            &[base, last]
        } else {
            &[base]
        };
        let merge = self.commit("main", parents, &changed);
        Marks {
            base,
            commits,
            merge,
        }
    }

    /// Writes a file as it is in a commit.
    fn file(&mut self, pull_request: PullRequest, commit: u64, file: u64) -> (String, u64) {
        let cohort = self.cohort;
        let place = place(cohort, pull_request, commit, file);
        let session = cohort.session_of(commit);
        let seed = cohort.seed(pull_request, session, cohort.call_of(commit, file));
        let text = committed(cohort.shape.texts, seed, place.lines).concat();
        let whole = match place.part {
            None => text,
            Some((shared, part)) => {
                let parts = &mut self.shared[shared as usize];
                parts[part as usize] = text;
                parts.concat()
            }
        };
        (place.path, self.blob(&whole))
    }

    fn blob(&mut self, text: &str) -> u64 {
        self.mark += 1;
        let mark = self.mark;
        self.put(format_args!("blob\nmark :{mark}\n"));
        self.data(text);
        mark
    }

    fn commit(&mut self, branch: &str, parents: &[u64], files: &[(String, u64)]) -> u64 {
        self.mark += 1;
        self.commits += 1;
        let (mark, moment) = (self.mark, COMMITTED + self.commits * 60);
        self.put(format_args!(
            "commit refs/heads/{branch}\nmark :{mark}\ncommitter A <a@example.test> {moment} +0000\n"
        ));
        self.data("Count every line once");
        for (parent, word) in parents.iter().zip(["from", "merge"]) {
            self.put(format_args!("{word} :{parent}\n"));
        }
        for (path, blob) in files {
            self.put(format_args!("M 100644 :{blob} {path}\n"));
        }
        self.put(format_args!("\n"));
        mark
    }

    fn note(&mut self, commit: u64) {
        let session = format!("{WITNESS}-{}", self.repository);
        let blob = self.blob(&harness::git::stamp(&[&session]));
        self.put(format_args!(
            "commit {}\ncommitter A <a@example.test> {COMMITTED} +0000\n",
            harness::git::NOTES
        ));
        self.data("Notes");
        self.put(format_args!("N :{blob} :{commit}\n"));
    }

    fn data(&mut self, text: &str) {
        self.put(format_args!("data {}\n{text}\n", text.len()));
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        self.stream
            .write_fmt(text)
            .expect("writing to a string cannot fail");
    }
}
