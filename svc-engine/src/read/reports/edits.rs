//! What became of the edits of a cohort.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use svc_engine_derive::fate::{EditFate, classify, share_left};
use svc_engine_store::{CohortEdit, HeldText, Snapshot};
use svc_model::facts::FactTable;
use svc_model::id::{FactId, SessionId};
use svc_model::limit::REPORT_FACTS_MAX;
use svc_model::time::Instant;

use super::halves::look_up;
use super::memory::ReportMemory;
use super::population::up_to;
use crate::error::Error;

/// The edits of Sessions, without their texts.
pub(super) struct Edits {
    edits: Vec<CohortEdit>,
    /// How many further edits there are whose texts were erased.
    pub(super) erased: u64,
}

/// Returns the edits of Sessions, received by a boundary, whose texts are not erased.
pub(super) fn left(
    snapshot: &mut Snapshot<'_>,
    sessions: &[SessionId],
    boundary: Instant,
) -> Result<Edits, Error> {
    let mut edits: Vec<CohortEdit> = Vec::new();
    let take = up_to(&mut edits, REPORT_FACTS_MAX);
    snapshot.edits_of_sessions(sessions, boundary, take)?;
    let all = edits.len();
    let erased = snapshot.erased_facts(FactTable::EditObservations, sessions)?;
    edits.retain(|edit| !erased.contains_key(&edit.observation_id));
    let erased = (all - edits.len()) as u64;
    Ok(Edits { edits, erased })
}

/// Returns the Fates of edits. The texts of an edit never change, so they are read once.
pub(super) fn fates(
    snapshot: &mut Snapshot<'_>,
    memory: &ReportMemory,
    edits: Edits,
) -> Result<Vec<EditFate>, Error> {
    let Edits { edits, .. } = edits;
    let mut shares: HashMap<FactId, f64, RandomState> =
        HashMap::with_capacity_and_hasher(edits.len(), RandomState::default());
    let mut missing: Vec<FactId> = Vec::new();
    for edit in &edits {
        match memory.shares.get(&edit.observation_id) {
            Some(share) => drop(shares.insert(edit.observation_id, share)),
            None => missing.push(edit.observation_id),
        }
    }
    missing.sort_unstable();
    let deadline = snapshot.deadline().clone();
    let compared = look_up(snapshot, &missing, |snapshot, missing, take| {
        snapshot.texts_of_edits(missing, |observation_id, held| {
            let share = match held {
                HeldText::Whole => 1.0,
                HeldText::Texts(texts) => {
                    // Even a few stored bytes may expand to a long text.
                    deadline.check()?;
                    share_left(texts)
                }
            };
            take((observation_id, share))
        })
    })?;
    for (observation_id, share) in compared {
        memory.shares.insert(observation_id, share);
        shares.insert(observation_id, share);
    }
    let fate = |edit: CohortEdit| {
        // Only a quarantined edit has no texts, and a snapshot never sees half of a quarantine.
        let share = *shares.get(&edit.observation_id)?;
        Some(EditFate {
            observation_id: edit.observation_id,
            agent_harness: edit.agent_harness,
            session_id: edit.session_id,
            call_id: edit.call_id,
            file_path: edit.file_path,
            occurred_at: edit.occurred_at,
            share,
            fate: classify(share),
            external_lines_added: edit.external_lines_added,
            external_lines_removed: edit.external_lines_removed,
        })
    };
    Ok(edits.into_iter().filter_map(fate).collect())
}
