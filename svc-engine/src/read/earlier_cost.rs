//! The cost of calls that were stored before costs were read. Their payloads have it, and facts are
//! never changed, so it is read from there each time.

use std::collections::HashMap;

use svc_engine_capture::gateway::adapter;
use svc_engine_store::Snapshot;
use svc_model::id::{FactId, SessionId};
use svc_model::ingest::GatewayProvider;
use svc_model::json::Json;

use crate::error::Error;

/// Returns what visible calls of a Session cost in micro-USD, of those that were stored before costs
/// were read and whose payloads say so.
pub(super) fn earlier_costs(
    snapshot: &mut Snapshot<'_>,
    session_id: &SessionId,
) -> Result<HashMap<FactId, i64>, Error> {
    let mut costs = HashMap::new();
    for (fact_id, provider) in snapshot.calls_without_usage(session_id)? {
        if let Some(cost) = earlier_cost(snapshot, fact_id, provider)? {
            costs.insert(fact_id, cost);
        }
    }
    Ok(costs)
}

/// Returns what a call cost in micro-USD that was stored before costs were read, if its payload says
/// so.
pub(super) fn earlier_cost(
    snapshot: &mut Snapshot<'_>,
    fact_id: FactId,
    provider: GatewayProvider,
) -> Result<Option<i64>, Error> {
    let Some(raw) = snapshot.call_raw(fact_id)? else {
        return Ok(None);
    };
    let payload = Json::parse(&raw).unwrap_or_default();
    let found = adapter(provider).ok().zip(payload.as_object());
    Ok(found.and_then(|(adapter, payload)| adapter.cost(payload)))
}
