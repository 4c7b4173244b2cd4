//! Example Sessions of a population.

use std::collections::BTreeSet;

use svc_model::facts::AgentHarness;
use svc_model::id::SessionId;
use svc_model::reports::{Counts, Examples, Population, UnsupportedCapture};

use crate::decision::Decision;

/// Maximum number of example Sessions per population.
pub const EXAMPLE_SESSIONS_MAX: usize = 10;

/// Returns the first Sessions of a population, by id.
pub(super) fn of<'s>(
    population: Population,
    sessions: impl Iterator<Item = &'s SessionId>,
) -> Examples {
    let mut first: BTreeSet<&SessionId> = BTreeSet::new();
    for session_id in sessions {
        let is_full = first.len() == EXAMPLE_SESSIONS_MAX;
        if is_full && first.last().is_some_and(|last| *last <= session_id) {
            continue;
        }
        // A Session that is already included displaces none.
        if first.insert(session_id) && is_full {
            first.pop_last();
        }
    }
    Examples {
        population: population.into(),
        session_ids: first.into_iter().cloned().collect(),
    }
}

/// Counts the Sessions with a Cursor decision, whose integration cannot capture this.
pub(super) fn unsupported(
    capture: UnsupportedCapture,
    decisions: &[Decision],
) -> Counts<UnsupportedCapture> {
    let sessions: BTreeSet<&SessionId> = decisions
        .iter()
        .filter(|decision| decision.agent_harness == AgentHarness::Cursor)
        .map(|decision| &decision.session_id)
        .collect();
    Counts::from_iter([(capture, sessions.len() as u64)])
}
