//! Calls that were found in a commit, as answers show them.

use svc_model::id::{FactId, SessionId};
use svc_model::ingest::GatewayProvider;

use super::snapshot::Snapshot;
use crate::pack::column::Columns;
use crate::sql::connection::Lookup;
use crate::sql::error::StoreError;
use crate::sql::value::Value;

/// A call without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCall {
    /// The id of the fact.
    pub inference_call_id: FactId,
    /// The Session.
    pub session_id: SessionId,
    /// The kind of gateway.
    pub gateway_provider: GatewayProvider,
    /// The provider of the model.
    pub model_provider: Option<String>,
    /// The model.
    pub model: Option<String>,
}

const COLUMNS: [&str; 5] = [
    "inference_call_id",
    "session_id",
    "gateway_provider",
    "model_provider",
    "model",
];
const CALLS: Lookup<'_> = Lookup {
    select:
        "SELECT f.inference_call_id, f.session_id, f.gateway_provider, f.model_provider, f.model
        FROM visible_inference_calls f WHERE COALESCE(f.org_id, '') = $1 AND f.inference_call_id",
    then: "",
};

impl Snapshot<'_> {
    /// Returns the visible calls with these ids, in any order.
    pub fn named_calls(&mut self, calls: &[FactId]) -> Result<Vec<NamedCall>, StoreError> {
        let shared = [self.org_id.as_str().into()];
        let keys: Vec<Value<'_>> = calls.iter().copied().map(Value::from).collect();
        let mut named = Vec::with_capacity(calls.len());
        self.connection()?.lookup(&CALLS, &shared, &keys, |row| {
            let mut columns = Columns::of(row, "inference_calls", &COLUMNS);
            named.push(NamedCall {
                inference_call_id: columns.next()?,
                session_id: columns.next()?,
                gateway_provider: columns.next()?,
                model_provider: columns.next()?,
                model: columns.next()?,
            });
            Ok(())
        })?;
        Ok(named)
    }
}
