//! The commits that clients reported for Sessions: which are kept, and what becomes of them.
//!
//! A claim is open until the mirrors decide it, it is too old, or newer ones take its place. A claim
//! that is no longer open never changes again.

use std::collections::{BTreeSet, HashSet};

use svc_engine_fact::{CommitClaim, SessionCommitObservation};
use svc_model::id::{FactId, OrgId};
use svc_model::limit::OPEN_COMMIT_CLAIMS_MAX;
use svc_model::time::Instant;

use super::store::Store;
use super::traces::Traces;
use super::transaction::Transaction;
use crate::sql::connection::{Connection, Lookup};
use crate::sql::error::StoreError;
use crate::sql::value::Value;
use crate::table::record::Record as _;
use crate::table::row::NewRow;

/// Ends the claims that were open for too long.
const EXPIRE: &str = "UPDATE session_commit_claims SET state = 'expired'
    WHERE org_id = $1 AND state = 'open' AND captured_at_us <= $2";
/// Ends the oldest of too many open claims.
const EXPIRE_OLDEST: &str = "UPDATE session_commit_claims SET state = 'expired'
    WHERE claim_id IN (SELECT c.claim_id FROM session_commit_claims c
        WHERE c.org_id = $1 AND c.state = 'open'
        ORDER BY c.captured_at_us DESC, c.claim_id DESC LIMIT $3 OFFSET $2)";
const OPEN: Lookup<'_> = Lookup {
    select: "SELECT claim_id FROM session_commit_claims
        WHERE org_id = $1 AND state = 'open' AND claim_id",
    then: "",
};
const SETTLE: &str = "UPDATE session_commit_claims SET state = $3, resolved_observation_id = $4
    WHERE claim_id = $2 AND org_id = $1 AND state = 'open'";
/// The observation of a Session at a commit of a repository.
const OBSERVATION: &str = "SELECT observation_id FROM session_commit_observations
    WHERE commit_sha = $1 AND org_id = $2 AND session_id = $3
        AND COALESCE(repository_provider, '') = $4 AND COALESCE(repository_host, '') = $5
        AND COALESCE(repository_id, repo) = $6";

/// What became of an open claim.
#[derive(Clone, Debug)]
pub struct SettledClaim {
    /// The claim.
    pub claim_id: FactId,
    /// The observation that it became, which is among the facts of the same delivery; `None` if
    /// several commits fit. An observation that is already stored is the same fact.
    pub observation_id: Option<FactId>,
}

/// Inserts claims, and adds what the new ones leave in other tables.
pub(crate) fn insert<'r>(
    transaction: &mut Transaction<'_>,
    rows: &[&'r NewRow],
    traces: &mut Traces<'r>,
    captured_at: Instant,
) -> Result<(), StoreError> {
    let values = rows.iter().map(|row| row.values.as_slice());
    let connection = &mut *transaction.connection;
    let inserted = connection.insert(&CommitClaim::TABLE.insert, values)?;
    let new = rows.iter().zip(inserted).filter(|(_, new)| new.is_some());
    let new: Vec<&NewRow> = new.map(|(row, _)| *row).collect();
    if new.is_empty() {
        return Ok(());
    }
    for row in new {
        traces.row(CommitClaim::TABLE, row);
    }
    expire(connection, transaction.org_id, captured_at)?;
    let changes = &mut transaction.organization()?.changes;
    changes.captured_at = changes.captured_at.max(Some(captured_at));
    changes.counts_alone = true;
    Ok(())
}

/// Ends the claims that are too old at a moment, and the oldest beyond their limit.
fn expire(connection: &mut Connection, org_id: &OrgId, now: Instant) -> Result<(), StoreError> {
    let oldest = CommitClaim::too_old(now);
    connection.execute(EXPIRE, &[org_id.as_str().into(), oldest.into()])?;
    let values = [
        org_id.as_str().into(),
        OPEN_COMMIT_CLAIMS_MAX.into(),
        i64::MAX.into(),
    ];
    connection.execute(EXPIRE_OLDEST, &values).map(drop)
}

/// Removes what others have settled, and the observations for it, before anything is written.
pub(crate) fn retain_open(
    transaction: &mut Transaction<'_>,
    settled: &mut Vec<SettledClaim>,
) -> Result<HashSet<FactId>, StoreError> {
    let keys: Vec<Value<'_>> = settled.iter().map(|claim| claim.claim_id.into()).collect();
    let mut open = BTreeSet::new();
    let shared = [transaction.org_id.as_str().into()];
    transaction
        .connection
        .lookup(&OPEN, &shared, &keys, |row| {
            open.insert(row.fact_id(0)?);
            Ok(())
        })?;
    let (open, closed): (Vec<_>, Vec<_>) = std::mem::take(settled)
        .into_iter()
        .partition(|claim| open.contains(&claim.claim_id));
    *settled = open;
    Ok(closed
        .into_iter()
        .filter_map(|claim| claim.observation_id)
        .collect())
}

/// Settles an open claim. `observation` is the row of its observation, which is stored by now.
pub(crate) fn settle(
    transaction: &mut Transaction<'_>,
    claim_id: FactId,
    observation: Option<&NewRow>,
) -> Result<(), StoreError> {
    let connection = &mut *transaction.connection;
    let org_id = transaction.org_id;
    let stored = match observation {
        Some(row) => stored_observation(connection, org_id, row)?,
        None => None,
    };
    let state = match observation {
        Some(_) => "resolved",
        None => "ambiguous",
    };
    let values = [
        org_id.as_str().into(),
        claim_id.into(),
        state.into(),
        stored.map_or(Value::Null, Value::from),
    ];
    connection.execute(SETTLE, &values).map(drop)
}

/// Returns the stored observation with the natural key of a row.
fn stored_observation(
    connection: &mut Connection,
    org_id: &OrgId,
    row: &NewRow,
) -> Result<Option<FactId>, StoreError> {
    let text = |column| row.text(SessionCommitObservation::TABLE, column);
    let repository = text("repository_id").or_else(|| text("repo"));
    let keys = [
        text("commit_sha").unwrap_or_default().into(),
        org_id.as_str().into(),
        text("session_id").unwrap_or_default().into(),
        text("repository_provider").unwrap_or_default().into(),
        text("repository_host").unwrap_or_default().into(),
        repository.unwrap_or_default().into(),
    ];
    connection.first(OBSERVATION, &keys, |row| row.fact_id(0))
}

impl Store {
    /// Ends the claims that were open for too long, on a thread that may block.
    ///
    /// # Errors
    ///
    /// If the store cannot be written.
    pub fn expire_commit_claims(&self, now: Instant) -> Result<(), StoreError> {
        self.writer.run_blocking(move |transaction| {
            transaction.organization()?;
            expire(transaction.connection, transaction.org_id, now)
        })
    }
}
