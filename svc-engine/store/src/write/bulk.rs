//! Quarantine and release of many model calls at once.
//!
//! One statement selects the calls, and whether each is visible. Only calls that are not yet in the
//! wanted state get a row. All of it is one transaction.

use svc_model::facts::FactTable;
use svc_model::id::{OrgId, SessionId};
use svc_model::ingest::GatewayProvider;
use svc_model::time::Instant;
use svc_model::usage::CallSource;
use uuid::Uuid;

use super::ledger::Ledger;
use super::quarantine::{self, QuarantineAction};
use super::transaction::Transaction;
use crate::pack::column::{self, gateway_letter};
use crate::read::snapshot::Snapshot;
use crate::sql::connection::Insert;
use crate::sql::error::StoreError;
use crate::sql::value::Value;
use crate::table::sessions::calls_of_session;

/// The maximum rows bound at once, so that any number of calls takes only a few MiB of values.
const ROWS_AT_ONCE: usize = 8_192;

/// Selects calls of an organization: those that meet every given condition.
#[derive(Clone, Debug, Default)]
pub struct CallFilter {
    /// Calls of this Session.
    pub session_id: Option<SessionId>,
    /// Calls from this kind of gateway.
    pub gateway_provider: Option<GatewayProvider>,
    /// Calls that were captured here.
    pub capture_source: Option<CallSource>,
    /// Calls that this agent made, as their source says.
    pub agent: Option<String>,
    /// Calls observed between these times, both included.
    pub observed: Option<(Instant, Instant)>,
}

/// A change of the selected calls.
#[derive(Clone, Debug)]
pub struct BulkChange {
    /// Quarantine or release.
    pub action: QuarantineAction,
    /// Why, exactly as the operator wrote it.
    pub reason: String,
    /// When it was made.
    pub recorded_at: Instant,
    /// Who made it.
    pub client_id: String,
}

/// How many calls are selected, and how many of them are visible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTally {
    /// All selected calls.
    pub matched: u64,
    /// The visible ones.
    pub visible: u64,
}

/// The result of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkReceipt {
    /// The selected calls before the change.
    pub before: CallTally,
    /// The revision of the organization's log afterwards.
    pub revision: u64,
}

impl CallTally {
    /// Returns how many calls the action changes; the others are in that state already.
    pub const fn changed_by(self, action: QuarantineAction) -> u64 {
        match action {
            QuarantineAction::Quarantine => self.visible,
            QuarantineAction::Release => self.matched - self.visible,
        }
    }
}

const VISIBLE: &str = "CASE WHEN EXISTS (SELECT 1 FROM visible_inference_calls v
    WHERE v.inference_call_id = f.inference_call_id) THEN 1 ELSE 0 END";
const APPEND: Insert = Insert {
    into: "INSERT INTO quarantine_log
        (quarantine_id, org_id, fact_table, fact_id, action, reason, recorded_at_us,
        client_id)",
    columns: 8,
    then: "",
    returning: "quarantine_revision, quarantine_id",
    unique: 0,
    is_row_number: true,
};

impl CallFilter {
    /// Returns the statement that selects these columns of the calls, and its values.
    ///
    /// The text contains only the given conditions, so each of the few texts gets its own plan.
    fn select<'v>(&'v self, org_id: &'v OrgId, columns: &str) -> (String, Vec<Value<'v>>) {
        let mut text = format!("SELECT {columns} FROM inference_calls f WHERE f.org_id = $1");
        let mut values = vec![Value::Text(org_id.as_str())];
        if let Some(session_id) = &self.session_id {
            values.push(Value::Text(session_id.as_str()));
            text.extend([" AND ", calls_of_session!("$1", "$2")]);
        }
        if let Some(source) = self.capture_source {
            values.push(column::source_letter(source).into());
            // Calls without a source were stored when only gateways sent any.
            let gateway = column::source_letter(CallSource::Gateway);
            let place = values.len().to_string();
            text.extend([
                " AND COALESCE(f.capture_source, '",
                gateway,
                "') = $",
                &place,
            ]);
        }
        let mut condition = |column: &str, comparison: &str, value| {
            values.push(value);
            let place = values.len().to_string();
            text.push_str(&[" AND f.", column, " ", comparison, " $", &place].concat());
        };
        if let Some(provider) = self.gateway_provider {
            condition("gateway_provider", "=", gateway_letter(provider).into());
        }
        if let Some(agent) = &self.agent {
            condition("agent_harness", "=", agent.as_str().into());
        }
        if let Some((first, last)) = self.observed {
            condition("observed_at_us", ">=", first.microseconds().into());
            condition("observed_at_us", "<=", last.microseconds().into());
        }
        (text, values)
    }

    fn tally<'v>(&'v self, org_id: &'v OrgId) -> (String, Vec<Value<'v>>) {
        let columns = format!("COUNT(*), CAST(COALESCE(SUM({VISIBLE}), 0) AS BIGINT)");
        self.select(org_id, &columns)
    }

    fn list<'v>(&'v self, org_id: &'v OrgId) -> (String, Vec<Value<'v>>) {
        let columns = format!("f.inference_call_id, CAST({VISIBLE} AS BIGINT)");
        let (mut text, values) = self.select(org_id, &columns);
        text.push_str(" ORDER BY f.observed_at_us, f.inference_call_id");
        (text, values)
    }
}

/// Appends a row for each selected call that is not yet in the wanted state.
pub(crate) fn change(
    transaction: &mut Transaction<'_>,
    filter: &CallFilter,
    change: &BulkChange,
    mut fresh_id: impl FnMut() -> Uuid,
) -> Result<BulkReceipt, StoreError> {
    // The organization's row is locked before a revision is drawn, so that revisions are committed
    // in order.
    transaction.organization()?;
    let (connection, org_id) = (&mut *transaction.connection, transaction.org_id);
    let mut before = CallTally::default();
    let mut fact_ids = Vec::new();
    let (text, values) = filter.list(org_id);
    connection.each(&text, &values, |row| {
        let is_visible = row.integer(1)? != 0;
        before.matched += 1;
        before.visible += u64::from(is_visible);
        if is_visible == (change.action == QuarantineAction::Quarantine) {
            fact_ids.push(row.fact_id(0)?);
        }
        Ok(())
    })?;
    for fact_ids in fact_ids.chunks(ROWS_AT_ONCE) {
        let row_ids: Vec<String> = fact_ids.iter().map(|_| fresh_id().to_string()).collect();
        let mut values = Vec::with_capacity(fact_ids.len() * APPEND.columns);
        for (row_id, fact_id) in row_ids.iter().zip(fact_ids) {
            values.extend([
                Value::Text(row_id),
                Value::Text(org_id.as_str()),
                Value::Text(FactTable::InferenceCalls.as_str()),
                (*fact_id).into(),
                Value::Text(change.action.as_str()),
                Value::Text(&change.reason),
                Value::Integer(change.recorded_at.microseconds()),
                Value::Text(&change.client_id),
            ]);
        }
        connection.put(&APPEND, values.chunks_exact(APPEND.columns))?;
    }
    let revision = quarantine::revision(connection, org_id)?;
    let changed = i64::try_from(fact_ids.len()).unwrap_or(i64::MAX);
    transaction.add_quarantined(
        FactTable::InferenceCalls,
        match change.action {
            QuarantineAction::Quarantine => changed,
            QuarantineAction::Release => -changed,
        },
    )?;
    Ok(BulkReceipt { before, revision })
}

impl Ledger {
    /// Quarantines or releases the selected calls in one transaction. A call that is already in
    /// that state gets no row.
    ///
    /// # Errors
    ///
    /// If the schema is not at head, or the store cannot be reached.
    pub fn quarantine_calls(
        &self,
        filter: &CallFilter,
        change: &BulkChange,
        fresh_id: impl FnMut() -> uuid::Uuid,
    ) -> Result<BulkReceipt, StoreError> {
        self.write(|transaction| self::change(transaction, filter, change, fresh_id))
    }
}

impl Snapshot<'_> {
    /// Returns how many calls match a filter, quarantined ones included.
    pub fn call_tally(&mut self, filter: &CallFilter) -> Result<CallTally, StoreError> {
        let (text, values) = filter.tally(self.org_id);
        let tally = self.connection()?.first(&text, &values, |row| {
            Ok(CallTally {
                matched: row.count(0)?,
                visible: row.count(1)?,
            })
        })?;
        Ok(tally.unwrap_or_default())
    }
}
