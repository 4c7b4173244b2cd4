#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CallSummary, PartType, Reference, Side};
use crate::field::Violations;
use crate::id::{InferenceCallId, SessionId};
use crate::json::{Text, WriteError};
use crate::open::Open;
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
}

impl Request for ManifestRequest {
    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let mut violations = Violations::default();
        let query = incoming.query_fields();
        let session_id = query.required("session_id", &mut violations);
        let inference_call_id = query.required("inference_call_id", &mut violations);
        Ok(violations.finish(|| {
            Some(Self {
                session_id: session_id?,
                inference_call_id: inference_call_id?,
            })
        })?)
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        Ok(Outgoing::default()
            .with_query("session_id", self.session_id.as_str())
            .with_query("inference_call_id", self.inference_call_id.as_str()))
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
    /// The messages.
    pub messages: Vec<ManifestMessage>,
}
