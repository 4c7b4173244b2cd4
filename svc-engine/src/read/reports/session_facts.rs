//! What the Sessions of a cohort decided, edited and committed.
//!
//! What was read of a Session stays in memory. It is right for as long as the mark of the Session is the
//! same, which every fact of it changes, and the end of the quarantine log: neither is ever given twice, also
//! when the database was set back. What was captured after the boundary of a report is left out of it. Which
//! texts were erased is asked in each snapshot.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use svc_model::id::SessionId;
use svc_model::limit::REPORT_FACTS_MAX;
use svc_model::time::Instant;

use super::halves::look_up;
use super::memory::{Bytes, ReportMemory};
use super::population::{decided, up_to};
use crate::derive::decision::Decision;
use crate::error::Error;
use crate::store::{CohortDecision, CohortEdit, ObservedCommit, Snapshot, StoreError};

/// The facts of Sessions, up to a boundary.
#[derive(Default)]
pub(super) struct SessionFacts {
    pub(super) decisions: Vec<Decision>,
    /// With those whose texts were erased.
    pub(super) edits: Vec<CohortEdit>,
    /// The links to commits.
    pub(super) observed: Vec<ObservedCommit>,
}

/// All visible facts of a Session, as long as its state is the same.
#[derive(Clone, Debug)]
pub(super) struct WholeSession {
    state: State,
    facts: Arc<Facts>,
}

/// What changes with every change of what is visible of a Session.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    mark: i64,
    /// The end of the quarantine log.
    quarantine: Option<Arc<str>>,
}

#[derive(Debug, Default)]
struct Facts {
    /// With the moments of their capture.
    decisions: Vec<(Instant, Decision)>,
    edits: Vec<CohortEdit>,
    observed: Vec<ObservedCommit>,
}

impl Bytes for WholeSession {
    fn bytes(&self) -> u64 {
        let Facts {
            decisions,
            edits,
            observed,
        } = &*self.facts;
        // With the texts that are not shared.
        384 + (176 * decisions.len() + 256 * edits.len() + 448 * observed.len()) as u64
    }
}

impl SessionFacts {
    /// Reads the facts of Sessions that were captured by a boundary.
    pub(super) fn read(
        snapshot: &mut Snapshot<'_>,
        memory: &ReportMemory,
        sessions: &[SessionId],
        boundary: Instant,
    ) -> Result<Self, Error> {
        let mut facts = Self::default();
        if sessions.is_empty() {
            return Ok(facts);
        }
        let states = states(snapshot, sessions)?;
        let mut known = Vec::with_capacity(sessions.len());
        let mut missing = Vec::new();
        for session in sessions {
            let state = states.get(session.as_str());
            let kept = state.and_then(|state| {
                let is_right = |kept: &WholeSession| kept.state == *state;
                memory.sessions.get_if(session, is_right)
            });
            match kept {
                Some(kept) => known.push(kept.facts),
                None => missing.push(session.clone()),
            }
        }
        if !missing.is_empty() {
            let last = snapshot.boundary(None)?;
            match whole(snapshot, &missing, last) {
                Ok(whole) => {
                    for (session, facts) in missing.iter().zip(whole) {
                        let facts = Arc::new(facts);
                        if let Some(state) = states.get(session.as_str())
                            && facts.is_final()
                        {
                            let whole = WholeSession {
                                state: state.clone(),
                                facts: Arc::clone(&facts),
                            };
                            memory.sessions.insert(session.clone(), whole);
                        }
                        known.push(facts);
                    }
                }
                // What was captured later does not count.
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

    /// Adds what was captured by a boundary.
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
        Ok(())
    }
}

impl Facts {
    /// Returns whether no fact of something else than the Session can change them: a link whose push is not
    /// there might still get it.
    fn is_final(&self) -> bool {
        self.observed.iter().all(|it| it.push.is_some())
    }
}

/// Returns the states of the Sessions that some fact names.
fn states(
    snapshot: &mut Snapshot<'_>,
    sessions: &[SessionId],
) -> Result<HashMap<String, State, RandomState>, StoreError> {
    let quarantine: Option<Arc<str>> = snapshot.quarantine_log_end()?.map(Arc::from);
    let marks = look_up(snapshot, sessions, |snapshot, sessions, take| {
        let marks = snapshot.marks_of_sessions(sessions)?;
        marks.into_iter().try_for_each(take)
    })?;
    let states = marks.into_iter().map(|(session, mark)| {
        let quarantine = quarantine.clone();
        (session, State { mark, quarantine })
    });
    Ok(states.collect())
}

/// Reads all facts of Sessions that were captured by a boundary, in the order of the Sessions.
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
            let mut observed: Vec<ObservedCommit> = Vec::new();
            let take = up_to(&mut observed, REPORT_FACTS_MAX);
            snapshot.commits_of_sessions(sessions, boundary, take)?;
            Ok::<_, StoreError>((edits, observed))
        },
    );
    let (decisions, (edits, observed)) = (decisions?, beside?);
    let places = sessions.iter().enumerate();
    let places: HashMap<&SessionId, usize, RandomState> =
        places.map(|(place, session)| (session, place)).collect();
    // The facts of a Session share its text.
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
    for facts in &mut whole {
        facts.decisions.shrink_to_fit();
        facts.edits.shrink_to_fit();
        facts.observed.shrink_to_fit();
    }
    Ok(whole)
}
