//! Inference calls: scalars, the ordered ids of their messages, and their raw payload.

use svc_model::evidence::LeftOut;
use svc_model::ingest::GatewayProvider;
use svc_model::json;
use svc_model::query::TimelineEvent;
use svc_model::usage::CallSource;

use super::event::Event;
use super::record::Table;
use crate::pack::column::Columns;
use crate::pack::model_call_id::ModelCallId;
use crate::sql::connection::Insert;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::Row;

pub(crate) const INSERT: Insert = Insert {
    into: "INSERT INTO inference_calls
        (inference_call_id, org_id, session_number, user_id, gateway_provider,
         model_call_id, model_provider, model, input_tokens, output_tokens, duration_ms, observed_at_us,
         captured_at_us, call_alias_count, input_byte_count, input_part_count, output_byte_count,
         output_part_count, input_contents, output_contents, left_out,
         started_at_us, is_further, capture_source, cost_usd_micros, cache_read_tokens,
         cache_write_tokens, cache_write_5m_tokens, cache_write_1h_tokens, reasoning_tokens, tier,
         response_id, request_id, is_input_unpaired, agent_harness, cwd, git_branch, subagent)",
    columns: 38,
    then: "ON CONFLICT DO NOTHING",
    returning: "call_number, inference_call_id",
    unique: 0,
    is_row_number: true,
};

/// What every kind of fact has. Calls also have statements of their own.
pub(crate) const TABLE: Table = Table {
    name: "inference_calls",
    members: &[
        "inference_call_id",
        "session_id",
        "user_id",
        "model",
        "agent_harness",
        "observed_at_us",
        "captured_at_us",
    ],
    derived: &[],
    insert: INSERT,
    select: "SELECT f.inference_call_id, f.session_id, f.user_id, f.model,
        f.agent_harness, f.observed_at_us, f.captured_at_us FROM visible_inference_calls f WHERE COALESCE(f.org_id, '') = $1",
    names: &[],
    // Both list messages, which have a table of their own.
    content: &["input_contents", "output_contents"],
    event: Some(&Event {
        columns: &[
            "inference_call_id",
            "observed_at_us",
            "gateway_provider",
            "model_provider",
            "model",
            "input_tokens",
            "output_tokens",
            "duration_ms",
            "model_call_id",
            "capture_source",
            "agent_harness",
            "cost_usd_micros",
            "cache_read_tokens",
            "cache_write_tokens",
            "cache_write_5m_tokens",
            "cache_write_1h_tokens",
            "reasoning_tokens",
            "tier",
        ],
        read: event,
    }),
};

fn event(columns: &mut Columns<'_>) -> Result<TimelineEvent, StoreError> {
    Ok(TimelineEvent::InferenceCall {
        fact_id: columns.next()?,
        occurred_at: columns.next()?,
        gateway_provider: columns.next::<GatewayProvider>()?.into(),
        model_provider: columns.next()?,
        model: columns.next()?,
        input_tokens: columns.next()?,
        output_tokens: columns.next()?,
        duration_ms: columns.next()?,
        model_call_id: columns.next::<Option<ModelCallId>>()?.map(|id| id.0),
        capture_source: shown_source(columns.next()?).map(Into::into),
        agent: columns.next()?,
        usage: columns.next()?,
        usage_receipt_ids: Vec::new(),
        joined_by: None,
    })
}

/// Returns where a call was captured, as answers show it. Nothing else captured calls before there
/// was a column for it.
pub(crate) fn shown_source(stored: Option<CallSource>) -> Option<CallSource> {
    stored.filter(|source| *source != CallSource::Gateway)
}

/// Returns what was left out in its stored form; `None` if nothing was.
pub(crate) fn written(left_out: &LeftOut) -> Option<String> {
    if *left_out == LeftOut::default() {
        return None;
    }
    let bytes = json::to_vec(left_out, usize::MAX).ok()?;
    String::from_utf8(bytes).ok()
}

/// Reads what was left out from its stored form.
pub(crate) fn left_out(text: Option<String>) -> Result<LeftOut, StoreError> {
    let Some(text) = text else {
        return Ok(LeftOut::default());
    };
    json::from_slice(text.as_bytes()).map_err(|_| corrupt("inference_calls", "its left_out"))
}

/// Reads whether the input of a call never arrived, as answers show it: absent if it did.
pub(crate) fn input_unpaired(row: &Row<'_>, place: usize) -> Result<Option<bool>, StoreError> {
    let unpaired = row.optional_integer(place)?;
    Ok((unpaired == Some(1)).then_some(true))
}
