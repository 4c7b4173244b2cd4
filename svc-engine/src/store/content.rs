//! Content-addressed storage of messages and of the large members of raw payloads.
//!
//! An agent sends its whole history again with every call. A call therefore keeps only the ordered
//! ids of its messages, and each distinct message is stored once, as its canonical text. The same
//! holds for the members of a raw payload that repeat: the messages as the gateway sent them, tool
//! definitions, price tables. What is left of the payload, with a hole for each of them, is its
//! skeleton.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use quick_cache::sync::Cache;
use sha2::{Digest as _, Sha256};
use svc_model::evidence::{Message, Part};
use svc_model::id::SessionId;
use svc_model::json::{Json, Text};
use svc_model::time::Instant;

use super::StoreError;
use super::connection::{Connection, Insert, Lookup};
use super::error::corrupt;
use super::value::Value;
use crate::fact::InferenceCall;

/// The key of a content: eight bytes of its scope, and 24 of its SHA-256.
///
/// Messages are shared within their Session, where they repeat; what every Session of an agent sends
/// (system prompts, tool definitions, price tables) is shared by all. A Session's keys lie together,
/// so storing a call touches one page of the index and not one a message.
pub(super) type ContentDigest = [u8; 32];

/// With whom a content is shared.
#[derive(Clone, Copy, Debug)]
enum Scope {
    /// With every call.
    Global,
    /// With the calls of a Session, known by eight bytes of its hash.
    Session([u8; 8]),
}

impl Scope {
    fn of(session_id: &SessionId) -> Self {
        let hash = Sha256::digest(session_id.as_str().as_bytes());
        let mut scope = [0; 8];
        scope.copy_from_slice(&hash[..8]);
        Self::Session(scope)
    }

    fn digest(self, bytes: &[u8]) -> ContentDigest {
        let hash = Sha256::digest(bytes);
        let mut digest = [0; 32];
        if let Self::Session(scope) = self {
            digest[..8].copy_from_slice(&scope);
        }
        digest[8..].copy_from_slice(&hash[..24]);
        digest
    }
}

/// Ids of content that is known to be stored, kept in memory: about 100 bytes each.
const KNOWN_MAX: usize = 200_000;
/// Below this many bytes compression does not pay.
const COMPRESSED_FROM: usize = 1_024;
/// The fastest of the ordinary levels: the bytes repeat, so most are never compressed at all.
const COMPRESSION_LEVEL: i32 = 1;
/// A raw member of fewer canonical bytes stays in the skeleton.
const RAW_MEMBER_FROM: usize = 256;
/// A raw message of fewer canonical bytes stays in the skeleton.
const RAW_MESSAGE_FROM: usize = 64;
/// Stands in a skeleton where a content was taken out. ASCII JSON holds no such byte.
const HOLE: u8 = 0;
/// Stands where `{"role":…,"content":"…"}` was: it is made again from the canonical message.
const TEXT_MESSAGE: u8 = 1;
/// Stands where `{"role":…,"tool_call_id":…,"content":"…"}` was, likewise.
const TOOL_MESSAGE: u8 = 2;

/// How bytes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    /// As they are.
    Plain,
    /// Compressed with zstd.
    Zstd,
}

impl Codec {
    pub(super) const fn number(self) -> i64 {
        match self {
            Self::Plain => 0,
            Self::Zstd => 1,
        }
    }

    fn from_number(number: i64) -> Option<Self> {
        match number {
            0 => Some(Self::Plain),
            1 => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// Bytes as they are kept.
#[derive(Clone, Debug)]
pub(super) struct Packed {
    pub(super) codec: Codec,
    pub(super) byte_count: usize,
    pub(super) bytes: Vec<u8>,
}

thread_local! {
    /// Making a compressor costs more than using it.
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
}

impl Packed {
    /// Compresses where it pays.
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        let byte_count = bytes.len();
        if byte_count >= COMPRESSED_FROM
            && let Some(compressed) = compress(&bytes)
            && compressed.len() < byte_count
        {
            return Self {
                codec: Codec::Zstd,
                byte_count,
                bytes: compressed,
            };
        }
        Self {
            codec: Codec::Plain,
            byte_count,
            bytes,
        }
    }
}

fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|compressor| {
        if compressor.is_none() {
            *compressor = zstd::bulk::Compressor::new(COMPRESSION_LEVEL).ok();
        }
        compressor.as_mut()?.compress(bytes).ok()
    })
}

/// Returns the bytes that were packed.
pub(super) fn unpack(codec: i64, byte_count: u64, bytes: Vec<u8>) -> Result<Vec<u8>, StoreError> {
    let length = usize::try_from(byte_count).map_err(|_| corrupt("content", "its length"))?;
    let bytes = match Codec::from_number(codec).ok_or(corrupt("content", "its codec"))? {
        Codec::Plain => bytes,
        Codec::Zstd => {
            zstd::bulk::decompress(&bytes, length).map_err(|_| corrupt("content", "its bytes"))?
        }
    };
    if bytes.len() == length {
        Ok(bytes)
    } else {
        Err(corrupt("content", "its length"))
    }
}

/// One content of a call that is to be stored.
#[derive(Debug)]
pub(super) enum ContentRef {
    /// It is stored under this id.
    Known(i64),
    /// It may not be stored yet.
    New(Box<NewContent>),
    /// It is that of the input message at this place.
    Input(usize),
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
    pub(super) captured_at: Instant,
    pub(super) input: EncodedSide,
    pub(super) output: EncodedSide,
    pub(super) raw_contents: Vec<ContentRef>,
    pub(super) raw_skeleton: Packed,
}

/// Encodes calls, and remembers which content is stored already.
#[derive(Clone)]
pub struct Encoder {
    known: Arc<Cache<ContentDigest, i64>>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            known: Arc::new(Cache::new(KNOWN_MAX)),
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
    pub(super) fn encode(&self, mut call: InferenceCall, captured_at: Instant) -> Encoded {
        let mut buffer = Vec::new();
        let session = Scope::of(&call.session_id);
        let input = self.side(session, &call.input_messages, &mut buffer);
        let output = self.side(session, &call.output_messages, &mut buffer);
        let raw = std::mem::replace(&mut call.raw, Json::Null);
        let (skeleton, raw_contents) = self.split(session, &raw, &call.input_messages, &mut buffer);
        call.input_messages = Vec::new();
        call.output_messages = Vec::new();
        Encoded {
            call,
            captured_at,
            input,
            output,
            raw_contents,
            raw_skeleton: Packed::new(skeleton),
        }
    }

    /// Remembers what a committed transaction stored.
    pub(super) fn remember(&self, digest: ContentDigest, content_id: i64) {
        self.known.insert(digest, content_id);
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

    fn reference(&self, scope: Scope, bytes: &[u8]) -> ContentRef {
        let digest = scope.digest(bytes);
        match self.known(&digest) {
            Some(content_id) => ContentRef::Known(content_id),
            None => ContentRef::New(Box::new(NewContent {
                digest,
                packed: Packed::new(bytes.to_vec()),
            })),
        }
    }

    /// Takes what is likely to repeat out of a raw payload: the messages, and large members of the
    /// first two levels. The response is new with each call and stays.
    fn split(
        &self,
        session: Scope,
        raw: &Json,
        input: &[Message],
        buffer: &mut Vec<u8>,
    ) -> (Vec<u8>, Vec<ContentRef>) {
        let mut skeleton = Vec::with_capacity(4 * 1024);
        let mut contents = Vec::new();
        let Json::Object(members) = raw else {
            raw.write_canonical(&mut skeleton);
            return (skeleton, contents);
        };
        let mut take = |value: &Json, from: usize, out: &mut Vec<u8>, to: &mut Vec<ContentRef>| {
            buffer.clear();
            value.write_canonical(buffer);
            if buffer.len() >= from {
                let scope = if from == RAW_MESSAGE_FROM {
                    session
                } else {
                    Scope::Global
                };
                to.push(self.reference(scope, buffer));
                out.push(HOLE);
            } else {
                out.extend_from_slice(buffer);
            }
        };
        skeleton.push(b'{');
        for (position, (name, value)) in members.iter().enumerate() {
            if position > 0 {
                skeleton.push(b',');
            }
            name.write_escaped(&mut skeleton);
            skeleton.push(b':');
            match value {
                Json::Array(items) if name == "messages" => {
                    skeleton.push(b'[');
                    for (position, item) in items.iter().enumerate() {
                        if position > 0 {
                            skeleton.push(b',');
                        }
                        let message = input.get(position).filter(|_| input.len() == items.len());
                        match message.and_then(|message| derivable(item, message)) {
                            Some(hole) => {
                                skeleton.push(hole);
                                contents.push(ContentRef::Input(position));
                            }
                            None => {
                                take(item, RAW_MESSAGE_FROM, &mut skeleton, &mut contents);
                            }
                        }
                    }
                    skeleton.push(b']');
                }
                value if name == "response" => value.write_canonical(&mut skeleton),
                Json::Object(members) => {
                    skeleton.push(b'{');
                    for (position, (name, value)) in members.iter().enumerate() {
                        if position > 0 {
                            skeleton.push(b',');
                        }
                        name.write_escaped(&mut skeleton);
                        skeleton.push(b':');
                        match value {
                            Json::Object(_) | Json::Array(_) | Json::String(_) => {
                                take(value, RAW_MEMBER_FROM, &mut skeleton, &mut contents);
                            }
                            _ => value.write_canonical(&mut skeleton),
                        }
                    }
                    skeleton.push(b'}');
                }
                Json::Array(_) | Json::String(_) => {
                    take(value, RAW_MEMBER_FROM, &mut skeleton, &mut contents);
                }
                _ => value.write_canonical(&mut skeleton),
            }
        }
        skeleton.push(b'}');
        (skeleton, contents)
    }
}

/// Returns the hole for a raw message that its canonical form says all of: a plain text message or
/// tool result, whose members stand in the usual order.
fn derivable(raw: &Json, message: &Message) -> Option<u8> {
    let (Json::Object(members), [part], None) = (raw, &message.parts[..], &message.finish_reason)
    else {
        return None;
    };
    let mut members = members.iter();
    let mut next = |name: &str| {
        let (found, value) = members.next()?;
        if found == name { value.as_text() } else { None }
    };
    if *next("role")? != message.role {
        return None;
    }
    let (hole, same) = match part {
        Part::Text { content } => (TEXT_MESSAGE, next("content")? == content),
        Part::ToolCallResponse { id, result } => {
            let same_id = *next("tool_call_id")? == **id;
            (
                TOOL_MESSAGE,
                same_id && Some(next("content")?) == result.as_text(),
            )
        }
        Part::Reasoning { .. } | Part::ToolCall { .. } => return None,
    };
    (same && members.next().is_none()).then_some(hole)
}

/// Returns the raw message that [`derivable`] found in a canonical one.
fn derive(canonical: &[u8]) -> Option<Vec<u8>> {
    let message: Message = svc_model::json::from_written(canonical).ok()?;
    let mut raw = b"{\"role\":".to_vec();
    message.role.write_escaped(&mut raw);
    match message.parts.first()? {
        Part::Text { content } => {
            raw.extend_from_slice(b",\"content\":");
            content.write_escaped(&mut raw);
        }
        Part::ToolCallResponse { id, result } => {
            raw.extend_from_slice(b",\"tool_call_id\":");
            Text::from(id.as_str()).write_escaped(&mut raw);
            raw.extend_from_slice(b",\"content\":");
            result.as_text()?.write_escaped(&mut raw);
        }
        Part::Reasoning { .. } | Part::ToolCall { .. } => return None,
    }
    raw.push(b'}');
    Some(raw)
}

/// Returns a raw payload from its skeleton and its contents.
pub(super) fn join(skeleton: &[u8], contents: &[Arc<Vec<u8>>]) -> Option<Vec<u8>> {
    let mut contents = contents.iter();
    let mut raw = Vec::with_capacity(skeleton.len());
    let mut rest = skeleton;
    while let Some(hole) = rest.iter().position(|byte| *byte <= TOOL_MESSAGE) {
        raw.extend_from_slice(&rest[..hole]);
        let content = contents.next()?;
        match rest[hole] {
            HOLE => raw.extend_from_slice(content),
            _ => raw.extend_from_slice(&derive(content)?),
        }
        rest = &rest[hole + 1..];
    }
    raw.extend_from_slice(rest);
    contents.next().is_none().then_some(raw)
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
    into: "INSERT INTO content (digest, codec, byte_count, bytes)",
    columns: 4,
    then: "ON CONFLICT (digest) DO NOTHING",
    returning: "content_id, digest",
    unique: 0,
};
const CONTENT_BY_DIGEST: Lookup = Lookup {
    select: "SELECT content_id, digest FROM content WHERE digest",
};
const CONTENT_BY_ID: Lookup = Lookup {
    select: "SELECT content_id, codec, byte_count, bytes FROM content WHERE content_id",
};

/// The statements of this module, for the test that prepares each of them.
#[cfg(test)]
pub(super) fn statements() -> Vec<String> {
    vec![
        CONTENT_INSERT.text(2),
        CONTENT_BY_DIGEST.text(2),
        CONTENT_BY_ID.text(2),
    ]
}

/// Stores new content and returns the id of each, in the order of `contents`, which is sorted by
/// digest: servers that write the same content at once then wait for each other in one order.
pub(super) fn store(
    connection: &mut Connection,
    contents: &[&NewContent],
) -> Result<Vec<i64>, StoreError> {
    debug_assert!(
        contents.is_sorted_by(|a, b| a.digest < b.digest),
        "sorted and distinct"
    );
    let mut values = Vec::with_capacity(contents.len() * CONTENT_INSERT.columns);
    for content in contents {
        values.extend([
            Value::Blob(&content.digest),
            Value::Integer(content.packed.codec.number()),
            Value::Integer(i64::try_from(content.packed.byte_count).unwrap_or(i64::MAX)),
            Value::Blob(&content.packed.bytes),
        ]);
    }
    let mut ids = connection.insert(&CONTENT_INSERT, &values)?;
    let missing: Vec<Value<'_>> = contents
        .iter()
        .zip(&ids)
        .filter(|(_, id)| id.is_none())
        .map(|(content, _)| Value::Blob(&content.digest))
        .collect();
    if !missing.is_empty() {
        let mut found = |row: &super::value::Row<'_>| {
            let digest = row.blob(1)?;
            let position = contents
                .binary_search_by(|content| content.digest.as_slice().cmp(&digest))
                .map_err(|_| corrupt("content", "its digest"))?;
            ids[position] = Some(row.integer(0)?);
            Ok(())
        };
        connection.lookup(&CONTENT_BY_DIGEST, &missing, &mut found)?;
    }
    ids.into_iter()
        .map(|id| id.ok_or(corrupt("content", "it is absent")))
        .collect()
}

/// Calls `each` with the id and the bytes of every content.
pub(super) fn read(
    connection: &mut Connection,
    content_ids: &[i64],
    mut each: impl FnMut(i64, Vec<u8>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let keys: Vec<Value<'_>> = content_ids.iter().copied().map(Value::Integer).collect();
    connection.lookup(&CONTENT_BY_ID, &keys, |row| {
        each(
            row.integer(0)?,
            unpack(row.integer(1)?, row.count(2)?, row.blob(3)?)?,
        )
    })
}

/// Writes ids as the differences between neighbours, each in as few bytes as it needs: a history
/// that was stored in order takes about a byte a message.
pub(super) fn write_ids(ids: impl IntoIterator<Item = i64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut previous = 0_i64;
    for id in ids {
        let difference = id.wrapping_sub(previous);
        previous = id;
        #[expect(clippy::cast_sign_loss, reason = "the sign goes to the lowest bit")]
        let mut rest = ((difference << 1) ^ (difference >> 63)) as u64;
        while rest >= 0x80 {
            #[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        #[expect(clippy::cast_possible_truncation, reason = "below 128")]
        bytes.push(rest as u8);
    }
    bytes
}

/// Reads what [`write_ids`] wrote.
pub(super) fn read_ids(bytes: &[u8]) -> Result<Vec<i64>, StoreError> {
    let mut ids = Vec::with_capacity(bytes.len());
    let mut previous = 0_i64;
    let mut rest = 0_u64;
    let mut shift = 0;
    for byte in bytes {
        if shift > 63 {
            return Err(corrupt("inference_calls", "its list of contents"));
        }
        rest |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 != 0 {
            shift += 7;
            continue;
        }
        #[expect(
            clippy::cast_possible_wrap,
            reason = "the sign comes from the lowest bit"
        )]
        let difference = (rest >> 1) as i64 ^ -((rest & 1) as i64);
        previous = previous.wrapping_add(difference);
        ids.push(previous);
        (rest, shift) = (0, 0);
    }
    if shift == 0 {
        Ok(ids)
    } else {
        Err(corrupt("inference_calls", "its list of contents"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ids_come_back(ids in proptest::collection::vec(any::<i64>(), 0..50)) {
            prop_assert_eq!(read_ids(&write_ids(ids.iter().copied())).unwrap(), ids);
        }

        #[test]
        fn bytes_that_are_no_ids_are_an_error_not_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..50)) {
            drop(read_ids(&bytes));
        }

        #[test]
        fn packed_bytes_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
            let packed = Packed::new(bytes.clone());
            let count = packed.byte_count as u64;
            prop_assert_eq!(unpack(packed.codec.number(), count, packed.bytes).unwrap(), bytes);
        }
    }

    #[test]
    fn a_history_takes_about_a_byte_a_message() {
        assert_eq!(write_ids(1_000..1_100).len(), 101);
    }

    #[test]
    fn a_raw_payload_is_joined_from_its_skeleton() {
        let long = "x".repeat(1_000);
        let text = format!(
            r#"{{"messages":[{{"role":"user","content":"{long}"}},{{"role":"u"}}],"model":"m","big":"{long}","metadata":{{"a":1.10,"b":["{long}"]}},"response":{{"c":"{long}"}},"e":{{}}}}"#
        );
        let raw = Json::parse(text.as_bytes()).unwrap();
        let (skeleton, contents) =
            Encoder::default().split(Scope::Global, &raw, &[], &mut Vec::new());
        assert_eq!(contents.len(), 3);
        let bytes: Vec<_> = contents
            .into_iter()
            .map(|content| match content {
                ContentRef::Known(_) | ContentRef::Input(_) => unreachable!("all are new"),
                ContentRef::New(new) => {
                    let NewContent { packed, .. } = *new;
                    let count = packed.byte_count as u64;
                    Arc::new(unpack(packed.codec.number(), count, packed.bytes).unwrap())
                }
            })
            .collect();
        assert_eq!(join(&skeleton, &bytes).unwrap(), text.as_bytes());
    }
}
