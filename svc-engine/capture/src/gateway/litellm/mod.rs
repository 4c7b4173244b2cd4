//! The payload of LiteLLM's logging callbacks.

mod call;
mod delivery;
mod kind;
mod metadata;
mod said;
pub(crate) mod scalar;
mod segments;
mod session;
mod usage;
mod user;

use svc_model::ingest::{Capture, GatewayIngestRequest};
use svc_model::json::{Json, NodeBudget, Object};
use svc_model::time::Instant;

use super::{Adapter, Captured, GatewayError, PayloadNotes};
use crate::Receipt;

/// LiteLLM, and programs that describe their calls as it does.
#[derive(Debug)]
pub(super) struct LiteLlm;

impl Adapter for LiteLlm {
    fn capture(
        &self,
        request: GatewayIngestRequest,
        receipt: Receipt<'_>,
        memory: &NodeBudget,
    ) -> Result<(Captured, PayloadNotes), GatewayError> {
        call::capture(request, receipt, memory)
    }

    fn cost(&self, payload: &Object) -> Option<i64> {
        let answer = payload.get("response").and_then(Json::as_object);
        let [input, output] = scalar::all_tokens(payload, scalar::usage(payload, answer));
        usage::cost(payload, input, output)
    }

    fn delivery_name(&self, payload: &Object, received_at: Instant) -> Option<Capture> {
        delivery::name(payload, received_at)
    }

    fn delivery_moment(&self, payload: &Object) -> Option<Instant> {
        delivery::moment(payload)
    }
}
