use svc_model::id::{FactId, SessionId, UserId};
use svc_model::time::Instant;
use svc_model::usage::{TokenCounts, UsageSource};

/// A client's report that one call of a model was made, without what was said. It is no inference
/// call, and is in no count of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageReceipt {
    /// The id of the fact, derived from what tells the report from others.
    pub usage_receipt_id: FactId,
    /// The Session.
    pub session_id: SessionId,
    /// The user; stored, never returned.
    pub user_id: Option<UserId>,
    /// The client.
    pub source: UsageSource,
    /// The subagent or the skill that made the call.
    pub agent: Option<String>,
    /// Why the client made the call, in its own words.
    pub query_source: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The provider of the model.
    pub model_provider: Option<String>,
    /// The provider's id of the request.
    pub request_id: Option<String>,
    /// The provider's id of the response.
    pub response_id: Option<String>,
    /// The client's id of the request.
    pub client_request_id: Option<String>,
    /// The tokens of the call.
    pub tokens: TokenCounts,
    /// The cost in micro-USD, as the client reported it.
    pub cost_usd_micros: Option<i64>,
    /// Duration in milliseconds.
    pub duration_ms: Option<i64>,
    /// The service tier, unless it is the usual one.
    pub tier: Option<String>,
    /// When the client made the report, by its clock.
    pub occurred_at: Instant,
    /// When the service received it.
    pub captured_at: Instant,
    /// The trace of the call, as 32 hexadecimal digits; only from a span.
    pub trace_id: Option<String>,
    /// The span of the call, as 16 hexadecimal digits; only from a span.
    pub span_id: Option<String>,
    /// The number of the report within the client's process.
    pub sequence: Option<i64>,
}
