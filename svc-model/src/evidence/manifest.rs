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
    /// Whether the answer is to have what the capture left out, and what tells equal messages.
    #[serde(default)]
    pub explain: bool,
}

impl ManifestRequest {
    /// Asks for all that there is.
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
        "`true` asks for what the capture left out of the call, and for what tells equal messages; by \
         default `false`.",
    );
    /// What stands in the query.
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

/// One part of a manifest: its type and where it is, nothing of what it says.
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
    /// Who speaks.
    pub role: Text,
    /// Why the model stopped.
    pub finish_reason: Option<Text>,
    /// The parts in order; a message without parts is listed too.
    pub parts: Vec<ManifestPart>,
    /// What tells equal messages: 32 hexadecimal digits of the SHA-256 of the canonical role and
    /// parts. There when it was asked for.
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

/// What a capture left out of a call, because it is of a kind that is not kept. It is no error of the
/// sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct LeftOut {
    /// Messages and parts of a kind that is not kept: images, files, searches.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unsupported_content: u64,
    /// Parts of reasoning that are encrypted or empty.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub opaque_reasoning: u64,
    /// Tool calls and results without an id.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing_id: u64,
    /// Arguments of tool calls that are no JSON object; the calls are kept without them.
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
    /// What the capture left out of them, counted by kind; a kind that is not named is left out
    /// nowhere. There when it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
}
