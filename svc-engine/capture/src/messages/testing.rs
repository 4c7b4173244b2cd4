//! Shared by the tests of `messages`.

use svc_model::evidence::Message;
use svc_model::json::{Json, to_value};

pub(crate) fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap()
}

/// Returns the role of a message and its parts as canonical JSON.
pub(crate) fn parts_json(message: &Message) -> String {
    let canonical = |json: Json| String::from_utf8(json.to_canonical()).unwrap();
    let role = canonical(Json::String(message.role.clone()));
    format!(
        "{} {}",
        role.trim_matches('"'),
        canonical(to_value(&message.parts).unwrap())
    )
}
