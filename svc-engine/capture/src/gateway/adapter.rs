use std::fmt::Debug;

use svc_model::ingest::{Capture, GatewayIngestRequest, GatewayProvider};
use svc_model::json::{NodeBudget, Object};
use svc_model::time::Instant;

use super::litellm::LiteLlm;
use super::{Captured, GatewayError, PayloadNotes};
use crate::Receipt;

/// What knows the payload of one kind of gateway.
pub trait Adapter: Debug + Sync {
    /// Turns a delivery into an inference call. Its messages take their memory from `memory`; the
    /// parsed payload has taken its own.
    ///
    /// # Errors
    ///
    /// See [`GatewayError`].
    fn capture(
        &self,
        request: GatewayIngestRequest,
        receipt: Receipt<'_>,
        memory: &NodeBudget,
    ) -> Result<(Captured, PayloadNotes), GatewayError>;

    /// Returns what a call cost in micro-USD, as its stored payload says. New calls have it of their
    /// own; this is for those that were stored before it was read.
    fn cost(&self, payload: &Object) -> Option<i64>;

    /// Returns the capture id and the time of a delivery without an envelope, as the gateway's own
    /// logger sends it, so that a payload that is sent again becomes the same fact.
    fn delivery_name(&self, payload: &Object, received_at: Instant) -> Option<Capture>;

    /// Returns the time of the call in such a delivery, whatever its id. So the calls of a delayed
    /// batch keep their own times instead of its time of arrival.
    fn delivery_moment(&self, payload: &Object) -> Option<Instant>;
}

/// Returns the adapter of a kind of gateway.
///
/// # Errors
///
/// [`GatewayError::UnsupportedProvider`] if it has none.
pub fn adapter(provider: GatewayProvider) -> Result<&'static dyn Adapter, GatewayError> {
    match provider {
        GatewayProvider::GatewayA => Ok(&LiteLlm),
        GatewayProvider::GatewayB | GatewayProvider::GatewayC | GatewayProvider::Unknown => {
            Err(GatewayError::UnsupportedProvider(provider))
        }
    }
}

/// Turns a delivery into an inference call by the adapter of its gateway.
///
/// # Errors
///
/// See [`GatewayError`].
pub fn capture(
    request: GatewayIngestRequest,
    receipt: Receipt<'_>,
    memory: &NodeBudget,
) -> Result<(Captured, PayloadNotes), GatewayError> {
    adapter(request.provider)?.capture(request, receipt, memory)
}
