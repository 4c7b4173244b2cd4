//! Content-addressed storage of messages and of the large members of raw payloads.
//!
//! An agent sends its whole history again with every call. A call therefore keeps only the ordered
//! ids of its messages, and each distinct message is stored once, as its canonical text. The same
//! holds for the members of a raw payload that repeat ([`crate::pack::skeleton`]).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use svc_engine_fact::{ContinuedInput, InferenceCall};
use svc_model::evidence::{Message, Part};
use svc_model::json::{Json, Text};
use svc_model::time::Instant;
use svc_model::usage::CallSource;

use super::known_contents::{KnownContents, KnownSession};
use super::witness::Epoch;
use crate::pack::content_key::{
    ContentKey, ContentRef, NewContent, Scope, SessionKey, hash_of, session_key,
};
#[cfg(any(test, feature = "testing"))]
use crate::pack::packing;
use crate::pack::packing::Packed;
use crate::pack::repetition::CallIds;
use crate::pack::skeleton::Skeleton;
use crate::sql::connection::{Connection, Insert, Lookup};
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::Value;

/// Room for a message of ordinary length.
const MESSAGE_BYTES: usize = 4 * 1024;

/// One side of a call that is to be stored.
#[derive(Debug)]
pub(crate) struct EncodedSide {
    pub(crate) contents: Vec<ContentRef>,
    /// Bytes of the canonical list of messages.
    pub(crate) byte_count: usize,
    pub(crate) part_count: usize,
}

/// A call that is ready for storage.
#[derive(Debug)]
pub struct Encoded {
    pub(crate) call: InferenceCall,
    pub(crate) session: SessionKey,
    pub(crate) received_at: Instant,
    /// When it is captured, once the writer has set it; until then, when it was received.
    pub(crate) captured_at: Instant,
    /// The call whose input and output come before its input.
    pub(crate) continued: Option<ContinuedInput>,
    pub(crate) input: EncodedSide,
    pub(crate) output: EncodedSide,
    pub(crate) raw_contents: Vec<ContentRef>,
    pub(crate) raw_skeleton: Packed,
    /// The generation of [`KnownContents`] that its known contents come from, or an earlier one.
    pub(crate) generation: u64,
}

impl Encoded {
    /// Returns every content that it refers to.
    pub(crate) fn contents(&self) -> impl Iterator<Item = &ContentRef> {
        let sides = [&self.input.contents, &self.output.contents];
        sides.into_iter().flatten().chain(&self.raw_contents)
    }
}

/// Encodes calls, and remembers which content is stored already.
#[derive(Clone, Default)]
pub struct Encoder(Arc<KnownContents>);

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Encoder")
    }
}

impl Encoder {
    /// Encodes a call.
    pub(crate) fn encode(&self, call: InferenceCall, received_at: Instant) -> Encoded {
        self.encode_continued(call, None, received_at)
    }

    /// Encodes a call whose input begins with all that another call sent and received.
    pub(crate) fn encode_continued(
        &self,
        mut call: InferenceCall,
        continued: Option<ContinuedInput>,
        received_at: Instant,
    ) -> Encoded {
        // Read before any look-up: if everything is forgotten meanwhile, this generation is
        // outdated.
        let generation = self.0.generation();
        let mut buffer = Vec::with_capacity(MESSAGE_BYTES);
        let references = References::of(&self.0, call.session_id.as_str());
        let input = references.side(&call.input_messages, &mut buffer);
        let output = references.side(&call.output_messages, &mut buffer);
        let ids = CallIds {
            session_id: call.session_id.as_str(),
            // Any other call may be stored without its id, if another call has it.
            model_call_id: call
                .model_call_id
                .as_deref()
                .filter(|_| call.capture_source == CallSource::Gateway),
        };
        let (skeleton, raw_contents) = Skeleton::of(
            &|scope, bytes| references.reference(scope, bytes),
            ids,
            &call.raw,
            &call.input_messages,
            &call.output_messages,
        );
        let session = references.session;
        call.raw = Json::Null.into();
        call.input_messages = Vec::new();
        call.output_messages = Vec::new();
        Encoded {
            call,
            session,
            received_at,
            captured_at: received_at,
            continued,
            input,
            output,
            raw_contents,
            raw_skeleton: Packed::new(skeleton),
            generation,
        }
    }

    /// Returns what is known to be stored.
    pub(crate) fn known(&self) -> &KnownContents {
        &self.0
    }
}

/// Makes the references to the contents of one call.
#[derive(Debug)]
pub(crate) struct References<'k> {
    known: &'k KnownContents,
    session: SessionKey,
    known_session: Option<KnownSession>,
}

impl<'k> References<'k> {
    pub(crate) fn of(known: &'k KnownContents, session_id: &str) -> Self {
        let session = session_key(session_id);
        Self {
            known,
            session,
            known_session: known.session(&session),
        }
    }

    fn side(&self, messages: &[Message], buffer: &mut Vec<u8>) -> EncodedSide {
        let mut side = EncodedSide {
            contents: Vec::with_capacity(messages.len()),
            // The brackets, and a comma between two messages.
            byte_count: 2 + messages.len().saturating_sub(1),
            part_count: 0,
        };
        for message in messages {
            buffer.clear();
            write_message(message, buffer);
            side.byte_count += buffer.len();
            side.part_count += message.parts.len();
            let is_shared = message.role == "system" || message.role == "developer";
            let scope = if is_shared {
                Scope::Global
            } else {
                Scope::Session
            };
            side.contents.push(self.reference(scope, buffer));
        }
        side
    }

    /// Returns the reference of a content.
    pub(crate) fn reference(&self, scope: Scope, bytes: &[u8]) -> ContentRef {
        let hash = hash_of(bytes);
        let (session, stored) = match scope {
            Scope::Global => (None, self.known.shared(&hash)),
            Scope::Session => {
                let known = self.known_session.as_ref();
                (
                    Some(self.session),
                    known.and_then(|contents| contents.get(&hash)),
                )
            }
        };
        match stored {
            Some(content_id) => ContentRef::Known(content_id),
            None => ContentRef::New(Box::new(NewContent {
                key: ContentKey { session, hash },
                packed: Packed::new(bytes),
            })),
        }
    }
}

/// Returns a call's contents and skeleton before compression, as samples to train a dictionary on.
#[cfg(any(test, feature = "testing"))]
pub fn samples(call: InferenceCall) -> Vec<Vec<u8>> {
    let captured_at = call.observed_at;
    let encoded = Encoder::default().encode(call, captured_at);
    let contents = [
        encoded.input.contents,
        encoded.output.contents,
        encoded.raw_contents,
    ];
    let new = contents
        .into_iter()
        .flatten()
        .filter_map(|content| match content {
            ContentRef::New(new) => Some(new.packed),
            ContentRef::Known(_) => None,
        });
    new.chain([encoded.raw_skeleton])
        .filter_map(|packed| {
            let byte_count = u64::try_from(packed.byte_count).ok()?;
            packing::unpack(packed.codec.number(), byte_count, packed.bytes).ok()
        })
        .collect()
}

/// Writes the canonical form of a message, which is stored, measured and hashed.
pub(crate) fn write_message(message: &Message, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"role\":");
    message.role.write_escaped(out);
    out.extend_from_slice(b",\"parts\":[");
    for (position, part) in message.parts.iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(part.part_type().as_str().as_bytes());
        out.push(b'"');
        match part {
            Part::Text { content } | Part::Reasoning { content } => {
                out.extend_from_slice(b",\"content\":");
                content.write_escaped(out);
            }
            Part::ToolCall {
                id,
                name,
                arguments,
                sent,
            } => {
                out.extend_from_slice(b",\"id\":");
                Text::from(id.as_str()).write_escaped(out);
                out.extend_from_slice(b",\"name\":");
                name.write_escaped(out);
                out.extend_from_slice(b",\"arguments\":");
                arguments.write_canonical(out);
                if let Some(sent) = sent {
                    out.extend_from_slice(b",\"sent\":");
                    sent.write_escaped(out);
                }
            }
            Part::ToolCallResponse { id, result } => {
                out.extend_from_slice(b",\"id\":");
                Text::from(id.as_str()).write_escaped(out);
                out.extend_from_slice(b",\"result\":");
                result.write_canonical(out);
            }
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"],\"finish_reason\":");
    match &message.finish_reason {
        Some(reason) => reason.write_escaped(out),
        None => out.extend_from_slice(b"null"),
    }
    out.push(b'}');
}

const CONTENT_INSERT: Insert = Insert {
    into: "INSERT INTO content (content_id, digest, is_shared, codec, byte_count, bytes)",
    columns: 6,
    then: "ON CONFLICT (digest) WHERE is_shared = 1 DO NOTHING",
    returning: "content_id, digest",
    unique: 1,
    is_row_number: true,
};
const SHARED_BY_DIGEST: Lookup<'_> = Lookup {
    select: "SELECT content_id, digest FROM content WHERE is_shared = 1 AND digest",
    then: "",
};
const STORED: Lookup<'_> = Lookup {
    select: "SELECT content_id FROM content WHERE content_id",
    then: "",
};

/// Stores new contents and returns their ids in the order of `contents`. This is sorted by key, so
/// that servers that write the same contents at once cannot deadlock.
pub(crate) fn store(
    connection: &mut Connection,
    epoch: &mut Epoch,
    contents: &[&NewContent],
) -> Result<Vec<i64>, StoreError> {
    debug_assert!(
        contents.is_sorted_by(|a, b| a.key < b.key),
        "sorted and distinct"
    );
    let mut ids = Vec::with_capacity(contents.len());
    let mut values = Vec::with_capacity(contents.len() * CONTENT_INSERT.columns);
    for content in contents {
        let content_id = epoch.next_id()?;
        ids.push(content_id);
        values.extend([
            Value::Integer(content_id),
            Value::Blob(&content.key.hash),
            Value::Integer(i64::from(content.key.session.is_none())),
            Value::Integer(content.packed.codec.number()),
            Value::Integer(i64::try_from(content.packed.byte_count).unwrap_or(i64::MAX)),
            Value::Blob(&content.packed.bytes),
        ]);
    }
    let rows = values.chunks_exact(CONTENT_INSERT.columns);
    let inserted = connection.put(&CONTENT_INSERT, rows)?;
    if usize::try_from(inserted) == Ok(contents.len()) {
        return Ok(ids);
    }
    // Shared ones come first.
    let shared = contents.partition_point(|content| content.key.session.is_none());
    let digests = contents[..shared].iter();
    let digests: Vec<Value<'_>> = digests
        .map(|content| Value::Blob(&content.key.hash))
        .collect();
    let mut found = 0;
    connection.lookup(&SHARED_BY_DIGEST, &[], &digests, |row| {
        let digest = row.blob(1)?;
        let position = contents[..shared]
            .binary_search_by(|content| content.key.hash.as_slice().cmp(&digest))
            .map_err(|_| corrupt("content", "its digest"))?;
        ids[position] = row.integer(0)?;
        found += 1;
        Ok(())
    })?;
    if found < shared {
        return Err(corrupt("content", "it is absent"));
    }
    Ok(ids)
}

/// Checks that the contents that a sender found known before everything was forgotten are stored.
/// No id is given out twice, so what is stored under it is what the sender meant.
pub(crate) fn verify(
    connection: &mut Connection,
    calls: &[&Encoded],
    generation: u64,
) -> Result<(), StoreError> {
    let outdated = calls.iter().filter(|call| call.generation != generation);
    let known = outdated
        .flat_map(|call| call.contents())
        .filter_map(|content| match content {
            ContentRef::Known(content_id) => Some(*content_id),
            ContentRef::New(_) => None,
        });
    let mut missing: BTreeSet<i64> = known.collect();
    let keys: Vec<Value<'_>> = missing.iter().copied().map(Value::Integer).collect();
    connection.lookup(&STORED, &[], &keys, |row| {
        missing.remove(&row.integer(0)?);
        Ok(())
    })?;
    if missing.is_empty() {
        Ok(())
    } else {
        Err(StoreError::ContentLost)
    }
}
