//! Retry linkages: one per tool, file and pair of calls of a Session.

use svc_model::id::{FactId, UserId};

use super::sessions::Touch;
use super::table::{Fact, Table, table};
use super::value::Value;
use crate::fact::RetryLinkage;

impl Fact for RetryLinkage {
    const TABLE: Table = table!("retry_linkages":
        retry_linkage_id, org_id, session_id, user_id, agent_harness, tool_name, file_path,
        rejected_call_id, accepted_call_id, occurred_at_us, captured_at_us, raw,
    );

    fn id(&self) -> FactId {
        self.retry_linkage_id
    }

    fn write<'a>(&'a self, org_id: &'a str, row: &mut Vec<Value<'a>>) {
        row.extend([
            self.retry_linkage_id.into(),
            org_id.into(),
            self.session_id.as_str().into(),
            self.user_id.as_ref().map(UserId::as_str).into(),
            self.agent_harness.as_str().into(),
            self.tool_name.as_str().into(),
            self.file_path.as_str().into(),
            self.rejected_call_id.as_str().into(),
            self.accepted_call_id.as_str().into(),
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
