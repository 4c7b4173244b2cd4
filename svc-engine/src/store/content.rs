//! Content-addressed storage of messages and of the large members of raw payloads.
//!
//! An agent sends its whole history again with every call. A call therefore keeps only the ordered
//! ids of its messages, and each distinct message is stored once, as its canonical text. The same
//! holds for the members of a raw payload that repeat ([`super::skeleton`]).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::sync::Cache;
use sha2::{Digest as _, Sha256};
use svc_model::evidence::{Message, Part};
use svc_model::id::SessionId;
use svc_model::json::{Json, Text};
use svc_model::time::Instant;

use super::StoreError;
use super::connection::{Connection, Insert, Lookup};
use super::error::corrupt;
use super::packing::{Packed, unpack};
use super::repetition::Ids;
use super::skeleton::Skeleton;
use super::value::Value;
use super::witness::Epoch;
use crate::fact::InferenceCall;

/// The key of a content: four bytes of its scope, and 20 of its SHA-256.
///
/// Messages are shared within their Session, where they repeat; what every Session of an agent sends
/// (system prompts, tool definitions, price tables) is shared by all. A Session's keys lie together,
/// so storing a call touches one page of the index and not one a message.
pub(super) type ContentDigest = [u8; 24];

/// Returns whether a content is what its key says, whoever shares it.
pub(super) fn is_of(digest: &[u8], bytes: &[u8]) -> bool {
    let hash = Sha256::digest(bytes);
    digest.len() == 24 && digest[4..] == hash[..20]
}

/// With whom a content is shared.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scope {
    /// With every call.
    Global,
    /// With the calls of a Session, known by four bytes of its hash. Where
    /// two Sessions have the same four, equal contents are shared between them.
    Session([u8; 4]),
}

impl Scope {
    fn of(session_id: &SessionId) -> Self {
        let hash = Sha256::digest(session_id.as_str().as_bytes());
        let mut scope = [0; 4];
        scope.copy_from_slice(&hash[..4]);
        Self::Session(scope)
    }

    fn digest(self, bytes: &[u8]) -> ContentDigest {
        let hash = Sha256::digest(bytes);
        let mut digest = [0; 24];
        if let Self::Session(scope) = self {
            digest[..4].copy_from_slice(&scope);
        }
        digest[4..].copy_from_slice(&hash[..20]);
        digest
    }
}

/// Ids of content that is known to be stored, kept in memory: about 100 bytes each.
const KNOWN_MAX: usize = 200_000;

/// One content of a call that is to be stored.
#[derive(Debug)]
pub(super) enum ContentRef {
    /// It is stored under this id.
    Known(i64),
    /// It may not be stored yet.
    New(Box<NewContent>),
}

/// A content that may not be stored yet.
#[derive(Debug)]
pub(super) struct NewContent {
    pub(super) digest: ContentDigest,
    pub(super) packed: Packed,
}

/// One side of a call that is to be stored.
#[derive(Debug)]
pub(super) struct EncodedSide {
    pub(super) contents: Vec<ContentRef>,
    /// Bytes of the canonical list of messages.
    pub(super) byte_count: usize,
    pub(super) part_count: usize,
}

/// A call that is ready for storage.
#[derive(Debug)]
pub struct Encoded {
    pub(super) call: InferenceCall,
    pub(super) received_at: Instant,
    /// When it is captured, once the writer has said so.
    pub(super) captured_at: Instant,
    pub(super) input: EncodedSide,
    pub(super) output: EncodedSide,
    pub(super) raw_contents: Vec<ContentRef>,
    pub(super) raw_skeleton: Packed,
    /// The generation of the memory that its known contents come from, or an earlier one.
    pub(super) generation: u64,
}

impl Encoded {
    /// Returns every content that it refers to.
    pub(super) fn contents(&self) -> impl Iterator<Item = &ContentRef> {
        let sides = [&self.input.contents, &self.output.contents];
        sides.into_iter().flatten().chain(&self.raw_contents)
    }
}

/// Encodes calls, and remembers which content is stored already.
#[derive(Clone)]
pub struct Encoder {
    known: Arc<Cache<ContentDigest, i64>>,
    /// How often everything was forgotten.
    generation: Arc<AtomicU64>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            known: Arc::new(Cache::new(KNOWN_MAX)),
            generation: Arc::default(),
        }
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Encoder")
    }
}

impl Encoder {
    /// Encodes a call.
    pub(super) fn encode(&self, mut call: InferenceCall, received_at: Instant) -> Encoded {
        // Asked before anything is looked up: what is forgotten meanwhile then counts as of before.
        let generation = self.generation();
        let mut buffer = Vec::new();
        let session = Scope::of(&call.session_id);
        let input = self.side(session, &call.input_messages, &mut buffer);
        let output = self.side(session, &call.output_messages, &mut buffer);
        let ids = Ids {
            session_id: call.session_id.as_str(),
            model_call_id: call.model_call_id.as_deref(),
        };
        let (skeleton, raw_contents) = Skeleton::of(
            self,
            session,
            ids,
            &call.raw,
            &call.input_messages,
            &call.output_messages,
        );
        call.raw = Json::Null.into();
        call.input_messages = Vec::new();
        call.output_messages = Vec::new();
        Encoded {
            call,
            received_at,
            captured_at: received_at,
            input,
            output,
            raw_contents,
            raw_skeleton: Packed::new(skeleton),
            generation,
        }
    }

    /// Remembers what a committed transaction stored.
    pub(super) fn remember(&self, digest: ContentDigest, content_id: i64) {
        self.known.insert(digest, content_id);
    }

    /// Forgets everything: the database was set back, or it is not known what was committed last.
    pub(super) fn forget(&self) {
        self.known.clear();
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Returns how often everything was forgotten.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Returns the id of a content that is known to be stored.
    pub(super) fn known(&self, digest: &ContentDigest) -> Option<i64> {
        self.known.get(digest)
    }

    fn side(&self, session: Scope, messages: &[Message], buffer: &mut Vec<u8>) -> EncodedSide {
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
            let shared = message.role == "system" || message.role == "developer";
            let scope = if shared { Scope::Global } else { session };
            side.contents.push(self.reference(scope, buffer));
        }
        side
    }

    /// Returns the reference of a content.
    pub(super) fn reference(&self, scope: Scope, bytes: &[u8]) -> ContentRef {
        let digest = scope.digest(bytes);
        match self.known(&digest) {
            Some(content_id) => ContentRef::Known(content_id),
            None => ContentRef::New(Box::new(NewContent {
                digest,
                packed: Packed::new(bytes.to_vec()),
            })),
        }
    }
}

/// Returns what a call is stored as before it is compressed: what a dictionary is trained on.
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
            unpack(packed.codec.number(), byte_count, packed.bytes).ok()
        })
        .collect()
}

/// Writes the canonical form of a message, in which it is stored, measured and addressed.
pub(super) fn write_message(message: &Message, out: &mut Vec<u8>) {
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
            } => {
                out.extend_from_slice(b",\"id\":");
                Text::from(id.as_str()).write_escaped(out);
                out.extend_from_slice(b",\"name\":");
                name.write_escaped(out);
                out.extend_from_slice(b",\"arguments\":");
                arguments.write_canonical(out);
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
    into: "INSERT INTO content (content_id, digest, codec, byte_count, bytes)",
    columns: 5,
    then: "ON CONFLICT (digest) DO NOTHING",
    returning: "content_id, digest",
    unique: 1,
    is_row_number: true,
};
const CONTENT_BY_DIGEST: Lookup<'_> = Lookup {
    select: "SELECT content_id, digest FROM content WHERE digest",
    then: "",
};
const STORED: Lookup<'_> = Lookup {
    select: "SELECT content_id FROM content WHERE content_id",
    then: "",
};
const CONTENT_BY_ID: Lookup<'_> = Lookup {
    select: "SELECT content_id, codec, byte_count, bytes FROM content WHERE content_id",
    then: "",
};

/// Stores new content and returns the id of each, in the order of `contents`, which is sorted by
/// digest: servers that write the same content at once then wait for each other in one order.
pub(super) fn store(
    connection: &mut Connection,
    epoch: &mut Epoch,
    contents: &[&NewContent],
) -> Result<Vec<i64>, StoreError> {
    debug_assert!(
        contents.is_sorted_by(|a, b| a.digest < b.digest),
        "sorted and distinct"
    );
    let mut values = Vec::with_capacity(contents.len() * CONTENT_INSERT.columns);
    for content in contents {
        values.extend([
            Value::Integer(epoch.next_id()?),
            Value::Blob(&content.digest),
            Value::Integer(content.packed.codec.number()),
            Value::Integer(i64::try_from(content.packed.byte_count).unwrap_or(i64::MAX)),
            Value::Blob(&content.packed.bytes),
        ]);
    }
    let rows = values.chunks_exact(CONTENT_INSERT.columns);
    let inserted = connection.put(&CONTENT_INSERT, rows.clone())?;
    if usize::try_from(inserted) == Ok(contents.len()) {
        let ids = rows.map(|row| match row {
            [Value::Integer(id), ..] => Ok(*id),
            _ => Err(corrupt("content", "its id")),
        });
        return ids.collect();
    }
    let mut ids = vec![None; contents.len()];
    let digests: Vec<Value<'_>> = contents
        .iter()
        .map(|content| Value::Blob(&content.digest))
        .collect();
    connection.lookup(&CONTENT_BY_DIGEST, &[], &digests, |row| {
        let digest = row.blob(1)?;
        let position = contents
            .binary_search_by(|content| content.digest.as_slice().cmp(&digest))
            .map_err(|_| corrupt("content", "its digest"))?;
        ids[position] = Some(row.integer(0)?);
        Ok(())
    })?;
    ids.into_iter()
        .map(|id| id.ok_or(corrupt("content", "it is absent")))
        .collect()
}

/// Makes sure that contents are stored that a sender took for known before everything was forgotten.
/// An id is never given twice, so what is stored under it is what the sender meant.
pub(super) fn verify(
    connection: &mut Connection,
    calls: &[&Encoded],
    generation: u64,
) -> Result<(), StoreError> {
    let outdated = calls.iter().filter(|it| it.generation != generation);
    let known = outdated
        .flat_map(|it| it.contents())
        .filter_map(|it| match it {
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

/// Calls `each` with the id and the canonical bytes of every content.
pub(super) fn read(
    connection: &mut Connection,
    content_ids: &[i64],
    mut each: impl FnMut(i64, &[u8]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let keys: Vec<Value<'_>> = content_ids.iter().copied().map(Value::Integer).collect();
    connection.lookup(&CONTENT_BY_ID, &[], &keys, |row| {
        let (codec, byte_count) = (row.integer(1)?, row.count(2)?);
        let bytes = row.with_blob(3, |bytes| unpack(codec, byte_count, bytes))?;
        each(row.integer(0)?, &bytes?)
    })
}
