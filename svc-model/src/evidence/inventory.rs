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
use crate::usage::{CallSource, CallUsage};
use crate::version::Version1;

/// Asks for the visible calls of a Session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct InventoryRequest {
    /// The Session whose calls to list.
    pub session_id: SessionId,
}

impl InventoryRequest {
    const SESSION_ID: Declared<SessionId> = Declared::required("session_id", "The Session.");
}

impl Request for InventoryRequest {
    const PARAMETERS: &'static [Parameter] = parameters![Self::SESSION_ID,];

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
        /// Unknown: there may be calls that were never sent.
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
    /// When the call was observed, by the sender's clock; when the service received it, if the
    /// sender gave no time.
    pub observed_at: Instant,
    /// The provider of the model, as the gateway names it; null if unknown.
    pub model_provider: Option<String>,
    /// The model, as the gateway names it; null if unknown.
    pub model: Option<String>,
    /// When the content of the call was erased. What was said is gone; the call itself is still
    /// counted and listed. Absent if the content was not erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_erased_at: Option<Instant>,
    /// Where the call was captured. Only in a manifest; absent if a gateway sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture_source: Option<Open<CallSource>>,
    /// The agent or program that made the call. Only in a manifest; absent if its source does not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Its cost and the kinds of its tokens. Only in a manifest.
    #[serde(flatten)]
    pub usage: CallUsage,
    /// The provider's id of the response. Only in a manifest whose request has `explain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// The provider's id of the request. Only in a manifest whose request has `explain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// The visible calls of one Session, without content, raw payload or user. At most 1,000; a Session
/// with more is declined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Inventory {
    /// The version of this message: always 1.
    pub schema_version: Version1,
    /// The requested Session, without surrounding white space.
    pub session_id: SessionId,
    /// The revision of the quarantine log that this answer was made under; 0 if the log is empty.
    pub quarantine_revision: u64,
    /// Whether any fact names the Session, quarantined facts included. An unknown Session and one
    /// of another organization give the same answer.
    pub found: bool,
    /// The number of visible calls, which is the length of `calls`.
    pub visible_inference_calls: u64,
    /// The number of quarantined calls, which are not listed.
    pub quarantined_inference_calls: u64,
    /// The visible calls, by observation time, then by id.
    pub calls: Vec<CallSummary>,
    /// Always `unknown`: the service cannot know about calls that were never sent to it.
    pub capture_completeness: Open<CaptureCompleteness>,
}
