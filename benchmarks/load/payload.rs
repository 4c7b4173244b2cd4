//! Request bodies for `POST /ingest/gateway`, `POST /ingest/ci` and `POST /v1/logs`.
//!
//! The gateway's payload is LiteLLM's standard logging object; `payload.json` beside this file is
//! its frame. It contains about two kilobytes of metadata that differ a little from call to call,
//! and the model's entry in the price map. The entry is the same in every call of a model, and
//! larger than many conversations.

use crate::Failure;
use crate::conversation::Message;
use crate::export::export;
use crate::http::{Request, expect_stored, expect_taken, head};
use crate::template::{MarkerShape, Source, Template, marker, uuid};
use crate::text::Author;

/// The frame of a payload, with names in `@` where something is filled in.
const FRAME: &str = include_str!("payload.json");

/// The salt of the UUID that is a session's id.
const SESSION_SALT: u32 = 0;

/// The entries of a price map, shortened and complete.
const MODEL_MAP_SHORT: &str = include_str!("model_map_short.json");
const MODEL_MAP_FULL: &str = include_str!("model_map_full.json");

/// How much of the price map's entry a payload contains.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ModelMap {
    /// About 250 bytes.
    Short,
    /// About 4.4 KiB, as a real proxy sends it.
    Full,
}

impl ModelMap {
    const fn text(self) -> &'static str {
        match self {
            Self::Short => MODEL_MAP_SHORT,
            Self::Full => MODEL_MAP_FULL,
        }
    }
}

/// Returns the session id in the calls of a session number.
pub(crate) fn session_id(number: u64) -> String {
    uuid(number, SESSION_SALT)
}

/// A call that is one template, as in the scenarios with small calls.
#[derive(Clone, Debug)]
pub(crate) struct SingleCall {
    template: Template,
    body_length: usize,
    /// Checks the answer.
    expect: fn(u16, &[u8]) -> Result<(), Failure>,
}

impl SingleCall {
    /// Builds a gateway call whose body has exactly the wanted size, and whose messages are all
    /// different for another session.
    pub(crate) fn gateway(seed: u64, body_length: usize, bearer: &str) -> Self {
        let instructions = Author::new(seed, 0).prose(240);
        let body = padded(seed, body_length, &instructions, |messages, reply| {
            envelope(messages, reply, ModelMap::Short, "")
        });
        Self::new("/ingest/gateway", &body, bearer)
    }

    /// Builds a gateway call of exactly the wanted size in which only the last message and the
    /// answer are new. The rest is the same in every call.
    pub(crate) fn new_turn(seed: u64, body_length: usize, bearer: &str) -> Self {
        let instructions = fixed(Author::new(0, 0).prose(240));
        let body = padded(seed, body_length, &instructions, |messages, reply| {
            envelope(messages, reply, ModelMap::Short, "")
        });
        Self::new("/ingest/gateway", &body, bearer)
    }

    /// Builds a CI result for a repository.
    pub(crate) fn ci(repository: u64, bearer: &str) -> Self {
        let body = format!(
            "{{\"provider\":\"ci_a\",\"run_id\":\"build-{run}\",\"run_attempt\":1,\"repo\":\"acme/service-{repository:02}\",\
             \"repository_provider\":\"github\",\"repository_host\":\"github.com\",\"repository_id\":\"{id}\",\
             \"commit_sha\":\"{commit}\",\"branch\":\"feature/{branch}\",\"workflow_name\":\"build and test\",\
             \"workflow_id\":\"pipeline-{repository:02}\",\"workflow_path\":\"ci/pipeline.groovy\",\"result\":\"passed\",\
             \"run_url\":\"https://ci.example.com/job/service-{repository:02}/{run}/\",\"provider_result\":\"SUCCESS\",\
             \"source_event_type\":\"run.finalized\",\"source_event_id\":\"{event}\"}}",
            run = marker(Source::Call, MarkerShape::Word, 1),
            id = 90_000 + repository,
            commit = marker(Source::Call, MarkerShape::Commit, 2),
            branch = marker(Source::Call, MarkerShape::Word, 3),
            event = marker(Source::Call, MarkerShape::Uuid, 4),
        );
        Self::new("/ingest/ci", &body, bearer)
    }

    /// Builds an export of logs.
    pub(crate) fn logs(seed: u64, bearer: &str) -> Self {
        Self {
            expect: expect_taken,
            ..Self::new("/v1/logs", &export(seed), bearer)
        }
    }

    fn new(path: &str, body: &str, bearer: &str) -> Self {
        Self {
            template: Template::new(head(path, bearer, body.len()) + body),
            body_length: body.len(),
            expect: expect_stored,
        }
    }

    /// Checks the answer to the last request.
    pub(crate) fn expect(&self, status: u16, body: &[u8]) -> Result<(), Failure> {
        (self.expect)(status, body)
    }

    /// Returns the request for a session and a call.
    pub(crate) fn request(&mut self, session: u64, call: u64) -> Request<'_> {
        self.template.patch_session(session);
        self.template.patch_call(call);
        Request {
            pieces: [self.template.bytes(), &[], &[]],
            body_length: self.body_length,
        }
    }
}

/// Builds only a payload, of exactly the wanted size: one line of what a gateway's own logger
/// sends.
pub(crate) fn payload_line(seed: u64, length: usize) -> Template {
    let instructions = Author::new(seed, 0).prose(240);
    let line = padded(seed, length, &instructions, |messages, reply| {
        let mut line = String::new();
        fill_frame(&mut line, messages, reply, ModelMap::Short, "");
        line
    });
    Template::new(line)
}

/// Writes a call with three messages, and adds words until it has the wanted size.
fn padded(
    seed: u64,
    length: usize,
    instructions: &str,
    write: impl Fn(&str, &str) -> String,
) -> String {
    // Its markers are numbered after those of the instructions.
    let mut author = Author::new(seed, 100);
    let mut task = author.prose(360);
    let mut reply = author.prose(280);
    let body = |task: &str, reply: &str| {
        let message = |role, text: &str| {
            let parts = vec![crate::conversation::Part::Text(text.to_owned())];
            Message { role, parts }.wire()
        };
        let messages = format!(
            "{}, {}",
            message("system", instructions),
            message("user", task)
        );
        write(&messages, &message("assistant", reply))
    };
    let missing = length
        .checked_sub(body(&task, &reply).len())
        .unwrap_or_else(|| panic!("the smallest body has {} bytes", body(&task, &reply).len()));
    // Half goes to each text. One byte of plain words is one byte of body.
    task.extend(plain_words().take(missing / 2));
    reply.extend(plain_words().take(missing - missing / 2));
    let body = body(&task, &reply);
    assert_eq!(
        body.len(),
        length,
        "padding is counted in bytes of the body"
    );
    body
}

/// Makes a text the same in every session and every call.
fn fixed(text: String) -> String {
    let mut template = Template::new(text);
    template.patch_session(0);
    template.patch_call(0);
    String::from_utf8(template.bytes().to_vec()).expect("texts are text")
}

pub(crate) fn envelope(messages: &str, reply: &str, map: ModelMap, tools: &str) -> String {
    let session = marker(Source::Session, MarkerShape::Uuid, SESSION_SALT);
    let mut out = format!(
        "{{\"provider\": \"gateway_a\", \"session_id\": \"{session}\", \"user_id\": \"developer-7\", \
         \"capture\": {{\"id\": \"{}\", \"observed_at\": \"{}\"}}, \"payload\": ",
        marker(Source::Call, MarkerShape::Uuid, 5),
        marker(Source::Call, MarkerShape::Instant, 0),
    );
    fill_frame(&mut out, messages, reply, map, tools);
    out.push('}');
    out
}

/// Appends a document with Python's spacing: a blank after each comma, none inside brackets, no
/// line breaks.
fn push_joined(out: &mut String, document: &str) {
    for line in document.lines() {
        out.push_str(line);
        if line.ends_with(',') {
            out.push(' ');
        }
    }
}

/// Appends the frame with its names replaced.
fn fill_frame(out: &mut String, messages: &str, reply: &str, map: ModelMap, tools: &str) {
    let session = marker(Source::Session, MarkerShape::Uuid, SESSION_SALT);
    let mut frame = String::new();
    push_joined(&mut frame, FRAME);
    for (index, piece) in frame.split('@').enumerate() {
        if index % 2 == 0 {
            out.push_str(piece);
            continue;
        }
        match piece {
            "session_id" => out.push_str(&session),
            "call_id" => out.push_str(&marker(Source::Call, MarkerShape::Uuid, 6)),
            "call_uuid" => out.push_str(&marker(Source::Call, MarkerShape::Uuid, 7)),
            "start" => out.push_str(&marker(Source::Call, MarkerShape::Epoch, 0)),
            "end" => out.push_str(&marker(Source::Call, MarkerShape::Epoch, 2_431)),
            "prompt_tokens" => out.push_str(&marker(Source::Call, MarkerShape::Integer, 8)),
            "completion_tokens" => out.push_str(&marker(Source::Call, MarkerShape::Integer, 9)),
            "total_tokens" => out.push_str(&marker(Source::Call, MarkerShape::Integer, 10)),
            "messages" => out.push_str(messages),
            "reply" => out.push_str(reply),
            "tools" if tools.is_empty() => {}
            "tools" => {
                out.push_str(", \"tools\": ");
                out.push_str(tools);
            }
            "model_map" => push_joined(out, map.text()),
            other => unreachable!("the frame names {other:?}"),
        }
    }
}

fn plain_words() -> impl Iterator<Item = char> {
    " and the same check runs once more before the window closes"
        .chars()
        .cycle()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::Value;
    use std::collections::HashSet;

    pub(crate) fn body(request: Request<'_>) -> Value {
        let all = request.pieces.concat();
        let text = String::from_utf8(all).expect("requests are text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        assert!(
            head.contains(&format!("content-length: {}", body.len())),
            "{head}"
        );
        assert_eq!(body.len(), request.body_length);
        assert!(
            !body.contains('~') && !body.contains('@'),
            "every marker was replaced: {body}"
        );
        serde_json::from_str(body).expect("bodies are JSON")
    }

    pub(crate) fn message_texts(value: &Value) -> Vec<String> {
        let payload = &value["payload"];
        let messages = payload["messages"].as_array().expect("messages");
        messages
            .iter()
            .chain([&payload["response"]["choices"][0]["message"]])
            .map(Value::to_string)
            .collect()
    }

    #[test]
    fn small_calls_have_the_wanted_size_and_share_no_message() {
        let mut seen = HashSet::new();
        let mut call = SingleCall::gateway(3, 5_120, "t");
        for number in 0..50 {
            let request = call.request(number, number + 900);
            assert_eq!(request.body_length, 5_120);
            let value = body(request);
            assert_eq!(value["session_id"], session_id(number));
            for text in message_texts(&value) {
                assert!(seen.insert(text));
            }
        }
    }

    #[test]
    fn a_new_turn_adds_only_its_last_message_and_the_answer() {
        let mut call = SingleCall::new_turn(3, 5_120, "t");
        let texts = |value: &Value| message_texts(value);
        let first = texts(&body(call.request(1, 1)));
        let second = texts(&body(call.request(2, 2)));
        let other = texts(&body(SingleCall::new_turn(4, 5_120, "t").request(1, 1)));
        assert_eq!(first.len(), 3);
        for later in [second, other] {
            assert_eq!(later[0], first[0]);
            assert!(later[1] != first[1] && later[2] != first[2]);
        }
    }

    #[test]
    fn each_line_is_a_payload_of_the_wanted_size() {
        let mut line = payload_line(3, 5_120);
        line.patch_session(1);
        line.patch_call(2);
        assert_eq!(line.len(), 5_120);
        assert!(!line.bytes().contains(&b'\n'));
        let value: Value = serde_json::from_slice(line.bytes()).expect("a line is JSON");
        assert_eq!(
            value["metadata"]["requester_metadata"]["session_id"],
            session_id(1)
        );
    }

    #[test]
    fn ci_results_are_objects_of_known_members() {
        let value = body(SingleCall::ci(7, "t").request(1, 2));
        assert_eq!(value["repo"], "acme/service-07");
        assert_eq!(value["commit_sha"].as_str().map(str::len), Some(40));
    }
}
