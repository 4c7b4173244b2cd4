//! A raw payload without what is stored elsewhere.
//!
//! Most of a payload repeats: the messages with every call of a Session, tool definitions and price
//! tables with every call of any Session. Capture names these segments, and each is stored as a
//! content. The rest is the skeleton. Anything that a message contains is left out of the skeleton
//! and of the segments: a mark replaces it, so that the segments of most messages have the same
//! template. A mark is one byte, lower than a blank, because ASCII JSON contains no such byte.

use std::sync::Arc;

use svc_engine_fact::{RawPayload, Repeats, Segment};
use svc_model::evidence::Message;
use svc_model::json::Json;

use super::content_key::{ByHash, ContentRef, Scope};
use super::number;
use super::repetition::{CallIds, RepeatedValue, Repetition, RepetitionForm};

/// Stands for a content. Its index among the contents of the payload follows.
const CONTENT: u8 = 0;
/// Stands for a template of the input message after the last one. The index of the template
/// follows.
const NEXT_MESSAGE: u8 = 1;
/// Stands for a template of an input message. The number of the message follows, then the index of
/// the template.
const MESSAGE: u8 = 2;
const SESSION_ID: u8 = 3;
const MODEL_CALL_ID: u8 = 4;
/// From here on, a mark stands for a part in one of the forms. The index of the part follows.
const PART: u8 = 8;
const MARKS_END: u8 = PART + RepetitionForm::COUNT;

/// A segment of fewer canonical bytes stays in the skeleton if it repeats everywhere.
const EVERYWHERE_FROM: usize = 256;
/// A segment of fewer canonical bytes stays in the skeleton if it repeats within the Session.
const IN_SESSION_FROM: usize = 128;
/// A shorter template contains little of its message, so other messages share it.
const OWN_TEMPLATE_FROM: usize = 512;

/// Takes a raw payload apart.
pub(crate) struct Skeleton<'r, 'm> {
    /// Refers to a content.
    reference: &'r dyn Fn(Scope, &[u8]) -> ContentRef,
    ids: CallIds<'m>,
    input: &'m [Message],
    /// What the answer contains, which repeats outside the segments.
    repeated: Repetition<'m>,
    segments: &'m [Segment],
    /// Where the walk through the payload is.
    path: Vec<usize>,
    /// The message after the last one that a template stood for.
    next_message: usize,
    text: Vec<u8>,
    contents: Vec<ContentRef>,
    /// The index of each content, by its bytes.
    places: ByHash<Vec<u8>, usize>,
}

impl<'r, 'm> Skeleton<'r, 'm> {
    /// Returns the skeleton of a payload and what was taken out of the payload. `input` and
    /// `output` are the messages that capture made of it.
    pub(crate) fn of(
        reference: &'r dyn Fn(Scope, &[u8]) -> ContentRef,
        ids: CallIds<'m>,
        raw: &'m RawPayload,
        input: &'m [Message],
        output: &'m [Message],
    ) -> (Vec<u8>, Vec<ContentRef>) {
        let mut skeleton = Self {
            reference,
            ids,
            input,
            repeated: Repetition::of(ids, output),
            segments: &raw.segments,
            path: Vec::new(),
            next_message: 0,
            text: Vec::with_capacity(4 * 1024),
            contents: Vec::new(),
            places: ByHash::default(),
        };
        skeleton.walk(&raw.payload);
        (skeleton.text, skeleton.contents)
    }

    /// Writes the value at the path.
    fn walk(&mut self, value: &Json) {
        // Segments before the path were named, but do not exist in the payload.
        while let [passed, rest @ ..] = self.segments
            && passed.place < self.path
        {
            self.segments = rest;
        }
        let Some(segment) = self.segments.first() else {
            return write(value, &mut self.repeated, &mut self.text);
        };
        if segment.place == self.path {
            self.segments = &self.segments[1..];
            return self.segment(segment, value);
        }
        match value {
            Json::Object(members) if segment.place.starts_with(&self.path) => {
                self.text.push(b'{');
                for (position, (name, value)) in members.iter().enumerate() {
                    if position > 0 {
                        self.text.push(b',');
                    }
                    name.write_escaped(&mut self.text);
                    self.text.push(b':');
                    self.step(position, value);
                }
                self.text.push(b'}');
            }
            Json::Array(items) if segment.place.starts_with(&self.path) => {
                self.text.push(b'[');
                for (position, value) in items.iter().enumerate() {
                    if position > 0 {
                        self.text.push(b',');
                    }
                    self.step(position, value);
                }
                self.text.push(b']');
            }
            value => write(value, &mut self.repeated, &mut self.text),
        }
    }

    fn step(&mut self, position: usize, value: &Json) {
        self.path.push(position);
        self.walk(value);
        self.path.pop();
    }

    fn segment(&mut self, segment: &Segment, value: &Json) {
        let mut bytes = Vec::with_capacity(EVERYWHERE_FROM);
        let message = segment
            .message
            .and_then(|place| Some((place, self.input.get(place..=place)?)));
        if let Some((place, message)) = message {
            write(value, &mut Repetition::of(self.ids, message), &mut bytes);
            if place == self.next_message {
                self.text.push(NEXT_MESSAGE);
            } else {
                self.text.push(MESSAGE);
                number::write(place as u64, &mut self.text);
            }
            self.next_message = place + 1;
            let scope = match segment.repeats {
                Repeats::InSession if bytes.len() >= OWN_TEMPLATE_FROM => Scope::Session,
                Repeats::InSession | Repeats::Everywhere => Scope::Global,
            };
            return self.content(scope, bytes);
        }
        let (scope, from) = match segment.repeats {
            Repeats::InSession => (Scope::Session, IN_SESSION_FROM),
            Repeats::Everywhere => (Scope::Global, EVERYWHERE_FROM),
        };
        value.write_canonical(&mut bytes);
        if bytes.len() < from {
            return write(value, &mut self.repeated, &mut self.text);
        }
        self.text.push(CONTENT);
        self.content(scope, bytes);
    }

    /// Writes the index of a content, which is in the list of contents once.
    fn content(&mut self, scope: Scope, bytes: Vec<u8>) {
        let place = self.places.get(&bytes).copied().unwrap_or_else(|| {
            self.contents.push((self.reference)(scope, &bytes));
            let place = self.contents.len() - 1;
            self.places.insert(bytes, place);
            place
        });
        number::write(place as u64, &mut self.text);
    }
}

/// Writes a value canonically, with a mark in place of whatever is stored elsewhere.
fn write(value: &Json, repeated: &mut Repetition<'_>, out: &mut Vec<u8>) {
    let place = match value {
        Json::Null | Json::Bool(_) | Json::Number(_) => None,
        Json::String(_) | Json::Array(_) | Json::Object(_) => repeated.find(value),
    };
    match (place, value) {
        (Some(RepeatedValue::SessionId), _) => out.push(SESSION_ID),
        (Some(RepeatedValue::ModelCallId), _) => out.push(MODEL_CALL_ID),
        (Some(RepeatedValue::Part(form, part)), _) => {
            out.push(PART + form.number());
            number::write(part as u64, out);
        }
        (None, Json::Array(items)) => {
            out.push(b'[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push(b',');
                }
                write(item, repeated, out);
            }
            out.push(b']');
        }
        (None, Json::Object(members)) => {
            out.push(b'{');
            for (position, (name, value)) in members.iter().enumerate() {
                if position > 0 {
                    out.push(b',');
                }
                name.write_escaped(out);
                out.push(b':');
                write(value, repeated, out);
            }
            out.push(b'}');
        }
        (None, value) => value.write_canonical(out),
    }
}

/// Returns whether the marks of a skeleton refer only to existing contents and input messages,
/// given how many of each there are.
pub(crate) fn has_its_pieces(skeleton: &[u8], contents: usize, messages: usize) -> bool {
    let mut rest = skeleton;
    let mut next_message = 0;
    while let Some(at) = rest.iter().position(|byte| *byte < MARKS_END) {
        let mark = rest[at];
        rest = &rest[at + 1..];
        let message = match mark {
            NEXT_MESSAGE => Some(next_message),
            MESSAGE => match read_place(&mut rest) {
                Some(message) => Some(message),
                None => return false,
            },
            _ => None,
        };
        if let Some(message) = message {
            if message >= messages {
                return false;
            }
            next_message = message + 1;
        }
        let place = match mark {
            SESSION_ID | MODEL_CALL_ID => continue,
            CONTENT | NEXT_MESSAGE | MESSAGE | PART..MARKS_END => read_place(&mut rest),
            _ => return false,
        };
        let is_content = mark < SESSION_ID;
        if !place.is_some_and(|place| !is_content || place < contents) {
            return false;
        }
    }
    true
}

fn read_place(bytes: &mut &[u8]) -> Option<usize> {
    usize::try_from(number::read(bytes)?).ok()
}

/// What a raw payload is joined from, together with its skeleton.
#[derive(Debug)]
pub(crate) struct Pieces<'m> {
    pub(crate) contents: Vec<Arc<Vec<u8>>>,
    pub(crate) ids: CallIds<'m>,
    pub(crate) input: &'m [Message],
    pub(crate) output: &'m [Message],
}

impl Pieces<'_> {
    /// Returns the raw payload of a skeleton.
    pub(crate) fn join(&self, skeleton: &[u8]) -> Option<Vec<u8>> {
        let mut raw = Vec::with_capacity(skeleton.len());
        let repeated = Repetition::of(self.ids, self.output);
        let mut next_message = 0;
        fill(skeleton, &repeated, &mut raw, |mark, rest, raw| {
            let message = match mark {
                CONTENT => None,
                NEXT_MESSAGE => Some(next_message),
                MESSAGE => Some(read_place(rest)?),
                _ => return None,
            };
            let content = self.contents.get(read_place(rest)?)?;
            let Some(message) = message else {
                raw.extend_from_slice(content);
                return Some(());
            };
            next_message = message.checked_add(1)?;
            let repeated = Repetition::of(self.ids, self.input.get(message..next_message)?);
            fill(content, &repeated, raw, |_, _, _| None)
        })?;
        Some(raw)
    }
}

/// Appends a text, and in place of its marks what is stored elsewhere. `other` is called with a
/// mark of another kind and the bytes after it.
fn fill(
    text: &[u8],
    repeated: &Repetition<'_>,
    raw: &mut Vec<u8>,
    mut other: impl FnMut(u8, &mut &[u8], &mut Vec<u8>) -> Option<()>,
) -> Option<()> {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte < MARKS_END) {
        raw.extend_from_slice(&rest[..at]);
        let mark = rest[at];
        rest = &rest[at + 1..];
        match mark {
            SESSION_ID => repeated.write(RepeatedValue::SessionId, raw)?,
            MODEL_CALL_ID => repeated.write(RepeatedValue::ModelCallId, raw)?,
            PART..MARKS_END => {
                let form = RepetitionForm::from_number(mark - PART)?;
                repeated.write(RepeatedValue::Part(form, read_place(&mut rest)?), raw)?;
            }
            mark => other(mark, &mut rest, raw)?,
        }
    }
    raw.extend_from_slice(rest);
    Some(())
}

#[cfg(test)]
mod tests {
    use svc_model::evidence::Part;
    use svc_model::json::Text;

    use super::*;
    use crate::pack::packing::unpack;
    use crate::write::content::References;
    use crate::write::known_contents::KnownContents;

    const IDS: CallIds<'_> = CallIds {
        session_id: "session-1",
        model_call_id: Some("chatcmpl-1"),
    };

    struct Taken {
        skeleton: Vec<u8>,
        contents: Vec<Arc<Vec<u8>>>,
    }

    fn take(raw: &RawPayload, input: &[Message], output: &[Message]) -> Taken {
        let known = KnownContents::default();
        let references = References::of(&known, IDS.session_id);
        let reference = |scope, bytes: &[u8]| references.reference(scope, bytes);
        let (skeleton, contents) = Skeleton::of(&reference, IDS, raw, input, output);
        let bytes = contents.into_iter().map(|content| {
            let ContentRef::New(new) = content else {
                unreachable!("nothing is known yet")
            };
            let packed = new.packed;
            let count = packed.byte_count as u64;
            Arc::new(unpack(packed.codec.number(), count, packed.bytes).unwrap())
        });
        Taken {
            skeleton,
            contents: bytes.collect(),
        }
    }

    impl Taken {
        fn join(&self, input: &[Message], output: &[Message]) -> Option<Vec<u8>> {
            let pieces = Pieces {
                contents: self.contents.clone(),
                ids: IDS,
                input,
                output,
            };
            pieces.join(&self.skeleton)
        }
    }

    fn json(text: &str) -> Json {
        Json::parse(text.as_bytes()).unwrap()
    }

    fn message(role: &str, parts: Vec<Part>) -> Message {
        Message {
            role: Text::from(role),
            parts,
            finish_reason: None,
        }
    }

    fn text(content: &str) -> Part {
        Part::Text {
            content: Text::from(content),
        }
    }

    fn called(id: &str, arguments: &str) -> Part {
        Part::ToolCall {
            id: id.to_owned(),
            name: Text::from("edit"),
            arguments: json(arguments).into_object().unwrap(),
            sent: None,
        }
    }

    fn segment(place: &[usize], repeats: Repeats, message: Option<usize>) -> Segment {
        Segment {
            place: place.to_vec(),
            repeats,
            message,
        }
    }

    #[test]
    fn segments_are_taken_out_at_any_depth_and_under_any_name() {
        let long = "x".repeat(1_000);
        let raw = format!(
            r#"{{"n":1.10,"span":{{"tools":["{long}"],"few":[1],"input":[{{"c":"{long}"}},{{"c":"{long}"}}]}},"e":{{}},"last":"{long}"}}"#
        );
        let payload = RawPayload {
            payload: json(&raw),
            segments: vec![
                segment(&[0, 5], Repeats::Everywhere, None),
                segment(&[1, 0], Repeats::Everywhere, None),
                segment(&[1, 1], Repeats::Everywhere, None),
                segment(&[1, 2, 0], Repeats::InSession, None),
                segment(&[1, 2, 1], Repeats::InSession, Some(7)),
                segment(&[1, 9], Repeats::InSession, None),
                segment(&[3], Repeats::InSession, None),
            ],
        };
        let taken = take(&payload, &[], &[]);
        assert_eq!(taken.contents.len(), 3, "two of them are equal");
        assert!(taken.skeleton.len() < 100, "{:?}", taken.skeleton);
        assert_eq!(taken.join(&[], &[]).unwrap(), raw.as_bytes());
        let missing = Taken {
            contents: taken.contents[1..].to_vec(),
            ..taken
        };
        assert_eq!(missing.join(&[], &[]), None, "a content is missing");
    }

    /// Payloads of two interfaces, in which the messages contain everything but the names of the
    /// members.
    #[test]
    fn message_content_is_not_stored_again_and_messages_share_templates() {
        let arguments = r#"{"path":"src/é.rs","text":"a\nb"}"#;
        let quoted = |text: &str| String::from_utf8(Json::from(text).to_canonical()).unwrap();
        let spaced = quoted(r#"{"path": "src/\u00e9.rs", "text": "a\nb"}"#);
        let canonical = String::from_utf8(json(arguments).to_canonical()).unwrap();
        let items = [
            r#"{"role":"user","content":"first question"}"#.to_owned(),
            r#"{"role":"user","content":"a\n\ud800"}"#.to_owned(),
            format!(
                r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_1","type":"function","function":{{"name":"edit","arguments":{spaced}}}}}]}}"#
            ),
            format!(
                r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_2","type":"function","function":{{"name":"edit","arguments":{spaced}}}}}]}}"#
            ),
            format!(
                r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"call_3","name":"edit","input":{canonical}}}]}}"#
            ),
            r#"{"role":"tool","tool_call_id":"call_1","content":"[1.10, {\"a\": null}]"}"#
                .to_owned(),
            r#"{"role":"tool","tool_call_id":"call_2","content":[1.10,{"a":null}]}"#.to_owned(),
        ];
        let raw = format!(
            r#"{{"id":"chatcmpl-1","prompt":[{}],"answer":{{"id":"chatcmpl-1","user":"session-1","text":"the answer","thinking":["the answer"]}}}}"#,
            items.join(",")
        );
        let lone = json(r#""a\n\ud800""#).into_text().unwrap();
        let result = |id: &str| Part::ToolCallResponse {
            id: id.to_owned(),
            result: json(r#"[1.10,{"a":null}]"#),
        };
        let input = [
            message("user", vec![text("first question")]),
            message("user", vec![Part::Text { content: lone }]),
            message("assistant", vec![called("call_1", arguments)]),
            message("assistant", vec![called("call_2", arguments)]),
            message("assistant", vec![called("call_3", arguments)]),
            message("tool", vec![result("call_1")]),
            message("tool", vec![result("call_2")]),
        ];
        let output = [message("assistant", vec![text("the answer")])];
        let payload = RawPayload {
            payload: json(&raw),
            segments: (0..items.len())
                .map(|item| segment(&[1, item], Repeats::InSession, Some(item)))
                .collect(),
        };
        let taken = take(&payload, &input, &output);
        assert_eq!(taken.join(&input, &output).unwrap(), raw.as_bytes());
        let templates: Vec<_> = taken
            .contents
            .iter()
            .map(|content| String::from_utf8_lossy(content).into_owned())
            .collect();
        assert_eq!(
            templates,
            [
                "{\"role\":\"user\",\"content\":\u{8}\0}",
                "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\u{9}\0,\"type\":\"function\",\"function\":{\"name\":\"edit\",\"arguments\":\r\0}}]}",
                "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\u{9}\0,\"name\":\"edit\",\"input\":\n\0}]}",
                "{\"role\":\"tool\",\"tool_call_id\":\u{9}\0,\"content\":\r\0}",
                "{\"role\":\"tool\",\"tool_call_id\":\u{9}\0,\"content\":\n\0}",
            ]
        );
        let skeleton = String::from_utf8_lossy(&taken.skeleton).into_owned();
        assert!(!skeleton.contains("the answer"), "{skeleton}");
        assert!(!skeleton.contains("chatcmpl"), "{skeleton}");
        assert!(!skeleton.contains("session-1"), "{skeleton}");
        assert_eq!(
            taken.join(&input[1..], &output),
            None,
            "a message is missing"
        );
    }

    #[test]
    fn a_segment_that_differs_from_its_message_is_stored_as_it_is() {
        let raw = r#"{"prompt":[{"role":"user","content":"redacted here"},5]}"#;
        let input = [message("user", vec![text("and not there")])];
        let payload = RawPayload {
            payload: json(raw),
            segments: vec![
                segment(&[0, 0], Repeats::InSession, Some(0)),
                segment(&[0, 1], Repeats::InSession, Some(0)),
            ],
        };
        let taken = take(&payload, &input, &[]);
        assert_eq!(taken.join(&input, &[]).unwrap(), raw.as_bytes());
    }

    #[test]
    fn malformed_skeletons_never_panic() {
        let pieces = Pieces {
            contents: vec![Arc::new(vec![PART, 9])],
            ids: CallIds::default(),
            input: &[],
            output: &[],
        };
        for skeleton in [
            &[CONTENT][..],
            &[CONTENT, 1],
            &[NEXT_MESSAGE, 0],
            &[MESSAGE, 0x80],
            &[MESSAGE, 0, 0],
            &[MODEL_CALL_ID],
            &[5],
            &[PART, 0],
            &[
                PART + RepetitionForm::COUNT - 1,
                0xff,
                0xff,
                0xff,
                0xff,
                0xff,
                0xff,
                0xff,
                0xff,
                0xff,
                0xff,
            ],
        ] {
            assert_eq!(pieces.join(skeleton), None, "{skeleton:?}");
        }
    }
}
