//! Payloads of a gateway around conversations.

use crate::conversation::{Conversation, Message, Part, Plan};
use crate::template::{MarkerShape, Source, Template, marker};
use crate::text::Author;

const FRAME: &str = include_str!("../load/payload.json");
const MODEL_MAP: [&str; 2] = [
    include_str!("../load/model_map_short.json"),
    include_str!("../load/model_map_full.json"),
];

/// Returns the payload of one short question and its answer, of a size of 5 KiB with its frame. A
/// Session has twenty, and a system prompt.
pub(crate) fn question(number: u64) -> String {
    let (session, seed) = (number / 20, number);
    let message = |author: &mut Author, role, bytes| {
        let parts = vec![Part::Text(author.prose(bytes))];
        Message { role, parts }.wire()
    };
    let system = message(&mut Author::new(session, 0), "system", 240);
    let mut author = Author::new(seed, 100);
    let user = message(&mut author, "user", 620);
    let messages = [system, user].join(", ");
    let reply = message(&mut author, "assistant", 540);
    frame(session, seed, &messages, &reply, MODEL_MAP[0])
}

/// Returns the payloads of a whole session, each with the history of those before.
pub(crate) fn session(seed: u64, turns: usize, scale: f64) -> Vec<String> {
    let plan = Plan {
        seed,
        first_word: 0,
        turns,
        scale,
        silent: Vec::new(),
        user_every: 8,
    };
    let conversation = Conversation::new(&plan);
    let calls = conversation.turns.iter().enumerate().map(|(turn, answer)| {
        let messages: Vec<String> = conversation.input(turn).map(Message::wire).collect();
        let call = seed * 10_000 + turn as u64;
        frame(
            seed,
            call,
            &messages.join(", "),
            &answer.reply.wire(),
            MODEL_MAP[1],
        )
    });
    calls.collect()
}

/// Returns a payload whose names in `@` are filled in.
fn frame(session: u64, call: u64, messages: &str, reply: &str, model_map: &str) -> String {
    let mut payload = String::new();
    for (index, piece) in FRAME.split('@').enumerate() {
        let call_marker = |shape, salt| marker(Source::Call, shape, salt);
        payload.push_str(&match piece {
            piece if index % 2 == 0 => piece.to_owned(),
            "session_id" => marker(Source::Session, MarkerShape::Uuid, 0),
            "call_id" => call_marker(MarkerShape::Uuid, 6),
            "call_uuid" => call_marker(MarkerShape::Uuid, 7),
            "start" => call_marker(MarkerShape::Epoch, 0),
            "end" => call_marker(MarkerShape::Epoch, 2_431),
            "prompt_tokens" => call_marker(MarkerShape::Integer, 8),
            "completion_tokens" => call_marker(MarkerShape::Integer, 9),
            "total_tokens" => call_marker(MarkerShape::Integer, 10),
            "messages" => messages.to_owned(),
            "tools" => String::new(),
            "reply" => reply.to_owned(),
            "model_map" => model_map.to_owned(),
            other => unreachable!("the frame names {other:?}"),
        });
    }
    let mut template = Template::new(payload);
    template.patch_session(session);
    template.patch_call(call);
    String::from_utf8(template.bytes().to_vec()).expect("the frame is text")
}
