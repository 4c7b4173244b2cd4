//! Tells which calls of a transaction are known from another source, or from their own.
//!
//! A gateway, a client's log, a span and a transcript may each send one call, in any order. The call
//! that is stored first stands, and gathers the keys that the others know. Two calls that a gateway
//! sends are told apart by its own ids, as ever; keys only tell what other sources have.

use std::collections::HashMap;

use svc_engine_fact::{CallKey, CallKeyKind, ContinuedInput};
use svc_model::id::{FactId, OrgId, SessionId};
use svc_model::usage::CallSource;

use super::content::Encoded;
use super::continuations;
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
    select: "SELECT inference_call_id, capture_source, output_contents, session_id
        FROM all_inference_calls WHERE inference_call_id",
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
    session_id: String,
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

/// A call that is known by a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownCall {
    /// It is stored.
    Stored(FactId),
    /// It is at this place among the calls of the transaction.
    New(usize),
}

/// What becomes of a call by its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyVerdict {
    /// No other call has a key of it.
    New,
    /// It is this call.
    Same(KnownCall),
    /// It is this call of another Session, which its own Session continues.
    Copied(KnownCall, String),
    /// It is a call of its own, although another call has a key of it.
    Apart,
    /// It has keys of several calls of its Session.
    Conflict,
}

/// The calls whose keys a transaction names: those that are stored, and its own.
#[derive(Debug, Default)]
pub(crate) struct CallKeys {
    calls: Vec<KeyedCall>,
    /// The index of the call of each key.
    by_key: HashMap<KeyHash, usize>,
    /// The Sessions that Sessions continue, as far as that was looked up.
    continued_by: HashMap<SessionId, Vec<SessionId>>,
}

impl CallKeys {
    /// Finds the stored calls that have a key of a call of the transaction.
    pub(crate) fn find(
        connection: &mut Connection,
        org_id: &OrgId,
        calls: &[&Encoded],
    ) -> Result<Self, StoreError> {
        let own = calls.iter().flat_map(|call| keys(org_id, call));
        let continued = calls.iter().filter_map(|call| call.continued.as_ref());
        let continued = continued.flat_map(|input| input.own_keys().chain([input.response_key()]));
        let continued = continued.map(|key| StoredKey::of(org_id, &key));
        let mut keys: Vec<KeyHash> = own.chain(continued).map(|key| key.hash).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut found = Self::default();
        found.load(connection, &keys)?;
        Ok(found)
    }

    /// Adds the stored calls that have one of these keys.
    fn load(&mut self, connection: &mut Connection, keys: &[KeyHash]) -> Result<(), StoreError> {
        let mut rows = Vec::new();
        look_up(connection, keys.iter(), &mut rows)?;
        if rows.is_empty() {
            return Ok(());
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
            let session_id = row.optional_text(3)?.unwrap_or_default();
            sources.insert(row.fact_id(0)?, (source, output, session_id));
            Ok(())
        })?;
        for row in rows.into_iter().filter(|row| row.primary.is_none()) {
            if let Some((source, output, session_id)) = sources.remove(&row.fact_id) {
                self.add(KeyedCall {
                    holder: Holder::Stored(row.fact_id, output),
                    session_id,
                    source,
                    primary: row.key,
                    stored: row.others.len(),
                    others: row.others,
                });
            }
        }
        Ok(())
    }

    /// Returns the call that another one continues, if it is stored or among the calls of the
    /// transaction.
    pub(crate) fn continued(
        &mut self,
        connection: &mut Connection,
        org_id: &OrgId,
        continued: &ContinuedInput,
        place: usize,
    ) -> Result<Option<KnownCall>, StoreError> {
        let known = match self.known(org_id, continued.own_keys()) {
            Some(known) => Some(known),
            None => match self.known_earlier(connection, org_id, continued)? {
                Some(known) => Some(known),
                None => self.known(org_id, [continued.response_key()]),
            },
        };
        // No call continues itself.
        Ok(known.filter(|known| *known != KnownCall::New(place)))
    }

    /// Returns the call that another one continues if the agent's own id names it in a Session that the
    /// Session of the other one is known to continue.
    fn known_earlier(
        &mut self,
        connection: &mut Connection,
        org_id: &OrgId,
        continued: &ContinuedInput,
    ) -> Result<Option<KnownCall>, StoreError> {
        let Some(session_id) = continued.session_ids.first() else {
            return Ok(None);
        };
        let session_ids = match self.continued_by.get(session_id) {
            Some(known) => known.clone(),
            None => continuations::continued_by(connection, org_id, session_id)?,
        };
        let known_by = self.continued_by.entry(session_id.clone());
        known_by.or_insert_with(|| session_ids.clone());
        if session_ids.is_empty() {
            return Ok(None);
        }
        let earlier = ContinuedInput {
            session_ids,
            ..continued.clone()
        };
        let keys = earlier.own_keys();
        let keys = keys.map(|key| StoredKey::of(org_id, &key).hash);
        let keys: Vec<KeyHash> = keys
            .filter(|hash| !self.by_key.contains_key(hash))
            .collect();
        self.load(connection, &keys)?;
        Ok(self.known(org_id, earlier.own_keys()))
    }

    fn known(&self, org_id: &OrgId, keys: impl IntoIterator<Item = CallKey>) -> Option<KnownCall> {
        let keys = keys.into_iter();
        let mut known = keys.filter_map(|key| self.by_key.get(&StoredKey::of(org_id, &key).hash));
        known.next().map(|call| self.calls[*call].holder.known())
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
        let session_id = encoded.call.session_id.as_str();
        let is_sent = matches!(source, CallSource::Transcript | CallSource::Sdk);
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
        // What was copied to another Session has the same answer.
        let repeated =
            repeated.filter(|call| !is_sent || self.calls[**call].session_id == session_id);
        let same = match (repeated, known.as_slice()) {
            (_, []) => None,
            (Some(repeated), _) => Some(*repeated),
            // What a gateway sends twice has been told apart already.
            (None, [one]) if source == CallSource::Gateway => {
                (self.calls[*one].source != source).then_some(*one)
            }
            (None, [one]) => {
                let other = &self.calls[*one];
                // An agent's own ids of calls are unique in a Session.
                let is_another = is_sent
                    && other.session_id == session_id
                    && other.has_another(CallKeyKind::Client, &keys);
                let is_same = other.source != source
                    || !is_another && has_answer_of(connection, &other.holder, calls, encoded)?;
                is_same.then_some(*one)
            }
            (None, _) => None,
        };
        let Some(same) = same else {
            let is_of_session = |call: &usize| self.calls[*call].session_id == session_id;
            if is_sent && known.len() > 1 && known.iter().all(is_of_session) {
                return Ok(KeyVerdict::Conflict);
            }
            self.claim(place, encoded, &keys);
            let is_apart = !known.is_empty() && source != CallSource::Gateway;
            return Ok(if is_apart {
                KeyVerdict::Apart
            } else {
                KeyVerdict::New
            });
        };
        let is_of_session = self.calls[same].session_id == session_id;
        if self.calls[same].source != source || (is_sent && !is_of_session) {
            self.gather(same, &keys);
        }
        let known = self.calls[same].holder.known();
        Ok(if is_sent && !is_of_session {
            KeyVerdict::Copied(known, self.calls[same].session_id.clone())
        } else {
            KeyVerdict::Same(known)
        })
    }

    /// Gives a new call those of its keys that no other call has.
    fn claim(&mut self, place: usize, encoded: &Encoded, keys: &[StoredKey]) {
        let is_free = |key: &&StoredKey| !self.by_key.contains_key(&key.hash);
        let mut free = keys.iter().filter(is_free).copied();
        if let Some(primary) = free.next() {
            let others = free.collect();
            self.add(KeyedCall {
                holder: Holder::New(place),
                session_id: encoded.call.session_id.as_str().to_owned(),
                source: encoded.call.capture_source,
                primary,
                others,
                stored: 0,
            });
        }
    }

    /// Gives up the keys of the call at a place of the transaction, which is not stored.
    pub(crate) fn give_up(&mut self, place: usize) {
        let calls = &self.calls;
        self.by_key
            .retain(|_, call| calls[*call].holder.known() != KnownCall::New(place));
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

impl Holder {
    const fn known(&self) -> KnownCall {
        match self {
            Self::Stored(fact_id, _) => KnownCall::Stored(*fact_id),
            Self::New(place) => KnownCall::New(*place),
        }
    }
}

impl KeyedCall {
    /// Returns whether it has another key of a kind than one of these.
    fn has_another(&self, kind: CallKeyKind, keys: &[StoredKey]) -> bool {
        let mut own = [&self.primary].into_iter().chain(&self.others);
        let own = own.find(|key| key.kind == kind);
        let given = keys.iter().find(|key| key.kind == kind);
        own.zip(given).is_some_and(|(own, given)| own != given)
    }

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
