//! How many facts a Session has, and how many are visible. An organization's counts are in its row
//! ([`super::organization`]).

use svc_model::facts::{FactCount, FactTable, SessionFactTables};
use svc_model::id::{OrgId, SessionId};

use super::connection::Connection;
use super::{StoreError, kind, sessions};

/// Returns the statement that counts a Session's facts: for each kind, all and the visible ones.
fn of_session_text(kinds: &[FactTable]) -> String {
    let counts = kinds.iter().map(|kind| {
        let name = kind::table(*kind).name;
        let condition = sessions::of_session(name, "$1", "$2");
        format!(
            "(SELECT COUNT(*) FROM {name} f WHERE {condition}), \
            (SELECT COUNT(*) FROM visible_{name} f WHERE {condition})"
        )
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
