//! Which calls wrote what one commit adds, by the same rules as in reports: over the push that
//! first brought the commit, the calls near that push, and those of the Sessions observed at the
//! commit.
//!
//! The work is bounded by the time around the push, never by history. If the answer is unknown,
//! there is a reason; "no call" is only claimed where calls were searched for.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use svc_engine_derive::attribution::{
    self, Attribution, GUESS_MINUTES_BEFORE, MINUTES_AFTER, NOTE_MINUTES_BEFORE, Note,
};
use svc_engine_derive::decision::{Decision, Decisions};
use svc_engine_fact::deadline::Deadline;
use svc_engine_fact::{Lifetime, Push};
use svc_engine_mirror::PushRange;
use svc_engine_store::{CohortCall, Snapshot};
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
use crate::error::Error;

/// Maximum number of pushes that are searched for the one that brought a commit.
const PUSHES_MAX: usize = 1_000;
/// How far a committer's clock may be ahead of the service's.
const SKEW_MINUTES: i64 = 60;
const MICROSECONDS: i64 = 1_000_000;

/// Which facts count.
#[derive(Clone, Copy, Debug)]
pub(in crate::read) struct Bounds {
    /// Latest time of receipt.
    pub(in crate::read) boundary: Instant,
    /// Latest time of observation of a call.
    pub(in crate::read) observed_by: Instant,
}

/// A commit in a repository, and what is known about it there.
#[derive(Debug)]
pub(in crate::read) struct KnownCommit<'c> {
    pub(in crate::read) repository: &'c Lifetime,
    /// Every name of the repository.
    pub(in crate::read) names: &'c [RepositoryName],
    pub(in crate::read) commit_sha: &'c CommitSha,
    /// The first push that left a branch at the commit.
    pub(in crate::read) head: Option<&'c Push>,
    /// The Sessions observed at the commit.
    pub(in crate::read) sessions: BTreeSet<&'c SessionId>,
    /// Whether any stored fact of the repository names the commit.
    pub(in crate::read) is_named: bool,
}

/// The calls found for a commit.
#[derive(Debug, Default)]
pub(in crate::read) struct Inferred {
    /// By id.
    pub(in crate::read) calls: Vec<InferredCall>,
    /// How many decisions are attached to them.
    pub(in crate::read) decisions: u64,
    /// Why calls were not searched for, or not everywhere.
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

/// The push that first brought a commit.
enum Bringing {
    /// None: the commit is older than what is stored, or beyond what is read of a push.
    None,
    Push(Box<Push>),
    Skip(InferenceSkip),
}

/// Finds the calls of one commit after another.
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

    /// Returns the mirrors that are read.
    pub(in crate::read) const fn mirrors(&self) -> &OpenMirrors<'i> {
        &self.history.mirrors
    }

    /// Returns the calls found for a commit.
    ///
    /// # Errors
    ///
    /// [`Error::ReportBound`] if too many calls are near its push.
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

    /// Returns the push that first brought a commit.
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
        // Without a push, nothing could be found in a mirror.
        let all = (first(), self.bounds.boundary);
        let is_pushed =
            commit.head.is_some() || !snapshot.first_pushes(repository, names, all, 1)?.is_empty();
        Ok(if is_pushed {
            Bringing::Skip(skip)
        } else {
            Bringing::None
        })
    }

    /// Returns the push that first brought a commit, according to the mirror.
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
        let Some(Some(written)) = mirror.read(|reader| reader.commit(commit.commit_sha))? else {
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
                        .read(|reader| reader.pushed(range))?
                        .is_some_and(|brought| brought.commits.contains(commit.commit_sha));
            if brings {
                return Ok(Bringing::Push(Box::new(push)));
            }
        }
        Ok(match commit.head {
            _ if is_cut => Bringing::Skip(InferenceSkip::PushUnknown),
            Some(head) => Bringing::Push(Box::new(head.clone())),
            // Some push led to the observation, so the time in the commit must be wrong.
            None if !commit.sessions.is_empty() => Bringing::Skip(InferenceSkip::PushUnknown),
            None => Bringing::None,
        })
    }

    /// Returns the calls in these rows, each once, and the number of decisions about them.
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

    /// Counts the decisions attached to these calls.
    fn decisions(&self, snapshot: &mut Snapshot<'_>, calls: &[InferredCall]) -> Result<u64, Error> {
        let sessions: BTreeSet<&SessionId> = calls.iter().map(|call| &call.session_id).collect();
        let sessions: Vec<SessionId> = sessions.into_iter().cloned().collect();
        let decisions = decisions(snapshot, &sessions, self.bounds.boundary)?;
        let decisions: Vec<Decision> = decisions.into_iter().map(decided).collect();
        let ids = call_ids(&decisions)?;
        let owners = owners(snapshot, &ids, &[], self.bounds.observed_by)?;
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

/// Returns the reason why calls were not searched for, if an Attribution skip implies one.
const fn inference_skip(skip: AttributionSkip) -> Option<InferenceSkip> {
    match skip {
        AttributionSkip::CommitDiffUnavailable => Some(InferenceSkip::CommitDiffUnavailable),
        AttributionSkip::ContentErased => Some(InferenceSkip::ContentErased),
        AttributionSkip::MalformedDiffSection => Some(InferenceSkip::MalformedDiffSection),
        AttributionSkip::MirrorAbsent => Some(InferenceSkip::MirrorAbsent),
        AttributionSkip::UnsupportedDiffSection => Some(InferenceSkip::UnsupportedDiffSection),
        // Calls were searched for and none was found, or the repository was determined before.
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

/// Returns the moment `seconds` after the epoch, if the service can represent it.
pub(in crate::read) fn moment(seconds: i64) -> Option<Instant> {
    Instant::from_microseconds(seconds.checked_mul(MICROSECONDS)?)
}
