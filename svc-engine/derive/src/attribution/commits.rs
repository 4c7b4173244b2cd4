use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use svc_engine_fact::Lifetime;
use svc_model::id::FactId;
use svc_model::query::AttributionSource;
use svc_model::reports::{AttributionSkip, Counts};
use svc_model::repository::CommitSha;
use svc_model::time::Instant;

use super::plan::{NotedSessions, Plan, RankedCalls, within};
use super::reach::Sums;
use super::sight::Sight;
use super::similarity::{Sets, Vocabulary};
use super::{
    AssessedCommit, AttributionError, CallReach, CommitFiles, CommitTies, FILE_TOKENS_MAX, Push,
    ReachKey, VOCABULARY_MAX,
};

/// The second step: which commits are read, and the files of each.
#[derive(Clone, Debug)]
pub struct Commits {
    pub(super) calls: RankedCalls,
    /// In the order of their pushes; within a push, oldest first.
    pub(super) pushed: Vec<PushedCommit>,
    places: BTreeMap<Lifetime, BTreeMap<CommitSha, usize>>,
    pub(super) files: Vec<File>,
    pub(super) tokens: Sets,
    pub(super) vocabulary: Vocabulary,
    pub(super) skipped: Counts<AttributionSkip>,
    pub(super) sight: Sight,
}

/// A commit, and what its files have been tied to so far.
#[derive(Clone, Debug)]
pub(super) struct PushedCommit {
    pub(super) repository: Lifetime,
    pub(super) commit_sha: CommitSha,
    pub(super) push_id: FactId,
    pub(super) pushed_at: Instant,
    /// The numbers of the Sessions that notes on it name.
    pub(super) sessions: BTreeSet<u32>,
    /// The calls within its reach, if that was asked for.
    pub(super) reach: Option<CallReach>,
    pub(super) tied: Arc<CommitTies>,
    pub(super) state: CommitState,
}

/// How much is known about a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitState {
    /// Its diff is needed.
    Wanted,
    /// Its files were added.
    Read,
    /// What it was tied to is remembered.
    Recalled,
}

/// A code file to which a commit adds something.
#[derive(Clone, Debug)]
pub(super) struct File {
    /// The index of the commit.
    pub(super) commit: usize,
    pub(super) path: String,
}

impl Commits {
    pub(super) fn new(plan: Plan, ranges: Vec<(Lifetime, Push, Vec<CommitSha>)>) -> Self {
        let Plan {
            calls,
            mut noted,
            skipped,
            mut sight,
            ..
        } = plan;
        let mut commits = Vec::new();
        let mut places: BTreeMap<Lifetime, BTreeMap<CommitSha, usize>> = BTreeMap::new();
        for (repository, push, range) in ranges {
            let known = places.entry(repository.clone()).or_default();
            let mut of_push = Vec::with_capacity(range.len());
            for commit_sha in range {
                let place = *known.entry(commit_sha.clone()).or_insert(commits.len());
                of_push.push(place);
                if place < commits.len() {
                    continue;
                }
                commits.push(PushedCommit {
                    sessions: sessions(&mut noted, &repository, &commit_sha),
                    repository: repository.clone(),
                    commit_sha,
                    push_id: push.push_id,
                    pushed_at: push.captured_at,
                    reach: None,
                    tied: Arc::default(),
                    state: CommitState::Wanted,
                });
            }
            sight.read.push((push.captured_at, of_push));
        }
        Self {
            calls,
            pushed: commits,
            places,
            files: Vec::new(),
            tokens: Sets::new(0),
            vocabulary: Vocabulary::default(),
            skipped,
            sight,
        }
    }

    /// Asks for each commit what it was tied to when the same calls were within its reach. If that
    /// is remembered, neither its diff nor any answer is needed.
    pub fn recall(
        &mut self,
        key: &ReachKey,
        mut remembered: impl FnMut(&Lifetime, &CommitSha, CallReach) -> Option<Arc<CommitTies>>,
    ) {
        let calls = &self.calls;
        let sums = Sums::new(calls, key);
        for commit in &mut self.pushed {
            let (near, week) = (
                calls.near(commit.pushed_at),
                calls.within_week(commit.pushed_at),
            );
            let reach = sums.reach(&near, &week, commit.sessions.iter());
            commit.reach = Some(reach);
            if let Some(tied) = remembered(&commit.repository, &commit.commit_sha, reach) {
                commit.tied = tied;
                commit.state = CommitState::Recalled;
            }
        }
    }

    /// Returns the commits whose diffs are needed, per repository in the order of the pushes.
    pub fn wanted(&self) -> BTreeMap<&Lifetime, Vec<&CommitSha>> {
        let mut wanted: BTreeMap<_, Vec<_>> = BTreeMap::new();
        let open = self
            .pushed
            .iter()
            .filter(|commit| commit.state == CommitState::Wanted);
        for commit in open {
            wanted
                .entry(&commit.repository)
                .or_default()
                .push(&commit.commit_sha);
        }
        wanted
    }

    /// Takes the files of a wanted commit. Does nothing if the commit is not wanted or was added
    /// before.
    ///
    /// # Errors
    ///
    /// [`AttributionError::TooMuch`] beyond [`FILE_TOKENS_MAX`] or [`VOCABULARY_MAX`].
    pub fn add(
        &mut self,
        repository: &Lifetime,
        commit_sha: &CommitSha,
        files: &CommitFiles,
    ) -> Result<(), AttributionError> {
        let place = self
            .places
            .get(repository)
            .and_then(|commits| commits.get(commit_sha));
        let Some(place) = place.copied() else {
            return Ok(());
        };
        let commit = &mut self.pushed[place];
        if commit.state != CommitState::Wanted {
            return Ok(());
        }
        commit.state = CommitState::Read;
        let skipped = &mut commit.tied_mut().skipped;
        let malformed = AttributionSkip::MalformedDiffSection;
        let unsupported = AttributionSkip::UnsupportedDiffSection;
        skipped.add(malformed, files.malformed);
        skipped.add(unsupported, files.unsupported);
        // A section that could not be read may have been code.
        if files.files.is_empty() && files.malformed + files.unsupported == 0 {
            skipped.add(AttributionSkip::NoCodeDiff, 1);
        }
        for file in &files.files {
            let tokens = file.tokens.fingerprints();
            if self.tokens.tokens() + tokens.len() > FILE_TOKENS_MAX {
                return Err(AttributionError::TooMuch);
            }
            self.files.push(File {
                commit: place,
                path: file.path.clone(),
            });
            let numbers = tokens.iter().map(|token| self.vocabulary.number(*token));
            self.tokens.push(tokens.len(), numbers);
            if self.vocabulary.len() > VOCABULARY_MAX {
                return Err(AttributionError::TooMuch);
            }
        }
        Ok(())
    }
}

impl PushedCommit {
    /// Returns what it has been tied to so far, to be changed.
    pub(super) fn tied_mut(&mut self) -> &mut CommitTies {
        Arc::make_mut(&mut self.tied)
    }

    /// Returns what the result says about it.
    pub(super) fn assessed(self, calls: &RankedCalls) -> AssessedCommit {
        let week = calls.within_week(self.pushed_at);
        let of_session = |session: &u32| &calls.of_session[*session as usize];
        let is_plausible = !calls.near(self.pushed_at).is_empty()
            || self
                .sessions
                .iter()
                .any(|session| !within(of_session(session), &week).is_empty());
        let source = self.tied.source();
        let is_hidden = |reason| self.tied.skipped.get(reason) > 0;
        let is_whole = self.state != CommitState::Wanted
            && self.tied.notes_hidden == 0
            && !is_hidden(AttributionSkip::ContentErased)
            && !is_hidden(AttributionSkip::MalformedDiffSection);
        AssessedCommit {
            repository: self.repository,
            commit_sha: self.commit_sha,
            push_id: self.push_id,
            pushed_at: self.pushed_at,
            is_plausible,
            source,
            is_settled: source == Some(AttributionSource::GitNotes) || is_whole,
        }
    }
}

/// Takes out the Sessions that notes on a commit name.
fn sessions(
    noted: &mut NotedSessions,
    repository: &Lifetime,
    commit_sha: &CommitSha,
) -> BTreeSet<u32> {
    noted
        .get_mut(repository)
        .and_then(|commits| commits.remove(commit_sha))
        .unwrap_or_default()
}
