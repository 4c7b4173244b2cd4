//! Inference calls: scalars, the ordered ids of their messages, and their raw payload.

use std::collections::HashMap;
use std::sync::Arc;

use svc_model::evidence::{CallSummary, LeftOut, Message};
use svc_model::facts::SessionInferenceCall;
use svc_model::id::{FactId, InferenceCallId, OrgId, SessionId, UserId};
use svc_model::ingest::GatewayProvider;
use svc_model::json;
use svc_model::problem::Code;
use svc_model::time::Instant;

use super::StoreError;
use super::append::{Afterwards, Appending, Kind, Outcome};
use super::connection::{Connection, Insert, Lookup};
use super::content::{self, ContentRef, Encoded, Encoder, NewContent};
use super::error::corrupt;
use super::organization::Stamp;
use super::recall::Recalled;
use super::repetition::Ids;
use super::sessions::Sighting;
use super::skeleton::Pieces;
use super::table::Table;
use super::traces::Traces;
use super::value::{Row, Value};
use super::witness::Epoch;
use super::{id_list, packing};

/// What writing a call costs, in units of a small row: it comes with messages and aliases.
const WEIGHT: usize = 8;

const INSERT: Insert = Insert {
    into: "INSERT INTO inference_calls
        (inference_call_id, org_id, session_id, user_id, gateway_provider, model_call_id,
         model_provider, model, input_tokens, output_tokens, duration_ms, observed_at_us,
         captured_at_us, call_alias_count, input_byte_count, input_part_count, output_byte_count,
         output_part_count, input_contents, output_contents, left_out)",
    columns: 21,
    then: "ON CONFLICT DO NOTHING",
    returning: "call_number, inference_call_id",
    unique: 0,
    is_row_number: true,
};
/// What holds for every kind of fact; a call has statements of its own beside.
pub(super) const TABLE: Table = Table {
    name: "inference_calls",
    members: &[
        "inference_call_id",
        "session_id",
        "observed_at_us",
        "captured_at_us",
    ],
    derived: &[],
    insert: INSERT,
    select: "SELECT f.inference_call_id, f.session_id, f.observed_at_us, f.captured_at_us
        FROM visible_inference_calls f WHERE COALESCE(f.org_id, '') = $1",
    names: &[],
};
const INSERT_RAW: Insert = Insert {
    into: "INSERT INTO raw_payloads (call_number, codec, byte_count, contents, skeleton)",
    columns: 5,
    then: "",
    returning: "call_number, contents",
    unique: 3,
    is_row_number: true,
};
const INSERT_ALIAS: Insert = Insert {
    into: "INSERT INTO call_aliases (org_id, call_id, inference_call_id, ordinal)",
    columns: 4,
    then: "ON CONFLICT DO NOTHING",
    returning: "ordinal, call_id",
    unique: 1,
    is_row_number: true,
};
// The ids tell a redelivery from a conflict. Quarantined calls count.
const BY_ID: Lookup<'_> = Lookup {
    select: "SELECT inference_call_id, org_id, gateway_provider, model_call_id
        FROM inference_calls WHERE inference_call_id",
    then: "",
};
const BY_MODEL_CALL: Lookup<'_> = Lookup {
    select: "SELECT inference_call_id, org_id, gateway_provider, model_call_id
        FROM inference_calls WHERE model_call_id IS NOT NULL AND model_call_id",
    then: "",
};

const SUMMARIES: &str = "SELECT f.inference_call_id, f.observed_at_us, f.model_provider, f.model
    FROM visible_inference_calls f WHERE f.org_id = $1 AND f.session_id = $2
    ORDER BY f.observed_at_us, f.inference_call_id";
const SCALARS: &str = "SELECT f.inference_call_id, f.model_call_id, f.gateway_provider,
        f.model_provider, f.model,
        f.input_tokens, f.output_tokens, f.duration_ms
    FROM visible_inference_calls f WHERE f.org_id = $1 AND f.session_id = $2
    ORDER BY f.observed_at_us, f.inference_call_id";
const CONTENTS: &str = "SELECT f.inference_call_id, f.observed_at_us, f.input_contents,
        f.output_contents
    FROM visible_inference_calls f WHERE f.org_id = $1 AND f.session_id = $2
    ORDER BY f.observed_at_us, f.inference_call_id";
const OUTPUTS: &str = "SELECT f.output_contents
    FROM visible_inference_calls f WHERE f.org_id = $1 AND f.session_id = $2
    ORDER BY f.observed_at_us, f.inference_call_id";
const ONE: &str = "SELECT f.inference_call_id, f.observed_at_us, f.model_provider, f.model,
        f.input_byte_count, f.output_byte_count, f.input_contents, f.output_contents, f.left_out
    FROM visible_inference_calls f
    WHERE f.inference_call_id = $3 AND f.org_id = $1 AND f.session_id = $2";
/// Sizes on the canonical form: of a row, and of the part of it that is no message.
const MEASURE: &str = "SELECT COUNT(*), CAST(COALESCE(SUM(metadata), 0) AS BIGINT),
        CAST(COALESCE(SUM(metadata + messages), 0) AS BIGINT),
        CAST(COALESCE(MAX(metadata + messages), 0) AS BIGINT),
        CAST(COALESCE(SUM(parts), 0) AS BIGINT)
    FROM (SELECT OCTET_LENGTH(f.inference_call_id) + COALESCE(OCTET_LENGTH(f.model_provider), 0)
            + COALESCE(OCTET_LENGTH(f.model), 0) AS metadata,
        f.input_byte_count + f.output_byte_count AS messages,
        f.input_part_count + f.output_part_count AS parts
    FROM visible_inference_calls f WHERE f.org_id = $1 AND f.session_id = $2) AS measured";
const RAW: &str = "SELECT r.codec, r.byte_count, r.skeleton, r.contents, f.session_id,
        f.model_call_id, f.input_contents, f.output_contents
    FROM inference_calls f JOIN raw_payloads r ON r.call_number = f.call_number
    WHERE f.org_id = $1 AND f.inference_call_id = $2";

/// The ids of a call, by which a redelivery is told from a conflict.
#[derive(Clone, Debug)]
struct Identity {
    inference_call_id: String,
    org_id: String,
    gateway_provider: String,
    model_call_id: Option<String>,
}

impl Identity {
    fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            inference_call_id: row.text(0)?,
            org_id: row.text(1)?,
            gateway_provider: row.text(2)?,
            model_call_id: row.optional_text(3)?,
        })
    }
}

/// The stored calls that share an id with the calls of one transaction.
#[derive(Debug, Default)]
struct Retained {
    by_id: HashMap<String, Identity>,
    by_model_call: HashMap<(String, String, String), Identity>,
}

impl Retained {
    fn find(connection: &mut Connection, calls: &[&Encoded]) -> Result<Self, StoreError> {
        let mut retained = Self::default();
        let ids: Vec<String> = calls
            .iter()
            .map(|encoded| encoded.call.inference_call_id.to_string())
            .collect();
        let keys: Vec<Value<'_>> = ids.iter().map(Value::from).collect();
        let model_calls: Vec<Value<'_>> = calls
            .iter()
            .filter_map(|encoded| encoded.call.model_call_id.as_deref())
            .map(Value::from)
            .collect();
        connection.lookup_both(&BY_ID, &keys, &BY_MODEL_CALL, &model_calls, |row| {
            retained.add(Identity::read(row)?);
            Ok(())
        })?;
        Ok(retained)
    }

    fn add(&mut self, identity: Identity) {
        if let Some(model_call_id) = &identity.model_call_id {
            let key = (
                identity.org_id.clone(),
                identity.gateway_provider.clone(),
                model_call_id.clone(),
            );
            self.by_model_call.insert(key, identity.clone());
        }
        self.by_id
            .insert(identity.inference_call_id.clone(), identity);
    }

    /// Says what becomes of a call beside what is stored; nothing when no stored call shares an id.
    fn outcome(&self, org_id: &OrgId, encoded: &Encoded) -> Result<Option<Outcome>, StoreError> {
        let call = &encoded.call;
        let by_id = self.by_id.get(&call.inference_call_id.to_string());
        let by_model_call = call.model_call_id.as_ref().and_then(|model_call_id| {
            self.by_model_call.get(&(
                org_id.as_str().to_owned(),
                call.gateway_provider.as_str().to_owned(),
                model_call_id.clone(),
            ))
        });
        let one = match (by_id, by_model_call) {
            (None, None) => return Ok(None),
            (Some(one), None) | (None, Some(one)) => one,
            (Some(one), Some(other)) if one.inference_call_id == other.inference_call_id => one,
            (Some(_), Some(_)) => {
                return Ok(Some(Outcome::Conflict(Code::InferenceCallIdentityConflict)));
            }
        };
        let same = one.org_id == org_id.as_str()
            && one.gateway_provider == call.gateway_provider.as_str()
            && one.model_call_id == call.model_call_id;
        Ok(Some(if same {
            Outcome::Redelivered(
                FactId::parse(&one.inference_call_id)
                    .ok_or(corrupt("inference_calls", "its id"))?,
            )
        } else {
            Outcome::Conflict(Code::InferenceCallIdentityConflict)
        }))
    }
}

/// The columns of a call that are made for its row.
struct Columns {
    inference_call_id: String,
    input_contents: Vec<u8>,
    output_contents: Vec<u8>,
    raw_contents: Vec<u8>,
    left_out: Option<String>,
}

/// Returns what was left out as it is stored: nothing when that is nothing.
fn written(left_out: &LeftOut) -> Option<String> {
    if *left_out == LeftOut::default() {
        return None;
    }
    let bytes = json::to_vec(left_out, usize::MAX).ok()?;
    String::from_utf8(bytes).ok()
}

/// Reads what was left out, as it is stored.
pub(super) fn left_out(text: Option<String>) -> Result<LeftOut, StoreError> {
    let Some(text) = text else {
        return Ok(LeftOut::default());
    };
    json::from_slice(text.as_bytes()).map_err(|_| corrupt("inference_calls", "its left_out"))
}

fn number(count: usize) -> Value<'static> {
    Value::Integer(i64::try_from(count).unwrap_or(i64::MAX))
}

impl Kind for Encoded {
    type Prepared = Box<Self>;

    fn prepare(self: Box<Self>, _: &OrgId) -> Box<Self> {
        self
    }

    fn weight(_: &Box<Self>) -> usize {
        WEIGHT
    }

    fn stage(appending: &mut Appending<'_, '_>, facts: &[&Box<Self>]) -> Result<(), StoreError> {
        let calls: Vec<&Self> = facts.iter().map(|fact| &***fact).collect();
        stage(appending, &calls)
    }

    fn stamp(fact: &mut Box<Self>, stamp: Stamp) -> Option<Instant> {
        fact.captured_at = stamp.of(fact.received_at);
        Some(fact.captured_at)
    }

    fn store(
        appending: &mut Appending<'_, '_>,
        facts: &[&Box<Self>],
    ) -> Result<Vec<Outcome>, StoreError> {
        let calls: Vec<&Self> = facts.iter().map(|fact| &***fact).collect();
        store(appending, &calls)
    }

    fn trace<'a>(fact: &'a Box<Self>, traces: &mut Traces<'a>) {
        let call = &fact.call;
        let user_id = call.user_id.as_ref().map(UserId::as_str);
        traces.sessions.add(&Sighting {
            session_id: call.session_id.as_str(),
            user_id,
            observed_at: call.observed_at,
            model: call.model.as_deref(),
            agent_harness: None,
            repo: None,
        });
    }
}

/// Stores the content of calls that are not stored yet.
///
/// A call that shares an id with a stored one never gets as far as its content, so a redelivery
/// writes nothing and a conflict leaves nothing behind.
fn stage(appending: &mut Appending<'_, '_>, calls: &[&Encoded]) -> Result<(), StoreError> {
    let Appending {
        transaction,
        encoder,
        epoch,
        retained_calls,
        afterwards,
        ..
    } = appending;
    let (connection, org_id) = (&mut *transaction.connection, transaction.org_id);
    let retained = Retained::find(connection, calls)?;
    for encoded in calls {
        retained_calls.push(retained.outcome(org_id, encoded)?);
    }
    let new = new_calls(calls, retained_calls);
    content::verify(connection, &new, encoder.known().generation())?;
    afterwards.recalled = Recalled::of(connection, org_id, &new, encoder.known())?;
    resolve(connection, epoch, &new, afterwards, encoder)
}

fn new_calls<'c>(calls: &[&'c Encoded], outcomes: &[Option<Outcome>]) -> Vec<&'c Encoded> {
    let calls = calls.iter().zip(outcomes);
    let new = calls.filter(|(_, outcome)| outcome.is_none());
    new.map(|(encoded, _)| *encoded).collect()
}

/// Stores calls, whose content is stored, and says what became of each.
fn store(
    appending: &mut Appending<'_, '_>,
    calls: &[&Encoded],
) -> Result<Vec<Outcome>, StoreError> {
    let Appending {
        transaction,
        retained_calls,
        afterwards,
        ..
    } = appending;
    let (connection, org_id) = (&mut *transaction.connection, transaction.org_id);
    let outcomes = std::mem::take(retained_calls);
    let new = new_calls(calls, &outcomes);
    let inserted = insert(connection, org_id, &new, afterwards)?;
    // Of two calls of one transaction that share an id the first is stored; the second is judged
    // by it. The same holds when another server was faster.
    let retained = if inserted.iter().all(|inserted| *inserted) {
        Retained::default()
    } else {
        Retained::find(connection, &new)?
    };
    let mut inserted = inserted.into_iter();
    calls
        .iter()
        .zip(outcomes)
        .map(|(encoded, outcome)| match outcome {
            Some(outcome) => Ok(outcome),
            None if inserted.next() == Some(true) => {
                Ok(Outcome::Stored(encoded.call.inference_call_id))
            }
            None => retained
                .outcome(org_id, encoded)?
                .ok_or(corrupt("inference_calls", "a retained call is absent")),
        })
        .collect()
}

/// Inserts calls with their content and aliases, and says of each whether it was inserted.
fn insert(
    connection: &mut Connection,
    org_id: &OrgId,
    calls: &[&Encoded],
    afterwards: &Afterwards,
) -> Result<Vec<bool>, StoreError> {
    if calls.is_empty() {
        return Ok(Vec::new());
    }
    let id = |content: &ContentRef| match content {
        ContentRef::Known(id) => Ok(*id),
        ContentRef::New(new) => afterwards
            .content_id(&new.key)
            .ok_or(corrupt("content", "it was not stored")),
    };
    let ids = |contents: &[ContentRef]| {
        let ids = contents.iter().map(id).collect::<Result<Vec<_>, _>>()?;
        Ok::<_, StoreError>(id_list::write_ids(ids))
    };
    let columns: Vec<Columns> = calls
        .iter()
        .map(|encoded| {
            Ok(Columns {
                inference_call_id: encoded.call.inference_call_id.to_string(),
                input_contents: ids(&encoded.input.contents)?,
                output_contents: ids(&encoded.output.contents)?,
                raw_contents: ids(&encoded.raw_contents)?,
                left_out: written(&encoded.call.left_out),
            })
        })
        .collect::<Result<_, StoreError>>()?;
    let mut values = Vec::with_capacity(calls.len() * INSERT.columns);
    for (encoded, columns) in calls.iter().zip(&columns) {
        let call = &encoded.call;
        values.extend([
            Value::Text(&columns.inference_call_id),
            org_id.as_str().into(),
            call.session_id.as_str().into(),
            call.user_id.as_ref().map(UserId::as_str).into(),
            call.gateway_provider.as_str().into(),
            call.model_call_id.as_deref().into(),
            call.model_provider.as_deref().into(),
            call.model.as_deref().into(),
            call.input_tokens.into(),
            call.output_tokens.into(),
            call.duration_ms.into(),
            Value::Integer(call.observed_at.microseconds()),
            Value::Integer(encoded.captured_at.microseconds()),
            number(call.call_aliases.len()),
            number(encoded.input.byte_count),
            number(encoded.input.part_count),
            number(encoded.output.byte_count),
            number(encoded.output.part_count),
            Value::Blob(&columns.input_contents),
            Value::Blob(&columns.output_contents),
            columns.left_out.as_deref().into(),
        ]);
    }
    let inserted = connection.insert(&INSERT, values.chunks_exact(INSERT.columns))?;
    let mut raw = Vec::with_capacity(calls.len() * INSERT_RAW.columns);
    let mut values = Vec::new();
    for ((encoded, columns), call_number) in calls.iter().zip(&columns).zip(&inserted) {
        let Some(call_number) = call_number else {
            continue;
        };
        raw.extend([
            Value::Integer(*call_number),
            Value::Integer(encoded.raw_skeleton.codec.number()),
            number(encoded.raw_skeleton.byte_count),
            Value::Blob(&columns.raw_contents),
            Value::Blob(&encoded.raw_skeleton.bytes),
        ]);
        let by_own_id = encoded.call.model_call_id.as_ref();
        for (ordinal, call_id) in encoded.call.call_aliases.iter().enumerate() {
            if Some(call_id) == by_own_id {
                continue;
            }
            values.extend([
                Value::Text(org_id.as_str()),
                Value::Text(call_id),
                Value::Text(&columns.inference_call_id),
                number(ordinal),
            ]);
        }
    }
    connection.put(&INSERT_RAW, raw.chunks_exact(INSERT_RAW.columns))?;
    connection.put(&INSERT_ALIAS, values.chunks_exact(INSERT_ALIAS.columns))?;
    Ok(inserted.iter().map(Option::is_some).collect())
}

/// Stores the content of calls that is not known to be stored, each once.
fn resolve(
    connection: &mut Connection,
    epoch: &mut Epoch,
    calls: &[&Encoded],
    afterwards: &mut Afterwards,
    encoder: &Encoder,
) -> Result<(), StoreError> {
    let mut new: Vec<&NewContent> = Vec::new();
    for content in calls.iter().flat_map(|encoded| encoded.contents()) {
        let ContentRef::New(content) = content else {
            continue;
        };
        if afterwards.content_id(&content.key).is_some() {
            continue;
        }
        match encoder.known().get(&content.key) {
            Some(content_id) => {
                afterwards.known_content.insert(content.key, content_id);
            }
            None => new.push(content),
        }
    }
    new.sort_unstable_by_key(|content| content.key);
    new.dedup_by_key(|content| content.key);
    let ids = content::store(connection, epoch, &new)?;
    let stored = new.iter().map(|content| content.key).zip(ids);
    afterwards.content.extend(stored);
    Ok(())
}

/// What the visible calls of a Session amount to, before any of them is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanMeasure {
    /// How many there are.
    pub calls: u64,
    /// Canonical bytes of their ids and models.
    pub metadata_bytes: u64,
    /// Canonical bytes of their rows.
    pub row_bytes: u64,
    /// Canonical bytes of the largest row.
    pub row_bytes_max: u64,
    /// How many parts their messages have.
    pub parts: u64,
}

/// The ids and the message contents of one visible call.
#[derive(Clone, Debug)]
pub struct CallContents {
    /// The call.
    pub inference_call_id: InferenceCallId,
    /// When it was observed.
    pub observed_at: Instant,
    /// The contents of its input messages, in order.
    pub input: Vec<i64>,
    /// The contents of its output messages, in order.
    pub output: Vec<i64>,
}

/// One side of a visible call.
#[derive(Clone, Debug)]
pub struct CallSide {
    /// Canonical bytes of its messages.
    pub byte_count: u64,
    /// The contents of its messages, in order.
    pub contents: Vec<i64>,
}

/// One visible call.
#[derive(Clone, Debug)]
pub struct CallRow {
    /// Its metadata.
    pub summary: CallSummary,
    /// What the model was sent.
    pub input: CallSide,
    /// What the model answered.
    pub output: CallSide,
    /// What the capture left out of them.
    pub left_out: LeftOut,
}

/// The scalars of a call that the facts route lists.
pub type CallScalars = SessionInferenceCall;

fn instant(row: &Row<'_>, index: usize) -> Result<Instant, StoreError> {
    Instant::from_microseconds(row.integer(index)?).ok_or(corrupt("inference_calls", "a time"))
}

fn fact_id(row: &Row<'_>, index: usize) -> Result<FactId, StoreError> {
    FactId::parse(&row.text(index)?).ok_or(corrupt("inference_calls", "its id"))
}

fn summary(row: &Row<'_>) -> Result<CallSummary, StoreError> {
    Ok(CallSummary {
        inference_call_id: fact_id(row, 0)?,
        observed_at: instant(row, 1)?,
        model_provider: row.optional_text(2)?,
        model: row.optional_text(3)?,
        content_erased_at: None,
    })
}

fn keys<'a>(org_id: &'a OrgId, session_id: &'a SessionId) -> [Value<'a>; 2] {
    [org_id.as_str().into(), session_id.as_str().into()]
}

pub(super) fn measure(
    connection: &mut Connection,
    org_id: &OrgId,
    session_id: &SessionId,
) -> Result<ScanMeasure, StoreError> {
    Ok(connection
        .first(MEASURE, &keys(org_id, session_id), |row| {
            Ok(ScanMeasure {
                calls: row.count(0)?,
                metadata_bytes: row.count(1)?,
                row_bytes: row.count(2)?,
                row_bytes_max: row.count(3)?,
                parts: row.count(4)?,
            })
        })?
        .unwrap_or_default())
}

pub(super) fn summaries(
    connection: &mut Connection,
    org_id: &OrgId,
    session_id: &SessionId,
) -> Result<Vec<CallSummary>, StoreError> {
    connection.all(SUMMARIES, &keys(org_id, session_id), summary)
}

pub(super) fn scalars(
    connection: &mut Connection,
    org_id: &OrgId,
    session_id: &SessionId,
) -> Result<Vec<CallScalars>, StoreError> {
    connection.all(SCALARS, &keys(org_id, session_id), |row| {
        Ok(CallScalars {
            inference_call_id: fact_id(row, 0)?,
            model_call_id: row.optional_text(1)?,
            gateway_provider: GatewayProvider::from_wire(&row.text(2)?)
                .ok_or(corrupt("inference_calls", "its gateway"))?
                .into(),
            model_provider: row.optional_text(3)?,
            model: row.optional_text(4)?,
            input_tokens: row.optional_integer(5)?,
            output_tokens: row.optional_integer(6)?,
            duration_ms: row.optional_integer(7)?,
        })
    })
}

pub(super) fn contents(
    connection: &mut Connection,
    org_id: &OrgId,
    session_id: &SessionId,
) -> Result<Vec<CallContents>, StoreError> {
    connection.all(CONTENTS, &keys(org_id, session_id), |row| {
        Ok(CallContents {
            inference_call_id: InferenceCallId::new(&row.text(0)?)
                .map_err(|_| corrupt("inference_calls", "its id"))?,
            observed_at: instant(row, 1)?,
            input: id_list::read_ids(&row.blob(2)?)?,
            output: id_list::read_ids(&row.blob(3)?)?,
        })
    })
}

pub(super) fn outputs(
    connection: &mut Connection,
    org_id: &OrgId,
    session_id: &SessionId,
) -> Result<Vec<Vec<i64>>, StoreError> {
    connection.all(OUTPUTS, &keys(org_id, session_id), |row| {
        id_list::read_ids(&row.blob(0)?)
    })
}

pub(super) fn one(
    connection: &mut Connection,
    org_id: &OrgId,
    session_id: &SessionId,
    inference_call_id: &InferenceCallId,
) -> Result<Option<CallRow>, StoreError> {
    let [org, session] = keys(org_id, session_id);
    connection.first(
        ONE,
        &[org, session, inference_call_id.as_str().into()],
        |row| {
            Ok(CallRow {
                summary: summary(row)?,
                input: CallSide {
                    byte_count: row.count(4)?,
                    contents: id_list::read_ids(&row.blob(6)?)?,
                },
                output: CallSide {
                    byte_count: row.count(5)?,
                    contents: id_list::read_ids(&row.blob(7)?)?,
                },
                left_out: left_out(row.optional_text(8)?)?,
            })
        },
    )
}

/// Returns the raw payload of a call, quarantined or not. No route returns it.
pub(super) fn raw(
    connection: &mut Connection,
    org_id: &OrgId,
    inference_call_id: FactId,
) -> Result<Option<Vec<u8>>, StoreError> {
    let keys = [
        org_id.as_str().into(),
        Value::Text(&inference_call_id.to_string()),
    ];
    let Some(row) = connection.first(RAW, &keys, |row| {
        Ok(RawRow {
            skeleton: packing::unpack(row.integer(0)?, row.count(1)?, row.blob(2)?)?,
            contents: id_list::read_ids(&row.blob(3)?)?,
            session_id: row.text(4)?,
            model_call_id: row.optional_text(5)?,
            input: id_list::read_ids(&row.blob(6)?)?,
            output: id_list::read_ids(&row.blob(7)?)?,
        })
    })?
    else {
        return Ok(None);
    };
    let mut ids = [&row.contents[..], &row.input, &row.output].concat();
    ids.sort_unstable();
    ids.dedup();
    let mut found = HashMap::new();
    content::read(connection, &ids, |id, bytes| {
        found.insert(id, Arc::new(bytes.to_vec()));
        Ok(())
    })?;
    row.join(&found)
        .ok_or(corrupt("raw_payloads", "its skeleton"))
        .map(Some)
}

/// What a raw payload is joined from.
struct RawRow {
    skeleton: Vec<u8>,
    contents: Vec<i64>,
    session_id: String,
    model_call_id: Option<String>,
    input: Vec<i64>,
    output: Vec<i64>,
}

impl RawRow {
    fn join(&self, found: &HashMap<i64, Arc<Vec<u8>>>) -> Option<Vec<u8>> {
        let messages = |ids: &[i64]| {
            ids.iter()
                .map(|id| json::from_written(found.get(id)?).ok())
                .collect::<Option<Vec<Message>>>()
        };
        let contents: Option<Vec<_>> = self
            .contents
            .iter()
            .map(|id| found.get(id).cloned())
            .collect();
        Pieces {
            contents: contents?,
            ids: Ids {
                session_id: &self.session_id,
                model_call_id: self.model_call_id.as_deref(),
            },
            input: &messages(&self.input)?,
            output: &messages(&self.output)?,
        }
        .join(&self.skeleton)
    }
}
