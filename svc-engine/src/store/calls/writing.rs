//! Stores calls: their contents before the row of the organization is locked, their rows after.

use std::collections::HashMap;

use svc_model::id::{FactId, OrgId, UserId};
use svc_model::ingest::GatewayProvider;
use svc_model::problem::Code;
use svc_model::time::Instant;

use super::written;
use crate::store::append::{Afterwards, Appending, Kind, Outcome};
use crate::store::connection::{Connection, Insert, Lookup};
use crate::store::content::{self, ContentRef, Encoded, Encoder, NewContent};
use crate::store::error::corrupt;
use crate::store::model_call_id::ModelCallId;
use crate::store::organization::Stamp;
use crate::store::recall::Recalled;
use crate::store::redelivery::Difference;
use crate::store::sessions::{Numbers, Sighting};
use crate::store::traces::Traces;
use crate::store::value::{Row, Value};
use crate::store::witness::Epoch;
use crate::store::{StoreError, column, id_list};

/// The cost of writing a call with its messages and aliases, in units of a small row.
const WEIGHT: usize = 8;

pub(super) const INSERT: Insert = Insert {
    into: "INSERT INTO inference_calls
        (inference_call_id, org_id, session_number, user_id, gateway_provider,
         model_call_id, model_provider, model, input_tokens, output_tokens, duration_ms, observed_at_us,
         captured_at_us, call_alias_count, input_byte_count, input_part_count, output_byte_count,
         output_part_count, input_contents, output_contents, left_out)",
    columns: 21,
    then: "ON CONFLICT DO NOTHING",
    returning: "call_number, inference_call_id",
    unique: 0,
    is_row_number: true,
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
// The ids tell a redelivery from a conflict. The other columns tell whether a redelivery differs.
// Quarantined calls count too.
const BY_ID: Lookup<'_> = Lookup {
    select: "SELECT inference_call_id, org_id, gateway_provider, model_call_id, session_id, model,
        input_byte_count, input_part_count, output_byte_count, output_part_count, session_number
        FROM all_inference_calls WHERE inference_call_id",
    then: "",
};
const BY_MODEL_CALL: Lookup<'_> = Lookup {
    select: "SELECT inference_call_id, org_id, gateway_provider, model_call_id, session_id, model,
        input_byte_count, input_part_count, output_byte_count, output_part_count, session_number
        FROM all_inference_calls WHERE model_call_id IS NOT NULL AND model_call_id",
    then: "",
};

/// The ids of a stored call, which tell a redelivery from a conflict, and what a redelivery is
/// compared with.
#[derive(Clone, Debug)]
struct Identity {
    inference_call_id: FactId,
    org_id: String,
    gateway_provider: GatewayProvider,
    model_call_id: Option<String>,
    /// Absent if the call is of the same transaction, which has not written the Session yet.
    session_id: Option<String>,
    session_number: i64,
    model: Option<String>,
    /// Bytes and parts of the input, then of the output.
    counts: [i64; 4],
}

impl Identity {
    fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            inference_call_id: row.fact_id(0)?,
            org_id: row.text(1)?,
            gateway_provider: column::gateway_provider(row, 2)?,
            model_call_id: ModelCallId::of(row, 3)?,
            session_id: row.optional_text(4)?,
            session_number: row.integer(10)?,
            model: row.optional_text(5)?,
            counts: [
                row.integer(6)?,
                row.integer(7)?,
                row.integer(8)?,
                row.integer(9)?,
            ],
        })
    }

    /// Returns the columns in which a redelivery differs. Its content is compared by size only: the
    /// text itself is not looked up again.
    fn differences(&self, encoded: &Encoded, numbers: &Numbers) -> Vec<&'static str> {
        let call = &encoded.call;
        let same_session = match &self.session_id {
            Some(session_id) => session_id == call.session_id.as_str(),
            None => numbers.get(call.session_id.as_str()) == Some(self.session_number),
        };
        let counts = [
            encoded.input.byte_count,
            encoded.input.part_count,
            encoded.output.byte_count,
            encoded.output.part_count,
        ];
        let same_counts = counts.map(whole) == self.counts;
        [
            ("session_id", same_session),
            ("model", self.model.as_deref() == call.model.as_deref()),
            ("content", same_counts),
        ]
        .into_iter()
        .filter_map(|(column, is_same)| (!is_same).then_some(column))
        .collect()
    }
}

/// The stored calls that share an id with the calls of one transaction.
#[derive(Debug, Default)]
struct Retained {
    by_id: HashMap<FactId, Identity>,
    by_model_call: HashMap<(String, GatewayProvider, String), Identity>,
}

impl Retained {
    fn find(connection: &mut Connection, calls: &[&Encoded]) -> Result<Self, StoreError> {
        let mut retained = Self::default();
        let keys: Vec<Value<'_>> = calls
            .iter()
            .map(|encoded| encoded.call.inference_call_id.into())
            .collect();
        let model_calls: Vec<Value<'_>> = calls
            .iter()
            .filter_map(|encoded| encoded.call.model_call_id.as_deref())
            .map(ModelCallId::stored)
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
                identity.gateway_provider,
                model_call_id.clone(),
            );
            self.by_model_call.insert(key, identity.clone());
        }
        self.by_id.insert(identity.inference_call_id, identity);
    }

    /// Returns what becomes of a call, given the stored calls; `None` if none of them shares an id.
    /// A redelivery that differs is added to the differences. `numbers` are those of the Sessions
    /// that the transaction has found.
    fn outcome(
        &self,
        org_id: &OrgId,
        encoded: &Encoded,
        numbers: &Numbers,
        differences: &mut Vec<Difference>,
    ) -> Option<Outcome> {
        let call = &encoded.call;
        let by_id = self.by_id.get(&call.inference_call_id);
        let by_model_call = call.model_call_id.as_ref().and_then(|model_call_id| {
            self.by_model_call.get(&(
                org_id.as_str().to_owned(),
                call.gateway_provider,
                model_call_id.clone(),
            ))
        });
        let one = match (by_id, by_model_call) {
            (None, None) => return None,
            (Some(one), None) | (None, Some(one)) => one,
            (Some(one), Some(other)) if one.inference_call_id == other.inference_call_id => one,
            (Some(_), Some(_)) => {
                return Some(Outcome::Conflict(Code::InferenceCallIdentityConflict));
            }
        };
        let same = one.org_id == org_id.as_str()
            && one.gateway_provider == call.gateway_provider
            && one.model_call_id == call.model_call_id;
        if !same {
            return Some(Outcome::Conflict(Code::InferenceCallIdentityConflict));
        }
        let fact_id = one.inference_call_id;
        let columns = one.differences(encoded, numbers);
        if !columns.is_empty() {
            differences.push(Difference::of_call(fact_id, columns));
        }
        Some(Outcome::Redelivered(fact_id))
    }
}

/// The columns of a call that are computed for its row.
struct Columns {
    input_contents: Vec<u8>,
    output_contents: Vec<u8>,
    raw_contents: Vec<u8>,
    left_out: Option<String>,
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn number(count: usize) -> Value<'static> {
    Value::Integer(whole(count))
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
/// The content of a call that shares an id with a stored one is never written, so a redelivery
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
    // Everything that is found was committed with its Session.
    let numbers = Numbers::default();
    for encoded in calls {
        let differences = &mut afterwards.differences;
        let outcome = retained.outcome(org_id, encoded, &numbers, differences);
        retained_calls.push(outcome);
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

/// Stores calls whose content is stored, and returns what became of each.
fn store(
    appending: &mut Appending<'_, '_>,
    calls: &[&Encoded],
) -> Result<Vec<Outcome>, StoreError> {
    let Appending {
        transaction,
        epoch,
        retained_calls,
        session_numbers,
        afterwards,
        ..
    } = appending;
    let (connection, org_id) = (&mut *transaction.connection, transaction.org_id);
    let outcomes = std::mem::take(retained_calls);
    let new = new_calls(calls, &outcomes);
    let sessions = new.iter().map(|encoded| encoded.call.session_id.as_str());
    *session_numbers = Numbers::find(connection, org_id, epoch, sessions)?;
    let inserted = insert(connection, org_id, &new, session_numbers, afterwards)?;
    // If two calls of a transaction share an id, the first is stored and the second is compared
    // with it. The same holds if another server was faster.
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
                .outcome(
                    org_id,
                    encoded,
                    session_numbers,
                    &mut afterwards.differences,
                )
                .ok_or(corrupt("inference_calls", "a retained call is absent")),
        })
        .collect()
}

/// Inserts calls with their raw payloads and aliases, and returns whether each was inserted.
fn insert(
    connection: &mut Connection,
    org_id: &OrgId,
    calls: &[&Encoded],
    session_numbers: &Numbers,
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
        let session_number = session_numbers
            .get(call.session_id.as_str())
            .ok_or(corrupt("sessions", "a number is absent"))?;
        values.extend([
            call.inference_call_id.into(),
            org_id.as_str().into(),
            Value::Integer(session_number),
            call.user_id.as_ref().map(UserId::as_str).into(),
            column::gateway_letter(call.gateway_provider).into(),
            call.model_call_id
                .as_deref()
                .map_or(Value::Null, ModelCallId::stored),
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
                encoded.call.inference_call_id.into(),
                number(ordinal),
            ]);
        }
    }
    connection.put(&INSERT_RAW, raw.chunks_exact(INSERT_RAW.columns))?;
    connection.put(&INSERT_ALIAS, values.chunks_exact(INSERT_ALIAS.columns))?;
    Ok(inserted.iter().map(Option::is_some).collect())
}

/// Stores the contents of calls that are not known to be stored, each once.
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
