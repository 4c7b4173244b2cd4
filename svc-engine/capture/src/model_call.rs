//! A call of a model from any source that is not a gateway: what its reader found becomes an
//! inference call.

use svc_engine_fact::{CallKey, CallKeyKind, InferenceCall, RawPayload, Workplace};
use svc_model::evidence::{LeftOut, Message};
use svc_model::id::{FactId, SessionId, UserId};
use svc_model::ingest::GatewayProvider;
use svc_model::json::{Json, NodeBudget, Object, Text};
use svc_model::time::Instant;
use svc_model::usage::{CallSource, CallUsage, TokenCounts};
use uuid::Uuid;

use crate::Receipt;
use crate::gateway::call_id::{CAPTURE_NAMESPACE, aliases};
use crate::gateway::redact;
use crate::redaction::RedactionCounts;
use svc_messages::{Degradation, MessagesError, Normaliser, Origin};

/// What a reader found of a call.
#[derive(Debug)]
pub(crate) struct ModelCall {
    pub(crate) source: CallSource,
    pub(crate) agent: Option<String>,
    pub(crate) workplace: Workplace,
    pub(crate) session_id: SessionId,
    pub(crate) user_id: Option<UserId>,
    /// What identifies the call among all sources, first what its source identifies it by.
    pub(crate) keys: Vec<CallKey>,
    pub(crate) model: Option<String>,
    pub(crate) model_provider: Option<String>,
    pub(crate) tokens: TokenCounts,
    pub(crate) cost_usd_micros: Option<i64>,
    pub(crate) tier: Option<String>,
    pub(crate) duration_ms: Option<i64>,
    pub(crate) observed_at: Instant,
    /// The messages that were sent, in the form of any model's interface.
    pub(crate) input: Vec<Json>,
    /// The messages of the answer in such a form, each with its finish reason.
    pub(crate) output: Vec<(Object, Option<Text>)>,
    /// The raw payload. Its segments name items of the input, not messages.
    pub(crate) raw: RawPayload,
    /// Whether the strings of the messages are strings of the raw payload.
    pub(crate) is_verbatim: bool,
    pub(crate) is_input_unpaired: bool,
    /// The parts that a client cut.
    pub(crate) truncated: u64,
}

/// What was said in a call, in canonical form.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) input: Vec<Message>,
    pub(crate) output: Vec<Message>,
    /// The origin of each part, input first.
    pub(crate) origins: Vec<Origin>,
    pub(crate) left_out: LeftOut,
}

/// A call, and what to log about it.
#[derive(Debug)]
pub(crate) struct CapturedCall {
    pub(crate) call: InferenceCall,
    pub(crate) degradation: Degradation,
    pub(crate) redactions: RedactionCounts,
}

impl ModelCall {
    /// Makes the inference call. Its messages take their memory from `memory`.
    pub(crate) fn capture(
        mut self,
        receipt: Receipt<'_>,
        memory: &NodeBudget,
    ) -> Result<CapturedCall, MessagesError> {
        let mut normaliser = Normaliser::new(memory.rest());
        let input_messages = normaliser.prompt_items(&self.input)?;
        for segment in &mut self.raw.segments {
            let place = segment
                .message
                .and_then(|item| normaliser.prompt_places.get(item));
            segment.message = place.copied().flatten();
        }
        let mut output_messages = Vec::with_capacity(self.output.len());
        for (message, finish_reason) in &self.output {
            output_messages.extend(normaliser.object(message, finish_reason.clone())?);
        }
        normaliser.degradation.truncated += self.truncated;
        memory.settle(&normaliser.memory)?;
        if !self.is_verbatim {
            normaliser.origins.fill(Origin::Decoded);
        }
        let said = Said {
            input: input_messages,
            output: output_messages,
            origins: normaliser.origins,
            left_out: normaliser.degradation.into(),
        };
        let (call, redactions) = self.with(said, receipt);
        Ok(CapturedCall {
            call,
            degradation: normaliser.degradation,
            redactions,
        })
    }

    /// Makes the inference call of what was said, which replaces the input and the output.
    pub(crate) fn with(self, said: Said, receipt: Receipt<'_>) -> (InferenceCall, RedactionCounts) {
        let Said {
            input: input_messages,
            output: output_messages,
            origins,
            left_out,
        } = said;
        let key = self.natural_key(&output_messages);
        let is_response = |key: &&CallKey| key.kind == CallKeyKind::Response;
        let model_call_id = self.keys.first().filter(is_response);
        let model_call_id = model_call_id.map(|key| key.id.clone());
        let id_of = |kind| {
            let mut keys = self.keys.iter();
            let key = keys.find(|key| key.kind == kind);
            key.map(|key| key.id.clone())
        };
        let mut call = InferenceCall {
            inference_call_id: derived_id(receipt, std::slice::from_ref(&key)),
            further_id: Some(derived_id(receipt, &[key, self.apart(&output_messages)])),
            gateway_provider: GatewayProvider::Unknown,
            session_id: self.session_id,
            user_id: self.user_id,
            call_aliases: aliases(&output_messages, model_call_id.as_ref()),
            model_call_id,
            started_at: None,
            model_provider: self.model_provider,
            model: self.model,
            input_tokens: self.tokens.input_tokens(),
            output_tokens: self.tokens.output_tokens,
            duration_ms: self.duration_ms,
            capture_source: self.source,
            agent: self.agent,
            workplace: self.workplace,
            usage: CallUsage::new(self.tokens, self.cost_usd_micros, self.tier),
            response_id: id_of(CallKeyKind::Response),
            request_id: id_of(CallKeyKind::Request),
            keys: self.keys,
            is_input_unpaired: self.is_input_unpaired,
            observed_at: self.observed_at,
            input_messages,
            output_messages,
            left_out,
            raw: self.raw,
        };
        let redactions = receipt
            .redactor()
            .map_or_else(RedactionCounts::default, |redactor| {
                redact::redact(&mut call, &origins, redactor)
            });
        (call, redactions)
    }

    /// Returns what tells the call from others that have its first key.
    fn apart(&self, output: &[Message]) -> Json {
        let keys = self.keys.iter().skip(1);
        let mut apart: Vec<Json> = keys.map(|key| key.to_string().into()).collect();
        apart.push(self.observed_at.microseconds().into());
        apart.push(answer(output));
        Json::Array(apart)
    }

    /// Returns what tells the call from others: its first key, or else what is known of it.
    fn natural_key(&self, output: &[Message]) -> Json {
        match self.keys.first() {
            Some(key) => key.to_string().into(),
            None => Json::Array(vec![
                self.session_id.as_str().into(),
                self.observed_at.microseconds().into(),
                self.model.clone().into(),
                answer(output),
            ]),
        }
    }
}

/// Returns a digest of an answer.
fn answer(output: &[Message]) -> Json {
    let text = svc_model::json::to_vec(output, usize::MAX).unwrap_or_default();
    let digest = Uuid::new_v5(&CAPTURE_NAMESPACE, &text);
    digest.hyphenated().to_string().into()
}

fn derived_id(receipt: Receipt<'_>, key: &[Json]) -> FactId {
    let whose = [receipt.org_id.as_str(), "call"];
    let name: Json = whose
        .map(Json::from)
        .into_iter()
        .chain(key.iter().cloned())
        .collect();
    FactId::new(Uuid::new_v5(&CAPTURE_NAMESPACE, &name.to_canonical()))
}
