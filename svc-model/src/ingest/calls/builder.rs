//! Builds the calls that a program sends itself.

use super::{
    AgentName, CallInput, CallOrigin, CallOriginKind, CallsRequest, ContinuedCall, SentCall,
};
use crate::evidence::{Message, Part};
use crate::id::{ForeignId, IdentityError, SessionId, UserId, is_trimmed};
use crate::json::{Json, Object, Text};
use crate::limit::{AGENT_WORD_CHARACTERS_MAX, SENT_CALL_MESSAGES_MAX, SENT_CALLS_MAX};
use crate::time::Instant;
use crate::usage::TokenCounts;

/// Why a call cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SentCallError {
    /// There is no id. A call that is sent again would be stored twice.
    #[error("a call needs an id, of its own or of its response")]
    NoId,
    /// There is no time.
    #[error("a call needs the time when its answer was complete")]
    NoTime,
    /// An id or a name is not one.
    #[error("the {member} of a call is not valid")]
    Identity {
        /// What it is.
        member: &'static str,
        /// What is wrong with it.
        source: IdentityError,
    },
    /// A word is longer than 64 characters.
    #[error("the {member} of a call is longer than 64 characters")]
    TooLong {
        /// What it is.
        member: &'static str,
    },
    /// The counts of tokens contradict each other, or one is too large.
    #[error("the tokens of a call cannot be right")]
    Tokens,
    /// The cost is too large.
    #[error("the cost of a call cannot be right")]
    Cost,
    /// A number in a part is not finite.
    #[error("a number of the call is not finite")]
    NotFinite,
    /// It has more than 10,000 messages.
    #[error("a call has at most 10000 messages")]
    TooManyMessages,
}

/// Why a request with calls cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallsRequestError {
    /// There is no Session.
    #[error("calls need a Session")]
    NoSession,
    /// There is no agent.
    #[error("calls need the name of the program that made them")]
    NoAgent,
    /// The version is longer than 64 characters.
    #[error("the version of an agent has at most 64 characters")]
    Version,
    /// A Session continues itself.
    #[error("a Session does not continue itself")]
    ContinuesItself,
    /// There are more than 1,000 calls.
    #[error("a request has at most 1000 calls")]
    TooManyCalls,
}

/// A call that is being built: see [`SentCall::builder`].
#[derive(Clone, Debug, Default)]
pub struct SentCallBuilder {
    call_id: Option<String>,
    response_id: Option<String>,
    request_id: Option<String>,
    model: Option<String>,
    model_provider: Option<String>,
    started_at: Option<Instant>,
    ended_at: Option<Instant>,
    input: CallInput,
    answer: Vec<Part>,
    tokens: GivenTokens,
    cost_usd_micros: Option<u64>,
    tier: Option<String>,
    finish_reason: Option<String>,
}

/// The tokens of a call, as they were given.
#[derive(Clone, Copy, Debug, Default)]
struct GivenTokens {
    input_uncached: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
}

impl SentCallBuilder {
    /// Sets the program's own id of the call, unique in its Session. Sending a call again under the
    /// same id changes nothing.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.call_id = Some(id.into());
        self
    }

    /// Sets the provider's id of the response. It is enough as an id, and by it the service
    /// recognises a call that a gateway has captured too.
    #[must_use]
    pub fn response_id(mut self, id: impl Into<String>) -> Self {
        self.response_id = Some(id.into());
        self
    }

    /// Sets the provider's id of the request.
    #[must_use]
    pub fn request_id(mut self, id: impl Into<String>) -> Self {
        self.request_id = Some(id.into());
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

    /// Sets when the call began and ended.
    #[must_use]
    pub const fn time(mut self, began: Instant, ended: Instant) -> Self {
        self.started_at = Some(began);
        self.ended(ended)
    }

    /// Sets when the answer was complete.
    #[must_use]
    pub const fn ended(mut self, ended: Instant) -> Self {
        self.ended_at = Some(ended);
        self
    }

    /// Says that the input begins with that of an earlier call and its answer. Only what follows is
    /// given as messages. A [`Conversation`](super::Conversation) does this itself.
    #[must_use]
    pub fn after(mut self, call: ForeignId) -> Self {
        self.input.after = Some(call);
        self
    }

    /// Appends a message that was sent to the model. Its finish reason is ignored, because only an
    /// answer has one.
    #[must_use]
    pub fn message(mut self, message: Message) -> Self {
        self.input.messages.push(Message {
            finish_reason: None,
            ..message
        });
        self
    }

    /// Appends messages that were sent to the model.
    #[must_use]
    pub fn messages(self, messages: impl IntoIterator<Item = Message>) -> Self {
        messages.into_iter().fold(self, Self::message)
    }

    /// Appends an input message with one text part.
    #[must_use]
    pub fn text_message(self, role: &str, text: &str) -> Self {
        let content = text.into();
        self.message(message(role, vec![Part::Text { content }]))
    }

    /// Appends an input message with the result of a tool call.
    #[must_use]
    pub fn tool_result(self, id: &str, result: impl Into<Json>) -> Self {
        let (id, result) = (trimmed(id), result.into());
        self.message(message("tool", vec![Part::ToolCallResponse { id, result }]))
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
        let content = text.into();
        self.answered(Part::Text { content })
    }

    /// Adds readable reasoning to the model's answer. Nothing is added if it is blank.
    #[must_use]
    pub fn answered_reasoning(self, text: &str) -> Self {
        if text.chars().all(is_trimmed) {
            return self;
        }
        let content = text.into();
        self.answered(Part::Reasoning { content })
    }

    /// Adds a tool call to the model's answer.
    #[must_use]
    pub fn answered_tool_call(self, id: &str, name: &str, arguments: Object) -> Self {
        self.answered(Part::ToolCall {
            id: trimmed(id),
            name: name.into(),
            arguments,
            sent: None,
        })
    }

    /// Sets why the model stopped: at most 64 characters.
    #[must_use]
    pub fn finish_reason(mut self, finish_reason: impl Into<String>) -> Self {
        self.finish_reason = Some(finish_reason.into());
        self
    }

    /// Sets the numbers of input tokens that no cache held, and of output tokens with reasoning.
    #[must_use]
    pub const fn tokens(mut self, input_uncached: u64, output: u64) -> Self {
        self.tokens.input_uncached = Some(input_uncached);
        self.tokens.output = Some(output);
        self
    }

    /// Sets the numbers of input tokens that were read from a cache and written to one.
    #[must_use]
    pub const fn cache_tokens(mut self, read: u64, written: u64) -> Self {
        self.tokens.cache_read = Some(read);
        self.tokens.cache_write = Some(written);
        self
    }

    /// Sets how many of the output tokens were reasoning.
    #[must_use]
    pub const fn reasoning_tokens(mut self, reasoning: u64) -> Self {
        self.tokens.reasoning = Some(reasoning);
        self
    }

    /// Sets the cost in micro-USD.
    #[must_use]
    pub const fn cost_usd_micros(mut self, micros: u64) -> Self {
        self.cost_usd_micros = Some(micros);
        self
    }

    /// Sets the service tier: at most 64 characters.
    #[must_use]
    pub fn tier(mut self, tier: impl Into<String>) -> Self {
        self.tier = Some(tier.into());
        self
    }

    /// Returns the call.
    ///
    /// # Errors
    ///
    /// See [`SentCallError`].
    pub fn build(self) -> Result<SentCall, SentCallError> {
        let ended_at = self.ended_at.ok_or(SentCallError::NoTime)?;
        let parts = self.input.messages.iter();
        let parts = parts.flat_map(|message| &message.parts);
        if !parts.chain(&self.answer).all(Part::is_finite) {
            return Err(SentCallError::NotFinite);
        }
        if self.input.messages.len() >= SENT_CALL_MESSAGES_MAX {
            return Err(SentCallError::TooManyMessages);
        }
        let (usage, cost_usd_micros) = (self.tokens.counts()?, cost(self.cost_usd_micros)?);
        let answer = (!self.answer.is_empty()).then(|| message("assistant", self.answer));
        let call = SentCall {
            call_id: identity("id", self.call_id)?,
            response_id: identity("response id", self.response_id)?,
            request_id: identity("request id", self.request_id)?,
            model: identity("model", self.model)?,
            model_provider: identity("model provider", self.model_provider)?,
            started_at: self.started_at,
            input: self.input,
            output: answer.into_iter().collect(),
            usage,
            cost_usd_micros,
            tier: word("tier", self.tier)?,
            stop_reason: word("finish reason", self.finish_reason)?,
            ..SentCall::new(ended_at)
        };
        call.id().ok_or(SentCallError::NoId)?;
        Ok(call)
    }
}

fn message(role: &str, parts: Vec<Part>) -> Message {
    Message {
        role: Text::from(role),
        parts,
        finish_reason: None,
    }
}

fn trimmed(id: &str) -> String {
    id.trim_matches(is_trimmed).to_owned()
}

fn identity(
    member: &'static str,
    text: Option<String>,
) -> Result<Option<ForeignId>, SentCallError> {
    let id = text.map(|text| ForeignId::new(&text)).transpose();
    id.map_err(|source| SentCallError::Identity { member, source })
}

fn word(member: &'static str, text: Option<String>) -> Result<Option<String>, SentCallError> {
    if text.as_deref().is_some_and(is_long) {
        return Err(SentCallError::TooLong { member });
    }
    Ok(text)
}

fn is_long(text: &str) -> bool {
    text.chars().count() > AGENT_WORD_CHARACTERS_MAX
}

impl GivenTokens {
    fn counts(self) -> Result<Option<TokenCounts>, SentCallError> {
        if self.reasoning.is_some() && self.output < self.reasoning {
            return Err(SentCallError::Tokens);
        }
        let signed = |count: Option<u64>| {
            let count = count.map(i64::try_from).transpose();
            count.map_err(|_| SentCallError::Tokens)
        };
        let counts = TokenCounts {
            input_tokens_uncached: signed(self.input_uncached)?,
            cache_read_tokens: signed(self.cache_read)?,
            cache_write_tokens: signed(self.cache_write)?,
            output_tokens: signed(self.output)?,
            reasoning_tokens: signed(self.reasoning)?,
            ..TokenCounts::default()
        };
        Ok((!counts.is_empty()).then_some(counts))
    }
}

fn cost(micros: Option<u64>) -> Result<Option<i64>, SentCallError> {
    let cost = micros.map(i64::try_from).transpose();
    cost.map_err(|_| SentCallError::Cost)
}

/// A request with calls that is being built: see [`CallsRequest::builder`].
#[derive(Clone, Debug, Default)]
pub struct CallsRequestBuilder {
    session_id: Option<SessionId>,
    agent: Option<AgentName>,
    agent_version: Option<String>,
    user_id: Option<UserId>,
    continues: Option<ContinuedCall>,
    calls: Vec<SentCall>,
}

impl CallsRequestBuilder {
    /// Sets the Session that the calls belong to.
    #[must_use]
    pub fn session(mut self, session_id: SessionId) -> Self {
        self.session_id = Some(session_id);
        self
    }

    /// Sets the program that made the calls.
    #[must_use]
    pub fn agent(mut self, agent: AgentName) -> Self {
        self.agent = Some(agent);
        self
    }

    /// Sets the version of that program: at most 64 characters.
    #[must_use]
    pub fn agent_version(mut self, version: impl Into<String>) -> Self {
        self.agent_version = Some(version.into());
        self
    }

    /// Sets the user who made the calls.
    #[must_use]
    pub fn user(mut self, user_id: UserId) -> Self {
        self.user_id = Some(user_id);
        self
    }

    /// Sets the Session that this one continues.
    #[must_use]
    pub fn continues(mut self, continued: ContinuedCall) -> Self {
        self.continues = Some(continued);
        self
    }

    /// Appends a call. It may be [after](SentCallBuilder::after) an earlier one.
    #[must_use]
    pub fn call(mut self, call: SentCall) -> Self {
        self.calls.push(call);
        self
    }

    /// Returns the request.
    ///
    /// # Errors
    ///
    /// See [`CallsRequestError`].
    pub fn build(self) -> Result<CallsRequest, CallsRequestError> {
        let session_id = self.session_id.ok_or(CallsRequestError::NoSession)?;
        let agent = self.agent.ok_or(CallsRequestError::NoAgent)?;
        if self.agent_version.as_deref().is_some_and(is_long) {
            return Err(CallsRequestError::Version);
        }
        let continued = self.continues.as_ref();
        if continued.is_some_and(|continued| continued.session_id == session_id) {
            return Err(CallsRequestError::ContinuesItself);
        }
        if self.calls.len() > SENT_CALLS_MAX {
            return Err(CallsRequestError::TooManyCalls);
        }
        Ok(CallsRequest {
            source: CallOrigin {
                kind: CallOriginKind::Sdk,
                agent,
                agent_version: self.agent_version,
            },
            session_id,
            user_id: self.user_id,
            continues: self.continues,
            reader: None,
            calls: self.calls,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use crate::request::Request as _;

    fn at(text: &str) -> Instant {
        Instant::parse(text).unwrap()
    }

    fn whole() -> SentCallBuilder {
        let (began, ended) = (at("2026-01-02T03:04:05.5Z"), at("2026-01-02T03:04:07Z"));
        SentCall::builder().id(" c ").time(began, ended)
    }

    fn request() -> CallsRequestBuilder {
        CallsRequest::builder()
            .session(SessionId::new("s").unwrap())
            .agent(AgentName::new("pager-bot").unwrap())
    }

    #[test]
    fn a_built_request_is_written_in_the_form_that_the_service_reads() {
        let call = whole()
            .response_id("r")
            .model("m")
            .model_provider("p")
            .text_message("user", "why?")
            .tool_result(" t ", "a.txt")
            .answered_reasoning(" ")
            .answered_reasoning("hm")
            .answered_tool_call("t2", "ls", Object::new())
            .finish_reason("tool_use")
            .tokens(3, 4)
            .cache_tokens(5, 6)
            .reasoning_tokens(2)
            .cost_usd_micros(70)
            .tier("fast")
            .build()
            .unwrap();
        let request = request()
            .user(UserId::new("ann").unwrap())
            .agent_version("1.2")
            .call(call)
            .build()
            .unwrap();
        let body = request.write().unwrap().body.unwrap();
        assert_eq!(
            String::from_utf8(body.clone()).unwrap(),
            concat!(
                r#"{"source":{"kind":"sdk","agent":"pager-bot","agent_version":"1.2"},"session_id":"s","user_id":"ann","#,
                r#""calls":[{"response_id":"r","call_id":"c","model":"m","model_provider":"p","#,
                r#""started_at":"2026-01-02T03:04:05.500000Z","ended_at":"2026-01-02T03:04:07Z","#,
                r#""input":{"messages":[{"role":"user","parts":[{"type":"text","content":"why?"}],"finish_reason":null},"#,
                r#"{"role":"tool","parts":[{"type":"tool_call_response","id":"t","result":"a.txt"}],"finish_reason":null}]},"#,
                r#""output":[{"role":"assistant","parts":[{"type":"reasoning","content":"hm"},"#,
                r#"{"type":"tool_call","id":"t2","name":"ls","arguments":{}}],"finish_reason":null}],"#,
                r#""usage":{"input_tokens_uncached":3,"cache_read_tokens":5,"cache_write_tokens":6,"output_tokens":4,"reasoning_tokens":2},"#,
                r#""cost_usd_micros":70,"tier":"fast","stop_reason":"tool_use"}]}"#
            )
        );
        let body_object = Json::parse(&body).unwrap().into_object().unwrap();
        let read = super::super::read::request(&body_object).unwrap();
        assert_eq!(json::to_vec(&read, usize::MAX).unwrap(), body);
    }

    #[test]
    fn a_call_that_the_service_would_refuse_cannot_be_built() {
        let unnamed = SentCall::builder().ended(at("2026-01-02T03:04:07Z"));
        let endless = Object::from_iter([("n", json::Number::parse("1e400").unwrap())]);
        let identity = |member, source| SentCallError::Identity { member, source };
        for (call, error) in [
            (unnamed, SentCallError::NoId),
            (SentCall::builder().id("c"), SentCallError::NoTime),
            (whole().id(" "), identity("id", IdentityError::Blank)),
            (
                whole().model("\0"),
                identity("model", IdentityError::NotScalar),
            ),
            (
                whole().tier("t".repeat(65)),
                SentCallError::TooLong { member: "tier" },
            ),
            (whole().tokens(u64::MAX, 1), SentCallError::Tokens),
            (
                whole().tokens(1, 1).reasoning_tokens(2),
                SentCallError::Tokens,
            ),
            (whole().reasoning_tokens(2), SentCallError::Tokens),
            (whole().cost_usd_micros(u64::MAX), SentCallError::Cost),
            (
                whole().answered_tool_call("t", "f", endless),
                SentCallError::NotFinite,
            ),
        ] {
            assert_eq!(call.build().unwrap_err(), error);
        }
    }

    #[test]
    fn a_request_needs_a_session_and_an_agent() {
        let session_id = SessionId::new("s").unwrap();
        let itself = ContinuedCall {
            session_id: session_id.clone(),
            response_id: None,
        };
        let call = whole().build().unwrap();
        let many = (0..=SENT_CALLS_MAX).fold(request(), |request, _| request.call(call.clone()));
        for (request, error) in [
            (CallsRequest::builder(), CallsRequestError::NoSession),
            (
                CallsRequest::builder().session(session_id),
                CallsRequestError::NoAgent,
            ),
            (
                request().agent_version("v".repeat(65)),
                CallsRequestError::Version,
            ),
            (
                request().continues(itself),
                CallsRequestError::ContinuesItself,
            ),
            (many, CallsRequestError::TooManyCalls),
        ] {
            assert_eq!(request.build().unwrap_err(), error);
        }
        assert_eq!(request().build().unwrap().calls, []);
    }
}
