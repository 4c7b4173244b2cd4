//! The calls of a cohort, and the decisions, edits and commits of their Sessions.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::RandomState;
use svc_engine_derive::attribution::{self, MINUTES_AFTER, NOTE_MINUTES_BEFORE};
use svc_engine_derive::cohort;
use svc_engine_derive::decision::{CallOwner, Decision, Decisions};
use svc_engine_derive::fate::EditFate;
use svc_engine_fact::Push;
use svc_engine_store::{CohortCall, CohortDecision, ObservationRow, Snapshot, StoreError};
use svc_model::facts::FactTable;
use svc_model::id::{FactId, SessionId};
use svc_model::limit::{REPORT_CALL_IDS_MAX, REPORT_FACTS_MAX};
use svc_model::problem::ReportBound;
use svc_model::time::Instant;

use super::extent::first;
use super::halves::look_up;
use super::memory::ReportMemory;
use super::{Extent, calls, edits, just_after, minutes_later};
use crate::error::Error;

/// Returns a function that collects at most `rows_max` rows, and then fails.
pub(in crate::read) fn up_to<T>(
    rows: &mut Vec<T>,
    rows_max: usize,
) -> impl FnMut(T) -> Result<(), StoreError> {
    move |row| {
        if rows.len() == rows_max {
            return Err(StoreError::TooMany);
        }
        rows.push(row);
        Ok(())
    }
}

/// The calls of a cohort, and the facts of their Sessions.
pub(super) struct Population {
    /// When the calls were observed.
    pub(super) extent: Range<Instant>,
    /// In the order of observation.
    pub(super) calls: Vec<CohortCall>,
    /// The Sessions' calls whose content was erased.
    erased_calls: HashMap<FactId, Instant>,
    /// The Sessions of the calls, sorted.
    sessions: Vec<SessionId>,
    pub(super) decisions: Decisions,
    pub(super) edits: Vec<EditFate>,
    /// How many further edits there are whose texts were erased.
    pub(super) erased_edits: u64,
    /// The links of the Sessions to commits.
    pub(super) observed: Vec<ObservationRow>,
}

impl Population {
    /// Reads the cohort, and the pushes that calls observed in its time could have led to; for all
    /// history, every push. Whether such a call exists does not matter, so that pushes without one
    /// are counted.
    pub(super) fn read(
        snapshot: &mut Snapshot<'_>,
        memory: &ReportMemory,
        extent: &Extent,
        boundary: Instant,
    ) -> Result<(Self, Vec<Push>), Error> {
        let calls = calls::observed(snapshot, &extent.observed)?;
        let sessions = sessions_of(snapshot, extent, &calls)?;
        let (decisions, beside) = snapshot.both(
            |snapshot| {
                let decisions = decisions(snapshot, &sessions, boundary)?;
                Ok::<Vec<Decision>, Error>(decisions.into_iter().map(decided).collect())
            },
            |snapshot| {
                let edits = edits::left(snapshot, &sessions, boundary)?;
                Ok::<_, Error>((edits, observed(snapshot, &sessions, boundary)?))
            },
        );
        let (decisions, (edits, observed)) = (decisions?, beside?);
        let ids = call_ids(&decisions)?;
        let owners = owners(snapshot, &ids, &calls, extent.as_of)?;
        let decisions = Decisions::attach(decisions, &owners);
        let pushes = pushes(snapshot, extent, boundary)?;
        let population = Self {
            extent: extent.observed(),
            erased_calls: snapshot.erased_facts(FactTable::InferenceCalls, &sessions)?,
            erased_edits: edits.erased,
            edits: edits::fates(snapshot, memory, edits)?,
            calls,
            sessions,
            decisions,
            observed,
        };
        Ok((population, pushes))
    }

    /// Returns a call in the form that reports count.
    pub(super) fn counted(&self, call: &CohortCall) -> cohort::CohortCall {
        cohort::CohortCall {
            inference_call_id: call.inference_call_id,
            session_id: call.session_id.clone(),
            model: call.model.clone(),
            is_erased: self.erased_calls.contains_key(&call.inference_call_id),
        }
    }

    /// Counts the retry linkages of the Sessions.
    pub(super) fn retries(
        &self,
        snapshot: &mut Snapshot<'_>,
        boundary: Instant,
    ) -> Result<u64, Error> {
        let mut count = 0;
        snapshot.retries_of_sessions(&self.sessions, boundary, |_| {
            if count == REPORT_FACTS_MAX {
                return Err(StoreError::TooMany);
            }
            count += 1;
            Ok(())
        })?;
        Ok(count as u64)
    }
}

/// Returns the pushes near the time of the calls; for all history, every push.
fn pushes(
    snapshot: &mut Snapshot<'_>,
    extent: &Extent,
    boundary: Instant,
) -> Result<Vec<Push>, Error> {
    let mut pushes = Vec::new();
    let (start, end) = if extent.is_all() {
        (first(), boundary)
    } else if extent.observed.is_empty() {
        return Ok(pushes);
    } else {
        let end = minutes_later(extent.observed.end, NOTE_MINUTES_BEFORE);
        let start = minutes_later(extent.observed.start, -MINUTES_AFTER);
        (start, end.min(boundary))
    };
    snapshot.pushes_captured(start..just_after(end), up_to(&mut pushes, REPORT_FACTS_MAX))?;
    Ok(pushes)
}

/// Returns the Sessions that a report covers, sorted: those of its calls, or for all history every
/// one.
pub(super) fn sessions(
    snapshot: &mut Snapshot<'_>,
    extent: &Extent,
) -> Result<Vec<SessionId>, Error> {
    let calls = if extent.is_all() {
        Vec::new()
    } else {
        calls::observed(snapshot, &extent.observed)?
    };
    sessions_of(snapshot, extent, &calls)
}

fn sessions_of(
    snapshot: &mut Snapshot<'_>,
    extent: &Extent,
    calls: &[CohortCall],
) -> Result<Vec<SessionId>, Error> {
    if extent.is_all() {
        return every_session(snapshot);
    }
    let sessions: HashSet<&SessionId, RandomState> =
        calls.iter().map(|call| &call.session_id).collect();
    let mut sessions: Vec<SessionId> = sessions.into_iter().cloned().collect();
    sessions.sort_unstable();
    Ok(sessions)
}

/// Returns every Session of the organization, sorted.
fn every_session(snapshot: &mut Snapshot<'_>) -> Result<Vec<SessionId>, Error> {
    let mut sessions = Vec::new();
    snapshot.sessions(|session| {
        sessions.push(session);
        Ok(())
    })?;
    sessions.sort_unstable();
    Ok(sessions)
}

/// Returns the decisions in Sessions.
pub(super) fn decisions(
    snapshot: &mut Snapshot<'_>,
    sessions: &[SessionId],
    boundary: Instant,
) -> Result<Vec<CohortDecision>, Error> {
    let mut decisions = Vec::new();
    let take = up_to(&mut decisions, REPORT_FACTS_MAX);
    snapshot.decisions_of_sessions(sessions, boundary, take)?;
    Ok(decisions)
}

/// Returns the links of Sessions to commits.
pub(super) fn observed(
    snapshot: &mut Snapshot<'_>,
    sessions: &[SessionId],
    boundary: Instant,
) -> Result<Vec<ObservationRow>, Error> {
    let mut observed = Vec::new();
    let take = up_to(&mut observed, REPORT_FACTS_MAX);
    snapshot.commits_of_sessions(sessions, boundary, take)?;
    Ok(observed)
}

/// Returns a call in the form that Attribution takes.
pub(super) fn candidate(call: &CohortCall) -> attribution::Call {
    attribution::Call {
        inference_call_id: call.inference_call_id,
        session_id: call.session_id.clone(),
        observed_at: call.observed_at,
    }
}

pub(super) fn decided(decision: CohortDecision) -> Decision {
    Decision {
        decision_id: decision.decision_id,
        session_id: decision.session_id,
        agent_harness: decision.agent_harness,
        has_path: !decision.file_path.is_empty(),
        accepted: decision.accepted,
        explicit: decision.explicit,
        interaction_mode: decision.interaction_mode,
        occurred_at: decision.occurred_at,
        call_id: decision.call_id,
    }
}

/// Returns the call ids that decisions name, sorted.
pub(super) fn call_ids(decisions: &[Decision]) -> Result<Vec<Arc<str>>, Error> {
    let ids = decisions.iter();
    let mut ids: Vec<Arc<str>> = ids
        .filter_map(|decision| decision.call_id.clone())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.len() > REPORT_CALL_IDS_MAX {
        return Err(ReportBound::Evidence.into());
    }
    Ok(ids)
}

/// Returns the owners of these ids in the whole organization. `calls` are visible calls already
/// known.
pub(super) fn owners(
    snapshot: &mut Snapshot<'_>,
    ids: &[Arc<str>],
    calls: &[CohortCall],
    observed_by: Instant,
) -> Result<Vec<CallOwner>, Error> {
    let ids: Vec<&str> = ids.iter().map(|id| &**id).collect();
    let known = calls.iter().filter(|call| call.observed_at <= observed_by);
    let known: HashMap<FactId, &SessionId, RandomState> = known
        .map(|call| (call.inference_call_id, &call.session_id))
        .collect();
    let known = |call| known.get(&call).copied();
    let owners = look_up(snapshot, &ids, |snapshot, ids, take| {
        snapshot.owners_of_ids(ids, observed_by, known, |owned| {
            take(CallOwner {
                call_id: owned.call_id,
                inference_call_id: owned.inference_call_id,
                session_id: owned.session_id,
            })
        })
    })?;
    Ok(owners)
}
