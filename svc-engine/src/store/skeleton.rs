//! A raw payload without what is stored elsewhere.
//!
//! Most of a payload repeats: the messages with every call of a Session, tool definitions and price
//! tables with every call at all. Each of these is a content, and what is left, with a hole for each
//! of them, is the skeleton. ASCII JSON holds no byte below a blank, so a hole is one such byte.

use std::sync::Arc;

use svc_model::evidence::{Message, Part};
use svc_model::json::{self, Json, Object, Text};

use super::content::{ContentRef, Encoder, Scope};

/// A member of fewer canonical bytes stays.
const MEMBER_FROM: usize = 256;
/// A message of fewer canonical bytes stays.
const MESSAGE_FROM: usize = 64;
/// Stands where a content was taken out.
const HOLE: u8 = 0;
/// Stands where `{"role":…,"content":"…"}` was: it is made again from the canonical message.
const TEXT_MESSAGE: u8 = 1;
/// Stands where `{"role":…,"tool_call_id":…,"content":"…"}` was, likewise.
const TOOL_MESSAGE: u8 = 2;

/// Takes a raw payload apart: the messages, and large members of the first two levels. The response
/// is new with each call and stays.
pub(super) struct Skeleton<'e> {
    encoder: &'e Encoder,
    session: Scope,
    text: Vec<u8>,
    contents: Vec<ContentRef>,
    buffer: Vec<u8>,
}

impl<'e> Skeleton<'e> {
    /// Returns the skeleton of a payload and what was taken out of it, in order. `input` are the
    /// messages that capture made of it.
    pub(super) fn of(
        encoder: &'e Encoder,
        session: Scope,
        raw: &Json,
        input: &[Message],
    ) -> (Vec<u8>, Vec<ContentRef>) {
        let mut skeleton = Self {
            encoder,
            session,
            text: Vec::with_capacity(4 * 1024),
            contents: Vec::new(),
            buffer: Vec::new(),
        };
        match raw {
            Json::Object(members) => skeleton.payload(members, input),
            other => other.write_canonical(&mut skeleton.text),
        }
        (skeleton.text, skeleton.contents)
    }

    fn payload(&mut self, members: &Object, input: &[Message]) {
        self.members(members, |skeleton, name, value| match value {
            Json::Array(items) if name == "messages" => skeleton.messages(items, input),
            value if name == "response" => value.write_canonical(&mut skeleton.text),
            Json::Object(members) => {
                skeleton.members(members, |skeleton, _, value| skeleton.member(value));
            }
            value => skeleton.member(value),
        });
    }

    fn members(&mut self, members: &Object, mut each: impl FnMut(&mut Self, &Text, &Json)) {
        self.text.push(b'{');
        for (position, (name, value)) in members.iter().enumerate() {
            if position > 0 {
                self.text.push(b',');
            }
            name.write_escaped(&mut self.text);
            self.text.push(b':');
            each(self, name, value);
        }
        self.text.push(b'}');
    }

    fn messages(&mut self, items: &[Json], input: &[Message]) {
        self.text.push(b'[');
        for (position, item) in items.iter().enumerate() {
            if position > 0 {
                self.text.push(b',');
            }
            // Where capture dropped none, a message stands at the place of its item.
            let message = input.get(position).filter(|_| input.len() == items.len());
            if let Some(hole) = message.and_then(|message| derivable(item, message)) {
                self.text.push(hole);
                self.contents.push(ContentRef::Input(position));
            } else {
                self.take(item, self.session, MESSAGE_FROM);
            }
        }
        self.text.push(b']');
    }

    fn member(&mut self, value: &Json) {
        match value {
            Json::Object(_) | Json::Array(_) | Json::String(_) => {
                self.take(value, Scope::Global, MEMBER_FROM);
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => value.write_canonical(&mut self.text),
        }
    }

    /// Takes a value out when it has this many bytes.
    fn take(&mut self, value: &Json, scope: Scope, from: usize) {
        self.buffer.clear();
        value.write_canonical(&mut self.buffer);
        if self.buffer.len() >= from {
            self.contents
                .push(self.encoder.reference(scope, &self.buffer));
            self.text.push(HOLE);
        } else {
            self.text.extend_from_slice(&self.buffer);
        }
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
    let message: Message = json::from_written(canonical).ok()?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::content::write_message;
    use crate::store::packing::unpack;
    use crate::testing::builders::text;

    fn parts(raw: &str, input: &[Message]) -> (Vec<u8>, Vec<Arc<Vec<u8>>>) {
        let raw = Json::parse(raw.as_bytes()).unwrap();
        let encoder = Encoder::default();
        let (skeleton, contents) = Skeleton::of(&encoder, Scope::Global, &raw, input);
        let bytes = contents.into_iter().map(|content| {
            Arc::new(match content {
                ContentRef::Known(_) => unreachable!("nothing is known yet"),
                ContentRef::New(new) => {
                    let packed = new.packed;
                    let count = packed.byte_count as u64;
                    unpack(packed.codec.number(), count, packed.bytes).unwrap()
                }
                ContentRef::Input(position) => {
                    let mut canonical = Vec::new();
                    write_message(&input[position], &mut canonical);
                    canonical
                }
            })
        });
        (skeleton, bytes.collect())
    }

    #[test]
    fn a_payload_is_joined_from_its_skeleton() {
        let long = "x".repeat(1_000);
        let raw = format!(
            r#"{{"messages":[{{"role":"user","content":"{long}"}},{{"role":"u"}}],"model":"m","big":"{long}","metadata":{{"a":1.10,"b":["{long}"]}},"response":{{"c":"{long}"}},"e":{{}}}}"#
        );
        let (skeleton, contents) = parts(&raw, &[]);
        assert_eq!(contents.len(), 3);
        assert_eq!(join(&skeleton, &contents).unwrap(), raw.as_bytes());
        assert_eq!(
            join(&skeleton, &contents[1..]),
            None,
            "a content is missing"
        );
    }

    #[test]
    fn a_message_that_its_canonical_form_says_all_of_is_derived() {
        let raw = r#"{"messages":[{"role":"user","content":"a\n\ud800"},{"role":"tool","tool_call_id":"t","content":"plain"},{"content":"b","role":"user"}]}"#;
        let mut input = vec![
            text("user", ""),
            Message {
                role: Text::from("tool"),
                parts: vec![Part::ToolCallResponse {
                    id: "t".to_owned(),
                    result: Json::from("plain"),
                }],
                finish_reason: None,
            },
            text("user", "b"),
        ];
        let lone = Json::parse(br#""a\n\ud800""#).unwrap().into_text().unwrap();
        input[0].parts = vec![Part::Text { content: lone }];
        let (skeleton, contents) = parts(raw, &input);
        assert_eq!(
            contents.len(),
            2,
            "members in another order are kept as they stand"
        );
        assert_eq!(join(&skeleton, &contents).unwrap(), raw.as_bytes());
    }
}
