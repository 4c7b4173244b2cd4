//! The members of decisions and edits that an agent harness can compare with its own records.

use svc_model::facts::{AgentHarness, CompatibilityDecision, CompatibilityEdit, InteractionMode};
use svc_model::id::SessionId;

use super::snapshot::Snapshot;
use crate::sql::error::{StoreError, corrupt};

const DECISIONS: &str = "SELECT f.agent_harness, f.accepted, f.explicit, f.interaction_mode,
        f.call_id
    FROM visible_developer_decisions f WHERE f.org_id = $1 AND f.session_id = $2
    ORDER BY f.occurred_at_us, f.decision_id";
const EDITS: &str = "SELECT f.agent_harness, f.call_id
    FROM visible_edit_observations f WHERE f.org_id = $1 AND f.session_id = $2
    ORDER BY f.occurred_at_us, f.observation_id";

impl Snapshot<'_> {
    /// Returns the visible decisions of a Session by time, then id.
    pub fn decisions(
        &mut self,
        session_id: &SessionId,
    ) -> Result<Vec<CompatibilityDecision>, StoreError> {
        let keys = [self.org_id.as_str().into(), session_id.as_str().into()];
        self.connection()?.all(DECISIONS, &keys, |row| {
            Ok(CompatibilityDecision {
                agent_harness: AgentHarness::from_wire(&row.text(0)?)
                    .ok_or(corrupt("developer_decisions", "its harness"))?
                    .into(),
                accepted: row.integer(1)? == 1,
                explicit: row.integer(2)? == 1,
                interaction_mode: InteractionMode::from_wire(&row.text(3)?)
                    .ok_or(corrupt("developer_decisions", "its mode"))?
                    .into(),
                call_id: row.optional_text(4)?,
            })
        })
    }

    /// Returns the visible edit observations of a Session by time, then id.
    pub fn edit_observations(
        &mut self,
        session_id: &SessionId,
    ) -> Result<Vec<CompatibilityEdit>, StoreError> {
        let keys = [self.org_id.as_str().into(), session_id.as_str().into()];
        self.connection()?.all(EDITS, &keys, |row| {
            Ok(CompatibilityEdit {
                agent_harness: AgentHarness::from_wire(&row.text(0)?)
                    .ok_or(corrupt("edit_observations", "its harness"))?
                    .into(),
                call_id: row.text(1)?,
            })
        })
    }
}
