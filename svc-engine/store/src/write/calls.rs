//! Stores calls: their contents before the row of the organization is locked, their rows after.

use svc_engine_fact::InferenceCall;
use svc_model::id::{FactId, OrgId, UserId};
use svc_model::ingest::RejectedCall;
use svc_model::time::Instant;
use svc_model::usage::CallSource;

use super::appending::{Afterwards, Appending, CallCopy, StagedCalls};
use super::call_keys::{CallKeys, KeyVerdict, KnownCall};
use super::composition::{Compositions, Extent};
use super::content::{self, Encoded, Encoder};
use super::continuations::CopiedCall;
use super::kind::Kind;
use super::outcome::{Outcome, Verdict};
use super::recall::Recalled;
use super::retained_calls::{BY_ID, Retained, whole};
use super::sessions::{Numbers, Sighting};
use super::traces::Traces;
use super::witness::Epoch;
use crate::pack::content_key::{ContentRef, NewContent};
use crate::pack::model_call_id::ModelCallId;
use crate::pack::{column, id_list};
use crate::sql::connection::{Connection, Insert};
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::Value;
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
    input_extent: Extent,
    input_contents: Vec<u8>,
    output_contents: Vec<u8>,
    raw_contents: Vec<u8>,
    left_out: Option<String>,
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
            agent_harness: call.agent.as_deref(),
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
        calls: staged,
        afterwards,
        ..
    } = appending;
    let StagedCalls {
        verdicts,
        keys: call_keys,
        compositions,
        copies,
        ..
    } = staged;
    let (connection, org_id) = (&mut *transaction.connection, transaction.org_id);
    let retained = Retained::find(connection, calls)?;
    *call_keys = CallKeys::find(connection, org_id, calls)?;
    // Everything that is found was committed with its Session.
    let numbers = Numbers::default();
    for (place, encoded) in calls.iter().enumerate() {
        let differences = &mut afterwards.differences;
        let verdict = retained.verdict(connection, org_id, encoded, &numbers, differences)?;
        let id_of = |known: KnownCall| match known {
            KnownCall::Stored(fact_id) => fact_id,
            KnownCall::New(first) => {
                let planned = Planned::of(first, calls[first], verdicts[first]);
                planned.map_or(encoded.call.inference_call_id, |planned| planned.id)
            }
        };
        let verdict = match verdict {
            Verdict::Decided(_) => verdict,
            own => match call_keys.verdict(connection, org_id, calls, place)? {
                KeyVerdict::New => own,
                KeyVerdict::Same(known) => Verdict::Decided(Outcome::Redelivered(id_of(known))),
                KeyVerdict::Copied(of, session_id) => {
                    let verdict = Verdict::Decided(Outcome::Copied(id_of(of)));
                    copies.push(CallCopy {
                        place,
                        of,
                        session_id,
                    });
                    verdict
                }
                KeyVerdict::Apart => apart(connection, &encoded.call)?,
                KeyVerdict::Conflict => match apart(connection, &encoded.call)? {
                    Verdict::Decided(known) => Verdict::Decided(known),
                    _ => rejected(RejectedCall::InferenceCallIdentityConflict),
                },
            },
        };
        let verdict = match (&encoded.continued, verdict) {
            (Some(continued), own) if !matches!(own, Verdict::Decided(_)) => {
                let earlier = call_keys.continued(connection, org_id, continued, place)?;
                let composed = match earlier {
                    Some(earlier) => {
                        let known = encoder.known();
                        let of = (calls, place);
                        compositions.compose(connection, org_id, known, of, earlier)?
                    }
                    None => Err(RejectedCall::AfterUnknown),
                };
                match composed {
                    Ok(()) => own,
                    Err(reason) => {
                        call_keys.give_up(place);
                        rejected(reason)
                    }
                }
            }
            (_, verdict) => verdict,
        };
        verdicts.push(verdict);
    }
    let is_new = |place: &usize| !matches!(verdicts[*place], Verdict::Decided(_));
    let places: Vec<usize> = (0..calls.len()).filter(is_new).collect();
    let new: Vec<&Encoded> = places.iter().map(|place| calls[*place]).collect();
    content::verify(connection, &new, encoder.known().generation())?;
    afterwards.recalled = Recalled::of(connection, org_id, &new, encoder.known())?;
    let composed = places
        .iter()
        .flat_map(|place| compositions.contents(*place));
    let contents = new
        .iter()
        .flat_map(|encoded| encoded.contents())
        .chain(composed);
    resolve(connection, epoch, contents, afterwards, encoder)
}

const fn rejected(reason: RejectedCall) -> Verdict {
    Verdict::Decided(Outcome::Rejected(reason))
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
        calls: staged,
        session_numbers,
        afterwards,
        ..
    } = appending;
    let (connection, org_id) = (&mut *transaction.connection, transaction.org_id);
    let mut outcomes = Vec::with_capacity(calls.len());
    let mut planned = Vec::new();
    let verdicts = std::mem::take(&mut staged.verdicts);
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
        let inserted = insert(
            connection,
            org_id,
            &planned,
            session_numbers,
            (&mut staged.compositions, afterwards),
        )?;
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
    staged
        .keys
        .write(connection, |place| outcomes[place]?.stored())?;
    for copy in std::mem::take(&mut staged.copies) {
        let fact_id = match copy.of {
            KnownCall::Stored(fact_id) => Some(fact_id),
            KnownCall::New(place) => outcomes[place].and_then(Outcome::stored),
        };
        staged.copied.extend(fact_id.map(|fact_id| CopiedCall {
            session_id: calls[copy.place].call.session_id.clone(),
            continues: copy.session_id,
            observed_at: calls[copy.place].call.observed_at,
            fact_id,
        }));
    }
    let outcomes: Option<Vec<Outcome>> = outcomes.into_iter().collect();
    outcomes.ok_or(StoreError::NotStored)
}

/// Inserts calls with their raw payloads and aliases, and returns whether each was inserted.
fn insert(
    connection: &mut Connection,
    org_id: &OrgId,
    calls: &[Planned<'_>],
    session_numbers: &Numbers,
    (compositions, afterwards): (&mut Compositions, &Afterwards),
) -> Result<Vec<bool>, StoreError> {
    let id = |content: &ContentRef| match content {
        ContentRef::Known(id) => Ok(*id),
        ContentRef::New(new) => afterwards
            .content_id(&new.key)
            .ok_or(corrupt("content", "it was not stored")),
    };
    let ids = |contents: &[ContentRef]| contents.iter().map(id).collect::<Result<Vec<_>, _>>();
    let columns: Vec<Columns> = calls
        .iter()
        .map(|Planned { encoded, place, .. }| {
            let output = ids(&encoded.output.contents)?;
            let own = ids(&encoded.input.contents)?;
            let input = compositions.input(*place, own, &output, id)?;
            let composed = compositions.get(*place).map(|composed| composed.input);
            Ok(Columns {
                input_extent: composed.unwrap_or_else(|| Extent::of(&encoded.input)),
                input_contents: id_list::write_ids(input),
                output_contents: id_list::write_ids(output),
                raw_contents: id_list::write_ids(ids(&encoded.raw_contents)?),
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
            number(columns.input_extent.byte_count()),
            number(columns.input_extent.parts),
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
            call.agent.as_deref().into(),
            call.workplace.cwd.as_deref().into(),
            call.workplace.git_branch.as_deref().into(),
            call.workplace.subagent.as_deref().into(),
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
fn resolve<'c>(
    connection: &mut Connection,
    epoch: &mut Epoch,
    contents: impl Iterator<Item = &'c ContentRef>,
    afterwards: &mut Afterwards,
    encoder: &Encoder,
) -> Result<(), StoreError> {
    let mut new: Vec<&NewContent> = Vec::new();
    for content in contents {
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
