use svc_engine_fact::InferenceCall;
use svc_model::ingest::{GatewayProvider, SkipReason};
use svc_model::json::OverBudget;

use crate::redaction::RedactionCounts;
use svc_messages::{Degradation, MessagesError};

/// The result of capturing a payload.
#[derive(Clone, Debug, PartialEq)]
pub enum Captured {
    /// A call.
    Call(Box<InferenceCall>),
    /// A payload that is skipped; its delivery still succeeds.
    Skipped {
        /// The reason.
        reason: SkipReason,
        /// The gateway's or the model's id of the call.
        model_call_id: Option<String>,
    },
}

/// Why a payload can never be captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GatewayError {
    /// This kind of gateway has no adapter.
    #[error("the gateway has no adapter")]
    UnsupportedProvider(GatewayProvider),
    /// An identity in the payload is too long, or contains NUL or a surrogate.
    #[error("the payload holds an identity that cannot be kept")]
    InvalidPayload,
    /// The messages of the payload and the documents decoded from them need more memory than one
    /// request may use.
    #[error("the payload holds more than one request may")]
    TooLarge,
}

impl From<OverBudget> for GatewayError {
    fn from(OverBudget: OverBudget) -> Self {
        Self::TooLarge
    }
}

/// What to log about a payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PayloadNotes {
    /// What was left out.
    pub degradation: Degradation,
    /// What was redacted.
    pub redactions: RedactionCounts,
}

impl From<MessagesError> for GatewayError {
    fn from(error: MessagesError) -> Self {
        match error {
            MessagesError::InvalidIdentity => Self::InvalidPayload,
            MessagesError::TooLarge => Self::TooLarge,
        }
    }
}
