//! How many facts there are and how many of them are visible.

use svc_model::facts::{FactCount, FactTable, FactTables, SessionFactTables};
use svc_model::id::{OrgId, SessionId};

use super::connection::Connection;
use super::{StoreError, kind};

/// Returns the statement that counts all facts of a kind.
fn total(kind: FactTable) -> String {
    format!(
        "SELECT COUNT(*) FROM {} WHERE org_id = $1",
        kind::table(kind).name
    )
}

/// Returns the statement that counts the quarantined facts of a kind.
///
/// It is driven by the log, which is short, and not by the facts; and by its latest rows, found in one
/// pass of its index, so that no plan compares its rows with one another.
fn quarantined(kind: FactTable) -> String {
    let table = kind::table(kind);
    let (name, id) = (table.name, table.id());
    format!(
        "SELECT COUNT(*) FROM (SELECT MAX(quarantine_revision) AS latest FROM quarantine_log \
        WHERE org_id = $1 AND fact_table = '{name}' GROUP BY fact_id) AS changed \
        JOIN quarantine_log q ON q.quarantine_revision = changed.latest \
        WHERE q.action = 'quarantine' AND EXISTS \
        (SELECT 1 FROM {name} f WHERE f.{id} = q.fact_id AND f.org_id = $1)"
    )
}

/// Returns the statement that counts the facts of a Session, of each kind all and the visible ones.
fn of_session_text(kinds: &[FactTable]) -> String {
    let count = |name: &str| {
        format!("(SELECT COUNT(*) FROM {name} f WHERE f.org_id = $1 AND f.session_id = $2)")
    };
    let counts = kinds.iter().map(|kind| {
        let name = kind::table(*kind).name;
        [count(name), count(&format!("visible_{name}"))].join(", ")
    });
    format!("SELECT {}", counts.collect::<Vec<_>>().join(", "))
}

/// The kinds of fact that are events of a Session.
const EVENTS: [FactTable; 5] = [
    FactTable::InferenceCalls,
    FactTable::DeveloperDecisions,
    FactTable::EditObservations,
    FactTable::RejectedEdits,
    FactTable::RetryLinkages,
];

const SESSIONS: &str = "SELECT COUNT(*) FROM sessions WHERE org_id = $1";

pub(super) fn sessions(connection: &mut Connection, org_id: &OrgId) -> Result<u64, StoreError> {
    Ok(connection
        .first(SESSIONS, &[org_id.as_str().into()], |row| row.count(0))?
        .unwrap_or_default())
}

pub(super) fn facts(connection: &mut Connection, org_id: &OrgId) -> Result<FactTables, StoreError> {
    FactTables::try_from_fn(|table| of_kind(connection, org_id, table))
}

/// Returns the counts of one kind of fact.
pub(super) fn of_kind(
    connection: &mut Connection,
    org_id: &OrgId,
    table: FactTable,
) -> Result<FactCount, StoreError> {
    let org = [org_id.as_str().into()];
    let total = connection
        .first(&total(table), &org, |row| row.count(0))?
        .unwrap_or_default();
    let hidden = connection
        .first(&quarantined(table), &org, |row| row.count(0))?
        .unwrap_or_default();
    Ok(FactCount {
        total,
        visible: total.saturating_sub(hidden),
    })
}

/// Returns the counts of some kinds of fact that name a Session, in their order.
pub(super) fn of_session<const KINDS: usize>(
    connection: &mut Connection,
    org_id: &OrgId,
    session_id: &SessionId,
    kinds: [FactTable; KINDS],
) -> Result<[FactCount; KINDS], StoreError> {
    let keys = [org_id.as_str().into(), session_id.as_str().into()];
    let counts = connection.first(&of_session_text(&kinds), &keys, |row| {
        let mut counts = [FactCount::default(); KINDS];
        for (place, count) in counts.iter_mut().enumerate() {
            count.total = row.count(2 * place)?;
            count.visible = row.count(2 * place + 1)?;
        }
        Ok(counts)
    })?;
    Ok(counts.unwrap_or([FactCount::default(); KINDS]))
}

pub(super) fn session_facts(
    connection: &mut Connection,
    org_id: &OrgId,
    session_id: &SessionId,
) -> Result<SessionFactTables, StoreError> {
    let [
        inference_calls,
        developer_decisions,
        edit_observations,
        rejected_edits,
        retry_linkages,
    ] = of_session(connection, org_id, session_id, EVENTS)?;
    Ok(SessionFactTables {
        inference_calls,
        developer_decisions,
        edit_observations,
        rejected_edits,
        retry_linkages,
    })
}
