//! What became of applied edits, and refused edits. A call has at most one fact of each kind.

use svc_engine_fact::{EditObservation, RejectedEdit};

use super::record::{Fact, table};
use crate::pack::column::Packed;

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
    "raw" = raw as Packed,
}

impl Fact for EditObservation {}

table! {
    RejectedEdit in "rejected_edits",
    "rejection_id" = rejection_id,
    "session_id" = session_id,
    "user_id" = user_id,
    "agent_harness" = agent_harness,
    "call_id" = call_id,
    "file_path" = file_path,
    "proposed" = proposed as Packed,
    "occurred_at_us" = occurred_at,
    "captured_at_us" = captured_at,
    "raw" = raw as Packed,
}

impl Fact for RejectedEdit {}
