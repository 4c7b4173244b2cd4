use svc_model::ingest::{GatewayIngestRequest, GatewayProvider, SkipReason};
use svc_model::json::{NodeBudget, OverBudget};

use super::litellm;
use crate::capture::Receipt;
use crate::capture::messages::{Degradation, MessagesError};
use crate::capture::redaction::Counts;
use crate::fact::InferenceCall;

/// What became of a payload.
#[derive(Clone, Debug, PartialEq)]
pub enum Captured {
    /// It is a call.
    Call(Box<InferenceCall>),
    /// It is declined with success.
    Skipped {
        /// Why.
        reason: SkipReason,
        /// The gateway's or the model's own id of the call.
        model_call_id: Option<String>,
    },
}

/// Why a payload can never be captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GatewayError {
    /// There is no adapter for this kind of gateway.
    #[error("the gateway has no adapter")]
    UnsupportedProvider,
    /// An identity in the payload is over its bound, or holds NUL or a surrogate.
    #[error("the payload holds an identity that cannot be kept")]
    InvalidPayload,
    /// The messages of the payload, with what is decoded for them, take more memory than those of one
    /// request may.
    #[error("the payload holds more than one request may")]
    TooLarge,
}

impl From<OverBudget> for GatewayError {
    fn from(OverBudget: OverBudget) -> Self {
        Self::TooLarge
    }
}

/// What happened to a payload on its way, for the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// What was left out.
    pub degradation: Degradation,
    /// What was redacted.
    pub redactions: Counts,
}

impl From<MessagesError> for GatewayError {
    fn from(error: MessagesError) -> Self {
        match error {
            MessagesError::InvalidIdentity => Self::InvalidPayload,
            MessagesError::TooLarge => Self::TooLarge,
        }
    }
}

/// Turns a delivery of a gateway into an inference call. What its messages take is taken from `memory`,
/// beside what the payload took when it was parsed.
///
/// # Errors
///
/// See [`GatewayError`].
pub fn capture(
    request: GatewayIngestRequest,
    receipt: Receipt<'_>,
    memory: &NodeBudget,
) -> Result<(Captured, Notes), GatewayError> {
    match request.provider {
        GatewayProvider::GatewayA => litellm::capture(request, receipt, memory),
        GatewayProvider::GatewayB | GatewayProvider::GatewayC | GatewayProvider::Unknown => {
            Err(GatewayError::UnsupportedProvider)
        }
    }
}
