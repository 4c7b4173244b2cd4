//! Attribute values with structure, which exporters send as lists and maps or as JSON text.

use svc_model::ingest::LogSkip;
use svc_model::json::{Json, NodeBudget, Object, Text};

use super::attribute::AttributeValue;
use svc_messages::embedded::document;

/// Returns an `AnyValue` as the JSON value that it stands for. Of a repeated key, the last value is
/// kept. The memory is taken from a budget.
pub(super) fn structured(value: AttributeValue<'_>, memory: &NodeBudget) -> Json {
    let AttributeValue::Json(json) = value else {
        return value.to_json();
    };
    let read = unwrapped(json);
    // A budget that is exhausted refuses the whole request in the end.
    match memory.take(read.memory()) {
        Ok(()) => read,
        Err(_) => Json::Null,
    }
}

/// Returns the value of an `AnyValue`. Its depth is that of the request, which is bounded.
fn unwrapped(value: &Json) -> Json {
    let Some(wrapper) = value.as_object() else {
        return value.clone();
    };
    if wrapper.is_empty() {
        return Json::Null;
    }
    if let Some(values) = list_in(wrapper, "arrayValue") {
        return values.iter().map(any_value).collect();
    }
    if let Some(pairs) = list_in(wrapper, "kvlistValue") {
        let pairs = pairs.iter().filter_map(Json::as_object);
        let pair = |pair: &Object| {
            let name = pair.get("key")?.as_text()?.clone();
            Some((name, pair.get("value").map_or(Json::Null, any_value)))
        };
        let members: Object = pairs.filter_map(pair).collect();
        return members.into();
    }
    wrapper.get("bytesValue").unwrap_or(value).clone()
}

fn any_value(value: &Json) -> Json {
    match AttributeValue::of(value) {
        AttributeValue::Json(json) => unwrapped(json),
        other => other.to_json(),
    }
}

/// Returns the values of a list or map; those of an empty one may be absent.
fn list_in<'r>(wrapper: &'r Object, name: &str) -> Option<&'r [Json]> {
    let list = wrapper.get(name)?.as_object()?;
    Some(list.get("values").and_then(Json::as_array).unwrap_or(&[]))
}

/// Returns the value of an attribute that is structured or JSON text; `None` if it has none.
///
/// # Errors
///
/// If it is a text that is not JSON.
pub(super) fn decoded(
    value: AttributeValue<'_>,
    memory: &NodeBudget,
) -> Result<Option<Json>, LogSkip> {
    match structured(value, memory) {
        Json::Null => Ok(None),
        Json::String(text) if text.is_blank() => Ok(None),
        Json::String(text) => {
            let document = document(&text, memory);
            document.map(Some).ok_or(LogSkip::MalformedMessages)
        }
        json => Ok(Some(json)),
    }
}

/// Returns a copy of a text, whose memory is taken from a budget.
pub(super) fn copied(text: &Text, memory: &NodeBudget) -> Json {
    match memory.text(text.len()) {
        Ok(()) => text.clone().into(),
        Err(_) => Json::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{json, written};
    use super::*;

    fn read(value: &str) -> Result<Option<String>, LogSkip> {
        let value = json(value);
        let read = decoded(AttributeValue::of(&value), &NodeBudget::unlimited())?;
        Ok(read.as_ref().map(written))
    }

    #[test]
    fn structure_and_text_are_the_same_value() {
        let structured = r#"{"arrayValue":{"values":[{"kvlistValue":{"values":[
            {"key":"role","value":{"stringValue":"model"}},
            {"key":"n","value":{"intValue":"5"}},
            {"key":"none","value":{}},
            {"key":"list","value":{"arrayValue":{}}},
            {"key":"role","value":{"stringValue":"user"}}]}},{"boolValue":true}]}}"#;
        let text =
            r#"{"stringValue":" [{\"role\":\"user\",\"n\":5,\"none\":null,\"list\":[]},true]"}"#;
        let expected = r#"[{"role":"user","n":5,"none":null,"list":[]},true]"#;
        assert_eq!(read(structured), Ok(Some(expected.to_owned())));
        assert_eq!(read(text), Ok(Some(expected.to_owned())));
    }

    #[test]
    fn a_text_that_is_not_json_is_malformed_and_no_text_is_nothing() {
        for nothing in ["{}", r#"{"stringValue":" "}"#, "null"] {
            assert_eq!(read(nothing), Ok(None), "{nothing}");
        }
        for malformed in ["[1", "hello", "<REDACTED>"] {
            let value = format!(r#"{{"stringValue":"{malformed}"}}"#);
            assert_eq!(read(&value), Err(LogSkip::MalformedMessages), "{malformed}");
        }
    }

    #[test]
    fn values_are_charged_to_the_memory_budget() {
        let value = json(&format!(
            r#"{{"stringValue":"[{}0]"}}"#,
            "[],".repeat(1_000)
        ));
        let memory = NodeBudget::new(10_000);
        assert!(decoded(AttributeValue::of(&value), &memory).is_err());
        assert!(memory.is_exhausted());
        let deep = |depth: usize| {
            let text = "[".repeat(depth) + &"]".repeat(depth);
            read(&format!(r#"{{"stringValue":"{text}"}}"#)).is_ok()
        };
        assert!(deep(512) && !deep(513));
    }
}
