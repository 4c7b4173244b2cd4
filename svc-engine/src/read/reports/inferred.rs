//! Which calls wrote what one commit adds, as the reports tie them to it: over the push that brought
//! the commit first, the calls near that push, and those of the Sessions observed at the commit.
//!
//! What is looked up is bounded by the time around the push and never by history. Where it cannot be
//! told, there is a reason; that no call is found is said only where calls were looked for.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use svc_model::id::{FactId, SessionId};
use svc_model::limit::{REPORT_ANSWER_BYTES_MAX, REPORT_CALLS_MAX};
use svc_model::query::{InferenceSkip, InferredCall, InferredRelationship};
use svc_model::reports::{AttributionSkip, Counts};
use svc_model::repository::{CommitSha, RepositoryName};
use svc_model::time::Instant;

use super::answers::Answers;
use super::extent::first;
use super::history::History;
use super::mirrors::{OpenMirror, OpenMirrors};
use super::population::{call_ids, decided, decisions, owners, up_to};
use super::{Question, ReportSources, attribute, just_after, minutes_later};
use crate::deadline::Deadline;
use crate::derive::attribution::{
    self, Attribution, GUESS_MINUTES_BEFORE, MINUTES_AFTER, NOTE_MINUTES_BEFORE, Note,
};
use crate::derive::decision::{Decision, Decisions};
use crate::error::Error;
use crate::fact::{Lifetime, Push};
use crate::mirror::PushRange;
use crate::store::{CohortCall, Snapshot};

/// Pushes that are looked at for the one that brought a commit.
const PUSHES_MAX: usize = 1_000;
/// How far the clock of whoever made a commit may be ahead of the service's.
const SKEW_MINUTES: i64 = 60;
const MICROSECONDS: i64 = 1_000_000;

/// Up to when facts count.
#[derive(Clone, Copy, Debug)]
pub(in crate::read) struct Bounds {
    /// When they were received, at the latest.
    pub(in crate::read) boundary: Instant,
    /// When calls were observed, at the latest.
    pub(in crate::read) observed_by: Instant,
}

/// A commit of a repository, and what is known of it there.
#[derive(Debug)]
pub(in crate::read) struct KnownCommit<'c> {
    pub(in crate::read) repository: &'c Lifetime,
    /// Every name of the repository.
    pub(in crate::read) names: &'c [RepositoryName],
    pub(in crate::read) commit_sha: &'c CommitSha,
    /// The first push that left a branch at it.
    pub(in crate::read) head: Option<&'c Push>,
    /// The Sessions that were observed at it.
    pub(in crate::read) sessions: BTreeSet<&'c SessionId>,
    /// Whether any stored fact of the repository names it.
    pub(in crate::read) is_named: bool,
}

/// The calls that were found in a commit.
#[derive(Debug, Default)]
pub(in crate::read) struct Inferred {
    /// By id.
    pub(in crate::read) calls: Vec<InferredCall>,
    /// How many decisions are attached to them.
    pub(in crate::read) decisions: u64,
    /// Why calls were not looked for, or not everywhere.
    pub(in crate::read) skipped: Counts<InferenceSkip>,
}

impl Inferred {
    fn skipped(skip: InferenceSkip) -> Self {
        Self {
            skipped: Counts::from_iter([(skip, 1)]),
            ..Self::default()
        }
    }
}

/// Which push brought a commit first.
enum Bringing {
    /// None did: it is older than what is stored, or beyond what a push is read for.
    None,
    Push(Box<Push>),
    Skip(InferenceSkip),
}

/// Finds the calls in one commit after another.
#[derive(Debug)]
pub(in crate::read) struct Inference<'i> {
    history: History<'i>,
    answers: Answers<'i>,
    bounds: Bounds,
}

impl<'i> Inference<'i> {
    pub(in crate::read) fn new(
        sources: ReportSources<'i>,
        deadline: &Deadline,
        bounds: Bounds,
    ) -> Self {
        let mirrors = OpenMirrors::new(sources.mirrors, deadline);
        Self {
            history: History::new(mirrors, sources.memory),
            answers: Answers::new(sources.memory),
            bounds,
        }
    }

    /// Returns the calls that were found in a commit.
    ///
    /// # Errors
    ///
    /// [`Error::ReportBound`] when too many calls are near its push.
    pub(in crate::read) fn of(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        commit: &KnownCommit<'_>,
    ) -> Result<Inferred, Error> {
        let push = match self.bringing(snapshot, commit)? {
            Bringing::Push(push) => push,
            Bringing::None => return Ok(Inferred::default()),
            Bringing::Skip(skip) => return Ok(Inferred::skipped(skip)),
        };
        let calls = calls(snapshot, commit, &push)?;
        let note = |session_id: &&SessionId| Note {
            repository: commit.repository.clone(),
            commit_sha: commit.commit_sha.clone(),
            session_id: (*session_id).clone(),
        };
        let question = Question {
            calls: calls.iter().collect(),
            notes: commit.sessions.iter().map(note).collect(),
            pushes: vec![attribution::Push {
                push_id: push.push_id,
                captured_at: push.captured_at,
                repository: Ok(commit.repository.clone()),
            }],
            as_of: self.bounds.observed_by,
            answer_bytes_max: REPORT_ANSWER_BYTES_MAX,
            only: Some(HashMap::from([(
                push.push_id,
                vec![commit.commit_sha.clone()],
            )])),
        };
        let attributions = attribute(snapshot, &mut self.history, &self.answers, question)?;
        let skips = attributions.skipped.iter();
        let skipped = skips.filter_map(|(skip, count)| Some((inference_skip(skip)?, count)));
        Ok(Inferred {
            skipped: skipped.collect(),
            ..self.named(snapshot, &attributions.rows)?
        })
    }

    /// Returns the push that brought a commit first.
    fn bringing(
        &self,
        snapshot: &mut Snapshot<'_>,
        commit: &KnownCommit<'_>,
    ) -> Result<Bringing, Error> {
        let KnownCommit {
            repository, names, ..
        } = commit;
        let mirrors = &self.history.mirrors;
        let bringing = mirrors.with(repository, |mirror| self.brought(snapshot, commit, mirror));
        let skip = match bringing {
            Ok(Some(bringing)) => return Ok(bringing),
            Ok(None) => InferenceSkip::MirrorAbsent,
            Err(Error::Mirrors(error)) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(mirror = %repository, error, "commit.mirror_unreadable");
                InferenceSkip::MirrorUnreadable
            }
            Err(error) => return Err(error),
        };
        // Without a push there is nothing to look for in a mirror.
        let all = (first(), self.bounds.boundary);
        let is_pushed =
            commit.head.is_some() || !snapshot.first_pushes(repository, names, all, 1)?.is_empty();
        Ok(if is_pushed {
            Bringing::Skip(skip)
        } else {
            Bringing::None
        })
    }

    /// Returns the push that brought a commit first, as its mirror tells it.
    fn brought(
        &self,
        snapshot: &mut Snapshot<'_>,
        commit: &KnownCommit<'_>,
        mirror: &mut OpenMirror,
    ) -> Result<Bringing, Error> {
        let boundary = self.bounds.boundary;
        let KnownCommit {
            repository, names, ..
        } = commit;
        let Some(Some(written)) = mirror.read(|it| it.commit(commit.commit_sha))? else {
            return Ok(if commit.is_named {
                Bringing::Skip(InferenceSkip::CommitDiffUnavailable)
            } else {
                Bringing::None
            });
        };
        let until = commit.head.map_or(boundary, |push| push.captured_at);
        let from = written.committed_at.and_then(moment).unwrap_or(until);
        let from = minutes_later(from.min(until), -SKEW_MINUTES);
        let pushes = snapshot.first_pushes(repository, names, (from, until), PUSHES_MAX + 1)?;
        let is_cut = pushes.len() > PUSHES_MAX;
        for push in pushes.into_iter().take(PUSHES_MAX) {
            let range = PushRange {
                before: &push.before_sha,
                after: &push.after_sha,
                forced: push.forced,
            };
            let brings = push.after_sha == *commit.commit_sha
                || !push.forced
                    && mirror
                        .read(|it| it.pushed(range))?
                        .is_some_and(|brought| brought.commits.contains(commit.commit_sha));
            if brings {
                return Ok(Bringing::Push(Box::new(push)));
            }
        }
        Ok(match commit.head {
            _ if is_cut => Bringing::Skip(InferenceSkip::PushUnknown),
            Some(head) => Bringing::Push(Box::new(head.clone())),
            // Some push led to the observation. The moment of the commit is not a true one.
            None if !commit.sessions.is_empty() => Bringing::Skip(InferenceSkip::PushUnknown),
            None => Bringing::None,
        })
    }

    /// Returns the calls of rows, each once, and the decisions about them.
    fn named(&self, snapshot: &mut Snapshot<'_>, rows: &[Attribution]) -> Result<Inferred, Error> {
        let mut of_call: BTreeMap<FactId, Vec<&Attribution>> = BTreeMap::new();
        for row in rows {
            of_call.entry(row.inference_call_id).or_default().push(row);
        }
        let ids: Vec<FactId> = of_call.keys().copied().collect();
        let mut calls = Vec::with_capacity(ids.len());
        for call in snapshot.named_calls(&ids)? {
            let Some(rows) = of_call.get(&call.inference_call_id) else {
                continue;
            };
            let order = |row: &Attribution, other: &Attribution| {
                let similarity = row.similarity.cmp(&other.similarity);
                similarity.then_with(|| row.file_path.cmp(&other.file_path))
            };
            let best = rows.iter().max_by(|row, other| order(row, other));
            let Some(best) = best else {
                continue;
            };
            calls.push(InferredCall {
                inference_call_id: call.inference_call_id,
                session_id: call.session_id,
                gateway_provider: call.gateway_provider.into(),
                model_provider: call.model_provider,
                model: call.model,
                attribution_source: best.source.into(),
                similarity_score: Some(best.similarity.value()),
                attributed_files: Some(rows.len() as u64),
                relationship: InferredRelationship::CallToFile.into(),
            });
        }
        calls.sort_by_key(|call| call.inference_call_id);
        Ok(Inferred {
            decisions: self.decisions(snapshot, &calls)?,
            calls,
            skipped: Counts::default(),
        })
    }

    /// Counts the decisions that are attached to calls.
    fn decisions(&self, snapshot: &mut Snapshot<'_>, calls: &[InferredCall]) -> Result<u64, Error> {
        let sessions: BTreeSet<&SessionId> = calls.iter().map(|call| &call.session_id).collect();
        let sessions: Vec<SessionId> = sessions.into_iter().cloned().collect();
        let decisions = decisions(snapshot, &sessions, self.bounds.boundary)?;
        let decisions: Vec<Decision> = decisions.into_iter().map(decided).collect();
        let ids = call_ids(&decisions)?;
        let owners = owners(snapshot, &ids, [].iter(), self.bounds.observed_by)?;
        let ids: BTreeSet<FactId> = calls.iter().map(|call| call.inference_call_id).collect();
        let decisions = Decisions::attach(decisions, &owners);
        let attached = decisions.attached().filter(|(_, call)| ids.contains(call));
        Ok(attached.count() as u64)
    }
}

/// Reads the calls that a pushed commit could be tied to.
fn calls(
    snapshot: &mut Snapshot<'_>,
    commit: &KnownCommit<'_>,
    push: &Push,
) -> Result<Vec<CohortCall>, Error> {
    let mut calls = Vec::new();
    let calls_max = usize::try_from(REPORT_CALLS_MAX).unwrap_or(usize::MAX);
    let mut take = up_to(&mut calls, calls_max);
    let before = |minutes: i64| minutes_later(push.captured_at, -minutes);
    let end = just_after(minutes_later(push.captured_at, MINUTES_AFTER));
    snapshot.calls_observed(before(GUESS_MINUTES_BEFORE)..end, &mut take)?;
    let sessions: Vec<SessionId> = commit.sessions.iter().copied().cloned().collect();
    snapshot.calls_of_sessions(&sessions, before(NOTE_MINUTES_BEFORE)..end, &mut take)?;
    drop(take);
    Ok(calls)
}

/// Returns why calls were not looked for, where a reason of Attribution says that.
const fn inference_skip(skip: AttributionSkip) -> Option<InferenceSkip> {
    match skip {
        AttributionSkip::CommitDiffUnavailable => Some(InferenceSkip::CommitDiffUnavailable),
        AttributionSkip::ContentErased => Some(InferenceSkip::ContentErased),
        AttributionSkip::MalformedDiffSection => Some(InferenceSkip::MalformedDiffSection),
        AttributionSkip::MirrorAbsent => Some(InferenceSkip::MirrorAbsent),
        AttributionSkip::UnsupportedDiffSection => Some(InferenceSkip::UnsupportedDiffSection),
        // They were looked for and none was found, or the repository was told before.
        AttributionSkip::NoCodeDiff
        | AttributionSkip::NoInferenceCallCandidates
        | AttributionSkip::NoMatch
        | AttributionSkip::RepositoryIdentityAbsent
        | AttributionSkip::RepositoryIdentityConflict
        | AttributionSkip::RepositoryIdentityUnresolved
        | AttributionSkip::RepositoryMirrorIdentityUnresolved
        | AttributionSkip::RepositorySourceAbsent => None,
    }
}

/// Returns the moment of so many seconds, where the service knows it.
fn moment(seconds: i64) -> Option<Instant> {
    Instant::from_microseconds(seconds.checked_mul(MICROSECONDS)?)
}
