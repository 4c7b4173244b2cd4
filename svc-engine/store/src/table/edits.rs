//! What became of applied edits, and refused edits. A call has at most one fact of each kind.

use svc_engine_fact::{EditObservation, RejectedEdit};
use svc_model::open::Open;
use svc_model::query::TimelineEvent;

use super::event::{Event, file_path};
use super::record::{Fact, table};
use crate::pack::column::{Columns, PackedColumn};
use crate::sql::error::StoreError;

table! {
    EditObservation in "edit_observations",
    "observation_id" = observation_id,
    "session_id" = session_id,
    "user_id" = user_id,
    "agent_harness" = agent_harness,
    "call_id" = call_id,
    "file_path" = file_path,
    "applied_text" "observed_file_text" = texts,
    "external_lines_added" = external_lines_added,
    "external_lines_removed" = external_lines_removed,
    "occurred_at_us" = occurred_at,
    "captured_at_us" = captured_at,
    "raw" = raw as PackedColumn,
}

impl Fact for EditObservation {
    const CONTENT: &'static [&'static str] = &["raw", "applied_text", "observed_file_text"];
    const EVENT: Option<&'static Event> = Some(&Event {
        columns: &[
            "observation_id",
            "occurred_at_us",
            "agent_harness",
            "file_path",
            "call_id",
            "external_lines_added",
            "external_lines_removed",
        ],
        read: observed,
    });
}

fn observed(columns: &mut Columns<'_>) -> Result<TimelineEvent, StoreError> {
    let (fact_id, occurred_at, agent_harness) = (columns.next()?, columns.next()?, columns.next()?);
    let (file_path, call_id) = (file_path(columns)?, columns.next()?);
    let external_lines_added: Option<i64> = columns.next()?;
    let external_lines_removed: Option<i64> = columns.next()?;
    Ok(TimelineEvent::EditObservation {
        fact_id,
        occurred_at,
        agent_harness: Open::Known(agent_harness),
        has_file_path: file_path.is_some(),
        file_path,
        call_id,
        external_lines_added_present: external_lines_added.is_some(),
        external_lines_removed_present: external_lines_removed.is_some(),
        external_lines_added,
        external_lines_removed,
    })
}

table! {
    RejectedEdit in "rejected_edits",
    "rejection_id" = rejection_id,
    "session_id" = session_id,
    "user_id" = user_id,
    "agent_harness" = agent_harness,
    "call_id" = call_id,
    "file_path" = file_path,
    "proposed" = proposed as PackedColumn,
    "occurred_at_us" = occurred_at,
    "captured_at_us" = captured_at,
    "raw" = raw as PackedColumn,
}

impl Fact for RejectedEdit {
    const CONTENT: &'static [&'static str] = &["raw", "proposed"];
    const EVENT: Option<&'static Event> = Some(&Event {
        columns: &[
            "rejection_id",
            "occurred_at_us",
            "agent_harness",
            "file_path",
            "call_id",
        ],
        read: rejected,
    });
}

fn rejected(columns: &mut Columns<'_>) -> Result<TimelineEvent, StoreError> {
    let (fact_id, occurred_at, agent_harness) = (columns.next()?, columns.next()?, columns.next()?);
    let file_path = file_path(columns)?;
    Ok(TimelineEvent::RejectedEdit {
        fact_id,
        occurred_at,
        agent_harness: Open::Known(agent_harness),
        has_file_path: file_path.is_some(),
        file_path,
        call_id: columns.next()?,
    })
}
