//! Composes the input of a call that continues another call: that call's input, then its answer, then
//! what was sent. Nothing that is stored already is stored or read again, but for answers with a finish
//! reason, which an input does not have.

use std::collections::HashMap;

use svc_model::evidence::Message;
use svc_model::id::{FactId, OrgId};
use svc_model::ingest::RejectedCall;
use svc_model::json;
use svc_model::limit::{COMPOSED_INPUT_BYTES_MAX, COMPOSED_INPUT_MESSAGES_MAX};

use super::call_keys::KnownCall;
use super::content::{Encoded, EncodedSide, References, write_message};
use super::known_contents::KnownContents;
use super::retained_calls::is_erased;
use crate::pack::content_key::{ContentRef, NewContent, Scope};
use crate::pack::id_list;
use crate::pack::packing::unpack;
use crate::sql::connection::{Connection, Lookup};
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::Value;

const CALL: &str = "SELECT input_contents, output_contents, input_byte_count, input_part_count,
    output_byte_count, output_part_count, session_id
    FROM all_inference_calls WHERE inference_call_id = $1";
const CONTENTS: Lookup<'_> = Lookup {
    select: "SELECT content_id, codec, byte_count, bytes FROM content WHERE content_id",
    then: "",
};
/// How a message without a finish reason ends in its stored form.
const UNFINISHED: &[u8] = b",\"finish_reason\":null}";

/// How much messages are, without the list around them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    messages: usize,
    bytes: usize,
    pub(crate) parts: usize,
}

impl Extent {
    /// Returns the extent of a list of messages whose canonical form has so many bytes.
    fn of_list(messages: usize, byte_count: usize, parts: usize) -> Self {
        let around = 2 + messages.saturating_sub(1);
        let bytes = byte_count.saturating_sub(around);
        Self {
            messages,
            bytes,
            parts,
        }
    }

    pub(crate) fn of(side: &EncodedSide) -> Self {
        Self::of_list(side.contents.len(), side.byte_count, side.part_count)
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            messages: self.messages + other.messages,
            bytes: self.bytes + other.bytes,
            parts: self.parts + other.parts,
        }
    }

    /// Returns the bytes of the canonical list of the messages.
    pub(crate) const fn byte_count(self) -> usize {
        self.bytes + 2 + self.messages.saturating_sub(1)
    }

    const fn fits(self) -> bool {
        self.messages <= COMPOSED_INPUT_MESSAGES_MAX
            && self.byte_count() as u64 <= COMPOSED_INPUT_BYTES_MAX
    }
}

/// What comes before the messages that were sent with a call.
#[derive(Debug)]
pub(crate) struct Composition {
    base: Base,
    /// The extent of the whole input.
    pub(crate) input: Extent,
    /// The answer of the earlier call, message by message: what differs from what is stored of it.
    answer: Vec<Option<ContentRef>>,
}

#[derive(Debug)]
enum Base {
    /// A stored call, with the ids of its input and its output.
    Stored(Vec<i64>, Vec<i64>),
    /// The call at this place of the transaction.
    New(usize),
}

/// The compositions of a transaction, by the places of the calls.
#[derive(Debug, Default)]
pub(crate) struct Compositions {
    by_place: HashMap<usize, Composition>,
    /// The ids of the messages of calls that others continue, once they are known.
    ids: HashMap<usize, (Vec<i64>, Vec<i64>)>,
}

/// An earlier call: its input, its answer, and what its stored messages are.
struct Earlier<'c> {
    base: Base,
    input: Extent,
    output: Extent,
    answer: Vec<Stored<'c>>,
}

/// A message of an answer that is stored, or about to be.
enum Stored<'c> {
    Id(i64),
    New(&'c NewContent),
}

impl Compositions {
    /// Composes the input of the call at a place.
    pub(crate) fn compose(
        &mut self,
        connection: &mut Connection,
        org_id: &OrgId,
        known: &KnownContents,
        (calls, place): (&[&Encoded], usize),
        earlier: KnownCall,
    ) -> Result<Result<(), RejectedCall>, StoreError> {
        let encoded = calls[place];
        let earlier = match earlier {
            KnownCall::Stored(fact_id) => match stored(connection, org_id, fact_id)? {
                Ok(earlier) => earlier,
                Err(rejected) => return Ok(Err(rejected)),
            },
            KnownCall::New(place) => self.staged(calls, place),
        };
        let session_id = encoded.call.session_id.as_str();
        let references = References::of(known, session_id);
        let mut output = earlier.output;
        let bytes = message_bytes(connection, &earlier.answer)?;
        let mut answer = Vec::with_capacity(bytes.len());
        for bytes in &bytes {
            let unfinished = unfinished(bytes)?;
            if let Some(unfinished) = &unfinished {
                output.bytes = output.bytes + unfinished.len() - bytes.len();
            }
            answer.push(unfinished.map(|bytes| references.reference(Scope::Session, &bytes)));
        }
        let input = earlier.input.and(output).and(Extent::of(&encoded.input));
        if !input.fits() {
            return Ok(Err(RejectedCall::InputTooLarge));
        }
        let composition = Composition {
            base: earlier.base,
            input,
            answer,
        };
        if let Base::New(place) = composition.base {
            self.ids.entry(place).or_default();
        }
        self.by_place.insert(place, composition);
        Ok(Ok(()))
    }

    /// Returns a call of the transaction as one that another continues.
    fn staged<'c>(&self, calls: &[&'c Encoded], place: usize) -> Earlier<'c> {
        let encoded = calls[place];
        let composed = self.by_place.get(&place);
        let answer = encoded.output.contents.iter().map(|content| match content {
            ContentRef::Known(id) => Stored::Id(*id),
            ContentRef::New(new) => Stored::New(new),
        });
        Earlier {
            base: Base::New(place),
            input: composed.map_or_else(|| Extent::of(&encoded.input), |composed| composed.input),
            output: Extent::of(&encoded.output),
            answer: answer.collect(),
        }
    }

    /// Returns how the input of the call at a place begins, if it continues another call.
    pub(crate) fn get(&self, place: usize) -> Option<&Composition> {
        self.by_place.get(&place)
    }

    /// Returns the contents that the composed input of the call at a place needs besides those of the
    /// call.
    pub(crate) fn contents(&self, place: usize) -> impl Iterator<Item = &ContentRef> {
        let composed = self.by_place.get(&place);
        composed
            .into_iter()
            .flat_map(|composed| composed.answer.iter().flatten())
    }

    /// Returns the ids of the whole input of the call at a place, whose own messages have these ids,
    /// and remembers them for the calls that continue it. `id` returns the id of a content.
    pub(crate) fn input(
        &mut self,
        place: usize,
        own: Vec<i64>,
        output: &[i64],
        id: impl Fn(&ContentRef) -> Result<i64, StoreError>,
    ) -> Result<Vec<i64>, StoreError> {
        let input = match self.by_place.get(&place) {
            None => own,
            Some(composition) => {
                let (before, answer) = match &composition.base {
                    Base::Stored(input, output) => (input, output),
                    Base::New(place) => {
                        let ids = self.ids.get(place);
                        let (input, output) =
                            ids.ok_or(corrupt("inference_calls", "an earlier call is absent"))?;
                        (input, output)
                    }
                };
                let mut input = before.clone();
                for (stored, replaced) in answer.iter().zip(&composition.answer) {
                    input.push(replaced.as_ref().map_or(Ok(*stored), &id)?);
                }
                input.extend(own);
                input
            }
        };
        if let Some(ids) = self.ids.get_mut(&place) {
            *ids = (input.clone(), output.to_vec());
        }
        Ok(input)
    }
}

/// Returns a stored call as one that another continues.
fn stored(
    connection: &mut Connection,
    org_id: &OrgId,
    fact_id: FactId,
) -> Result<Result<Earlier<'static>, RejectedCall>, StoreError> {
    let found = connection.first(CALL, &[fact_id.into()], |row| {
        let lists = [0, 1].map(|place| row.with_blob(place, id_list::read_ids));
        let [input, output] = lists;
        let count = |place| Ok::<_, StoreError>(usize::try_from(row.count(place)?).unwrap_or(0));
        Ok((
            (input??, output??),
            [count(2)?, count(3)?, count(4)?, count(5)?],
            row.optional_text(6)?,
        ))
    })?;
    let Some(((input, output), [input_bytes, input_parts, output_bytes, output_parts], session_id)) =
        found
    else {
        return Ok(Err(RejectedCall::AfterUnknown));
    };
    let is_empty = input.is_empty() && output.is_empty();
    if let Some(session_id) = session_id.filter(|_| is_empty)
        && is_erased(connection, org_id.as_str(), &session_id, fact_id)?
    {
        return Ok(Err(RejectedCall::AfterErased));
    }
    Ok(Ok(Earlier {
        input: Extent::of_list(input.len(), input_bytes, input_parts),
        output: Extent::of_list(output.len(), output_bytes, output_parts),
        answer: output.iter().copied().map(Stored::Id).collect(),
        base: Base::Stored(input, output),
    }))
}

/// Returns the canonical bytes of messages.
fn message_bytes(
    connection: &mut Connection,
    messages: &[Stored<'_>],
) -> Result<Vec<Vec<u8>>, StoreError> {
    let ids = messages.iter().filter_map(|message| match message {
        Stored::Id(id) => Some(Value::Integer(*id)),
        Stored::New(_) => None,
    });
    let ids: Vec<Value<'_>> = ids.collect();
    let mut by_id = HashMap::new();
    connection.lookup(&CONTENTS, &[], &ids, |row| {
        let (codec, byte_count) = (row.integer(1)?, row.count(2)?);
        let bytes = row.with_blob(3, |bytes| unpack(codec, byte_count, bytes))??;
        by_id.insert(row.integer(0)?, bytes);
        Ok(())
    })?;
    let bytes = messages.iter().map(|message| match message {
        Stored::Id(id) => by_id
            .get(id)
            .cloned()
            .ok_or(corrupt("content", "it is absent")),
        Stored::New(new) => {
            let packed = &new.packed;
            unpack(
                packed.codec.number(),
                packed.byte_count as u64,
                &packed.bytes[..],
            )
        }
    });
    bytes.collect()
}

/// Returns a message without its finish reason, if it has one.
fn unfinished(bytes: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
    if bytes.ends_with(UNFINISHED) {
        return Ok(None);
    }
    let message = json::from_slice::<Message>(bytes);
    let mut message = message.map_err(|_| corrupt("content", "it is no message"))?;
    message.finish_reason = None;
    let mut unfinished = Vec::with_capacity(bytes.len());
    write_message(&message, &mut unfinished);
    Ok(Some(unfinished))
}
