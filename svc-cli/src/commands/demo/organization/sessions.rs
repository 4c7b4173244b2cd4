//! The Sessions of the organization. For each change, one plans it, one writes the code, one writes
//! the tests and one reviews them.

use svc_model::json::{Json, Object};

use super::Timeline;
use super::change::{CHANGES, Change, Oddity};
use super::repository::session_id;
use crate::commands::demo::conversation::Conversation;

pub(super) const PLAN: &str = "plan";
pub(super) const CODE: &str = "code";
pub(super) const TESTS: &str = "tests";
const REVIEW: &str = "review";
/// The kinds of Sessions, with the minutes after which each begins, counted from the start of its
/// change.
const KINDS: [(&str, i64); 4] = [(PLAN, 0), (CODE, 6), (TESTS, 18), (REVIEW, 30)];

/// The first capture id; each Session has room for sixteen calls.
const FIRST_CAPTURE: u128 = 0x5bc0_de01_0000_4000_8000_0000_0000_0000;
const CAPTURES: u128 = 16;
const TURN_US: i64 = 38_000_000;

const SYSTEM: &str = "You are a coding agent in the repository acme/orders. Use the tools, change as little as possible, and say what you did in one sentence.";

pub(super) fn all(timeline: Timeline) -> Vec<Conversation> {
    let mut all = Vec::new();
    for (number, change) in CHANGES.iter().enumerate() {
        for (kind, minutes) in KINDS {
            let place = all.len() as u128;
            all.push(Conversation {
                session_id: session_id(change, kind),
                user: change.author.user,
                model: change.author.model,
                provider: change.author.provider,
                first_capture: FIRST_CAPTURE + place * CAPTURES,
                observed_us: timeline.change(number, minutes).microseconds(),
                turn_us: TURN_US,
                messages: messages(change, kind),
            });
        }
    }
    all
}

fn messages(change: &Change, kind: &str) -> Vec<Json> {
    let prompts = [
        (
            "plan",
            "Plan it: which file, which functions, what can go wrong?",
        ),
        ("code", "Write the code, and nothing else."),
        ("tests", "Write the tests."),
        ("review", "Read it again. Is anything missing?"),
    ];
    let ask = prompts.iter().find(|(name, _)| *name == kind);
    let ask = ask.map_or("", |(_, ask)| ask);
    let mut messages = vec![
        message("system", SYSTEM),
        message("user", &format!("{}. {ask}", change.title)),
    ];
    match kind {
        CODE => code(change, &mut messages),
        TESTS => {
            write(change, TESTS, &change.tests_path(), change.tests, &mut messages);
            messages.push(message(
                "assistant",
                &format!("The tests of `{}` are in place and pass.", change.name),
            ));
        }
        PLAN => messages.push(message(
            "assistant",
            &format!(
                "One module, `{}`, with a narrow interface and no new dependency. The edges are what \
                 matters: empty input, the largest value, a second call.",
                change.code_path()
            ),
        )),
        _ => messages.push(message(
            "assistant",
            "Nothing is missing. A name could be shorter, but the tests say what it means.",
        )),
    }
    messages
}

fn code(change: &Change, messages: &mut Vec<Json>) {
    let path = change.code_path();
    let arguments = Object::from_iter([("path", Json::from("orders/__init__.py"))]);
    let read = format!("call_{}_read", change.name);
    messages.push(asking(
        "I will look at what is there.",
        &read,
        "Read",
        arguments,
    ));
    messages.push(answered(&read, "\"\"\"Orders.\"\"\"\n"));
    if change.oddity == Oddity::Retried {
        let hasty = hasty(change);
        write(change, "refused", &path, &hasty, messages);
        messages.push(message(
            "user",
            "No: it reserves some lines before it fails. All of them, or none.",
        ));
    }
    write(change, CODE, &path, change.code, messages);
    messages.push(message(
        "assistant",
        &format!("`{path}` is written: {}.", change.title.to_lowercase()),
    ));
}

/// Returns the proposal that was rejected.
pub(super) fn hasty(change: &Change) -> String {
    let code = change.code.replace(
        "        for sku, quantity in lines:\n            self.reserved",
        "            self.reserved",
    );
    format!("{code}\n# To do: give back what was reserved before a later line failed.\n")
}

/// Returns the agent's id of the tool call that wrote the file.
pub(super) fn write_id(change: &Change, kind: &str) -> String {
    format!("call_{}_{kind}", change.name)
}

/// Adds the tool call that writes a file, and its result.
fn write(change: &Change, kind: &str, path: &str, text: &str, messages: &mut Vec<Json>) {
    let id = write_id(change, kind);
    let arguments = Object::from_iter([
        ("file_path", Json::from(path)),
        ("content", Json::from(text)),
    ]);
    messages.push(asking("", &id, "Write", arguments));
    messages.push(answered(&id, "ok"));
}

fn message(role: &str, text: &str) -> Json {
    Json::Object(Object::from_iter([
        ("role", Json::from(role)),
        ("content", Json::from(text)),
    ]))
}

fn answered(id: &str, text: &str) -> Json {
    Json::Object(Object::from_iter([
        ("role", Json::from("tool")),
        ("tool_call_id", Json::from(id)),
        ("content", Json::from(text)),
    ]))
}

fn asking(text: &str, id: &str, tool: &str, arguments: Object) -> Json {
    let arguments = Json::Object(arguments).to_canonical();
    let function = Object::from_iter([
        ("name", Json::from(tool)),
        (
            "arguments",
            Json::from(String::from_utf8_lossy(&arguments).into_owned()),
        ),
    ]);
    let call = Object::from_iter([
        ("id", Json::from(id)),
        ("type", Json::from("function")),
        ("function", Json::Object(function)),
    ]);
    Json::Object(Object::from_iter([
        ("role", Json::from("assistant")),
        ("content", Json::from(text)),
        ("tool_calls", Json::Array(vec![Json::Object(call)])),
    ]))
}
