//! Tells which calls of a transaction are known from another source, or from their own.
//!
//! A gateway, a client's log, a span and a transcript may each send one call, in any order. The call
//! that is stored first stands, and gathers the keys that the others know. Two calls that a gateway
//! sends are told apart by its own ids, as ever; keys only tell what other sources have.

use std::collections::HashMap;

use svc_engine_fact::CallKeyKind;
use svc_model::id::{FactId, OrgId};
use svc_model::usage::CallSource;

use super::content::Encoded;
use crate::pack::call_key::{self, KeyHash, StoredKey};
use crate::pack::column;
use crate::pack::content_key::{ContentHash, ContentRef};
use crate::pack::id_list;
use crate::read::contents::{HASHES, hashes};
use crate::sql::connection::{Connection, Insert, Lookup};
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::Value;

/// How many keys a call may gather.
const KEYS_MAX: usize = 16;

const BY_KEY: Lookup<'_> = Lookup {
    select: "SELECT key, kind, inference_call_id, primary_key, others FROM call_keys WHERE key",
    then: "",
};
const BY_ID: Lookup<'_> = Lookup {
    select: "SELECT inference_call_id, capture_source, output_contents FROM inference_calls
        WHERE inference_call_id",
    then: "",
};
const INSERT: Insert = Insert {
    into: "INSERT INTO call_keys (key, kind, inference_call_id, primary_key, others)",
    columns: 5,
    then: "ON CONFLICT DO NOTHING",
    returning: "CAST(0 AS BIGINT), key",
    unique: 0,
    is_row_number: false,
};
const GATHER: &str = "UPDATE call_keys SET others = $1 WHERE key = $2";

/// A call that has keys.
#[derive(Debug)]
struct KeyedCall {
    holder: Holder,
    source: CallSource,
    /// What its source identifies it by.
    primary: StoredKey,
    others: Vec<StoredKey>,
    /// How many of the others are stored.
    stored: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Holder {
    /// It is stored, with this answer.
    Stored(FactId, Vec<i64>),
    /// It is at this place among the calls of the transaction.
    New(usize),
}

/// What becomes of a call by its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyVerdict {
    /// No other call has a key of it.
    New,
    /// It is this stored call.
    Stored(FactId),
    /// It is the call at this place of the transaction.
    Same(usize),
    /// It is a call of its own, although another call has a key of it.
    Apart,
}

/// The calls whose keys a transaction names: those that are stored, and its own.
#[derive(Debug, Default)]
pub(crate) struct CallKeys {
    calls: Vec<KeyedCall>,
    /// The index of the call of each key.
    by_key: HashMap<KeyHash, usize>,
}

impl CallKeys {
    /// Finds the stored calls that have a key of a call of the transaction.
    pub(crate) fn find(
        connection: &mut Connection,
        org_id: &OrgId,
        calls: &[&Encoded],
    ) -> Result<Self, StoreError> {
        let keys: Vec<StoredKey> = calls.iter().flat_map(|call| keys(org_id, call)).collect();
        let mut found = Self::default();
        let mut rows = Vec::new();
        look_up(connection, keys.iter().map(|key| &key.hash), &mut rows)?;
        if rows.is_empty() {
            return Ok(found);
        }
        let primary: Vec<KeyHash> = rows.iter().filter_map(|row| row.primary).collect();
        look_up(connection, primary.iter(), &mut rows)?;
        let ids: Vec<Value<'_>> = rows.iter().map(|row| row.fact_id.into()).collect();
        let mut sources = HashMap::new();
        connection.lookup(&BY_ID, &[], &ids, |row| {
            let source = row.optional_text(1)?;
            let source = source.as_deref().and_then(column::source_of_letter);
            let output = row.with_blob(2, id_list::read_ids)??;
            let source = source.unwrap_or(CallSource::Gateway);
            sources.insert(row.fact_id(0)?, (source, output));
            Ok(())
        })?;
        for row in rows.into_iter().filter(|row| row.primary.is_none()) {
            if let Some((source, output)) = sources.remove(&row.fact_id) {
                found.add(KeyedCall {
                    holder: Holder::Stored(row.fact_id, output),
                    source,
                    primary: row.key,
                    stored: row.others.len(),
                    others: row.others,
                });
            }
        }
        Ok(found)
    }

    fn add(&mut self, call: KeyedCall) {
        let place = self.calls.len();
        for key in [&call.primary].into_iter().chain(&call.others) {
            self.by_key.entry(key.hash).or_insert(place);
        }
        self.calls.push(call);
    }

    /// Returns what becomes of the call at a place, and remembers its keys. `calls` are those of the
    /// transaction.
    pub(crate) fn verdict(
        &mut self,
        connection: &mut Connection,
        org_id: &OrgId,
        calls: &[&Encoded],
        place: usize,
    ) -> Result<KeyVerdict, StoreError> {
        let encoded = calls[place];
        let source = encoded.call.capture_source;
        let keys = keys(org_id, encoded);
        let mut known: Vec<usize> = keys
            .iter()
            .filter_map(|key| self.by_key.get(&key.hash).copied())
            .collect();
        known.sort_unstable();
        known.dedup();
        let repeated = known
            .iter()
            .find(|call| self.calls[**call].is_repeated_by(source, &keys));
        let same = match (repeated, known.as_slice()) {
            (_, []) => None,
            (Some(repeated), _) => Some(*repeated),
            // What a gateway sends twice has been told apart already.
            (None, [one]) if source == CallSource::Gateway => {
                (self.calls[*one].source != source).then_some(*one)
            }
            (None, [one]) => {
                let other = &self.calls[*one];
                let is_same = other.source != source
                    || has_answer_of(connection, &other.holder, calls, encoded)?;
                is_same.then_some(*one)
            }
            (None, _) => None,
        };
        let Some(same) = same else {
            self.claim(place, source, &keys);
            let is_apart = !known.is_empty() && source != CallSource::Gateway;
            return Ok(if is_apart {
                KeyVerdict::Apart
            } else {
                KeyVerdict::New
            });
        };
        if self.calls[same].source != source {
            self.gather(same, &keys);
        }
        Ok(match &self.calls[same].holder {
            Holder::Stored(fact_id, _) => KeyVerdict::Stored(*fact_id),
            Holder::New(place) => KeyVerdict::Same(*place),
        })
    }

    /// Gives a new call those of its keys that no other call has.
    fn claim(&mut self, place: usize, source: CallSource, keys: &[StoredKey]) {
        let is_free = |key: &&StoredKey| !self.by_key.contains_key(&key.hash);
        let mut free = keys.iter().filter(is_free).copied();
        if let Some(primary) = free.next() {
            let others = free.collect();
            self.add(KeyedCall {
                holder: Holder::New(place),
                source,
                primary,
                others,
                stored: 0,
            });
        }
    }

    /// Gives a call the keys that another source knows of it.
    fn gather(&mut self, place: usize, keys: &[StoredKey]) {
        let call = &mut self.calls[place];
        for key in keys {
            let is_known = self.by_key.contains_key(&key.hash);
            if !is_known && call.others.len() + 1 < KEYS_MAX {
                self.by_key.insert(key.hash, place);
                call.others.push(*key);
            }
        }
    }

    /// Writes the keys that are new. `stored` returns the id under which the call at a place of the
    /// transaction is stored, if it is.
    ///
    /// # Errors
    ///
    /// [`StoreError::SameCall`] if another server has stored a call with one of the keys since they
    /// were looked up.
    pub(crate) fn write(
        &self,
        connection: &mut Connection,
        stored: impl Fn(usize) -> Option<FactId>,
    ) -> Result<(), StoreError> {
        let mut rows: Vec<Value<'_>> = Vec::new();
        let mut gathered = Vec::new();
        for call in &self.calls {
            let (fact_id, is_new) = match call.holder {
                Holder::Stored(fact_id, _) => (Some(fact_id), false),
                Holder::New(place) => (stored(place), true),
            };
            let Some(fact_id) = fact_id.filter(|_| is_new || call.others.len() > call.stored)
            else {
                continue;
            };
            let others = call_key::write_list(&call.others);
            let others = Some(others).filter(|others| !others.is_empty());
            if is_new {
                let others = others.map_or(Value::Null, Value::OwnBlob);
                rows.extend(row(&call.primary, fact_id, Value::Null, others));
            } else if let Some(others) = others {
                gathered.push((others, &call.primary.hash));
            }
            for key in &call.others[call.stored..] {
                rows.extend(row(
                    key,
                    fact_id,
                    Value::Blob(&call.primary.hash),
                    Value::Null,
                ));
            }
        }
        let new = connection.put(&INSERT, rows.chunks_exact(INSERT.columns))?;
        if new < (rows.len() / INSERT.columns) as u64 {
            return Err(StoreError::SameCall);
        }
        for (others, key) in &gathered {
            connection.execute(GATHER, &[Value::Blob(others), Value::Blob(*key)])?;
        }
        Ok(())
    }
}

impl KeyedCall {
    /// Returns whether a call of this source with these keys is this one, sent again: its first key
    /// is the first of this one, and no other id contradicts that.
    fn is_repeated_by(&self, source: CallSource, keys: &[StoredKey]) -> bool {
        const TELLING: [CallKeyKind; 3] =
            [CallKeyKind::Request, CallKeyKind::Client, CallKeyKind::Span];
        let own = |kind| self.others.iter().find(|key| key.kind == kind);
        let contradicts = |key: &StoredKey| {
            TELLING.contains(&key.kind) && own(key.kind).is_some_and(|own| own != key)
        };
        source == self.source
            && source != CallSource::Gateway
            && keys.first() == Some(&self.primary)
            && !keys[1..].iter().any(contradicts)
    }
}

fn keys(org_id: &OrgId, encoded: &Encoded) -> Vec<StoredKey> {
    let keys = encoded.call.keys.iter();
    keys.map(|key| StoredKey::of(org_id, key)).collect()
}

fn row<'v>(
    key: &'v StoredKey,
    fact_id: FactId,
    primary: Value<'v>,
    others: Value<'v>,
) -> [Value<'v>; INSERT.columns] {
    [
        Value::Blob(&key.hash),
        call_key::letter(key.kind).into(),
        fact_id.into(),
        primary,
        others,
    ]
}

/// A row of the table of keys.
struct KeyRow {
    key: StoredKey,
    fact_id: FactId,
    primary: Option<KeyHash>,
    others: Vec<StoredKey>,
}

fn look_up<'k>(
    connection: &mut Connection,
    keys: impl Iterator<Item = &'k KeyHash>,
    rows: &mut Vec<KeyRow>,
) -> Result<(), StoreError> {
    let is_known = |key: &&KeyHash| !rows.iter().any(|row| row.key.hash == **key);
    let mut keys: Vec<&KeyHash> = keys.filter(is_known).collect();
    keys.sort_unstable();
    keys.dedup();
    let keys: Vec<Value<'_>> = keys.into_iter().map(|key| Value::Blob(key)).collect();
    let damaged = |what| corrupt("call_keys", what);
    connection.lookup(&BY_KEY, &[], &keys, |row| {
        let hash = |bytes: Vec<u8>| KeyHash::try_from(bytes).map_err(|_| damaged("a key"));
        let key = StoredKey {
            hash: hash(row.blob(0)?)?,
            kind: call_key::kind_of_letter(&row.text(1)?).ok_or(damaged("kind"))?,
        };
        let others = row.optional_blob(4)?.unwrap_or_default();
        rows.push(KeyRow {
            key,
            fact_id: row.fact_id(2)?,
            primary: row.optional_blob(3)?.map(hash).transpose()?,
            others: call_key::read_list(&others).ok_or(damaged("others"))?,
        });
        Ok(())
    })
}

/// Returns whether a known call has the answer of another. A call whose content was erased has none
/// to compare, and does not come back.
fn has_answer_of(
    connection: &mut Connection,
    known: &Holder,
    calls: &[&Encoded],
    encoded: &Encoded,
) -> Result<bool, StoreError> {
    let stored = match known {
        Holder::Stored(_, output) if output.is_empty() => return Ok(true),
        Holder::Stored(_, output) => output.clone(),
        Holder::New(_) => Vec::new(),
    };
    let of_new: &[ContentRef] = match known {
        Holder::Stored(..) => &[],
        Holder::New(place) => &calls[*place].output.contents,
    };
    let sent = &encoded.output.contents;
    let id = |content: &ContentRef| match content {
        ContentRef::Known(id) => Some(*id),
        ContentRef::New(_) => None,
    };
    let ids = stored.iter().copied();
    let ids = ids.chain(of_new.iter().chain(sent).filter_map(id));
    let hashes = hashes(connection, &HASHES, ids)?;
    let hash = |content: &ContentRef| -> Option<ContentHash> {
        match content {
            ContentRef::Known(id) => hashes.get(id).copied(),
            ContentRef::New(new) => Some(new.key.hash),
        }
    };
    let of_known = stored.iter().map(|id| hashes.get(id).copied());
    Ok(of_known
        .chain(of_new.iter().map(hash))
        .eq(sent.iter().map(hash)))
}
