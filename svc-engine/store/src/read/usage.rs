//! What calls used, and the usage receipts: of a Session, and in a range of time.

use std::collections::HashMap;
use std::ops::Range;

use svc_engine_fact::{CallKey, CallKeyKind, UsageReceipt};
use svc_model::id::{FactId, SessionId, UserId};
use svc_model::ingest::GatewayProvider;
use svc_model::time::Instant;
use svc_model::usage::{CallSource, CallUsage};

use super::snapshot::Snapshot;
use crate::pack::call_key::{KeyHash, StoredKey};
use crate::pack::column::{self, Columns};
use crate::sql::connection::Lookup;
use crate::sql::error::StoreError;
use crate::sql::value::{Row, Value};
use crate::table::record::Record as _;
use crate::table::sessions;
use crate::table::sessions::calls_of_session;

/// Selects what calls of a view used.
macro_rules! call_usage {
    ($view:literal, $($condition:expr),+) => {
        concat!(
            "SELECT f.inference_call_id, f.response_id, f.request_id, f.session_id, f.user_id,
            f.agent_harness, f.gateway_provider, f.observed_at_us, f.captured_at_us, f.model_provider, f.model,
            f.input_tokens, f.output_tokens, f.capture_source, f.cost_usd_micros,
            f.cache_read_tokens, f.cache_write_tokens, f.cache_write_5m_tokens,
            f.cache_write_1h_tokens, f.reasoning_tokens, f.tier
            FROM ", $view, " f WHERE ",
            $($condition),+
        )
    };
}

/// Restricts the selected calls to those in quarantine.
macro_rules! in_quarantine {
    () => {
        " AND f.inference_call_id IN (
            SELECT q.fact_id FROM quarantine_log q
            WHERE q.org_id = $1 AND q.fact_table = 'inference_calls')
        AND NOT EXISTS (
            SELECT 1 FROM visible_inference_calls v
            WHERE v.inference_call_id = f.inference_call_id)"
    };
}

const CALL_USAGE: &str = call_usage!("visible_inference_calls", calls_of_session!("$1", "$2"));

const HIDDEN_CALL_USAGE: &str = call_usage!(
    "all_inference_calls",
    calls_of_session!("$1", "$2"),
    in_quarantine!()
);

/// The organization is an expression, so that the index on this expression is used.
const CALL_USAGE_OBSERVED: &str = call_usage!(
    "visible_inference_calls",
    "f.org_id || '' = $1 AND f.observed_at_us >= $2 AND f.observed_at_us < $3
    AND f.captured_at_us + 0 <= $4 ORDER BY f.observed_at_us"
);

const HIDDEN_CALL_USAGE_OBSERVED: &str = call_usage!(
    "all_inference_calls",
    "f.org_id || '' = $1 AND f.observed_at_us >= $2 AND f.observed_at_us < $3
    AND f.captured_at_us + 0 <= $4",
    in_quarantine!()
);

/// Restricts the selected receipts to a range of time.
const REPORTED: &str = " AND f.org_id || '' = $1 AND f.occurred_at_us >= $2
    AND f.occurred_at_us < $3 AND f.captured_at_us + 0 <= $4 ORDER BY f.occurred_at_us";

/// Restricts the selected receipts to those of Sessions outside a range of time.
const OF_SESSIONS_BEYOND: &str = " AND f.org_id = $1 AND f.captured_at_us + 0 <= $2
    AND (f.occurred_at_us < $3 OR f.occurred_at_us >= $4) AND f.session_id";

const OF_KEYS: Lookup<'_> = Lookup {
    select: "SELECT key, inference_call_id FROM call_keys WHERE key",
    then: "",
};

const VISIBLE: Lookup<'_> = Lookup {
    select: "SELECT f.inference_call_id, f.captured_at_us FROM visible_inference_calls f
        WHERE f.inference_call_id",
    then: "",
};

const WITHOUT_USAGE: &str = concat!(
    "SELECT f.inference_call_id, f.gateway_provider FROM visible_inference_calls f WHERE ",
    calls_of_session!("$1", "$2"),
    " AND f.capture_source IS NULL"
);

/// What a call used.
#[derive(Clone, Debug)]
pub struct CallUsageRow {
    /// The call.
    pub inference_call_id: FactId,
    /// The provider's ids that it was stored with.
    pub keys: Vec<CallKey>,
    /// The Session.
    pub session_id: SessionId,
    /// The user.
    pub user_id: Option<UserId>,
    /// The agent or program that made it, if its source says so.
    pub agent: Option<String>,
    /// The gateway that sent it.
    pub gateway_provider: GatewayProvider,
    /// When it was observed.
    pub observed_at: Instant,
    /// When it was captured.
    pub captured_at: Instant,
    /// The provider of the model.
    pub model_provider: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// All input tokens.
    pub input_tokens: Option<i64>,
    /// All output tokens.
    pub output_tokens: Option<i64>,
    /// Its cost and the kinds of its tokens.
    pub usage: CallUsage,
    /// Whether it was stored before its usage was read.
    pub is_earlier: bool,
}

impl CallUsageRow {
    /// Reads the columns of `call_usage!`.
    fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        let kinds = [(1, CallKeyKind::Response), (2, CallKeyKind::Request)];
        let mut keys = Vec::new();
        for (place, kind) in kinds {
            keys.extend(row.optional_text(place)?.map(|id| CallKey::new(kind, id)));
        }
        let mut columns = Columns::of(row, "inference_calls", &[]).behind(3);
        Ok(Self {
            inference_call_id: row.fact_id(0)?,
            keys,
            session_id: columns.next()?,
            user_id: columns.next()?,
            agent: columns.next()?,
            gateway_provider: columns.next()?,
            observed_at: columns.next()?,
            captured_at: columns.next()?,
            model_provider: columns.next()?,
            model: columns.next()?,
            input_tokens: columns.next()?,
            output_tokens: columns.next()?,
            is_earlier: columns.next::<Option<CallSource>>()?.is_none(),
            usage: columns.next()?,
        })
    }
}

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

    /// Returns what the visible calls of a Session used.
    pub fn session_call_usage(
        &mut self,
        session_id: &SessionId,
    ) -> Result<Vec<CallUsageRow>, StoreError> {
        let keys = [self.org_id.as_str().into(), session_id.as_str().into()];
        self.connection()?
            .all(CALL_USAGE, &keys, CallUsageRow::read)
    }

    /// Passes on what the visible calls used that were observed in a range and received by a
    /// boundary, in order of observation.
    pub fn call_usage_observed(
        &mut self,
        observed: Range<Instant>,
        boundary: Instant,
        mut each: impl FnMut(CallUsageRow) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let keys = [
            self.org_id.as_str().into(),
            observed.start.into(),
            observed.end.into(),
            boundary.into(),
        ];
        self.connection()?.each(CALL_USAGE_OBSERVED, &keys, |row| {
            each(CallUsageRow::read(row)?)
        })
    }

    /// Returns what the calls of a Session used that are in quarantine.
    pub fn hidden_session_call_usage(
        &mut self,
        session_id: &SessionId,
    ) -> Result<Vec<CallUsageRow>, StoreError> {
        let keys = [self.org_id.as_str().into(), session_id.as_str().into()];
        self.connection()?
            .all(HIDDEN_CALL_USAGE, &keys, CallUsageRow::read)
    }

    /// Passes on what the calls in quarantine used that were observed in a range and received by a
    /// boundary, in any order.
    pub fn hidden_call_usage_observed(
        &mut self,
        observed: Range<Instant>,
        boundary: Instant,
        mut each: impl FnMut(CallUsageRow) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let keys = [
            self.org_id.as_str().into(),
            observed.start.into(),
            observed.end.into(),
            boundary.into(),
        ];
        self.connection()?
            .each(HIDDEN_CALL_USAGE_OBSERVED, &keys, |row| {
                each(CallUsageRow::read(row)?)
            })
    }

    /// Passes on the visible usage receipts of calls in a range that were received by a boundary, in
    /// the order of their times.
    pub fn usage_reported(
        &mut self,
        occurred: Range<Instant>,
        boundary: Instant,
        mut each: impl FnMut(UsageReceipt) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let keys = [
            self.org_id.as_str().into(),
            occurred.start.into(),
            occurred.end.into(),
            boundary.into(),
        ];
        let table = UsageReceipt::TABLE;
        let text = format!("{}{REPORTED}", table.select);
        self.connection()?.each(&text, &keys, |row| {
            each(UsageReceipt::read(&mut Columns::of(
                row,
                table.name,
                table.members,
            ))?)
        })
    }

    /// Passes on the visible usage receipts of Sessions outside a range of time that were received by
    /// a boundary, in any order.
    pub fn usage_of_sessions_beyond(
        &mut self,
        sessions: &[SessionId],
        occurred: Range<Instant>,
        boundary: Instant,
        mut each: impl FnMut(UsageReceipt) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let shared = [
            self.org_id.as_str().into(),
            boundary.into(),
            occurred.start.into(),
            occurred.end.into(),
        ];
        let keys: Vec<Value<'_>> = sessions
            .iter()
            .map(|session| session.as_str().into())
            .collect();
        let table = UsageReceipt::TABLE;
        let lookup = Lookup {
            select: &format!("{}{OF_SESSIONS_BEYOND}", table.select),
            then: "",
        };
        self.connection()?
            .lookup_many(&lookup, &shared, &keys, |row| {
                each(UsageReceipt::read(&mut Columns::of(
                    row,
                    table.name,
                    table.members,
                ))?)
            })
    }

    /// Returns the calls that have these keys, whether they are visible or not.
    pub fn calls_of_keys(
        &mut self,
        keys: &[CallKey],
    ) -> Result<HashMap<CallKey, FactId>, StoreError> {
        let org_id = self.org_id;
        let by_hash: HashMap<KeyHash, &CallKey> = keys
            .iter()
            .map(|key| (StoredKey::of(org_id, key).hash, key))
            .collect();
        let hashes: Vec<Value<'_>> = by_hash.keys().map(|hash| Value::Blob(hash)).collect();
        let mut calls = HashMap::new();
        self.connection()?.lookup(&OF_KEYS, &[], &hashes, |row| {
            let hash = row.blob(0)?;
            let key = KeyHash::try_from(hash).ok();
            if let Some(key) = key.and_then(|hash| by_hash.get(&hash)) {
                calls.insert((*key).clone(), row.fact_id(1)?);
            }
            Ok(())
        })?;
        Ok(calls)
    }

    /// Returns which of these calls are visible, and when they were captured.
    pub fn visible_calls(
        &mut self,
        calls: impl IntoIterator<Item = FactId>,
    ) -> Result<HashMap<FactId, Instant>, StoreError> {
        let ids: Vec<Value<'_>> = calls.into_iter().map(Value::from).collect();
        let mut visible = HashMap::new();
        self.connection()?.lookup(&VISIBLE, &[], &ids, |row| {
            let mut columns = Columns::of(row, "inference_calls", &["id", "captured_at_us"]);
            visible.insert(columns.next()?, columns.next()?);
            Ok(())
        })?;
        Ok(visible)
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
