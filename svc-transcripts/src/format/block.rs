//! What lines of several agents have in common: objects in lists, each with a kind.

use svc_model::json::{Json, Object};

/// Returns the objects of a list.
pub(super) fn objects(list: Option<&Json>) -> impl Iterator<Item = &Object> {
    let list = list.and_then(Json::as_array).unwrap_or_default();
    list.iter().filter_map(Json::as_object)
}

/// Returns a text of an object.
pub(super) fn text<'o>(object: &'o Object, name: &str) -> Option<&'o str> {
    object.get(name)?.as_str()
}

/// Returns an object in an object.
pub(super) fn member<'o>(object: &'o Object, name: &str) -> Option<&'o Object> {
    object.get(name)?.as_object()
}

/// Returns a value of an object that says something.
pub(super) fn given<'o>(object: &'o Object, name: &str) -> Option<&'o Json> {
    let value = object.get(name)?;
    let is_empty = value.as_text().is_some_and(svc_model::json::Text::is_blank);
    (!value.is_null() && !is_empty).then_some(value)
}

/// Returns the kind of an object.
pub(super) fn kind(object: &Object) -> &str {
    text(object, "type").unwrap_or_default()
}

/// Returns a text as a block of a message.
pub(super) fn text_block(text: impl Into<Json>) -> Json {
    Object::from_iter([("type", "text".into()), ("text", text.into())]).into()
}

/// Returns readable reasoning as a block of a message.
pub(super) fn reasoning_block(text: impl Into<Json>) -> Json {
    Object::from_iter([("type", "thinking".into()), ("thinking", text.into())]).into()
}

/// Returns the call of a tool as a block of a message.
pub(super) fn call_block(id: Option<&Json>, name: Option<&Json>, arguments: Option<&Json>) -> Json {
    let members: [(&str, Json); _] = [
        ("type", "tool_call".into()),
        ("id", id.cloned().into()),
        ("name", name.cloned().into()),
        ("arguments", arguments.cloned().into()),
    ];
    Object::from_iter(members).into()
}

/// Returns the result of a tool as a block of a message.
pub(super) fn result_block(id: Option<&Json>, result: Option<&Json>) -> Json {
    let members: [(&str, Json); _] = [
        ("type", "tool_call_response".into()),
        ("id", id.cloned().into()),
        ("result", result.cloned().into()),
    ];
    Object::from_iter(members).into()
}
