//! Calls of models that a program sends itself, or that a transcript of an agent has. The input of a
//! call names the call that it continues, so nothing is sent twice.

mod builder;
mod conversation;
mod read;
mod receipt;

use std::fmt;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::builder::{CallsRequestBuilder, CallsRequestError, SentCallBuilder, SentCallError};
pub use self::conversation::Conversation;
pub use self::receipt::{CallsReceipt, RejectedCall, SkippedCall};
use crate::closed_set;
use crate::evidence::{LeftOut, Message};
use crate::field::{FieldKind, FromField, Violation};
use crate::id::{ForeignId, SessionId, UserId};
use crate::json::{Json, WriteError};
use crate::limit::AGENT_WORD_CHARACTERS_MAX;
#[cfg(feature = "schema")]
use crate::limit::{PATH_BYTES_MAX, SENT_CALLS_MAX};
use crate::request::{Incoming, Outgoing, Refusal, Request};
use crate::time::Instant;
use crate::usage::{CallSource, TokenCounts};

/// Calls of one Session, in the order in which they were made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CallsRequest {
    /// Who made the calls, and how they are known.
    pub source: CallOrigin,
    /// The Session.
    pub session_id: SessionId,
    /// The user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    /// The Session that this one continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<ContinuedCall>,
    /// What the reader of a transcript met since its last request. It is only counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<ReaderReport>,
    /// The calls, at most 1,000. A call may name an earlier one.
    #[cfg_attr(feature = "schema", schemars(length(max = SENT_CALLS_MAX)))]
    pub calls: Vec<SentCall>,
}

/// Who made calls, and how they are known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CallOrigin {
    /// How the calls are known.
    pub kind: CallOriginKind,
    /// The agent or program that made them.
    pub agent: AgentName,
    /// Its version: at most 64 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = AGENT_WORD_CHARACTERS_MAX)))]
    pub agent_version: Option<String>,
}

closed_set! {
    /// How calls are known that no gateway and no telemetry has.
    pub enum CallOriginKind {
        /// The agent keeps a transcript on disk.
        Transcript = "transcript",
        /// The program that made them sends them.
        Sdk = "sdk",
    }
}

impl From<CallOriginKind> for CallSource {
    fn from(kind: CallOriginKind) -> Self {
        match kind {
            CallOriginKind::Transcript => Self::Transcript,
            CallOriginKind::Sdk => Self::Sdk,
        }
    }
}

/// The name of an agent or of another program that calls models: 1 to 64 of `a-z`, `0-9`, `.`, `_`
/// and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[a-z0-9._-]{1,64}$")))]
pub struct AgentName(String);

/// The error for a text that is not the name of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name of an agent is 1 to 64 of a-z, 0-9, '.', '_', '-'")]
pub struct AgentNameError;

impl AgentName {
    /// Returns the name. The text is not trimmed.
    ///
    /// # Errors
    ///
    /// If it is empty or too long, or contains another character.
    pub fn new(text: &str) -> Result<Self, AgentNameError> {
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
        let fits = (1..=AGENT_WORD_CHARACTERS_MAX).contains(&text.len());
        if fits && text.bytes().all(is_plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err(AgentNameError)
        }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for AgentName {
    type Error = AgentNameError;

    fn try_from(text: String) -> Result<Self, AgentNameError> {
        Self::new(&text)
    }
}

impl From<AgentName> for String {
    fn from(name: AgentName) -> Self {
        name.0
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl crate::parameter::ParameterValue for AgentName {
    fn to_parameter(&self) -> String {
        self.0.clone()
    }
}

impl FromField for AgentName {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let expected = Violation::new(FieldKind::StringType, "must be a string");
        Self::new(value.as_str().ok_or(expected)?)
            .map_err(|AgentNameError| Violation::rule("must be 1 to 64 of a-z, 0-9, '.', '_', '-'"))
    }
}

/// A Session that another one continues, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ContinuedCall {
    /// The Session that is continued. It need not be known to the service.
    pub session_id: SessionId,
    /// The id of the last response that both Sessions have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<ForeignId>,
}

/// What the reader of a transcript met.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReaderReport {
    /// The version of the reader: at most 64 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = AGENT_WORD_CHARACTERS_MAX)))]
    pub version: Option<String>,
    /// The lines that it read.
    #[serde(default)]
    pub lines: u64,
    /// Those of a kind that it does not know.
    #[serde(default)]
    pub unknown: u64,
    /// The files in which nothing that it knows is left.
    #[serde(default)]
    pub format_changed: u64,
}

/// One call of a model: an answer, and what was sent before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(transform = one_id))]
#[serde(deny_unknown_fields)]
pub struct SentCall {
    /// The provider's id of the response. This or `call_id` is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<ForeignId>,
    /// The program's own id of the call, unique in the Session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<ForeignId>,
    /// The provider's id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<ForeignId>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ForeignId>,
    /// The provider of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_provider: Option<ForeignId>,
    /// When the call was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Instant>,
    /// When the answer was complete.
    pub ended_at: Instant,
    /// What was sent to the model.
    pub input: CallInput,
    /// The model's answer. May be empty.
    pub output: Vec<Message>,
    /// The tokens that the call used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenCounts>,
    /// The cost in micro-USD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub cost_usd_micros: Option<i64>,
    /// The service tier: at most 64 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = AGENT_WORD_CHARACTERS_MAX)))]
    pub tier: Option<String>,
    /// Why the model stopped: at most 64 characters. It is the finish reason of the last output
    /// message that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = AGENT_WORD_CHARACTERS_MAX)))]
    pub stop_reason: Option<String>,
    /// The working directory: at most 4,096 bytes of UTF-8. It is kept with the call, and never tells
    /// its repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = PATH_BYTES_MAX)))]
    pub cwd: Option<String>,
    /// The branch that was checked out there: at most 4,096 bytes of UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = PATH_BYTES_MAX)))]
    pub git_branch: Option<String>,
    /// The agent's id of the subagent that made the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<ForeignId>,
    /// What the sender left out of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
}

/// Declares that a call has an id.
#[cfg(feature = "schema")]
fn one_id(schema: &mut schemars::Schema) {
    let is_given = |name: &str| serde_json::json!({ "properties": { name: { "type": "string" } }, "required": [name] });
    let ids = ["response_id", "call_id"].map(is_given);
    schema.insert("anyOf".into(), serde_json::json!(ids));
}

/// What was sent to a model: all that an earlier call sent and received, if there is one, and then
/// these messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CallInput {
    /// The earlier call: its response id, or its `call_id` in this Session or in one that this
    /// Session continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<ForeignId>,
    /// The messages.
    pub messages: Vec<Message>,
}

impl CallsRequest {
    /// Starts building a request of a program that sends its calls itself. It needs a Session and
    /// the name of the program.
    pub fn builder() -> CallsRequestBuilder {
        CallsRequestBuilder::default()
    }
}

impl SentCall {
    /// Starts building a call. It needs an id and the time when its answer was complete.
    pub fn builder() -> SentCallBuilder {
        SentCallBuilder::default()
    }

    /// Returns a call without messages. It needs an id.
    pub fn new(ended_at: Instant) -> Self {
        Self {
            response_id: None,
            call_id: None,
            request_id: None,
            model: None,
            model_provider: None,
            started_at: None,
            ended_at,
            input: CallInput::default(),
            output: Vec::new(),
            usage: None,
            cost_usd_micros: None,
            tier: None,
            stop_reason: None,
            cwd: None,
            git_branch: None,
            subagent: None,
            left_out: None,
        }
    }

    /// Returns the id by which a later call names this one: its own, or else that of its response.
    pub fn id(&self) -> Option<&ForeignId> {
        self.call_id.as_ref().or(self.response_id.as_ref())
    }
}

impl Request for CallsRequest {
    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let body = incoming.object().map_err(Refusal::malformed_as_violation)?;
        Ok(read::request(&body)?)
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        Outgoing::body(self)
    }
}
