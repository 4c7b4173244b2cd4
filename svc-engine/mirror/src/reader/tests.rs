mod ancestry;
mod changes;
mod ends;
mod entries;
mod pull_requests;
mod together;

use std::fs;
use std::slice::from_ref;
use std::time::{Duration, Instant};

use svc_engine_derive::diff::{CommitDiff, FileChange};
use svc_engine_fact::testing::processes;
use svc_model::id::OrgId;
use tempfile::TempDir;

use super::*;
use crate::testing::git::{Repository, git};

/// A repository and its mirror.
struct Stage {
    root: TempDir,
    forge: Repository,
    lifetime: Lifetime,
}

fn long() -> Deadline {
    Deadline::after(Duration::from_mins(2))
}

fn sha(text: &str) -> CommitSha {
    CommitSha::new(text).unwrap()
}

const WHOLE: DiffQuestion = DiffQuestion {
    bytes_max: 1_000_000,
    files_max: 1_000,
};

/// Reads the diff of one commit.
fn diff(
    reader: &mut MirrorReader,
    commit: &CommitSha,
    question: DiffQuestion,
) -> Result<Option<Diff>, ReadError> {
    let mut answer = None;
    reader.diffs(from_ref(commit), question, |_, diff| answer = Some(diff))?;
    answer.expect("an answer")
}

/// Reads one file.
fn file(
    reader: &mut MirrorReader,
    commit: &CommitSha,
    path: &str,
    bytes_max: u64,
) -> Result<Option<Vec<u8>>, ReadError> {
    let path = path.as_bytes();
    let found = reader.find_files(&[WantedFile { commit, path }])?;
    let Some(id) = found.into_iter().next().expect("an answer")? else {
        return Ok(None);
    };
    let mut answer = None;
    reader.contents_of(&[id], bytes_max, |_, bytes| {
        answer = Some(bytes.map(<[u8]>::to_vec));
    })?;
    match answer.expect("an answer")? {
        bytes if bytes.len() as u64 > bytes_max => Err(ReadError::Declined(ReadDecline::TooLarge)),
        bytes => Ok(Some(bytes)),
    }
}

fn declined<T: std::fmt::Debug>(result: Result<T, ReadError>) -> ReadDecline {
    match result {
        Err(ReadError::Declined(decline)) => decline,
        other => panic!("{other:?}"),
    }
}

impl Stage {
    fn new() -> Self {
        Self::with("sha1")
    }

    fn with(format: &str) -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
            forge: Repository::create_with(format),
            lifetime: Lifetime::parse("own/name").unwrap(),
        }
    }

    fn folder(&self) -> MirrorFolder {
        MirrorFolder::new(self.root.path(), OrgId::new("acme").unwrap())
    }

    /// Mirrors what the work tree contains.
    fn mirror(&self) {
        let path = self.folder().path(&self.lifetime);
        let work = self.forge.folder().join("work");
        let arguments = ["clone", "-q", "--mirror", "--no-local"];
        let paths = [work.to_str().unwrap(), path.to_str().unwrap()];
        git(self.root.path(), &[&arguments[..], &paths].concat(), "");
    }

    fn open(&self, deadline: &Deadline) -> MirrorReader {
        let git = Git::find(&long()).unwrap();
        MirrorReader::open(&git, &self.folder(), &self.lifetime, deadline)
            .unwrap()
            .unwrap()
    }

    /// Commits these files, each given by name and bytes.
    fn commit_files(&self, files: &[(&str, &[u8])]) -> CommitSha {
        for (name, bytes) in files {
            let path = self.forge.folder().join("work").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        self.forge.run(&["add", "-A"]);
        sha(&self.forge.commit("files"))
    }

    /// Commits a tree of entries in the form that `mktree` reads.
    fn commit_tree(&self, parent: Option<&CommitSha>, entries: &str) -> CommitSha {
        let tree = self.forge.run_with(&["mktree", "-z", "--missing"], entries);
        let mut arguments = vec!["commit-tree", "-m", "tree"];
        arguments.extend(parent.iter().flat_map(|parent| ["-p", parent.as_str()]));
        arguments.push(&tree);
        let commit = self.forge.run(&arguments);
        self.forge.run(&[
            "update-ref",
            &format!("refs/heads/x{}", &commit[..9]),
            &commit,
        ]);
        sha(&commit)
    }
}
