//! Edits: what became of an applied one, and the refused ones. One of each per call of a Session.

use svc_model::id::{FactId, UserId};

use super::sessions::Touch;
use super::table::{Fact, Table, table};
use super::value::Value;
use crate::fact::{EditObservation, RejectedEdit};

impl Fact for EditObservation {
    const TABLE: Table = table!("edit_observations":
        observation_id, org_id, session_id, user_id, agent_harness, call_id, file_path,
        applied_text, observed_file_text, external_lines_added, external_lines_removed,
        occurred_at_us, captured_at_us, raw,
    );

    fn id(&self) -> FactId {
        self.observation_id
    }

    fn write<'a>(&'a self, org_id: &'a str, row: &mut Vec<Value<'a>>) {
        row.extend([
            self.observation_id.into(),
            org_id.into(),
            self.session_id.as_str().into(),
            self.user_id.as_ref().map(UserId::as_str).into(),
            self.agent_harness.as_str().into(),
            self.call_id.as_str().into(),
            self.file_path.as_str().into(),
            (&self.applied_text).into(),
            (&self.observed_file_text).into(),
            self.external_lines_added.into(),
            self.external_lines_removed.into(),
            self.occurred_at.into(),
            self.captured_at.into(),
            (&self.raw).into(),
        ]);
    }

    fn touch(&self) -> Option<Touch<'_>> {
        Some(Touch {
            session_id: &self.session_id,
            user_id: self.user_id.as_ref(),
            observed_at: self.captured_at,
        })
    }
}

impl Fact for RejectedEdit {
    const TABLE: Table = table!("rejected_edits":
        rejection_id, org_id, session_id, user_id, agent_harness, call_id, file_path, proposed,
        occurred_at_us, captured_at_us, raw,
    );

    fn id(&self) -> FactId {
        self.rejection_id
    }

    fn write<'a>(&'a self, org_id: &'a str, row: &mut Vec<Value<'a>>) {
        row.extend([
            self.rejection_id.into(),
            org_id.into(),
            self.session_id.as_str().into(),
            self.user_id.as_ref().map(UserId::as_str).into(),
            self.agent_harness.as_str().into(),
            self.call_id.as_str().into(),
            self.file_path.as_str().into(),
            (&self.proposed).into(),
            self.occurred_at.into(),
            self.captured_at.into(),
            (&self.raw).into(),
        ]);
    }

    fn touch(&self) -> Option<Touch<'_>> {
        Some(Touch {
            session_id: &self.session_id,
            user_id: self.user_id.as_ref(),
            observed_at: self.captured_at,
        })
    }
}
