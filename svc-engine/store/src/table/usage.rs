//! Usage receipts. Their ids are derived from what tells them apart, so the id is the only key.

use svc_engine_fact::UsageReceipt;

use super::event::Event;
use super::record::{Fact, table};

table! {
    UsageReceipt in "usage_receipts",
    "usage_receipt_id" = usage_receipt_id,
    "session_id" = session_id,
    "user_id" = user_id,
    "source" = source,
    "agent" = agent,
    "query_source" = query_source,
    "model" = model,
    "model_provider" = model_provider,
    "request_id" = request_id,
    "response_id" = response_id,
    "client_request_id" = client_request_id,
    "input_tokens_uncached" "cache_read_tokens" "cache_write_tokens" "cache_write_5m_tokens"
        "cache_write_1h_tokens" "output_tokens" "reasoning_tokens" = tokens,
    "cost_usd_micros" = cost_usd_micros,
    "duration_ms" = duration_ms,
    "tier" = tier,
    "occurred_at_us" = occurred_at,
    "captured_at_us" = captured_at,
    "trace_id" = trace_id,
    "span_id" = span_id,
    "sequence" = sequence,
}

impl Fact for UsageReceipt {
    const CONTENT: &'static [&'static str] = &[];
    // Receipts are not among the events that a dossier is limited to.
    const EVENT: Option<&'static Event> = None;
}
