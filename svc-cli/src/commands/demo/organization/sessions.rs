//! The Sessions of the organization. For each change, one plans it, one writes the code, one writes
//! the tests and one reviews them. What they say is in `sessions.json`.

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

/// The parts of the Sessions, with names such as `$TITLE$` for what a change says.
const PARTS: &str = include_str!("sessions.json");

pub(super) fn all(timeline: Timeline) -> Vec<Conversation> {
    let mut all = Vec::new();
    for (number, change) in CHANGES.iter().enumerate() {
        let parts = parts(change);
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
                messages: parts_of(change, kind)
                    .iter()
                    .filter_map(|part| parts.get(part)?.as_array())
                    .flatten()
                    .cloned()
                    .collect(),
            });
        }
    }
    all
}

/// Returns the parts of the Sessions of a change, by name.
fn parts(change: &Change) -> Object {
    let (path, tests_path) = (change.code_path(), change.tests_path());
    let writing = |path: &str, text: &str| {
        let arguments = [
            ("file_path", Json::from(path)),
            ("content", Json::from(text)),
        ];
        json(&Json::Object(Object::from_iter(arguments)))
    };
    let names = [
        ("$NAME$", change.name.to_owned()),
        ("$TITLE$", change.title.to_owned()),
        ("$DONE$", change.title.to_lowercase()),
        ("$PATH$", path.clone()),
        ("$WRITE_HASTY$", writing(&path, &hasty(change))),
        ("$WRITE_CODE$", writing(&path, change.code)),
        ("$WRITE_TESTS$", writing(&tests_path, change.tests)),
    ];
    let mut parts = PARTS.to_owned();
    for (name, text) in names {
        // Without the quotes around it.
        let quoted = json(&Json::from(text));
        parts = parts.replace(name, &quoted[1..quoted.len() - 1]);
    }
    let parts = Json::parse(parts.as_bytes())
        .ok()
        .and_then(Json::into_object);
    parts.expect("the Sessions are an object")
}

/// Returns the text of a document.
fn json(value: &Json) -> String {
    String::from_utf8_lossy(&value.to_canonical()).into_owned()
}

/// Returns the names of the parts of a Session, in order.
fn parts_of(change: &Change, kind: &'static str) -> Vec<&'static str> {
    match kind {
        CODE if change.oddity == Oddity::Retried => vec!["system", CODE, "refused", "written"],
        CODE => vec!["system", CODE, "written"],
        _ => vec!["system", kind],
    }
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
