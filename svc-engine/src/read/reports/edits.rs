//! What became of the edits of a cohort.

use std::collections::HashMap;

use svc_model::facts::FactTable;
use svc_model::id::{FactId, SessionId};
use svc_model::limit::REPORT_FACTS_MAX;
use svc_model::time::Instant;

use super::memory::ReportMemory;
use super::mirrors::at_once;
use super::population::up_to;
use crate::deadline::Deadline;
use crate::derive::fate::{EditFate, classify, share_left};
use crate::error::Error;
use crate::store::{CohortEdit, EditTexts, Snapshot, StoreError};

/// Edits whose texts are asked for at once.
const EDITS_AT_ONCE: usize = 2_048;
/// Bytes of texts, as they are kept, that are held before they are compared.
const TEXT_BYTES: usize = 4 * 1024 * 1024;
/// Edits that one thread compares before it takes others.
const COMPARED_AT_ONCE: usize = 64;

/// Reads the edits of Sessions, and how many more there are whose texts were erased. What was left of an
/// edit never changes, so its texts are read once.
pub(super) fn read(
    snapshot: &mut Snapshot<'_>,
    memory: &ReportMemory,
    sessions: &[SessionId],
    boundary: Instant,
) -> Result<(Vec<EditFate>, u64), Error> {
    let mut edits = Vec::new();
    snapshot.edits_of_sessions(sessions, boundary, up_to(&mut edits, REPORT_FACTS_MAX))?;
    let all = edits.len();
    let erased = snapshot.erased_facts(FactTable::EditObservations, sessions)?;
    edits.retain(|edit| !erased.contains_key(&edit.observation_id));
    let erased = (all - edits.len()) as u64;
    let mut shares = HashMap::with_capacity(edits.len());
    let mut missing: Vec<FactId> = Vec::new();
    for edit in &edits {
        match memory.shares.get(&edit.observation_id) {
            Some(share) => drop(shares.insert(edit.observation_id, share)),
            None => missing.push(edit.observation_id),
        }
    }
    let deadline = snapshot.deadline().clone();
    for missing in missing.chunks(EDITS_AT_ONCE) {
        let mut texts: Vec<EditTexts> = Vec::new();
        let mut bytes = 0;
        let mut compared = Vec::with_capacity(missing.len());
        snapshot.texts_of_edits(missing, |text| {
            bytes += text.bytes();
            texts.push(text);
            if bytes >= TEXT_BYTES {
                bytes = 0;
                compared.extend(compare(&std::mem::take(&mut texts), &deadline)?);
            }
            Ok(())
        })?;
        compared.extend(compare(&texts, &deadline)?);
        for (observation_id, share) in compared {
            memory.shares.insert(observation_id, share);
            shares.insert(observation_id, share);
        }
    }
    let fate = |edit: CohortEdit| {
        // An edit without texts is one that was quarantined, which a snapshot does not see half of.
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
    Ok((edits.into_iter().filter_map(fate).collect(), erased))
}

fn compare(texts: &[EditTexts], deadline: &Deadline) -> Result<Vec<(FactId, f64)>, StoreError> {
    let pieces: Vec<&[EditTexts]> = texts.chunks(COMPARED_AT_ONCE).collect();
    let compared = at_once(&pieces, |texts| {
        let share = |texts: &EditTexts| {
            // A few bytes may be a long text.
            deadline.check()?;
            let (applied, observed) = texts.read()?;
            Ok((texts.observation_id, share_left(&applied, &observed)))
        };
        texts
            .iter()
            .map(share)
            .collect::<Result<Vec<_>, StoreError>>()
    })?;
    Ok(compared.concat())
}
