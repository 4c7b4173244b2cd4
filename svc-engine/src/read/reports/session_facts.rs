//! The decisions, edits and commits of a cohort's Sessions.
//!
//! What was read about a Session stays in memory. It is valid while the Session's mark, which every
//! one of its facts changes, and the end of the quarantine log are the same: neither is ever
//! repeated, even if the database was set back. As long as nothing at all is stored, marks are not
//! asked for. Facts captured after a report's boundary are left out of it. Each snapshot is asked
//! which texts were erased.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use svc_engine_derive::decision::Decision;
use svc_engine_store::{
    CohortDecision, CohortEdit, CohortRetry, ObservationRow, Snapshot, StoreError,
};
use svc_model::id::SessionId;
use svc_model::limit::REPORT_FACTS_MAX;
use svc_model::time::Instant;

use super::halves::look_up;
use super::memory::Bytes;
use super::population::{decided, up_to};
use super::unchanged::{StoreState, Unchanged};
use crate::error::Error;

/// The facts of Sessions, up to a boundary.
pub(super) struct SessionFacts {
    pub(super) decisions: Vec<Decision>,
    /// Including those whose texts were erased.
    pub(super) edits: Vec<CohortEdit>,
    /// The links to commits.
    pub(super) observed: Vec<ObservationRow>,
    /// The number of retry linkages, unless there are more than a report takes.
    pub(super) retries: Option<usize>,
}

/// All visible facts of a Session, valid while its state is the same.
#[derive(Clone, Debug)]
pub(super) struct WholeSession {
    state: SessionState,
    /// A state of the store in which they were valid.
    seen: Arc<StoreState>,
    facts: Arc<Facts>,
}

/// Changes whenever the visible facts of a Session change.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SessionState {
    mark: i64,
    /// The end of the quarantine log.
    quarantine: Option<Arc<str>>,
}

#[derive(Debug, Default)]
struct Facts {
    /// With the times of their capture.
    decisions: Vec<(Instant, Decision)>,
    edits: Vec<CohortEdit>,
    observed: Vec<ObservationRow>,
    /// When retry linkages were captured; `None` if there are too many.
    retries: Option<Vec<Instant>>,
}

impl Bytes for WholeSession {
    fn bytes(&self) -> u64 {
        let Facts {
            decisions,
            edits,
            observed,
            retries,
        } = &*self.facts;
        let retries = retries.as_ref().map_or(0, Vec::len);
        // Includes the texts that are not shared.
        let facts = 176 * decisions.len() + 256 * edits.len() + 448 * observed.len() + 8 * retries;
        384 + facts as u64
    }
}

impl SessionFacts {
    /// Reads the facts of Sessions captured by a boundary.
    pub(super) fn read(
        snapshot: &mut Snapshot<'_>,
        unchanged: &Unchanged<'_>,
        sessions: &[SessionId],
        boundary: Instant,
    ) -> Result<Self, Error> {
        let Unchanged { memory, state, .. } = unchanged;
        let mut facts = Self {
            decisions: Vec::new(),
            edits: Vec::new(),
            observed: Vec::new(),
            retries: Some(0),
        };
        let mut known = Vec::with_capacity(sessions.len());
        let mut asked = Vec::new();
        for session in sessions {
            let is_seen = |kept: &WholeSession| kept.seen == *state;
            match memory.sessions.get_if(session, is_seen) {
                Some(kept) => known.push(kept.facts),
                None => asked.push(session.clone()),
            }
        }
        let states = states(snapshot, &asked, state)?;
        let mut missing = Vec::new();
        for session in asked {
            let own = states.get(session.as_str());
            let kept = own.and_then(|own| {
                let is_right = |kept: &WholeSession| kept.state == *own;
                memory.sessions.get_if(&session, is_right)
            });
            match kept {
                Some(mut kept) => {
                    kept.seen = Arc::clone(state);
                    known.push(Arc::clone(&kept.facts));
                    memory.sessions.insert(session, kept);
                }
                None => missing.push(session),
            }
        }
        if !missing.is_empty() {
            let last = snapshot.boundary(None)?;
            match whole(snapshot, &missing, last) {
                Ok(whole) => {
                    for (session, facts) in missing.iter().zip(whole) {
                        let facts = Arc::new(facts);
                        if let Some(own) = states.get(session.as_str())
                            && facts.is_final()
                        {
                            let whole = WholeSession {
                                state: own.clone(),
                                seen: Arc::clone(state),
                                facts: Arc::clone(&facts),
                            };
                            memory.sessions.insert(session.clone(), whole);
                        }
                        known.push(facts);
                    }
                }
                // Facts captured later do not count.
                Err(StoreError::TooMany) if boundary < last => {
                    let until = whole(snapshot, &missing, boundary)?;
                    known.extend(until.into_iter().map(Arc::new));
                }
                Err(error) => return Err(error.into()),
            }
        }
        for whole in known {
            facts.add(&whole, boundary)?;
        }
        Ok(facts)
    }

    /// Adds the facts captured by a boundary.
    fn add(&mut self, facts: &Facts, boundary: Instant) -> Result<(), StoreError> {
        let mut take = up_to(&mut self.decisions, REPORT_FACTS_MAX);
        for (captured_at, decision) in &facts.decisions {
            if *captured_at <= boundary {
                take(decision.clone())?;
            }
        }
        drop(take);
        let mut take = up_to(&mut self.edits, REPORT_FACTS_MAX);
        for edit in &facts.edits {
            if edit.captured_at <= boundary {
                take(edit.clone())?;
            }
        }
        drop(take);
        let mut take = up_to(&mut self.observed, REPORT_FACTS_MAX);
        for observed in &facts.observed {
            let (captured_at, pushed_at) = observed.captured_at;
            if captured_at <= boundary {
                let mut observed = observed.clone();
                if pushed_at.is_some_and(|pushed_at| pushed_at > boundary) {
                    observed.push = None;
                }
                take(observed)?;
            }
        }
        let retries = self.retries.zip(facts.retries.as_ref());
        self.retries = retries.map(|(count, retries)| {
            let is_captured = |captured_at: &&Instant| **captured_at <= boundary;
            count + retries.iter().filter(is_captured).count()
        });
        Ok(())
    }
}

impl Facts {
    /// Returns whether they are complete, and no fact outside the Session can change them: a link
    /// without its push might still get it.
    fn is_final(&self) -> bool {
        self.retries.is_some() && self.observed.iter().all(|observed| observed.push.is_some())
    }
}

/// Returns the states of those Sessions that any fact names.
fn states(
    snapshot: &mut Snapshot<'_>,
    sessions: &[SessionId],
    state: &StoreState,
) -> Result<HashMap<String, SessionState, RandomState>, StoreError> {
    let marks = look_up(snapshot, sessions, |snapshot, sessions, take| {
        let marks = snapshot.marks_of_sessions(sessions)?;
        marks.into_iter().try_for_each(take)
    })?;
    let states = marks.into_iter().map(|(session, mark)| {
        let quarantine = state.quarantine.clone();
        (session, SessionState { mark, quarantine })
    });
    Ok(states.collect())
}

/// Reads all facts of Sessions captured by a boundary, in the order of the Sessions.
fn whole(
    snapshot: &mut Snapshot<'_>,
    sessions: &[SessionId],
    boundary: Instant,
) -> Result<Vec<Facts>, StoreError> {
    let (decisions, beside) = snapshot.both(
        |snapshot| {
            let mut decisions: Vec<CohortDecision> = Vec::new();
            let take = up_to(&mut decisions, REPORT_FACTS_MAX);
            snapshot.decisions_of_sessions(sessions, boundary, take)?;
            Ok::<_, StoreError>(decisions)
        },
        |snapshot| {
            let mut edits: Vec<CohortEdit> = Vec::new();
            let take = up_to(&mut edits, REPORT_FACTS_MAX);
            snapshot.edits_of_sessions(sessions, boundary, take)?;
            let mut observed: Vec<ObservationRow> = Vec::new();
            let take = up_to(&mut observed, REPORT_FACTS_MAX);
            snapshot.commits_of_sessions(sessions, boundary, take)?;
            let mut retries: Vec<CohortRetry> = Vec::new();
            snapshot.retries_of_sessions(sessions, boundary, |retry| {
                if retries.len() <= REPORT_FACTS_MAX {
                    retries.push(retry);
                }
                Ok(())
            })?;
            Ok::<_, StoreError>((edits, observed, retries))
        },
    );
    let (decisions, (edits, observed, retries)) = (decisions?, beside?);
    let places = sessions.iter().enumerate();
    let places: HashMap<&SessionId, usize, RandomState> =
        places.map(|(place, session)| (session, place)).collect();
    // All facts of a Session share the text of its id.
    let share = |session_id: &mut SessionId| {
        let place = *places.get(session_id)?;
        session_id.clone_from(&sessions[place]);
        Some(place)
    };
    let mut whole: Vec<Facts> = sessions.iter().map(|_| Facts::default()).collect();
    for mut decision in decisions {
        if let Some(place) = share(&mut decision.session_id) {
            let decided = (decision.captured_at, decided(decision));
            whole[place].decisions.push(decided);
        }
    }
    for mut edit in edits {
        if let Some(place) = share(&mut edit.session_id) {
            whole[place].edits.push(edit);
        }
    }
    for mut observed in observed {
        if let Some(place) = share(&mut observed.session_id) {
            whole[place].observed.push(observed);
        }
    }
    if retries.len() <= REPORT_FACTS_MAX {
        for facts in &mut whole {
            facts.retries = Some(Vec::new());
        }
        for mut retry in retries {
            let facts = share(&mut retry.session_id).and_then(|place| whole.get_mut(place));
            let retries = facts.and_then(|facts| facts.retries.as_mut());
            if let Some(retries) = retries {
                retries.push(retry.captured_at);
            }
        }
    }
    for facts in &mut whole {
        facts.decisions.shrink_to_fit();
        facts.edits.shrink_to_fit();
        facts.observed.shrink_to_fit();
    }
    Ok(whole)
}
