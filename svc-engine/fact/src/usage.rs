use svc_model::id::{FactId, SessionId, UserId};
use svc_model::time::Instant;
use svc_model::usage::{TokenCounts, UsageSource};

use super::{CallKey, CallKeyKind};

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

impl UsageReceipt {
    /// Returns what identifies the call that the receipt is about.
    pub fn keys(&self) -> Vec<CallKey> {
        let ids = [
            (CallKeyKind::Request, &self.request_id),
            (CallKeyKind::Response, &self.response_id),
            (CallKeyKind::ClientRequest, &self.client_request_id),
        ];
        let ids = ids
            .into_iter()
            .filter_map(|(kind, id)| Some(CallKey::new(kind, id.clone()?)));
        let span = self.trace_id.as_ref().zip(self.span_id.as_ref());
        let span = span.map(|(trace, span)| CallKey::span(trace, span));
        let is_gemini = self.source == UsageSource::GeminiCli;
        let event = is_gemini.then(|| gemini_event(&self.session_id, self.occurred_at));
        ids.chain(span).chain(event).collect()
    }
}

/// Returns the key of a call of Gemini CLI, which writes one time on all that it logs of an answer.
pub fn gemini_event(session_id: &SessionId, stamped_at: Instant) -> CallKey {
    let id = format!("gemini_cli/{}/{stamped_at}", session_id.as_str());
    CallKey::new(CallKeyKind::Event, id)
}
