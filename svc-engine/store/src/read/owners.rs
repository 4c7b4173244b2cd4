//! Which calls own an id: a call its own, and the ids of its tool calls.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use svc_model::id::{FactId, SessionId};
use svc_model::time::Instant;

use super::snapshot::Snapshot;
use crate::pack::column::Columns;
use crate::pack::model_call_id::ModelCallId;
use crate::sql::connection::Lookup;
use crate::sql::error::StoreError;
use crate::sql::value::Value;

/// A call owns an id: its own, or that of one of its tool calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedId {
    /// The id.
    pub call_id: String,
    /// The call.
    pub inference_call_id: FactId,
    /// Its Session.
    pub session_id: SessionId,
}

/// How many owners of an id are passed on. More would add nothing: nobody owns the id alone.
const OWNERS_MAX: usize = 2;
/// How many ids are looked up at once. If they have too many owners, [`IDS_AGAIN`] of them are, and
/// then one at a time: an agent may number its tool calls from the start in every answer.
const IDS_AT_ONCE: usize = 256;
const IDS_AGAIN: usize = 64;

/// Returns how many owners of this many ids are read at once.
const fn owners_at_once(ids: usize) -> usize {
    if ids == 1 { OWNERS_MAX } else { 16 * ids }
}

const OWNER_COLUMNS: [&str; 3] = ["call_id", "inference_call_id", "session_id"];
const BY_OWN_ID: Lookup<'_> = Lookup {
    select: "SELECT f.model_call_id, f.inference_call_id, f.session_id
        FROM visible_inference_calls f
        WHERE f.org_id = $1 AND f.observed_at_us + 0 <= $2 AND f.model_call_id IS NOT NULL
            AND f.model_call_id",
    then: " LIMIT $3",
};
const BY_ALIAS: Lookup<'_> = Lookup {
    select: "SELECT a.call_id, f.inference_call_id, f.session_id
        FROM call_aliases a
        JOIN visible_inference_calls f ON f.inference_call_id = a.inference_call_id
        WHERE a.org_id = $1 AND f.observed_at_us + 0 <= $2 AND a.call_id",
    then: " LIMIT $3",
};
/// This does not check whether the calls are visible: the caller already knows most of them.
const ALIASES: Lookup<'_> = Lookup {
    select: "SELECT a.call_id, a.inference_call_id FROM call_aliases a
        WHERE a.org_id = $1 AND a.call_id",
    then: " LIMIT $2",
};

/// Whose id names a call.
#[derive(Clone, Copy, Debug)]
enum IdOf {
    /// The model's id of the call itself.
    Call,
    /// The id of one of its tool calls.
    ToolCall,
}

impl IdOf {
    const fn lookup(self) -> &'static Lookup<'static> {
        match self {
            Self::Call => &BY_OWN_ID,
            Self::ToolCall => &BY_ALIAS,
        }
    }

    const fn table(self) -> &'static str {
        match self {
            Self::Call => "inference_calls",
            Self::ToolCall => "call_aliases",
        }
    }

    fn key(self, id: &str) -> Value<'_> {
        match self {
            Self::Call => ModelCallId::stored(id),
            Self::ToolCall => Value::Text(id),
        }
    }

    fn read(self, columns: &mut Columns<'_>) -> Result<String, StoreError> {
        match self {
            Self::Call => columns.next::<ModelCallId>().map(|id| id.0),
            Self::ToolCall => columns.next(),
        }
    }
}

impl Snapshot<'_> {
    /// Passes on which visible calls observed by a moment own these ids, at most two owners per id.
    /// `known` returns the Session of a call that is already known to be among these calls, so its
    /// Session is not read again.
    pub fn owners_of_ids<'k>(
        &mut self,
        call_ids: &[&str],
        observed_by: Instant,
        known: impl Fn(FactId) -> Option<&'k SessionId>,
        mut each: impl FnMut(OwnedId) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        for ids in call_ids.chunks(IDS_AT_ONCE) {
            let mut owned = self.owners_among(IdOf::Call, ids, observed_by)?;
            owned.extend(match self.known_owners(ids, &known)? {
                Some(owned) => owned,
                None => self.owners_among(IdOf::ToolCall, ids, observed_by)?,
            });
            let mut found: HashMap<&str, usize, RandomState> = HashMap::default();
            let is_passed_on: Vec<bool> = owned
                .iter()
                .map(|owned| {
                    let owners = found.entry(&owned.call_id).or_default();
                    *owners += 1;
                    *owners <= OWNERS_MAX
                })
                .collect();
            for (owned, is_passed_on) in owned.into_iter().zip(is_passed_on) {
                if is_passed_on {
                    each(owned)?;
                }
            }
        }
        Ok(())
    }

    /// Returns who owns these ids as ids of tool calls, if every one of these calls is known.
    fn known_owners<'k>(
        &mut self,
        call_ids: &[&str],
        known: impl Fn(FactId) -> Option<&'k SessionId>,
    ) -> Result<Option<Vec<OwnedId>>, StoreError> {
        let rows_max = owners_at_once(call_ids.len());
        let shared = [
            self.org_id.as_str().into(),
            i64::try_from(rows_max).unwrap_or(i64::MAX).into(),
        ];
        let keys: Vec<Value<'_>> = call_ids.iter().map(|id| Value::Text(id)).collect();
        let mut owned = Vec::new();
        let mut rows = 0;
        self.connection()?
            .lookup_many(&ALIASES, &shared, &keys, |row| {
                rows += 1;
                let mut columns = Columns::of(row, "call_aliases", &OWNER_COLUMNS);
                let call_id = columns.next()?;
                let inference_call_id = columns.next()?;
                owned.extend(known(inference_call_id).map(|session_id| OwnedId {
                    call_id,
                    inference_call_id,
                    session_id: session_id.clone(),
                }));
                Ok(())
            })?;
        Ok((owned.len() == rows && rows < rows_max).then_some(owned))
    }

    /// Returns who owns these ids.
    fn owners_among(
        &mut self,
        of: IdOf,
        call_ids: &[&str],
        observed_by: Instant,
    ) -> Result<Vec<OwnedId>, StoreError> {
        let rows_max = owners_at_once(call_ids.len());
        let shared = [
            self.org_id.as_str().into(),
            observed_by.into(),
            i64::try_from(rows_max).unwrap_or(i64::MAX).into(),
        ];
        let keys: Vec<Value<'_>> = call_ids.iter().map(|id| of.key(id)).collect();
        let mut owned = Vec::new();
        self.connection()?
            .lookup_many(of.lookup(), &shared, &keys, |row| {
                let mut columns = Columns::of(row, of.table(), &OWNER_COLUMNS);
                owned.push(OwnedId {
                    call_id: of.read(&mut columns)?,
                    inference_call_id: columns.next()?,
                    session_id: columns.next()?,
                });
                Ok(())
            })?;
        if owned.len() >= rows_max && call_ids.len() > 1 {
            // Some of these ids may have any number of owners.
            owned.clear();
            let part = if call_ids.len() > IDS_AGAIN {
                IDS_AGAIN
            } else {
                1
            };
            for ids in call_ids.chunks(part) {
                owned.extend(self.owners_among(of, ids, observed_by)?);
            }
        }
        Ok(owned)
    }
}
