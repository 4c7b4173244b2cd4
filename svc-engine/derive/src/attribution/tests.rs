mod choice;
mod left_out;
mod sight;
mod work;
mod worlds;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use proptest::prelude::*;
use svc_engine_fact::testing::builders::{at, id, repository};
use svc_model::repository::RepositoryName;

use super::*;
use crate::diff::{CommitDiff, FileChange, FileDiff};

/// A small world, and what is derived from it.
#[derive(Clone, Debug, Default)]
struct World {
    inputs: Inputs,
    texts: BTreeMap<FactId, String>,
    ranges: BTreeMap<FactId, Option<Vec<CommitSha>>>,
    diffs: BTreeMap<(Lifetime, CommitSha), CommitDiff>,
    /// The repositories whose mirrors are lost.
    lost: BTreeSet<Lifetime>,
}

/// What commits were tied to.
#[derive(Default)]
struct Remembered {
    key: ReachKey,
    tied: HashMap<(Lifetime, CommitSha, CallReach), Arc<CommitTies>>,
}

fn lifetime(number: u32) -> Lifetime {
    Lifetime::Identified(repository(number))
}

fn sha(number: u32) -> CommitSha {
    CommitSha::new(&format!("{number:040x}")).unwrap()
}

fn session(number: u32) -> SessionId {
    SessionId::new(&format!("s{number}")).unwrap()
}

fn minutes(minutes: i64) -> Instant {
    at(minutes * 60)
}

fn added(path: &str, added: &str) -> FileDiff {
    FileDiff {
        path: path.to_owned(),
        change: FileChange::Modified,
        added: added.to_owned(),
    }
}

fn words(numbers: impl IntoIterator<Item = u32>) -> String {
    let words: Vec<String> = numbers
        .into_iter()
        .map(|number| format!("w{number}"))
        .collect();
    words.join(" ")
}

const GO_ON: fn() -> Result<(), Passed> = || Ok(());

impl World {
    fn call(mut self, number: u128, of: u32, minute: i64, text: &str) -> Self {
        self.inputs.calls.push(Call {
            inference_call_id: id(number),
            session_id: session(of),
            observed_at: minutes(minute),
        });
        self.texts.insert(id(number), text.to_owned());
        self
    }

    /// A push of these commits to repository 1.
    fn push(self, number: u128, minute: i64, commits: &[u32]) -> Self {
        self.push_to(1, number, minute, commits)
    }

    fn push_to(mut self, to: u32, number: u128, minute: i64, commits: &[u32]) -> Self {
        self.inputs.pushes.push(Push {
            push_id: id(number),
            captured_at: minutes(minute),
            repository: Ok(lifetime(to)),
        });
        let commits = commits.iter().copied().map(sha).collect();
        self.ranges.insert(id(number), Some(commits));
        self
    }

    /// A commit in repository 1 that adds this text to `a.py`.
    fn commit(self, number: u32, text: &str) -> Self {
        self.files(1, number, vec![added("a.py", text)])
    }

    fn files(mut self, of: u32, number: u32, files: Vec<FileDiff>) -> Self {
        let diff = CommitDiff {
            files,
            ..CommitDiff::default()
        };
        self.diffs.insert((lifetime(of), sha(number)), diff);
        self
    }

    fn note(self, commit: u32, of: u32) -> Self {
        self.note_in(1, commit, of)
    }

    fn note_in(mut self, repository: u32, commit: u32, of: u32) -> Self {
        self.inputs.notes.push(Note {
            repository: lifetime(repository),
            commit_sha: sha(commit),
            session_id: session(of),
        });
        self
    }

    fn derive(&self) -> Attributions {
        self.derive_by(minutes(1_000_000))
    }

    fn derive_by(&self, as_of: Instant) -> Attributions {
        self.texts(as_of).attribute(&GO_ON).unwrap()
    }

    /// Derives with what is remembered from other worlds, and remembers the result.
    fn recall(&self, memory: &mut Remembered) -> Attributions {
        let Remembered { key, tied } = memory;
        let mut commits = self.commits(minutes(1_000_000));
        commits.recall(key, |repository, commit_sha, reach| {
            let place = (repository.clone(), commit_sha.clone(), reach);
            tied.get(&place).cloned()
        });
        let mut derived = self.texts_of(commits).attribute(&GO_ON).unwrap();
        for commit in derived.tied.drain(..) {
            let place = (commit.repository, commit.commit_sha, commit.reach);
            let before = tied.insert(place, commit.tied);
            assert_eq!(before, None, "remembered results are not derived again");
        }
        derived
    }

    fn commits(&self, as_of: Instant) -> Commits {
        let plan = Plan::new(self.inputs.clone(), as_of);
        plan.with_ranges(|repository, push| {
            let range = self.ranges[&push].clone();
            range.ok_or_else(|| self.absence(repository))
        })
    }

    fn absence(&self, repository: &Lifetime) -> MirrorAbsence {
        if self.lost.contains(repository) {
            MirrorAbsence::Lost
        } else {
            MirrorAbsence::Never
        }
    }

    /// Returns the last step, with everything it asked for added.
    fn texts(&self, as_of: Instant) -> Texts {
        self.texts_of(self.commits(as_of))
    }

    fn texts_of(&self, mut commits: Commits) -> Texts {
        let wanted: Vec<(Lifetime, CommitSha)> = commits
            .wanted()
            .into_iter()
            .flat_map(|(repository, shas)| {
                shas.into_iter()
                    .map(move |sha| (repository.clone(), sha.clone()))
            })
            .collect();
        for wanted in wanted {
            if let Some(diff) = self.diffs.get(&wanted) {
                let files = CommitFiles::of(diff);
                commits.add(&wanted.0, &wanted.1, &files).unwrap();
            }
        }
        let mut texts = commits.with_files();
        for (call, text) in &self.texts {
            if texts.wants(*call) {
                texts.add(*call, &CodeTokens::of_text(text)).unwrap();
            }
        }
        texts
    }

    /// Returns the only row's call, source and score, if there is a row.
    fn only(&self) -> Option<(FactId, AttributionSource, f64)> {
        let mut rows = self.derive().rows;
        assert!(rows.len() <= 1, "{rows:?}");
        let row = rows.pop()?;
        Some((row.inference_call_id, row.source, row.similarity.value()))
    }
}

fn is_exactly(value: f64, expected: f64) -> bool {
    value.to_bits() == expected.to_bits()
}
