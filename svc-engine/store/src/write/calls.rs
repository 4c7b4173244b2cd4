//! Stores calls: their contents before the row of the organization is locked, their rows after.

use std::collections::HashMap;

use svc_engine_fact::InferenceCall;
use svc_model::id::{FactId, OrgId, UserId};
use svc_model::ingest::{CallMember, GatewayProvider};
use svc_model::problem::Code;
use svc_model::time::Instant;
use svc_model::usage::CallSource;

use super::appending::{Afterwards, Appending};
use super::call_keys::{CallKeys, KeyVerdict};
use super::content::{self, Encoded, Encoder};
use super::kind::Kind;
use super::outcome::{Outcome, Verdict};
use super::recall::Recalled;
use super::redelivery::Difference;
use super::sessions::{Numbers, Sighting};
use super::traces::Traces;
use super::witness::Epoch;
use crate::pack::content_key::{ContentHash, ContentRef, NewContent};
use crate::pack::model_call_id::ModelCallId;
use crate::pack::{column, id_list};
use crate::read::contents::{HASHES, hashes};
use crate::sql::connection::{Connection, Insert, Lookup};
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::{Row, Value};
use crate::table::calls::{INSERT, written};
use crate::table::row::Stamp;

/// The cost of writing a call with its messages and aliases, in units of a small row.
const WEIGHT: usize = 8;

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
        input_byte_count, input_part_count, output_byte_count, output_part_count, session_number,
        input_contents, output_contents, started_at_us, is_further
        FROM all_inference_calls WHERE inference_call_id",
    then: "",
};
const BY_MODEL_CALL: Lookup<'_> = Lookup {
    select: "SELECT inference_call_id, org_id, gateway_provider, model_call_id, session_id, model,
        input_byte_count, input_part_count, output_byte_count, output_part_count, session_number,
        input_contents, output_contents, started_at_us, is_further
        FROM all_inference_calls WHERE model_call_id IS NOT NULL AND model_call_id",
    then: "",
};

const ERASED: Lookup<'_> = Lookup {
    select: "SELECT fact_id FROM erased_facts WHERE session_id = $1 AND org_id = $2
        AND fact_table = 'inference_calls' AND fact_id",
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
    started_at: Option<i64>,
    is_further: bool,
    /// Absent if the call is of the same transaction, which has not written the Session yet.
    session_id: Option<String>,
    session_number: i64,
    model: Option<String>,
    /// The messages of the input, then of the output.
    contents: [Vec<i64>; 2],
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
            contents: [
                row.with_blob(11, id_list::read_ids)??,
                row.with_blob(12, id_list::read_ids)??,
            ],
            started_at: row.optional_integer(13)?,
            is_further: row.integer(14)? == 1,
            counts: [
                row.integer(6)?,
                row.integer(7)?,
                row.integer(8)?,
                row.integer(9)?,
            ],
        })
    }

    /// Returns whether a call belongs to the Session of this one.
    fn is_of_session(&self, encoded: &Encoded, numbers: &Numbers) -> bool {
        let session_id = encoded.call.session_id.as_str();
        match &self.session_id {
            Some(known) => known == session_id,
            None => numbers.get(session_id) == Some(self.session_number),
        }
    }

    /// Returns whether the content of the stored call was erased.
    fn is_erased(&self, connection: &mut Connection) -> Result<bool, StoreError> {
        // An erased call has no messages, so others need no look.
        if self.contents.iter().any(|contents| !contents.is_empty()) {
            return Ok(false);
        }
        let Some(session_id) = self.session_id.as_deref() else {
            return Ok(false);
        };
        let fixed = [session_id.into(), self.org_id.as_str().into()];
        let key = [Value::from(self.inference_call_id)];
        let mut is_erased = false;
        connection.lookup(&ERASED, &fixed, &key, |_| {
            is_erased = true;
            Ok(())
        })?;
        Ok(is_erased)
    }

    /// Returns whether a call has the same messages.
    fn has_content_of(
        &self,
        connection: &mut Connection,
        encoded: &Encoded,
    ) -> Result<bool, StoreError> {
        if self.is_erased(connection)? {
            // What a redelivery brings is not stored again, and there is nothing to compare it with.
            return Ok(true);
        }
        let sides = [&encoded.input, &encoded.output];
        let counts = sides.map(|side| [side.byte_count, side.part_count].map(whole));
        if *counts.as_flattened() != self.counts {
            return Ok(false);
        }
        let stored = self.contents.iter().flatten();
        let sent = || sides.into_iter().flat_map(|side| &side.contents);
        let known = |content: &ContentRef| match content {
            ContentRef::Known(id) => Some(*id),
            ContentRef::New(_) => None,
        };
        if stored.clone().copied().map(Some).eq(sent().map(known)) {
            return Ok(true);
        }
        // One content may be stored under several ids.
        let ids = stored.clone().copied().chain(sent().filter_map(known));
        let hashes = hashes(connection, &HASHES, ids)?;
        let sent: Vec<Option<&ContentHash>> = sent()
            .map(|content| match content {
                ContentRef::Known(id) => hashes.get(id),
                ContentRef::New(new) => Some(&new.key.hash),
            })
            .collect();
        Ok(stored.map(|id| hashes.get(id)).eq(sent))
    }
}

/// The stored calls that share an id with the calls of one transaction.
#[derive(Debug, Default)]
struct Retained {
    by_id: HashMap<FactId, Identity>,
    /// The first call under an id of the model comes first.
    by_model_call: HashMap<(String, GatewayProvider, String), Vec<Identity>>,
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
        let fact_id = identity.inference_call_id;
        if let Some(model_call_id) = &identity.model_call_id {
            let key = (
                identity.org_id.clone(),
                identity.gateway_provider,
                model_call_id.clone(),
            );
            let sharing = self.by_model_call.entry(key).or_default();
            if sharing.iter().all(|one| one.inference_call_id != fact_id) {
                let place = if identity.is_further {
                    sharing.len()
                } else {
                    0
                };
                sharing.insert(place, identity.clone());
            }
        }
        self.by_id.insert(fact_id, identity);
    }

    /// Returns the stored calls of the model's id of a call.
    fn sharing(&self, org_id: &OrgId, call: &InferenceCall) -> &[Identity] {
        let sharing = call.model_call_id.as_ref().and_then(|model_call_id| {
            self.by_model_call.get(&(
                org_id.as_str().to_owned(),
                call.gateway_provider,
                model_call_id.clone(),
            ))
        });
        sharing.map_or(&[], Vec::as_slice)
    }

    /// Returns the stored call that a call repeats, or else what becomes of the call.
    fn repeated(&self, org_id: &OrgId, call: &InferenceCall) -> Result<&Identity, Verdict> {
        if call.capture_source != CallSource::Gateway {
            // Its keys tell which call it is. Without any, its id is made of all that is known of it.
            let known = self.by_id.get(&call.inference_call_id);
            return known.filter(|_| call.keys.is_empty()).ok_or(Verdict::New);
        }
        let sharing = self.sharing(org_id, call);
        let started_at = call.started_at.map(Instant::microseconds);
        match self.by_id.get(&call.inference_call_id) {
            Some(one)
                if sharing
                    .iter()
                    .all(|other| other.inference_call_id != one.inference_call_id) =>
            {
                let is_same = one.org_id == org_id.as_str()
                    && one.gateway_provider == call.gateway_provider
                    && one.model_call_id == call.model_call_id;
                let code = Code::InferenceCallIdentityConflict;
                let conflict = Verdict::Decided(Outcome::Conflict(code));
                if is_same { Ok(one) } else { Err(conflict) }
            }
            // The sender says so.
            Some(one) if call.further_id.is_none() => Ok(one),
            _ => {
                let exact = sharing.iter().find(|one| one.started_at == started_at);
                let any = || {
                    let either = |one: &&Identity| one.started_at.is_none() || started_at.is_none();
                    sharing.iter().find(either)
                };
                exact.or_else(any).ok_or(if sharing.is_empty() {
                    Verdict::New
                } else {
                    Verdict::Further(call.further_id.unwrap_or(call.inference_call_id))
                })
            }
        }
    }

    /// Returns what becomes of a call, given the stored calls. A redelivery or a conflict that
    /// differs from the stored call is added to the differences. `numbers` are those of the
    /// Sessions that the transaction has found.
    fn verdict(
        &self,
        connection: &mut Connection,
        org_id: &OrgId,
        encoded: &Encoded,
        numbers: &Numbers,
        differences: &mut Vec<Difference>,
    ) -> Result<Verdict, StoreError> {
        let call = &encoded.call;
        let (one, verdict) = match self.repeated(org_id, call) {
            Ok(one) => (one, None),
            Err(verdict) => match self.sharing(org_id, call).first() {
                // An id is unique over all Sessions.
                Some(first) if matches!(verdict, Verdict::Further(_)) => (first, Some(verdict)),
                _ => return Ok(verdict),
            },
        };
        let fact_id = one.inference_call_id;
        let is_of_session = one.is_of_session(encoded, numbers);
        if let Some(further) = verdict.filter(|_| is_of_session) {
            return Ok(further);
        }
        let is_of_model = one.model.as_deref() == call.model.as_deref();
        let members: &[CallMember] = match (is_of_model, one.has_content_of(connection, encoded)?) {
            (true, true) => &[],
            (true, false) => &[CallMember::Content],
            (false, true) => &[CallMember::Model],
            (false, false) => &[CallMember::Model, CallMember::Content],
        };
        let session = (!is_of_session).then_some("session_id");
        let names = members.iter().map(|member| member.as_str());
        let columns: Vec<&'static str> = session.into_iter().chain(names).collect();
        if !columns.is_empty() {
            differences.push(Difference::of_call(fact_id, columns));
        }
        Ok(Verdict::Decided(if !is_of_session {
            Outcome::Conflict(Code::InferenceCallIdentityConflict)
        } else if members.is_empty() {
            Outcome::Redelivered(fact_id)
        } else {
            Outcome::Differs(fact_id, members)
        }))
    }
}

/// A call to insert, under an id.
#[derive(Clone, Copy)]
struct Planned<'c> {
    /// Its index among the calls of the transaction.
    place: usize,
    encoded: &'c Encoded,
    id: FactId,
    is_further: bool,
    /// Whether another call has its first key.
    is_apart: bool,
}

impl<'c> Planned<'c> {
    /// Returns what becomes of it once it is inserted.
    fn inserted(&self) -> Outcome {
        if self.is_apart {
            Outcome::StoredApart(self.id)
        } else {
            Outcome::Stored(self.id)
        }
    }

    /// Returns the id that the model or its gateway gave it, unless another call has it.
    fn model_call_id(&self) -> Option<&'c String> {
        let id = self.encoded.call.model_call_id.as_ref();
        id.filter(|_| !self.is_apart)
    }

    /// Returns the call to insert, unless it is decided.
    fn of(place: usize, encoded: &'c Encoded, verdict: Verdict) -> Option<Self> {
        let (id, is_further) = match verdict {
            Verdict::New => (encoded.call.inference_call_id, false),
            Verdict::Further(id) | Verdict::Apart(id) => (id, true),
            Verdict::Decided(_) => return None,
        };
        Some(Self {
            place,
            encoded,
            id,
            is_further,
            is_apart: matches!(verdict, Verdict::Apart(_)),
        })
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
        call_keys,
        afterwards,
        ..
    } = appending;
    let (connection, org_id) = (&mut *transaction.connection, transaction.org_id);
    let retained = Retained::find(connection, calls)?;
    *call_keys = CallKeys::find(connection, org_id, calls)?;
    // Everything that is found was committed with its Session.
    let numbers = Numbers::default();
    for (place, encoded) in calls.iter().enumerate() {
        let differences = &mut afterwards.differences;
        let verdict = retained.verdict(connection, org_id, encoded, &numbers, differences)?;
        let verdict = match verdict {
            Verdict::Decided(_) => verdict,
            own => match call_keys.verdict(connection, org_id, calls, place)? {
                KeyVerdict::New => own,
                KeyVerdict::Stored(fact_id) => Verdict::Decided(Outcome::Redelivered(fact_id)),
                KeyVerdict::Same(first) => {
                    let id = Planned::of(first, calls[first], retained_calls[first]);
                    let id = id.map_or(encoded.call.inference_call_id, |planned| planned.id);
                    Verdict::Decided(Outcome::Redelivered(id))
                }
                KeyVerdict::Apart => apart(connection, &encoded.call)?,
            },
        };
        retained_calls.push(verdict);
    }
    let calls = calls.iter().zip(&*retained_calls);
    let new: Vec<&Encoded> = calls
        .filter(|(_, verdict)| !matches!(verdict, Verdict::Decided(_)))
        .map(|(encoded, _)| *encoded)
        .collect();
    content::verify(connection, &new, encoder.known().generation())?;
    afterwards.recalled = Recalled::of(connection, org_id, &new, encoder.known())?;
    resolve(connection, epoch, &new, afterwards, encoder)
}

/// Returns what becomes of a call whose first key another call has: it is stored under its second
/// id, unless it already is.
fn apart(connection: &mut Connection, call: &InferenceCall) -> Result<Verdict, StoreError> {
    let id = call.further_id.unwrap_or(call.inference_call_id);
    let mut is_stored = false;
    connection.lookup(&BY_ID, &[], &[id.into()], |_| {
        is_stored = true;
        Ok(())
    })?;
    Ok(if is_stored {
        Verdict::Decided(Outcome::Redelivered(id))
    } else {
        Verdict::Apart(id)
    })
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
        call_keys,
        session_numbers,
        afterwards,
        ..
    } = appending;
    let (connection, org_id) = (&mut *transaction.connection, transaction.org_id);
    let mut outcomes = Vec::with_capacity(calls.len());
    let mut planned = Vec::new();
    let verdicts = std::mem::take(retained_calls);
    for (place, (encoded, verdict)) in calls.iter().zip(verdicts).enumerate() {
        outcomes.push(match verdict {
            Verdict::Decided(outcome) => Some(outcome),
            Verdict::New | Verdict::Further(_) | Verdict::Apart(_) => None,
        });
        planned.extend(Planned::of(place, encoded, verdict));
    }
    let sessions = planned
        .iter()
        .map(|planned| planned.encoded.call.session_id.as_str());
    session_numbers.add(connection, org_id, epoch, sessions)?;
    // If two calls of a transaction share an id, the first is stored and the second is compared
    // with it. The same holds if another server was faster. If the second started at another time,
    // it is inserted again under an id of its own.
    while !planned.is_empty() {
        let inserted = insert(connection, org_id, &planned, session_numbers, afterwards)?;
        let mut left = Vec::new();
        for (planned, is_inserted) in planned.into_iter().zip(inserted) {
            if is_inserted {
                outcomes[planned.place] = Some(planned.inserted());
            } else {
                left.push(planned);
            }
        }
        planned = Vec::new();
        if left.is_empty() {
            break;
        }
        let encoded: Vec<&Encoded> = left.iter().map(|planned| planned.encoded).collect();
        let retained = Retained::find(connection, &encoded)?;
        for was in left {
            let encoded = was.encoded;
            if encoded.call.capture_source != CallSource::Gateway {
                outcomes[was.place] = Some(Outcome::Redelivered(was.id));
                continue;
            }
            let differences = &mut afterwards.differences;
            match retained.verdict(connection, org_id, encoded, session_numbers, differences)? {
                Verdict::Decided(outcome) => outcomes[was.place] = Some(outcome),
                further @ Verdict::Further(_) if !was.is_further => {
                    planned.extend(Planned::of(was.place, encoded, further));
                }
                Verdict::New | Verdict::Further(_) | Verdict::Apart(_) => {
                    return Err(corrupt("inference_calls", "a retained call is absent"));
                }
            }
        }
    }
    call_keys.write(connection, |place| outcomes[place]?.stored())?;
    let outcomes: Option<Vec<Outcome>> = outcomes.into_iter().collect();
    outcomes.ok_or(StoreError::NotStored)
}

/// Inserts calls with their raw payloads and aliases, and returns whether each was inserted.
fn insert(
    connection: &mut Connection,
    org_id: &OrgId,
    calls: &[Planned<'_>],
    session_numbers: &Numbers,
    afterwards: &Afterwards,
) -> Result<Vec<bool>, StoreError> {
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
        .map(|Planned { encoded, .. }| {
            Ok(Columns {
                input_contents: ids(&encoded.input.contents)?,
                output_contents: ids(&encoded.output.contents)?,
                raw_contents: ids(&encoded.raw_contents)?,
                left_out: written(&encoded.call.left_out),
            })
        })
        .collect::<Result<_, StoreError>>()?;
    let mut values = Vec::with_capacity(calls.len() * INSERT.columns);
    for (planned, columns) in calls.iter().zip(&columns) {
        let encoded = planned.encoded;
        let call = &encoded.call;
        let session_number = session_numbers
            .get(call.session_id.as_str())
            .ok_or(corrupt("sessions", "a number is absent"))?;
        values.extend([
            planned.id.into(),
            org_id.as_str().into(),
            Value::Integer(session_number),
            call.user_id.as_ref().map(UserId::as_str).into(),
            column::gateway_letter(call.gateway_provider).into(),
            planned
                .model_call_id()
                .map_or(Value::Null, |id| ModelCallId::stored(id)),
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
            call.started_at.map(Instant::microseconds).into(),
            Value::Integer(i64::from(planned.is_further)),
            column::source_letter(call.capture_source).into(),
            call.usage.cost_usd_micros.into(),
            call.usage.cache_read_tokens.into(),
            call.usage.cache_write_tokens.into(),
            call.usage.cache_write_5m_tokens.into(),
            call.usage.cache_write_1h_tokens.into(),
            call.usage.reasoning_tokens.into(),
            call.usage.tier.as_deref().into(),
            call.response_id.as_deref().into(),
            call.request_id.as_deref().into(),
            call.is_input_unpaired.then_some(1).into(),
        ]);
    }
    let inserted = connection.insert(&INSERT, values.chunks_exact(INSERT.columns))?;
    let mut raw = Vec::with_capacity(calls.len() * INSERT_RAW.columns);
    let mut values = Vec::new();
    for ((planned, columns), call_number) in calls.iter().zip(&columns).zip(&inserted) {
        let Some(call_number) = call_number else {
            continue;
        };
        let encoded = planned.encoded;
        raw.extend([
            Value::Integer(*call_number),
            Value::Integer(encoded.raw_skeleton.codec.number()),
            number(encoded.raw_skeleton.byte_count),
            Value::Blob(&columns.raw_contents),
            Value::Blob(&encoded.raw_skeleton.bytes),
        ]);
        let by_own_id = planned.model_call_id();
        for (ordinal, call_id) in encoded.call.call_aliases.iter().enumerate() {
            if Some(call_id) == by_own_id {
                continue;
            }
            values.extend([
                Value::Text(org_id.as_str()),
                Value::Text(call_id),
                planned.id.into(),
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
