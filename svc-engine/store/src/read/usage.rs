//! The usage receipts of a Session.

use std::collections::HashMap;

use svc_engine_fact::UsageReceipt;
use svc_model::id::{FactId, SessionId};
use svc_model::ingest::GatewayProvider;

use super::snapshot::Snapshot;
use crate::pack::column::{self, Columns};
use crate::sql::error::StoreError;
use crate::table::record::Record as _;
use crate::table::sessions;
use crate::table::sessions::calls_of_session;

const CALL_IDS: &str = concat!(
    "SELECT f.inference_call_id, f.response_id, f.request_id FROM visible_inference_calls f
    WHERE ",
    calls_of_session!("$1", "$2"),
    " AND (f.response_id IS NOT NULL OR f.request_id IS NOT NULL)"
);

const WITHOUT_USAGE: &str = concat!(
    "SELECT f.inference_call_id, f.gateway_provider FROM visible_inference_calls f WHERE ",
    calls_of_session!("$1", "$2"),
    " AND f.capture_source IS NULL"
);

impl Snapshot<'_> {
    /// Returns the visible calls of a Session that were stored before their usage was read, and
    /// their gateways.
    pub fn calls_without_usage(
        &mut self,
        session_id: &SessionId,
    ) -> Result<Vec<(FactId, GatewayProvider)>, StoreError> {
        let keys = [self.org_id.as_str().into(), session_id.as_str().into()];
        self.connection()?.all(WITHOUT_USAGE, &keys, |row| {
            Ok((row.fact_id(0)?, column::gateway_provider(row, 1)?))
        })
    }

    /// Returns the provider's ids of the visible calls of a Session that have any, each with its
    /// type.
    pub fn session_call_ids(
        &mut self,
        session_id: &SessionId,
    ) -> Result<HashMap<FactId, Vec<String>>, StoreError> {
        let keys = [self.org_id.as_str().into(), session_id.as_str().into()];
        let calls = self.connection()?.all(CALL_IDS, &keys, |row| {
            let response = row.optional_text(1)?.map(|id| format!("response:{id}"));
            let request = row.optional_text(2)?.map(|id| format!("request:{id}"));
            Ok((
                row.fact_id(0)?,
                response.into_iter().chain(request).collect(),
            ))
        })?;
        Ok(calls.into_iter().collect())
    }

    /// Returns the visible usage receipts of a Session in the order of their times, then of their
    /// ids.
    pub fn session_usage(
        &mut self,
        session_id: &SessionId,
    ) -> Result<Vec<UsageReceipt>, StoreError> {
        let table = UsageReceipt::TABLE;
        let text = format!(
            "SELECT f.{} FROM visible_{} f WHERE {} ORDER BY f.occurred_at_us, f.{}",
            table.members.join(", f."),
            table.name,
            sessions::of_session(table.name, "$1", "$2"),
            table.id(),
        );
        let keys = [self.org_id.as_str().into(), session_id.as_str().into()];
        self.connection()?.all(&text, &keys, |row| {
            UsageReceipt::read(&mut Columns::of(row, table.name, table.members))
        })
    }
}
