#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CallSummary, PartType, Reference, Side};
use crate::field::{Violations, is_zero};
use crate::id::{InferenceCallId, SessionId};
use crate::json::{Text, WriteError};
use crate::open::Open;
use crate::parameter::{Declared, Parameter, parameters};
use crate::query::{TRUE, Truth, asks};
use crate::request::{Incoming, Outgoing, Refusal, Request};
use crate::version::Version1;

/// Asks for the structure of one call, without its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ManifestRequest {
    /// The Session that the call belongs to.
    pub session_id: SessionId,
    /// The id of the call.
    pub inference_call_id: InferenceCallId,
    /// Whether to include what the capture left out, and a digest of each message. By default
    /// false.
    #[serde(default)]
    pub explain: bool,
}

impl ManifestRequest {
    /// Returns a request with `explain` set.
    pub const fn new(session_id: SessionId, inference_call_id: InferenceCallId) -> Self {
        Self {
            session_id,
            inference_call_id,
            explain: true,
        }
    }
}

impl ManifestRequest {
    const SESSION_ID: Declared<SessionId> = Declared::required("session_id", "The Session.");
    const INFERENCE_CALL_ID: Declared<InferenceCallId> =
        Declared::required("inference_call_id", "The call.");
    const EXPLAIN: Declared<Truth> = asks(
        "explain",
        "`true` includes what the capture left out of the call, a digest of each message, and \
         arguments that are no JSON object; by default `false`.",
    );
}

impl Request for ManifestRequest {
    const PARAMETERS: &'static [Parameter] =
        parameters![Self::SESSION_ID, Self::INFERENCE_CALL_ID, Self::EXPLAIN,];

    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let mut violations = Violations::default();
        let session_id = Self::SESSION_ID.read(incoming, &mut violations);
        let inference_call_id = Self::INFERENCE_CALL_ID.read(incoming, &mut violations);
        let explain = Self::EXPLAIN.read(incoming, &mut violations);
        Ok(violations.finish(|| {
            Some(Self {
                session_id: session_id?,
                inference_call_id: inference_call_id?,
                explain: explain.is_some_and(Truth::get),
            })
        })?)
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        let outgoing = Self::SESSION_ID.write(Outgoing::default(), &self.session_id);
        let outgoing = Self::INFERENCE_CALL_ID.write(outgoing, &self.inference_call_id);
        Ok(Self::EXPLAIN.write_any(outgoing, self.explain.then_some(&TRUE)))
    }
}

/// One part of a message: its type and its reference, without its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ManifestPart {
    /// The type of the part.
    #[serde(rename = "type")]
    pub part_type: Open<PartType>,
    /// The reference of the part, ready for an evidence read.
    pub reference: Reference,
    /// What was sent in place of the arguments of a tool call, if it is no JSON object. The part
    /// has empty arguments then. Present only if the request has `explain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_arguments: Option<Text>,
}

/// One message of the call, without its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ManifestMessage {
    /// Whether the message was sent to the model or is its answer.
    pub side: Open<Side>,
    /// The index of the message on its side, from 0.
    pub message_index: u64,
    /// The role of the speaker, as the gateway names it.
    pub role: Text,
    /// Why the model stopped, as the gateway names it; null for an input message, or if unknown.
    pub finish_reason: Option<Text>,
    /// The parts, in order. May be empty.
    pub parts: Vec<ManifestPart>,
    /// A digest by which equal messages can be recognised, whatever their finish reason: the first
    /// 32 hexadecimal digits of the SHA-256 of the canonical list of role and parts. Present only
    /// if the request has `explain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl Manifest {
    /// Returns the reference of every part: first of the input messages, then of the output
    /// messages.
    pub fn references(&self) -> Vec<Reference> {
        let parts = self.messages.iter().flat_map(|message| &message.parts);
        parts.map(|part| part.reference.clone()).collect()
    }
}

/// What the capture left out of a call, because it does not keep content of that kind. This is not
/// an error of the sender. A kind of which nothing was left out is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct LeftOut {
    /// The number of messages and parts of kinds that are not kept, such as images, files and
    /// searches.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unsupported_content: u64,
    /// The number of reasoning parts that are encrypted or empty.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub opaque_reasoning: u64,
    /// The number of tool calls and results without an id.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing_id: u64,
    /// The number of tool calls whose arguments are not a JSON object. The calls are kept with
    /// empty arguments, and what was sent is kept beside them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub malformed_arguments: u64,
    /// The number of parts in messages that the client had cut before it sent them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub truncated: u64,
}

/// The structure of one call: all input messages in order, then all output messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Manifest {
    /// The version of this message: always 1.
    pub schema_version: Version1,
    /// The requested Session, without surrounding white space.
    pub session_id: SessionId,
    /// The revision of the quarantine log that this answer was made under; 0 if the log is empty.
    pub quarantine_revision: u64,
    /// The call, without its content.
    pub call: CallSummary,
    /// The messages. Empty if the call has none, or if its content was erased; `call` then has the
    /// time of the erasure.
    pub messages: Vec<ManifestMessage>,
    /// What the capture left out of the call, by kind. Present only if the request has `explain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
    /// `true` if the request of the call never arrived, so that only the answer is known. Present only
    /// if so, and if the request has `explain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_unpaired: Option<bool>,
}
