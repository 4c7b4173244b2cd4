//! Retry linkages: one for each tool, file and pair of calls in a Session.

use svc_engine_fact::RetryLinkage;
use svc_model::open::Open;
use svc_model::query::{RetryTool, TimelineEvent};

use super::event::{Event, file_path};
use super::record::{Fact, table};
use crate::pack::column::{Columns, PackedColumn};
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::Value;

table! {
    RetryLinkage in "retry_linkages",
    "retry_linkage_id" = retry_linkage_id,
    "session_id" = session_id,
    "user_id" = user_id,
    "agent_harness" = agent_harness,
    "tool_name" = tool_name,
    "file_path" = file_path,
    "rejected_call_id" = rejected_call_id,
    "accepted_call_id" = accepted_call_id,
    "occurred_at_us" = occurred_at,
    "captured_at_us" = captured_at,
    "raw" = raw as PackedColumn,
    derived "identity" = identity,
}

impl Fact for RetryLinkage {
    const CONTENT: &'static [&'static str] = &["raw"];
    const EVENT: Option<&'static Event> = Some(&Event {
        columns: &[
            "retry_linkage_id",
            "occurred_at_us",
            "agent_harness",
            "file_path",
            "tool_name",
            "rejected_call_id",
            "accepted_call_id",
        ],
        read: event,
    });
}

fn event(columns: &mut Columns<'_>) -> Result<TimelineEvent, StoreError> {
    let (fact_id, occurred_at, agent_harness) = (columns.next()?, columns.next()?, columns.next()?);
    let file_path = file_path(columns)?;
    let tool: String = columns.next()?;
    let tool = RetryTool::from_wire(&tool).ok_or(corrupt("retry_linkages", "tool_name"))?;
    Ok(TimelineEvent::RetryLinkage {
        fact_id,
        occurred_at,
        agent_harness: Open::Known(agent_harness),
        has_file_path: file_path.is_some(),
        file_path,
        tool_name: tool.into(),
        rejected_call_id: columns.next()?,
        accepted_call_id: columns.next()?,
    })
}

/// What distinguishes the linkages of a Session.
fn identity(linkage: &RetryLinkage) -> Value<'static> {
    crate::pack::identity::of(&[
        linkage.agent_harness.as_str().as_bytes(),
        linkage.tool_name.as_bytes(),
        linkage.file_path.as_bytes(),
        linkage.rejected_call_id.as_bytes(),
        linkage.accepted_call_id.as_bytes(),
    ])
}
