//! Halves of calls: they arrive, wait for each other, and are settled. They are no facts.
//!
//! Everything here runs while the row of the organization is locked, so the halves of a Session are
//! settled by one server at a time. Whoever settles them says which halves it knew of; if others
//! have come or gone since, nothing is settled.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use svc_engine_fact::HalfKey;
use svc_model::id::{OrgId, SessionId};
use svc_model::time::Instant;

use super::store::Store;
use super::transaction::{self, Transaction};
use crate::pack::half::{PieceKey, piece_keys};
use crate::sql::connection::{Connection, Insert, Lookup};
use crate::sql::error::StoreError;
use crate::sql::value::Value;
use crate::table::halves::{PreparedHalf, WIDTH, half_key};

const KNOWN: Lookup<'_> = Lookup {
    select: "SELECT half_key FROM call_halves WHERE half_key",
    then: "",
};
const PUT_HALVES: Insert = Insert {
    into: "INSERT INTO call_halves (half_key, org_id, session_id, state, side, occurred_at_us, sequence,
        captured_at_us, due_at_us, byte_count, query_source, model, prompt_id, user_id, request_id,
        outline, pieces, body)",
    columns: WIDTH,
    then: "",
    returning: "state, half_key",
    unique: 0,
    is_row_number: true,
};
const PUT_PIECES: Insert = Insert {
    into: "INSERT INTO half_pieces (piece, org_id, session_id, bytes)",
    columns: 4,
    then: "ON CONFLICT DO NOTHING",
    returning: "CAST(0 AS BIGINT), piece",
    unique: 0,
    is_row_number: true,
};
const ADD: &str = "INSERT INTO half_totals (org_id, halves, byte_count) VALUES ($1, $2, $3)
    ON CONFLICT (org_id) DO UPDATE SET halves = half_totals.halves + excluded.halves,
        byte_count = half_totals.byte_count + excluded.byte_count";
const OPEN_OF_SESSION: &str = "SELECT half_key, byte_count, pieces FROM call_halves
    WHERE session_id = $1 AND org_id = $2 AND state = 0";
/// Empties halves, up to their keys.
const SETTLE: Lookup<'_> = Lookup {
    select: "UPDATE call_halves SET state = 2, due_at_us = $1, byte_count = 0, query_source = '',
            model = NULL, prompt_id = NULL, user_id = NULL, request_id = NULL, outline = NULL,
            pieces = NULL, body = NULL
        WHERE half_key",
    then: "",
};
const BEAR_WITNESS: &str = "UPDATE call_halves SET state = 1, due_at_us = $1, byte_count = 0,
        request_id = NULL, pieces = NULL, body = NULL
    WHERE half_key = $2";
const DELETE_PIECES: Lookup<'_> = Lookup {
    select: "DELETE FROM half_pieces WHERE piece",
    then: " RETURNING CAST(OCTET_LENGTH(bytes) AS BIGINT)",
};
const POSTPONE: &str = "UPDATE call_halves SET due_at_us = $4
    WHERE session_id = $1 AND org_id = $2 AND state = 0 AND due_at_us <= $3";
const DUE: &str = "SELECT half_key, session_id, state FROM call_halves
    WHERE (org_id || '') = $1 AND due_at_us <= $2 AND state > 0 ORDER BY due_at_us LIMIT 1000";
const HAS_OPEN: Lookup<'_> = Lookup {
    select: "SELECT session_id FROM call_halves WHERE org_id = $1 AND state = 0 AND session_id",
    then: "",
};
const KEEP: Lookup<'_> = Lookup {
    select: "UPDATE call_halves SET due_at_us = $1 WHERE half_key",
    then: "",
};
const DELETE: Lookup<'_> = Lookup {
    select: "DELETE FROM call_halves WHERE half_key",
    then: " RETURNING CAST(COALESCE(OCTET_LENGTH(body), 0) AS BIGINT)",
};

/// What is settled of the halves of a Session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledHalves {
    /// The Session.
    pub session_id: SessionId,
    /// All open halves that were known. If there are others, or fewer, nothing is settled.
    pub open: Vec<HalfKey>,
    /// The halves that are settled.
    pub settled: Vec<HalfKey>,
    /// Of these, the request by which others may still be told apart.
    pub witness: Option<HalfKey>,
    /// Until when it may be.
    pub witness_until: Instant,
    /// Until when a redelivery is recognised at least.
    pub remembered_until: Instant,
}

/// Stores halves that are not known.
pub(crate) fn receive(
    transaction: &mut Transaction<'_>,
    halves: &[&PreparedHalf],
) -> Result<(), StoreError> {
    if halves.is_empty() {
        return Ok(());
    }
    let org_id = transaction.org_id;
    let connection = &mut *transaction.connection;
    let mut known = HashSet::new();
    let keys: Vec<Value<'_>> = halves.iter().map(|half| Value::Blob(&half.key)).collect();
    connection.lookup(&KNOWN, &[], &keys, |row| {
        known.insert(half_key(row, 0)?);
        Ok(())
    })?;
    let new = halves.iter().filter(|half| known.insert(half.key));
    let new: Vec<&&PreparedHalf> = new.collect();
    let pieces = new.iter().flat_map(|half| &half.pieces);
    let pieces: BTreeMap<&PieceKey, &Vec<Value<'static>>> =
        pieces.map(|(key, row)| (key, row)).collect();
    connection.put(&PUT_PIECES, pieces.into_values().map(Vec::as_slice))?;
    connection.put(&PUT_HALVES, new.iter().map(|half| half.row.as_slice()))?;
    let bytes = new.iter().map(|half| half.byte_count).sum();
    add(connection, org_id, new.len(), bytes, 1)
}

/// Adds to the number of open halves, or subtracts from it.
fn add(
    connection: &mut Connection,
    org_id: &OrgId,
    halves: usize,
    bytes: u64,
    sign: i64,
) -> Result<(), StoreError> {
    if halves == 0 {
        return Ok(());
    }
    let values = [
        org_id.as_str().into(),
        Value::Integer(sign * i64::try_from(halves).unwrap_or(i64::MAX)),
        Value::Integer(sign * i64::try_from(bytes).unwrap_or(i64::MAX)),
    ];
    connection.execute(ADD, &values).map(drop)
}

/// The open halves of a Session: the bytes and the pieces of each.
type OpenHalves = BTreeMap<HalfKey, (u64, Vec<PieceKey>)>;

fn open_of(
    connection: &mut Connection,
    org_id: &OrgId,
    session_id: &str,
) -> Result<OpenHalves, StoreError> {
    let keys = [Value::Text(session_id), org_id.as_str().into()];
    let open = connection.all(OPEN_OF_SESSION, &keys, |row| {
        let pieces = row.with_blob(2, piece_keys)??;
        Ok((half_key(row, 0)?, (row.count(1)?, pieces)))
    })?;
    Ok(open.into_iter().collect())
}

/// Settles halves.
///
/// # Errors
///
/// [`StoreError::HalvesChanged`] if the open halves of the Session are not those that were known.
pub(crate) fn settle(
    transaction: &mut Transaction<'_>,
    settled: &SettledHalves,
) -> Result<(), StoreError> {
    // What became of the halves is counted together with their end.
    transaction::count_alone(transaction)?;
    let org_id = transaction.org_id;
    let connection = &mut *transaction.connection;
    let mut open = open_of(connection, org_id, settled.session_id.as_str())?;
    let known: BTreeSet<&HalfKey> = settled.open.iter().collect();
    if !open.keys().eq(known) {
        return Err(StoreError::HalvesChanged);
    }
    let gone: Vec<(u64, Vec<PieceKey>)> = settled
        .settled
        .iter()
        .filter_map(|key| open.remove(key))
        .collect();
    let is_witness = |key: &&HalfKey| settled.witness.as_ref() == Some(key);
    let keys = settled.settled.iter().filter(|key| !is_witness(key));
    let keys: Vec<Value<'_>> = keys.map(|key| Value::Blob(key)).collect();
    connection.lookup(&SETTLE, &[settled.remembered_until.into()], &keys, |_| {
        Ok(())
    })?;
    if let Some(witness) = &settled.witness {
        let values = [settled.witness_until.into(), Value::Blob(witness)];
        connection.execute(BEAR_WITNESS, &values)?;
    }
    let bytes = gone.iter().map(|(bytes, _)| bytes).sum();
    add(connection, org_id, gone.len(), bytes, -1)?;
    let pieces = gone.into_iter().flat_map(|(_, pieces)| pieces).collect();
    delete_pieces(connection, pieces, &open).map(drop)
}

/// Deletes the pieces that no open half of the Session needs, and returns their stored bytes.
fn delete_pieces(
    connection: &mut Connection,
    mut pieces: BTreeSet<PieceKey>,
    open: &OpenHalves,
) -> Result<u64, StoreError> {
    for (_, needed) in open.values() {
        for piece in needed {
            pieces.remove(piece);
        }
    }
    let keys: Vec<Value<'_>> = pieces.iter().map(|key| Value::Blob(key)).collect();
    let mut bytes = 0;
    connection.lookup(&DELETE_PIECES, &[], &keys, |row| {
        bytes += row.count(0)?;
        Ok(())
    })?;
    Ok(bytes)
}

/// Deletes halves of a Session, whatever became of them, and returns their stored bytes.
pub(crate) fn delete(
    connection: &mut Connection,
    org_id: &OrgId,
    session_id: &str,
    halves: &[HalfKey],
) -> Result<u64, StoreError> {
    let mut open = open_of(connection, org_id, session_id)?;
    let gone: Vec<(u64, Vec<PieceKey>)> =
        halves.iter().filter_map(|key| open.remove(key)).collect();
    let keys: Vec<Value<'_>> = halves.iter().map(|key| Value::Blob(key)).collect();
    let mut stored = 0;
    connection.lookup(&DELETE, &[], &keys, |row| {
        stored += row.count(0)?;
        Ok(())
    })?;
    let bytes = gone.iter().map(|(bytes, _)| bytes).sum();
    add(connection, org_id, gone.len(), bytes, -1)?;
    let pieces = gone.into_iter().flat_map(|(_, pieces)| pieces).collect();
    Ok(stored + delete_pieces(connection, pieces, &open)?)
}

impl Store {
    /// Makes the open halves of a Session that are due at a moment due later.
    ///
    /// # Errors
    ///
    /// If it was not written. This holds for both methods here.
    pub fn postpone_halves(
        &self,
        session_id: &SessionId,
        now: Instant,
        due_at: Instant,
    ) -> Result<(), StoreError> {
        let session_id = session_id.clone();
        self.writer.run_blocking(move |transaction| {
            let values = [
                session_id.as_str().into(),
                transaction.org_id.as_str().into(),
                now.into(),
                due_at.into(),
            ];
            transaction.connection.execute(POSTPONE, &values).map(drop)
        })
    }

    /// Forgets what is no longer needed of settled halves: first the outlines of witnesses, later the
    /// keys. The keys of a Session with open halves are kept until `kept_until`.
    pub fn forget_halves(
        &self,
        now: Instant,
        remembered_until: Instant,
        kept_until: Instant,
    ) -> Result<(), StoreError> {
        self.writer
            .run_blocking(move |transaction| forget(transaction, now, remembered_until, kept_until))
    }
}

fn forget(
    transaction: &mut Transaction<'_>,
    now: Instant,
    remembered_until: Instant,
    kept_until: Instant,
) -> Result<(), StoreError> {
    let (connection, org_id) = (&mut *transaction.connection, transaction.org_id.as_str());
    let due = connection.all(DUE, &[org_id.into(), now.into()], |row| {
        Ok((half_key(row, 0)?, row.text(1)?, row.integer(2)?))
    })?;
    let sessions: BTreeSet<&str> = due.iter().map(|(_, session_id, _)| &**session_id).collect();
    let sessions: Vec<Value<'_>> = sessions.into_iter().map(Value::Text).collect();
    let mut has_open = HashSet::new();
    connection.lookup(&HAS_OPEN, &[org_id.into()], &sessions, |row| {
        has_open.insert(row.text(0)?);
        Ok(())
    })?;
    let keys = |is_meant: &dyn Fn(bool, bool) -> bool| -> Vec<Value<'_>> {
        due.iter()
            .filter(|(_, session_id, state)| is_meant(*state == 1, has_open.contains(session_id)))
            .map(|(key, ..)| Value::Blob(key))
            .collect()
    };
    let witnesses = keys(&|is_witness, _| is_witness);
    let kept = keys(&|is_witness, has_open| !is_witness && has_open);
    let forgotten = keys(&|is_witness, has_open| !is_witness && !has_open);
    connection.lookup(&SETTLE, &[remembered_until.into()], &witnesses, |_| Ok(()))?;
    connection.lookup(&KEEP, &[kept_until.into()], &kept, |_| Ok(()))?;
    connection.lookup(&DELETE, &[], &forgotten, |_| Ok(()))
}
