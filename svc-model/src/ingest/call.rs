//! A model call of any program, in the form of payload that the service reads.

use uuid::Uuid;

use super::{Capture, GatewayIngestRequest, GatewayProvider};
use crate::evidence::{Message, Part};
use crate::id::{SessionId, UserId};
use crate::json::{Json, Number, Object, Text};
use crate::time::Instant;

/// The UUID namespace for delivery ids that are derived from call ids.
const DELIVERIES: Uuid = Uuid::from_u128(0x6c6f_2a1e_5d0b_4c55_9e5e_0b0f_5a2c_7d11);

/// A model call of any program, ready to be delivered; see [`GatewayCall::builder`].
///
/// It is written as a payload of `gateway_a` (`GatewayPayload`), so the service needs to know
/// nothing about the program.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayCall(GatewayIngestRequest);

impl GatewayCall {
    /// Starts building a call. It needs a Session and an id; everything else is optional.
    pub fn builder() -> GatewayCallBuilder {
        GatewayCallBuilder::default()
    }

    /// Returns the request that delivers the call.
    pub const fn request(&self) -> &GatewayIngestRequest {
        &self.0
    }
}

impl From<GatewayCall> for GatewayIngestRequest {
    fn from(call: GatewayCall) -> Self {
        call.0
    }
}

/// Why a call cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayCallError {
    /// There is no Session; the service would skip the call.
    #[error("a call needs a Session")]
    NoSession,
    /// There is no id, or it is blank. A call that is sent again would be stored twice.
    #[error("a call needs an id of its own")]
    NoId,
    /// A number in a part or an additional member is not finite.
    #[error("a number of the call is not finite")]
    NotFinite,
}

/// A call that is being built.
#[derive(Clone, Debug, Default)]
pub struct GatewayCallBuilder {
    session_id: Option<SessionId>,
    user_id: Option<UserId>,
    id: String,
    model: Option<String>,
    model_provider: Option<String>,
    messages: Vec<Message>,
    answer: Vec<Part>,
    finish_reason: Option<String>,
    tokens: Option<(u64, u64)>,
    time: Option<(Instant, Instant)>,
    extra: Object,
}

impl GatewayCallBuilder {
    /// Sets the Session that the call belongs to.
    #[must_use]
    pub fn session(mut self, session_id: SessionId) -> Self {
        self.session_id = Some(session_id);
        self
    }

    /// Sets the user who made the call.
    #[must_use]
    pub fn user(mut self, user_id: UserId) -> Self {
        self.user_id = Some(user_id);
        self
    }

    /// Sets the id of the call, at most 1,024 bytes: that of the model's answer, or any other
    /// unique id. Delivering the call again under the same id changes nothing.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// Sets the model, as the program names it.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the provider of the model.
    #[must_use]
    pub fn model_provider(mut self, model_provider: impl Into<String>) -> Self {
        self.model_provider = Some(model_provider.into());
        self
    }

    /// Appends a message that was sent to the model. Its finish reason is ignored, because only an
    /// answer has one.
    #[must_use]
    pub fn message(mut self, message: Message) -> Self {
        self.messages.push(message);
        self
    }

    /// Appends an input message with one text part.
    #[must_use]
    pub fn text_message(self, role: &str, text: &str) -> Self {
        self.message(Message {
            role: role.into(),
            parts: vec![Part::Text {
                content: text.into(),
            }],
            finish_reason: None,
        })
    }

    /// Adds a part to the model's answer.
    #[must_use]
    pub fn answered(mut self, part: Part) -> Self {
        self.answer.push(part);
        self
    }

    /// Adds a text part to the model's answer.
    #[must_use]
    pub fn answered_text(self, text: &str) -> Self {
        self.answered(Part::Text {
            content: text.into(),
        })
    }

    /// Sets why the model stopped.
    #[must_use]
    pub fn finish_reason(mut self, finish_reason: impl Into<String>) -> Self {
        self.finish_reason = Some(finish_reason.into());
        self
    }

    /// Sets the numbers of input and output tokens.
    #[must_use]
    pub const fn tokens(mut self, input: u64, output: u64) -> Self {
        self.tokens = Some((input, output));
        self
    }

    /// Sets when the call began and ended. Without this, it counts as observed when the service
    /// receives it.
    #[must_use]
    pub const fn time(mut self, began: Instant, ended: Instant) -> Self {
        self.time = Some((began, ended));
        self
    }

    /// Adds a member to the payload, such as `response_cost` or `tools`. The service keeps it with the
    /// call, and reads it if it reads that member of a gateway's payload. A member that another method
    /// sets has the value of that method.
    #[must_use]
    pub fn extra(mut self, name: impl Into<Text>, value: Json) -> Self {
        self.extra.insert(name, value);
        self
    }

    /// Returns the call.
    ///
    /// # Errors
    ///
    /// See [`GatewayCallError`].
    pub fn build(self) -> Result<GatewayCall, GatewayCallError> {
        let parts = self.messages.iter().flat_map(|message| &message.parts);
        let mut extra = self.extra.iter().map(|(_, value)| value);
        if !parts.chain(&self.answer).all(Part::is_finite) || !extra.all(Json::is_finite) {
            return Err(GatewayCallError::NotFinite);
        }
        let session_id = self.session_id.ok_or(GatewayCallError::NoSession)?;
        if self.id.trim().is_empty() {
            return Err(GatewayCallError::NoId);
        }
        let capture = self.time.map(|(_, ended)| {
            let name = format!("{session_id}\n{}", self.id.trim());
            Capture {
                id: Uuid::new_v5(&DELIVERIES, name.as_bytes()),
                observed_at: ended,
            }
        });
        let mut payload = self.extra;
        payload.insert("litellm_call_id", self.id);
        let mut add = |name: &str, value: Option<Json>| {
            if let Some(value) = value {
                payload.insert(name, value);
            }
        };
        add("model", self.model.map(Json::from));
        add("custom_llm_provider", self.model_provider.map(Json::from));
        let messages = self.messages.into_iter();
        let messages = messages.map(|sent| message(sent.role, sent.parts));
        add("messages", Some(messages.collect()));
        let answer = (!self.answer.is_empty()).then(|| {
            let mut choice = Object::new();
            if let Some(finish_reason) = self.finish_reason {
                choice.insert("finish_reason", finish_reason);
            }
            choice.insert("message", message("assistant".into(), self.answer));
            let choices = Json::from(vec![Json::Object(choice)]);
            Json::Object(Object::from_iter([("choices", choices)]))
        });
        add("response", answer);
        let usage = self.tokens.map(|(input, output)| {
            let usage = [("prompt_tokens", input), ("completion_tokens", output)];
            Json::Object(Object::from_iter(usage))
        });
        add("usage", usage);
        add("startTime", self.time.map(|(began, _)| seconds(began)));
        add("endTime", self.time.map(|(_, ended)| seconds(ended)));
        Ok(GatewayCall(GatewayIngestRequest {
            provider: GatewayProvider::GatewayA,
            session_id: Some(session_id),
            user_id: self.user_id,
            payload: Json::Object(payload),
            capture,
            compare: false,
        }))
    }
}

/// Returns a moment in Unix seconds, to the microsecond.
fn seconds(at: Instant) -> Json {
    let microseconds = at.microseconds();
    let (whole, rest) = (
        microseconds.div_euclid(1_000_000),
        microseconds.rem_euclid(1_000_000),
    );
    Number::parse(&format!("{whole}.{rest:06}")).map_or(Json::Null, Json::from)
}

fn message(role: Text, parts: Vec<Part>) -> Json {
    let content: Json = parts.into_iter().map(part).collect();
    Json::Object(Object::from_iter([
        ("role", Json::from(role)),
        ("content", content),
    ]))
}

fn part(part: Part) -> Json {
    let (kind, members) = match part {
        Part::Text { content } => ("text", vec![("text", Json::from(content))]),
        Part::Reasoning { content } => ("thinking", vec![("thinking", Json::from(content))]),
        Part::ToolCall {
            id,
            name,
            arguments,
            ..
        } => (
            "tool_call",
            vec![
                ("id", Json::from(id)),
                ("name", Json::from(name)),
                ("arguments", Json::Object(arguments)),
            ],
        ),
        Part::ToolCallResponse { id, result } => (
            "tool_call_response",
            vec![("id", Json::from(id)), ("result", result)],
        ),
    };
    let kind = std::iter::once(("type", Json::from(kind)));
    Json::Object(kind.chain(members).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Instant {
        Instant::parse(text).unwrap()
    }

    fn whole() -> GatewayCallBuilder {
        GatewayCall::builder()
            .session(SessionId::new("s").unwrap())
            .id(" c ")
            .text_message("user", "why?")
    }

    #[test]
    fn a_built_call_is_written_in_the_form_that_the_service_reads() {
        let call = whole()
            .user(UserId::new("ann").unwrap())
            .model("m")
            .model_provider("p")
            .answered(Part::Reasoning {
                content: "hm".into(),
            })
            .answered(Part::ToolCall {
                id: "t".to_owned(),
                name: "f".into(),
                arguments: Object::from_iter([("n", Number::parse("1.10").unwrap())]),
                sent: None,
            })
            .finish_reason("tool_calls")
            .tokens(3, 4)
            .time(at("2026-01-02T03:04:05.5Z"), at("2026-01-02T03:04:07Z"))
            .build()
            .unwrap();
        let request = call.request();
        assert_eq!(
            String::from_utf8(request.payload.to_canonical()).unwrap(),
            r#"{"litellm_call_id":" c ","model":"m","custom_llm_provider":"p","messages":[{"role":"user","content":[{"type":"text","text":"why?"}]}],"response":{"choices":[{"finish_reason":"tool_calls","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"tool_call","id":"t","name":"f","arguments":{"n":1.10}}]}}]},"usage":{"prompt_tokens":3,"completion_tokens":4},"startTime":1767323045.500000,"endTime":1767323047.000000}"#
        );
        let capture = request.capture.unwrap();
        assert_eq!(capture.observed_at, at("2026-01-02T03:04:07Z"));
        let again = whole()
            .id("c")
            .time(at("2026-01-01T00:00:00Z"), at("2026-01-01T00:00:00Z"));
        let again = again.build().unwrap();
        assert_eq!(
            again.request().capture.unwrap().id,
            capture.id,
            "the same call"
        );
        let other = whole()
            .id("d")
            .time(at("2026-01-01T00:00:00Z"), at("2026-01-01T00:00:00Z"));
        assert_ne!(
            other.build().unwrap().request().capture.unwrap().id,
            capture.id
        );
        assert_eq!(whole().build().unwrap().request().capture, None);
    }

    #[test]
    fn an_additional_member_is_written_beside_those_of_the_builder() {
        let cost = Json::parse(b"0.0123").unwrap();
        let call = whole()
            .extra("response_cost", cost.clone())
            .extra("model", "another".into())
            .model("m")
            .build()
            .unwrap();
        let payload = call.request().payload.as_object().unwrap();
        assert_eq!(payload.get("response_cost"), Some(&cost));
        assert_eq!(payload.get("model"), Some(&"m".into()));
        let infinite = whole().extra("tags", Json::parse(b"[Infinity]").unwrap());
        assert_eq!(infinite.build(), Err(GatewayCallError::NotFinite));
    }

    #[test]
    fn a_call_that_the_service_would_skip_is_not_built() {
        let error = |builder: GatewayCallBuilder| builder.build().unwrap_err();
        assert_eq!(
            error(GatewayCall::builder().id("c")),
            GatewayCallError::NoSession
        );
        assert_eq!(error(whole().id(" ")), GatewayCallError::NoId);
        let part = Part::ToolCallResponse {
            id: "t".to_owned(),
            result: Json::parse(b"NaN").unwrap(),
        };
        assert_eq!(error(whole().answered(part)), GatewayCallError::NotFinite);
    }
}
