//! Retry linkages: one for each tool, file and pair of calls in a Session.

use svc_engine_fact::RetryLinkage;

use super::record::{Fact, table};
use crate::pack::column::Packed;
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
    "raw" = raw as Packed,
    derived "identity" = identity,
}

impl Fact for RetryLinkage {}

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
