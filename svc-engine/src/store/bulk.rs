//! Quarantine and release of many model calls at once.
//!
//! One statement selects the calls and says of each whether it is visible; rows are appended for
//! those only that are not in the wanted state already. Selection and rows are one transaction.

use svc_model::facts::FactTable;
use svc_model::id::{OrgId, SessionId};
use svc_model::ingest::GatewayProvider;
use svc_model::time::Instant;
use uuid::Uuid;

use super::StoreError;
use super::connection::{Connection, Insert};
use super::quarantine::{self, QuarantineAction};
use super::transaction::Transaction;
use super::value::Value;

/// Rows that are bound at once: a few MiB of values, whatever the number of calls.
const ROWS_AT_ONCE: usize = 8_192;

/// Which calls of an organization are meant: those that meet every condition that is given.
#[derive(Clone, Debug, Default)]
pub struct CallFilter {
    /// They are of this Session.
    pub session_id: Option<SessionId>,
    /// They came from this kind of gateway.
    pub gateway_provider: Option<GatewayProvider>,
    /// They were observed between these instants, both included.
    pub observed: Option<(Instant, Instant)>,
}

/// What is done to the calls that are meant.
#[derive(Clone, Debug)]
pub struct BulkChange {
    /// Quarantine or release.
    pub action: QuarantineAction,
    /// Why, exactly as the operator wrote it.
    pub reason: String,
    /// When.
    pub recorded_at: Instant,
    /// Who does it.
    pub client_id: String,
}

/// How many calls are meant, and how many of them are visible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTally {
    /// All that are meant.
    pub matched: u64,
    /// Those that are visible.
    pub visible: u64,
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkReceipt {
    /// The calls that were meant, as they were before.
    pub before: CallTally,
    /// The high-water mark of the organization's log afterwards.
    pub revision: u64,
}

impl CallTally {
    /// Returns how many calls the action changes; the others are in its state already.
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
    /// A condition that is not given is not in the text, so that each of the few texts has the plan
    /// of its own conditions.
    fn select<'v>(&'v self, org_id: &'v OrgId, columns: &str) -> (String, Vec<Value<'v>>) {
        let mut text = format!("SELECT {columns} FROM inference_calls f WHERE f.org_id = $1");
        let mut values = vec![Value::Text(org_id.as_str())];
        let mut condition = |column: &str, comparison: &str, value| {
            values.push(value);
            let place = values.len().to_string();
            text.push_str(&[" AND f.", column, " ", comparison, " $", &place].concat());
        };
        if let Some(session_id) = &self.session_id {
            condition("session_id", "=", Value::Text(session_id.as_str()));
        }
        if let Some(provider) = self.gateway_provider {
            condition("gateway_provider", "=", Value::Text(provider.as_str()));
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

/// Counts the calls that are meant.
pub(super) fn tally(
    connection: &mut Connection,
    org_id: &OrgId,
    filter: &CallFilter,
) -> Result<CallTally, StoreError> {
    let (text, values) = filter.tally(org_id);
    let tally = connection.first(&text, &values, |row| {
        Ok(CallTally {
            matched: row.count(0)?,
            visible: row.count(1)?,
        })
    })?;
    Ok(tally.unwrap_or_default())
}

/// Appends a row for each call that is meant and not in the state yet.
pub(super) fn change(
    transaction: &mut Transaction<'_>,
    filter: &CallFilter,
    change: &BulkChange,
    mut fresh_id: impl FnMut() -> Uuid,
) -> Result<BulkReceipt, StoreError> {
    // Locked before a revision is drawn: the revisions of an organization are committed in their order.
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
            fact_ids.push(row.text(0)?);
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
                Value::Text(fact_id),
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
