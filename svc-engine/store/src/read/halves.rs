//! Halves of calls that wait for each other.

use svc_engine_fact::{CallHalf, KeptHalf};
use svc_model::capture::PendingHalves;
use svc_model::id::SessionId;
use svc_model::json::Json;
use svc_model::time::Instant;

use super::snapshot::Snapshot;
use crate::pack::half::{PieceKey, piece_keys, put_pieces};
use crate::pack::packing;
use crate::sql::connection::Lookup;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::{Row, Value};
use crate::table::halves::{KEPT, kept};

const OF_SESSION: &str = "WHERE session_id = $1 AND org_id = $2 AND state < 2";
/// When the last half of a Session arrived, whatever became of it.
const LAST: &str = "SELECT MAX(latest) FROM (
        SELECT MAX(captured_at_us) AS latest FROM call_halves
            WHERE session_id = $1 AND org_id = $2 AND state = 0
        UNION ALL SELECT MAX(captured_at_us) FROM call_halves
            WHERE session_id = $1 AND org_id = $2 AND state = 1
        UNION ALL SELECT MAX(captured_at_us) FROM call_halves
            WHERE session_id = $1 AND org_id = $2 AND state = 2) AS latest_of_states";
const BODY: &str = "SELECT pieces, body FROM call_halves
    WHERE half_key = $1 AND org_id = $2 AND state = 0";
const PIECES: Lookup<'_> = Lookup {
    select: "SELECT piece, bytes FROM half_pieces WHERE piece",
    then: "",
};
const NEXT_DUE: &str = "SELECT due_at_us FROM call_halves WHERE (org_id || '') = $1
    ORDER BY due_at_us LIMIT 1";
const DUE: &str = "SELECT session_id, state FROM call_halves
    WHERE (org_id || '') = $1 AND due_at_us <= $2 ORDER BY due_at_us LIMIT 1000";
const TOTALS: &str = "SELECT halves, byte_count FROM half_totals WHERE org_id = $1";
const OLDEST: &str = "SELECT captured_at_us, session_id FROM call_halves
    WHERE (org_id || '') = $1 AND body IS NOT NULL ORDER BY captured_at_us LIMIT 1";

/// The halves that are due.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DueHalves {
    /// The Sessions whose halves may be settled, each once.
    pub sessions: Vec<SessionId>,
    /// Whether rows of settled halves are due.
    pub settled: bool,
}

impl Snapshot<'_> {
    /// Returns the open halves of a Session, and those by which others are told apart.
    ///
    /// # Errors
    ///
    /// If the store gives no answer before the deadline. This holds for every method here.
    pub fn kept_halves(&mut self, session_id: &SessionId) -> Result<Vec<KeptHalf>, StoreError> {
        let keys = [session_id.as_str().into(), self.org_id.as_str().into()];
        let text = format!("SELECT {KEPT} FROM call_halves {OF_SESSION}");
        self.connection()?.all(&text, &keys, kept)
    }

    /// Returns when the last half of a Session arrived.
    pub fn last_half_at(&mut self, session_id: &SessionId) -> Result<Option<Instant>, StoreError> {
        let keys = [session_id.as_str().into(), self.org_id.as_str().into()];
        let last = self.connection()?;
        let last = last.first(LAST, &keys, |row| row.optional_integer(0))?;
        Ok(last.flatten().and_then(Instant::from_microseconds))
    }

    /// Returns an open half with its body; `None` if it is no longer open.
    pub fn call_half(&mut self, half: &KeptHalf) -> Result<Option<CallHalf>, StoreError> {
        let keys = [Value::Blob(&half.outline.key), self.org_id.as_str().into()];
        let connection = self.connection()?;
        let found = connection.first(BODY, &keys, |row| Ok((row.blob(0)?, row.blob(1)?)))?;
        let Some((pieces, body)) = found else {
            return Ok(None);
        };
        let keys = piece_keys(&pieces)?;
        let mut body = json(&body)?
            .into_object()
            .ok_or(corrupt("call_halves", "body"))?;
        let found = self.half_pieces(&keys)?;
        let piece = |key: &PieceKey| {
            let place = found.binary_search_by_key(key, |(key, _)| *key);
            let (_, cell) = &found[place.map_err(|_| corrupt("half_pieces", "it is absent"))?];
            json(cell)
        };
        put_pieces(&mut body, keys.iter().map(piece))?;
        Ok(Some(CallHalf {
            outline: half.outline.clone(),
            body,
        }))
    }

    /// Returns pieces by their keys, sorted.
    fn half_pieces(&mut self, keys: &[PieceKey]) -> Result<Vec<(PieceKey, Vec<u8>)>, StoreError> {
        let mut wanted = keys.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        let wanted: Vec<Value<'_>> = wanted.iter().map(|key| Value::Blob(key)).collect();
        let mut found = Vec::with_capacity(wanted.len());
        self.connection()?.lookup(&PIECES, &[], &wanted, |row| {
            let key = row.with_blob(0, |key| PieceKey::try_from(key).ok())?;
            let key = key.ok_or(corrupt("half_pieces", "piece"))?;
            found.push((key, row.blob(1)?));
            Ok(())
        })?;
        found.sort_unstable();
        found.dedup_by_key(|(key, _)| *key);
        Ok(found)
    }

    /// Returns when the next half is due.
    pub fn next_half_due(&mut self) -> Result<Option<Instant>, StoreError> {
        let keys = [self.org_id.as_str().into()];
        self.connection()?.first(NEXT_DUE, &keys, moment)
    }

    /// Returns what is due at a moment. There may be more.
    pub fn due_halves(&mut self, now: Instant) -> Result<DueHalves, StoreError> {
        let keys = [self.org_id.as_str().into(), now.into()];
        let mut due = DueHalves::default();
        self.connection()?.each(DUE, &keys, |row| {
            let is_settled = row.integer(1)? > 0;
            due.settled |= is_settled;
            let session_id = row.with_text(0, |id| SessionId::new(id).ok())?;
            let session_id = session_id.ok_or(corrupt("call_halves", "session_id"))?;
            if row.integer(1)? < 2 && !due.sessions.contains(&session_id) {
                due.sessions.push(session_id);
            }
            Ok(())
        })?;
        Ok(due)
    }

    /// Returns how many halves wait; `None` before the first arrived.
    pub fn pending_halves(&mut self) -> Result<Option<PendingHalves>, StoreError> {
        let keys = [self.org_id.as_str().into()];
        let connection = self.connection()?;
        let counts = connection.first(TOTALS, &keys, |row| Ok((row.count(0)?, row.count(1)?)))?;
        let Some((count, bytes)) = counts else {
            return Ok(None);
        };
        let oldest_at = match count {
            0 => None,
            _ => connection.first(OLDEST, &keys, moment)?,
        };
        Ok(Some(PendingHalves {
            count,
            bytes,
            oldest_at,
        }))
    }

    /// Returns the Session of the half that has waited longest.
    pub fn session_of_oldest_half(&mut self) -> Result<Option<SessionId>, StoreError> {
        let keys = [self.org_id.as_str().into()];
        let oldest = self.connection()?;
        let oldest = oldest.first(OLDEST, &keys, |row| {
            row.with_text(1, |id| SessionId::new(id).ok())
        })?;
        Ok(oldest.flatten())
    }
}

fn moment(row: &Row<'_>) -> Result<Instant, StoreError> {
    Instant::from_microseconds(row.integer(0)?).ok_or(corrupt("call_halves", "a time"))
}

fn json(cell: &[u8]) -> Result<Json, StoreError> {
    let text = packing::of_cell(cell)?;
    Json::parse(&text).map_err(|_| corrupt("call_halves", "a body"))
}
