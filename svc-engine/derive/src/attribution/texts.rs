use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;
use svc_engine_fact::deadline::Passed;
use svc_engine_fact::threads::at_once;
use svc_model::id::FactId;
use svc_model::query::AttributionSource;
use svc_model::reports::{AttributionSkip, Counts};
use svc_model::time::Instant;

use super::commits::{CommitState, Commits, File, PushedCommit};
use super::plan::{RankedCalls, within};
use super::reach::TiedFile;
use super::sight::Sight;
use super::similarity::{Pool, Sets, SimilarCall, Vocabulary, rank};
use super::{
    Attribution, AttributionError, Attributions, CALL_TOKENS_MAX, CodeTokens, GUESS_FLOOR,
    GUESS_MINUTES_BEFORE, LOOKS_MAX, NOTE_FLOOR, TiedCommit,
};

/// Maximum number of runs of files that are searched in parallel. Each run collects the calls near
/// its pushes for itself, so there are few, and the same number on every machine.
const RUNS_MAX: usize = 4;
/// Minimum number of files in a run.
const FILES_OF_RUN_MIN: usize = 1_024;

/// The last step: what the calls wrote.
#[derive(Clone, Debug)]
pub struct Texts {
    calls: RankedCalls,
    commits: Vec<PushedCommit>,
    files: Vec<File>,
    file_tokens: Sets,
    call_tokens: Sets,
    vocabulary: Vocabulary,
    /// The indices of wanted calls that were not added yet.
    wanted: HashMap<FactId, u32, RandomState>,
    /// The indices of wanted calls whose answers were erased.
    erased: BTreeSet<u32>,
    skipped: Counts<AttributionSkip>,
    sight: Sight,
}

impl Commits {
    /// Ends this step. Commits that were not added count as unreadable.
    pub fn with_files(mut self) -> Texts {
        let unread = self
            .pushed
            .iter()
            .filter(|commit| commit.state == CommitState::Wanted);
        let unread = unread.count();
        let reason = AttributionSkip::CommitDiffUnavailable;
        self.skipped.add(reason, unread as u64);
        Texts::new(self)
    }
}

impl Texts {
    fn new(commits: Commits) -> Self {
        let Commits {
            calls,
            pushed: commits,
            files,
            tokens,
            vocabulary,
            skipped,
            sight,
            ..
        } = commits;
        let mut with_files: Vec<usize> = files.iter().map(|file| file.commit).collect();
        with_files.dedup();
        let mut near = MarkedIndices::new(calls.all.len());
        let of_session = |calls: &[u32]| MarkedIndices::new(calls.len());
        let mut noted: Vec<MarkedIndices> = calls
            .of_session
            .iter()
            .map(|places| of_session(places))
            .collect();
        for commit in with_files.into_iter().map(|place| &commits[place]) {
            let places = calls.near(commit.pushed_at);
            near.add(places.start as usize..places.end as usize);
            let week = calls.within_week(commit.pushed_at);
            for session in &commit.sessions {
                let session = *session as usize;
                noted[session].add(within(&calls.of_session[session], &week));
            }
        }
        let mut places: Vec<usize> = near.marked().collect();
        for (marks, calls) in noted.into_iter().zip(&calls.of_session) {
            places.extend(marks.marked().map(|at| calls[at] as usize));
        }
        let wanted = places.into_iter().filter_map(|place| {
            let call = calls.all[place].inference_call_id;
            Some((call, u32::try_from(place).ok()?))
        });
        Self {
            wanted: wanted.collect(),
            erased: BTreeSet::new(),
            call_tokens: Sets::new(calls.all.len()),
            calls,
            commits,
            files,
            file_tokens: tokens,
            vocabulary,
            skipped,
            sight,
        }
    }

    /// Returns whether a call's answer is needed and was not added yet.
    pub fn wants(&self, inference_call_id: FactId) -> bool {
        self.wanted.contains_key(&inference_call_id)
    }

    /// Takes the tokens of a wanted call. Does nothing if the call is not wanted or was added
    /// before.
    ///
    /// # Errors
    ///
    /// [`AttributionError::TooMuch`] beyond [`CALL_TOKENS_MAX`].
    pub fn add(
        &mut self,
        inference_call_id: FactId,
        tokens: &CodeTokens,
    ) -> Result<(), AttributionError> {
        let Some(place) = self.wanted.remove(&inference_call_id) else {
            return Ok(());
        };
        let known = |token: &u64| self.vocabulary.known(*token);
        let numbers = tokens.fingerprints().iter().filter_map(known);
        self.call_tokens.fill(place as usize, tokens.len(), numbers);
        if self.call_tokens.tokens() > CALL_TOKENS_MAX {
            return Err(AttributionError::TooMuch);
        }
        Ok(())
    }

    /// Records that a wanted call's answer was erased: nobody can tell what it wrote.
    pub fn erase(&mut self, inference_call_id: FactId) {
        let place = self.wanted.remove(&inference_call_id);
        self.erased.extend(place);
    }

    /// Returns which call wrote each file's added lines. Calls that were not added wrote nothing.
    ///
    /// # Errors
    ///
    /// [`AttributionError::TooMuch`] beyond [`LOOKS_MAX`], and whatever `check` returns, which is
    /// called for every file.
    pub fn attribute(
        self,
        check: &(dyn Fn() -> Result<(), Passed> + Sync),
    ) -> Result<Attributions, AttributionError> {
        self.attribute_within(check, LOOKS_MAX)
    }

    pub(super) fn attribute_within(
        mut self,
        check: &(dyn Fn() -> Result<(), Passed> + Sync),
        looks_max: u64,
    ) -> Result<Attributions, AttributionError> {
        check()?;
        rank(
            &mut self.call_tokens,
            &mut self.file_tokens,
            self.vocabulary.len(),
        );
        // Files may have been added in any order, but `Join` expects them in the order of their
        // pushes.
        let mut order: Vec<usize> = (0..self.files.len()).collect();
        order.sort_by_key(|file| self.files[*file].commit);
        let matches = self.matches(&order, check, looks_max)?;
        for (file, found) in order.into_iter().zip(matches) {
            let File { commit, path } = &mut self.files[file];
            let commit = &mut self.commits[*commit];
            let Some((source, found)) = found else {
                let skip = if is_within_reach(&self.erased, &self.calls, commit) {
                    AttributionSkip::ContentErased
                } else {
                    AttributionSkip::NoMatch
                };
                commit.tied_mut().skipped.add(skip, 1);
                continue;
            };
            let is_guess = source == AttributionSource::Jaccard;
            if is_guess && is_noted(&self.erased, &self.calls, commit) {
                commit.tied_mut().notes_hidden += 1;
            }
            let call = &self.calls.all[found.call as usize];
            commit.tied_mut().files.push(TiedFile {
                path: std::mem::take(path),
                inference_call_id: call.inference_call_id,
                session_id: call.session_id.clone(),
                similarity: found.similarity,
                source,
            });
        }
        Ok(self.into_attributions())
    }

    /// Returns the call of each of these files, searching a few runs of files at a time.
    fn matches(
        &self,
        files: &[usize],
        check: &(dyn Fn() -> Result<(), Passed> + Sync),
        looks_max: u64,
    ) -> Result<Vec<Option<(AttributionSource, SimilarCall)>>, AttributionError> {
        let looks = AtomicU64::new(0);
        let of_run = |files: &&[usize]| {
            let mut join = Join {
                calls: &self.calls,
                call_tokens: &self.call_tokens,
                file_tokens: &self.file_tokens,
                of_session: HashMap::new(),
                near: None,
                looks_before: 0,
                looks_of_sessions: 0,
                check,
            };
            let mut found = Vec::with_capacity(files.len());
            for file in *files {
                check()?;
                let before = join.looks();
                found.push(join.call(&self.commits[self.files[*file].commit], *file)?);
                let more = join.looks() - before;
                if looks.fetch_add(more, Ordering::Relaxed) + more > looks_max {
                    return Err(AttributionError::TooMuch);
                }
            }
            Ok(found)
        };
        let runs: Vec<&[usize]> = files
            .chunks(files.len().div_ceil(RUNS_MAX).max(FILES_OF_RUN_MIN))
            .collect();
        Ok(at_once(&runs, of_run)?.concat())
    }

    /// Returns what every commit is tied to.
    fn into_attributions(mut self) -> Attributions {
        let mut attributions = Attributions {
            skipped: self.skipped,
            unobservable: self.sight.unobservable(&self.calls, &self.commits),
            commits: Vec::with_capacity(self.commits.len()),
            ..Attributions::default()
        };
        // Commits are sorted rather than rows: there are fewer of them, and each is here once.
        self.commits.sort_unstable_by(|left, right| {
            (&left.repository, &left.commit_sha).cmp(&(&right.repository, &right.commit_sha))
        });
        for commit in self.commits {
            let mut files: Vec<&TiedFile> = commit.tied.files.iter().collect();
            files.sort_by(|left, right| left.path.cmp(&right.path));
            let rows = files.into_iter().map(|file| Attribution {
                repository: commit.repository.clone(),
                commit_sha: commit.commit_sha.clone(),
                file_path: file.path.clone(),
                inference_call_id: file.inference_call_id,
                session_id: file.session_id.clone(),
                similarity: file.similarity,
                source: file.source,
                push_id: commit.push_id,
            });
            attributions.rows.extend(rows);
            for (skip, count) in commit.tied.skipped.iter() {
                attributions.skipped.add(skip, count);
            }
            attributions.notes_hidden += commit.tied.notes_hidden;
            if commit.state == CommitState::Read
                && let Some(reach) = commit.reach
            {
                attributions.tied.push(TiedCommit {
                    repository: commit.repository.clone(),
                    commit_sha: commit.commit_sha.clone(),
                    reach,
                    tied: Arc::clone(&commit.tied),
                });
            }
            attributions.commits.push(commit.assessed(&self.calls));
        }
        attributions
    }
}

/// Returns whether any of these calls could have led to a commit.
fn is_within_reach(places: &BTreeSet<u32>, calls: &RankedCalls, commit: &PushedCommit) -> bool {
    let mut near = places.range(calls.near(commit.pushed_at));
    near.next().is_some() || is_noted(places, calls, commit)
}

/// Returns whether a note ties any of these calls to a commit.
fn is_noted(places: &BTreeSet<u32>, calls: &RankedCalls, commit: &PushedCommit) -> bool {
    if places.is_empty() || commit.sessions.is_empty() {
        return false;
    }
    let is_noted = |place: &u32| {
        let of_session = |session: &u32| {
            let calls = &calls.of_session[*session as usize];
            calls.binary_search(place).is_ok()
        };
        commit.sessions.iter().any(of_session)
    };
    let mut week = places.range(calls.within_week(commit.pushed_at));
    week.any(is_noted)
}

/// Finds the call for one file after another, in the order of their pushes.
struct Join<'j> {
    calls: &'j RankedCalls,
    call_tokens: &'j Sets,
    file_tokens: &'j Sets,
    /// The calls of each noted Session.
    of_session: HashMap<u32, Pool>,
    /// The calls near any push within an hour, and their indices.
    near: Option<(Range<u32>, Pool)>,
    /// The cost of earlier `near` pools.
    looks_before: u64,
    /// The cost of the pools of Sessions.
    looks_of_sessions: u64,
    check: &'j (dyn Fn() -> Result<(), Passed> + Sync),
}

impl Join<'_> {
    /// Returns the cost of the searches so far, in looks at a call.
    fn looks(&self) -> u64 {
        let near = self.near.as_ref().map_or(0, |(_, pool)| pool.looks());
        self.looks_before + near + self.looks_of_sessions
    }

    fn call(
        &mut self,
        commit: &PushedCommit,
        file: usize,
    ) -> Result<Option<(AttributionSource, SimilarCall)>, Passed> {
        if let Some(found) = self.noted(commit, file)? {
            return Ok(Some((AttributionSource::GitNotes, found)));
        }
        let found = self.guessed(commit, file)?;
        Ok(found.map(|found| (AttributionSource::Jaccard, found)))
    }

    fn noted(&mut self, commit: &PushedCommit, file: usize) -> Result<Option<SimilarCall>, Passed> {
        let week = self.calls.within_week(commit.pushed_at);
        let mut best = None;
        for session in &commit.sessions {
            let calls = &self.calls.of_session[*session as usize];
            if within(calls, &week).is_empty() {
                continue;
            }
            if !self.of_session.contains_key(session) {
                let calls = calls.iter().copied();
                let pool = Pool::new(self.call_tokens, calls, NOTE_FLOOR, self.check)?;
                self.of_session.insert(*session, pool);
            }
            if let Some(pool) = self.of_session.get_mut(session) {
                let looks = pool.looks();
                best = pool.best(self.call_tokens, self.file_tokens, file, &week, best);
                self.looks_of_sessions += pool.looks() - looks;
            }
        }
        Ok(best)
    }

    fn guessed(
        &mut self,
        commit: &PushedCommit,
        file: usize,
    ) -> Result<Option<SimilarCall>, Passed> {
        let near = self.calls.near(commit.pushed_at);
        if near.is_empty() {
            return Ok(None);
        }
        let covers = |places: &Range<u32>| places.start <= near.start && near.end <= places.end;
        if !self.near.as_ref().is_some_and(|(places, _)| covers(places)) {
            // The next pushes probably need the calls of the next hour too.
            let hour = commit.pushed_at.microseconds() + GUESS_MINUTES_BEFORE * 60 * 1_000_000;
            let later = Instant::from_microseconds(hour);
            let end = later.map_or(near.end, |later| self.calls.near(later).end);
            let places = near.start..end.max(near.end);
            let pool = Pool::new(self.call_tokens, places.clone(), GUESS_FLOOR, self.check)?;
            let before = self.near.replace((places, pool));
            self.looks_before += before.map_or(0, |(_, pool)| pool.looks());
        }
        Ok(self
            .near
            .as_mut()
            .and_then(|(_, pool)| pool.best(self.call_tokens, self.file_tokens, file, &near, None)))
    }
}

/// A set of marked indices, built from ranges.
#[derive(Clone, Debug)]
pub(super) struct MarkedIndices(Vec<i64>);

impl MarkedIndices {
    pub(super) fn new(places: usize) -> Self {
        Self(vec![0; places + 1])
    }

    pub(super) fn add(&mut self, places: Range<usize>) {
        self.0[places.start] += 1;
        self.0[places.end] -= 1;
    }

    pub(super) fn marked(self) -> impl Iterator<Item = usize> {
        let mut open = 0;
        self.0
            .into_iter()
            .enumerate()
            .filter_map(move |(at, change)| {
                open += change;
                (open > 0).then_some(at)
            })
    }
}
