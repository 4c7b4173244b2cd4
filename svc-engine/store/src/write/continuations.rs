//! The Sessions that continue other Sessions.
//!
//! An agent that resumes, branches or forks a Session writes its earlier calls again under a new one.
//! They are stored once, and it is kept which Session continues which, and at which call. Nothing here
//! is a fact.

use std::collections::BTreeMap;

use svc_engine_fact::SessionContinuation;
use svc_model::id::{FactId, OrgId, SessionId};
use svc_model::time::Instant;

use super::sessions::Sighting;
use super::traces::Traces;
use super::transaction::Transaction;
use crate::pack::call_key::StoredKey;
use crate::sql::connection::Connection;
use crate::sql::error::StoreError;
use crate::sql::value::{Row, Value};

/// How many Sessions before a Session are looked into.
const STEPS_MAX: usize = 32;

const CONTINUED: &str = "SELECT continues_session_id FROM session_continuations
    WHERE session_id = $1 AND org_id = $2 ORDER BY continues_session_id";
const BY_KEY: &str = "SELECT inference_call_id FROM call_keys WHERE key = $1";
/// The last call that is known of two Sessions, and when it was observed.
const LAST: &str = "SELECT c.inference_call_id, f.observed_at_us FROM session_continuations c
    LEFT JOIN inference_calls f ON f.inference_call_id = c.inference_call_id
    WHERE c.session_id = $1 AND c.continues_session_id = $2 AND c.org_id = $3";
const OBSERVED: &str = "SELECT f.observed_at_us, (SELECT e.fact_id FROM erased_facts e
        WHERE e.session_id = f.session_id AND e.org_id = f.org_id
            AND e.fact_table = 'inference_calls' AND e.fact_id = f.inference_call_id)
    FROM all_inference_calls f WHERE f.inference_call_id = $1";
const PUT: &str = "INSERT INTO session_continuations
        (org_id, session_id, continues_session_id, inference_call_id, captured_at_us)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (session_id, continues_session_id, org_id)
        DO UPDATE SET inference_call_id = excluded.inference_call_id";

/// Returns the Sessions that a Session continues, the nearest first.
pub(crate) fn continued_by(
    connection: &mut Connection,
    org_id: &OrgId,
    session_id: &SessionId,
) -> Result<Vec<SessionId>, StoreError> {
    let mut found = vec![session_id.clone()];
    let mut next = 0;
    while let Some(session_id) = found.get(next).filter(|_| next < STEPS_MAX) {
        let keys = [session_id.as_str().into(), org_id.as_str().into()];
        for continued in connection.all(CONTINUED, &keys, |row| row.text(0))? {
            if let Ok(continued) = SessionId::new(&continued)
                && !found.contains(&continued)
            {
                found.push(continued);
            }
        }
        next += 1;
    }
    found.remove(0);
    Ok(found)
}

/// A call that the agent of another Session copied to its own.
#[derive(Debug)]
pub(crate) struct CopiedCall {
    /// The Session that has the copy.
    pub(crate) session_id: SessionId,
    /// The Session of the call.
    pub(crate) continues: String,
    /// When the copy says that the call was observed.
    pub(crate) observed_at: Instant,
    /// The call.
    pub(crate) fact_id: FactId,
}

/// What was seen of a Session that continues another one.
struct Seen<'c> {
    last: Option<FactId>,
    observed_at: Instant,
    session_id: &'c str,
}

/// Keeps which Sessions continue which: as their calls show, and as senders say.
pub(crate) fn write<'c>(
    transaction: &mut Transaction<'_>,
    copied: &'c [CopiedCall],
    said: &[&'c SessionContinuation],
    traces: &mut Traces<'c>,
    captured_at: Instant,
) -> Result<(), StoreError> {
    let mut seen: BTreeMap<(&str, &str), Vec<Seen<'c>>> = BTreeMap::new();
    for call in copied {
        let session_id = call.session_id.as_str();
        let pair = (session_id, call.continues.as_str());
        seen.entry(pair).or_default().push(Seen {
            last: Some(call.fact_id),
            observed_at: call.observed_at,
            session_id,
        });
    }
    for continuation in said {
        let last = match &continuation.last {
            Some(key) => {
                let key = StoredKey::of(transaction.org_id, key);
                let keys = [Value::Blob(&key.hash)];
                transaction
                    .connection
                    .first(BY_KEY, &keys, |row| row.fact_id(0))?
            }
            None => None,
        };
        let session_id = continuation.session_id.as_str();
        let pair = (session_id, continuation.continues_session_id.as_str());
        seen.entry(pair).or_default().push(Seen {
            last,
            observed_at: continuation.observed_at,
            session_id,
        });
    }
    for ((session_id, continues), seen) in seen {
        if keep(transaction, session_id, continues, &seen, captured_at)? {
            for seen in &seen {
                traces.sessions.add(&Sighting {
                    session_id: seen.session_id,
                    user_id: None,
                    observed_at: seen.observed_at,
                    model: None,
                    agent_harness: None,
                    repo: None,
                });
            }
            let changes = &mut transaction.organization()?.changes;
            changes.captured_at = changes.captured_at.max(Some(captured_at));
            changes.counts_alone = true;
        }
    }
    Ok(())
}

/// Keeps that a Session continues another one, at the last call that was seen of both. Returns
/// whether that is new.
fn keep(
    transaction: &mut Transaction<'_>,
    session_id: &str,
    continues: &str,
    seen: &[Seen<'_>],
    captured_at: Instant,
) -> Result<bool, StoreError> {
    let org_id = transaction.org_id.as_str();
    let connection = &mut *transaction.connection;
    let pair = [session_id.into(), continues.into(), org_id.into()];
    let read = |row: &Row<'_>| {
        let call = row.optional_blob(0)?.map(|_| row.fact_id(0)).transpose()?;
        Ok((row.optional_integer(1)?, call))
    };
    let known = connection.first(LAST, &pair, read)?;
    let mut last = known.and_then(|(observed_at, call)| Some((observed_at, call?)));
    let mut is_erased = false;
    for call in seen.iter().filter_map(|seen| seen.last) {
        let read = |row: &Row<'_>| Ok((row.integer(0)?, row.optional_blob(1)?.is_some()));
        let found = connection.first(OBSERVED, &[call.into()], read)?;
        match found {
            // What both Sessions had is gone.
            Some((_, true)) => is_erased = true,
            Some((observed_at, false)) => last = last.max(Some((Some(observed_at), call))),
            None => {}
        }
    }
    let is_known = known.is_some();
    let last = last.map(|(_, call)| call);
    if (is_known && known.and_then(|(_, call)| call) == last) || (is_erased && last.is_none()) {
        return Ok(false);
    }
    let values = [
        org_id.into(),
        session_id.into(),
        continues.into(),
        last.map_or(Value::Null, Value::from),
        captured_at.into(),
    ];
    connection.execute(PUT, &values)?;
    Ok(true)
}
