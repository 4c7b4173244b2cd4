#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::closed_set;
use crate::field::Violations;
use crate::id::{FactId, SessionId};
use crate::json::WriteError;
use crate::open::Open;
use crate::parameter::{Declared, Parameter, parameters};
use crate::request::{Incoming, Outgoing, Refusal, Request};
use crate::time::Instant;
use crate::version::Version1;

/// Asks which calls of a Session are visible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct InventoryRequest {
    /// The Session.
    pub session_id: SessionId,
}

impl InventoryRequest {
    const SESSION_ID: Declared<SessionId> = Declared::required("session_id", "The Session.");
    /// The query parameters.
    pub(crate) const PARAMETERS: &'static [Parameter] = parameters![Self::SESSION_ID,];
}

impl Request for InventoryRequest {
    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let mut violations = Violations::default();
        let session_id = Self::SESSION_ID.read(incoming, &mut violations);
        Ok(violations.finish(|| {
            Some(Self {
                session_id: session_id?,
            })
        })?)
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        Ok(Self::SESSION_ID.write(Outgoing::default(), &self.session_id))
    }
}

closed_set! {
    /// How complete the capture of a Session is. The service cannot know about calls that were
    /// never sent to it.
    pub enum CaptureCompleteness {
        /// Not known.
        Unknown = "unknown",
    }
}

/// One visible call, without its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CallSummary {
    /// The id of the call.
    #[cfg_attr(feature = "schema", schemars(with = "crate::id::InferenceCallId"))]
    pub inference_call_id: FactId,
    /// When the call was observed.
    pub observed_at: Instant,
    /// The provider of the model, as the gateway names it.
    pub model_provider: Option<String>,
    /// The model, as the gateway names it.
    pub model: Option<String>,
    /// When the content of the call was erased: what it said is not kept any more, that it was made is.
    /// Absent as long as the content is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_erased_at: Option<Instant>,
}

/// The visible calls of one Session. No content, no raw payload, no user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Inventory {
    /// Always 1.
    pub schema_version: Version1,
    /// The requested Session, trimmed.
    pub session_id: SessionId,
    /// The high-water mark of the quarantine log in the snapshot of this answer; 0 when empty.
    pub quarantine_revision: u64,
    /// Whether the Session is known. Unknown and foreign Sessions give the same answer.
    pub found: bool,
    /// How many calls are visible: the length of `calls`.
    pub visible_inference_calls: u64,
    /// How many calls are quarantined.
    pub quarantined_inference_calls: u64,
    /// The visible calls by observation time, then id.
    pub calls: Vec<CallSummary>,
    /// Always `unknown`.
    pub capture_completeness: Open<CaptureCompleteness>,
}
