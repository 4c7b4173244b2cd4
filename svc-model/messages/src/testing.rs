//! What tests of messages share.

use svc_model::evidence::Message;
use svc_model::json::{Json, to_value};

/// Returns the JSON value in a text.
///
/// # Panics
///
/// If the text is not JSON.
pub fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).expect("a test gives JSON")
}

/// Returns the role of a message and its parts as canonical JSON.
///
/// # Panics
///
/// If a number of a part is not finite.
pub fn parts_json(message: &Message) -> String {
    let canonical = |json: Json| String::from_utf8_lossy(&json.to_canonical()).into_owned();
    let role = canonical(Json::String(message.role.clone()));
    format!(
        "{} {}",
        role.trim_matches('"'),
        canonical(to_value(&message.parts).expect("a test gives numbers that can be written"))
    )
}
