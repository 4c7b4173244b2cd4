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

/// Asks for the structure of one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ManifestRequest {
    /// The Session of the call.
    pub session_id: SessionId,
    /// The call.
    pub inference_call_id: InferenceCallId,
    /// Whether to include what the capture left out, and a digest of each message.
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
        "`true` includes what the capture left out of the call, and a digest of each message; by \
         default `false`.",
    );
    /// The query parameters.
    pub(crate) const PARAMETERS: &'static [Parameter] =
        parameters![Self::SESSION_ID, Self::INFERENCE_CALL_ID, Self::EXPLAIN,];
}

impl Request for ManifestRequest {
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

/// One part of a manifest: its type and position, without its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ManifestPart {
    /// The type.
    #[serde(rename = "type")]
    pub part_type: Open<PartType>,
    /// The exact occurrence, ready for an evidence read.
    pub reference: Reference,
}

/// One message of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ManifestMessage {
    /// The side of the call.
    pub side: Open<Side>,
    /// The index of the message on its side.
    pub message_index: u64,
    /// The role of the speaker.
    pub role: Text,
    /// Why the model stopped.
    pub finish_reason: Option<Text>,
    /// The parts in order; may be empty.
    pub parts: Vec<ManifestPart>,
    /// A digest that is the same for equal messages: 32 hexadecimal digits of the SHA-256 of the
    /// role and the parts in canonical form, as a list of the two. Present on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl Manifest {
    /// Returns the reference of every part, in order.
    pub fn references(&self) -> Vec<Reference> {
        let parts = self.messages.iter().flat_map(|message| &message.parts);
        parts.map(|part| part.reference.clone()).collect()
    }
}

/// What the capture left out of a call because it does not keep content of that kind. This is not
/// an error of the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct LeftOut {
    /// Messages and parts of kinds that are not kept, such as images, files and searches.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unsupported_content: u64,
    /// Reasoning parts that are encrypted or empty.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub opaque_reasoning: u64,
    /// Tool calls and results without an id.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing_id: u64,
    /// Tool call arguments that are not a JSON object; the calls are kept without them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub malformed_arguments: u64,
}

/// The structure of one call: all input messages in order, then all output messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Manifest {
    /// Always 1.
    pub schema_version: Version1,
    /// The Session.
    pub session_id: SessionId,
    /// The high-water mark of the quarantine log in the snapshot of this answer.
    pub quarantine_revision: u64,
    /// The call.
    pub call: CallSummary,
    /// The messages: none when the content of the call was erased, which the call says.
    pub messages: Vec<ManifestMessage>,
    /// What the capture left out of them, counted by kind; absent kinds are zero. Present on
    /// request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
}
