//! How many facts there are and how many of them are visible.

use svc_model::facts::{FactCount, FactTable, FactTables, SessionFactTables};
use svc_model::id::{OrgId, SessionId};

use super::StoreError;
use super::connection::Connection;

/// Gives the statements that count one kind of fact: all of an organization, the quarantined ones,
/// and for kinds that name a Session all and the visible ones of a Session.
macro_rules! counts {
    ($table:literal, $id:literal) => {
        Counts {
            total: concat!("SELECT COUNT(*) FROM ", $table, " WHERE org_id = $1"),
            // Driven by the log, which is short, and not by the facts; and by its latest rows, found in
            // one pass of its index, so that no plan compares its rows with one another.
            quarantined: concat!(
                "SELECT COUNT(*) FROM (SELECT MAX(quarantine_revision) AS latest FROM quarantine_log",
                " WHERE org_id = $1 AND fact_table = '",
                $table,
                "' GROUP BY fact_id) AS changed",
                " JOIN quarantine_log q ON q.quarantine_revision = changed.latest",
                " WHERE q.action = 'quarantine' AND EXISTS (SELECT 1 FROM ",
                $table,
                " f WHERE f.",
                $id,
                " = q.fact_id AND f.org_id = $1)"
            ),
            of_session: concat!(
                "SELECT (SELECT COUNT(*) FROM ",
                $table,
                " f WHERE f.org_id = $1 AND f.session_id = $2), (SELECT COUNT(*) FROM visible_",
                $table,
                " f WHERE f.org_id = $1 AND f.session_id = $2)"
            ),
        }
    };
}

struct Counts {
    total: &'static str,
    quarantined: &'static str,
    of_session: &'static str,
}

const fn of(table: FactTable) -> Counts {
    match table {
        FactTable::InferenceCalls => counts!("inference_calls", "inference_call_id"),
        FactTable::DeveloperDecisions => counts!("developer_decisions", "decision_id"),
        FactTable::CiOutcomes => counts!("ci_outcomes", "outcome_id"),
        FactTable::Pushes => counts!("pushes", "push_id"),
        FactTable::PullRequestMerges => counts!("pull_request_merges", "merge_id"),
        FactTable::PullRequestRevisions => counts!("pull_request_revisions", "revision_id"),
        FactTable::EditObservations => counts!("edit_observations", "observation_id"),
        FactTable::RejectedEdits => counts!("rejected_edits", "rejection_id"),
        FactTable::RetryLinkages => counts!("retry_linkages", "retry_linkage_id"),
        FactTable::SessionCommitObservations => {
            counts!("session_commit_observations", "observation_id")
        }
        FactTable::RepositoryRenames => counts!("repository_renames", "rename_id"),
    }
}

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
    let counts = of(table);
    let total = connection
        .first(counts.total, &org, |row| row.count(0))?
        .unwrap_or_default();
    let hidden = connection
        .first(counts.quarantined, &org, |row| row.count(0))?
        .unwrap_or_default();
    Ok(FactCount {
        total,
        visible: total.saturating_sub(hidden),
    })
}

/// Returns the counts of one kind of fact that names a Session.
pub(super) fn of_session(
    connection: &mut Connection,
    org_id: &OrgId,
    session_id: &SessionId,
    table: FactTable,
) -> Result<FactCount, StoreError> {
    let keys = [org_id.as_str().into(), session_id.as_str().into()];
    Ok(connection
        .first(of(table).of_session, &keys, |row| {
            Ok(FactCount {
                total: row.count(0)?,
                visible: row.count(1)?,
            })
        })?
        .unwrap_or_default())
}

pub(super) fn session_facts(
    connection: &mut Connection,
    org_id: &OrgId,
    session_id: &SessionId,
) -> Result<SessionFactTables, StoreError> {
    let mut count = |table| of_session(connection, org_id, session_id, table);
    Ok(SessionFactTables {
        inference_calls: count(FactTable::InferenceCalls)?,
        developer_decisions: count(FactTable::DeveloperDecisions)?,
        edit_observations: count(FactTable::EditObservations)?,
        rejected_edits: count(FactTable::RejectedEdits)?,
        retry_linkages: count(FactTable::RetryLinkages)?,
    })
}
