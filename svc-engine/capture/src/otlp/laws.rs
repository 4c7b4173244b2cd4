//! Properties that hold for every export.

use proptest::prelude::*;
use svc_model::ingest::{LogEvent, LogsRequest};
use svc_model::json::{Json, NodeBudget, Number, Object, Text};

use super::testing::{captured, captured_as, event, export};
use super::{CapturedLogs, LogsError, protobuf};
use crate::Redaction;
use crate::testing as otlp;

fn decode(message: &[u8]) -> Result<Object, LogsError> {
    protobuf::decode(message, &NodeBudget::unlimited())
}

/// Names and values, some with a meaning.
const WORDS: [&str; 56] = [
    "resourceLogs",
    "scopeLogs",
    "logRecords",
    "resource",
    "attributes",
    "body",
    "key",
    "value",
    "stringValue",
    "intValue",
    "boolValue",
    "doubleValue",
    "kvlistValue",
    "timeUnixNano",
    "observedTimeUnixNano",
    "eventName",
    "event.name",
    "session.id",
    "conversation.id",
    "user.id",
    "user.email",
    "tool_name",
    "tool_use_id",
    "call_id",
    "decision",
    "source",
    "tool_input",
    "arguments",
    "agent",
    "file_path",
    "explicit",
    "applied_text",
    "observed_file_text",
    "proposed",
    "rejected_call_id",
    "accepted_call_id",
    "outcome",
    "accepted",
    "edit_source",
    "Edit",
    "Write",
    "apply_patch",
    "exec_command",
    "accept",
    "approved",
    "user",
    "pi",
    "cursor",
    "t1",
    "t2",
    "s1",
    "1783454255424000000",
    "{\"file_path\":\"a\"}",
    "{\"cmd\":\"apply_patch <<E\\n*** Add File: a\"}",
    "*** Add File: a\n*** Update File: b",
    "",
];

fn word() -> impl Strategy<Value = Text> {
    prop_oneof![
        12 => prop::sample::select(WORDS.to_vec()).prop_map(Text::from),
        3 => prop::sample::select(LogEvent::ALL.to_vec()).prop_map(|event| event.as_str().into()),
        1 => any::<String>().prop_map(Text::from),
        1 => Just(Text::from_wtf8(vec![0xed, 0xa0, 0x80]).unwrap()),
    ]
}

/// Any JSON value made of such words.
fn anything() -> impl Strategy<Value = Json> {
    let numbers = [
        "0",
        "-1",
        "1.5",
        "NaN",
        "1e400",
        "1783454255424000000",
        "99999999999999999999",
    ];
    let leaf = prop_oneof![
        1 => Just(Json::Null),
        1 => any::<bool>().prop_map(Json::Bool),
        1 => prop::sample::select(numbers.to_vec())
            .prop_map(|number| Json::Number(Number::parse(number).unwrap())),
        6 => word().prop_map(Json::String),
    ];
    leaf.prop_recursive(9, 128, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::Array),
            prop::collection::vec((word(), inner), 0..7)
                .prop_map(|members| members.into_iter().collect::<Object>().into()),
        ]
    })
}

/// An export with correct levels and arbitrary records.
fn records() -> impl Strategy<Value = Object> {
    let attribute = (word(), anything())
        .prop_map(|(key, value)| Object::from_iter([("key", Json::from(key)), ("value", value)]));
    let attributes = prop::collection::vec(attribute, 0..12).prop_map(Json::from_iter);
    let record =
        (word(), word(), attributes, anything()).prop_map(|(body, time, attributes, more)| {
            let mut record = more.into_object().unwrap_or_default();
            record.insert("body", body);
            record.insert("timeUnixNano", time);
            record.insert("attributes", attributes);
            Json::Object(record)
        });
    prop::collection::vec(record, 0..8).prop_map(|records| export("{}", records))
}

/// An attribute value that both encodings can express.
fn typed() -> impl Strategy<Value = Json> {
    let one = |name: &'static str, value: Json| Json::Object(Object::from_iter([(name, value)]));
    let leaf = prop_oneof![
        8 => word().prop_map(move |text| one("stringValue", text.into())),
        1 => any::<bool>().prop_map(move |value| one("boolValue", value.into())),
        1 => any::<i64>().prop_map(move |value| one("intValue", value.to_string().into())),
        1 => any::<f64>().prop_map(move |value| one("doubleValue", double(value))),
        1 => Just(one("bytesValue", "AP8=".into())),
        1 => Just(Object::new().into()),
    ];
    leaf.prop_recursive(3, 12, 3, move |inner| {
        let pair = (named(), inner.clone()).prop_map(|(key, value)| pair(key, Some(value)));
        prop_oneof![
            prop::collection::vec(inner, 1..3)
                .prop_map(move |items| one("arrayValue", values(items))),
            prop::collection::vec(pair, 1..3)
                .prop_map(move |items| one("kvlistValue", values(items))),
        ]
    })
}

fn double(value: f64) -> Json {
    let number = Number::from_f64(value);
    if number.is_finite() {
        number.into()
    } else {
        number.as_str().into()
    }
}

fn values(items: Vec<Json>) -> Json {
    Object::from_iter([("values", Json::Array(items))]).into()
}

/// A text that is not empty: in protobuf, an empty text counts as absent.
fn named() -> impl Strategy<Value = Text> {
    word().prop_filter("empty", |text| !text.is_empty())
}

fn pair(key: Text, value: Option<Json>) -> Json {
    let mut pair = Object::from_iter([("key", key)]);
    if let Some(value) = value {
        pair.insert("value", value);
    }
    pair.into()
}

/// A record with the members of the protocol, in its order.
fn well_typed_record() -> impl Strategy<Value = Json> {
    let attribute =
        (named(), prop::option::weighted(0.95, typed())).prop_map(|(key, value)| pair(key, value));
    let event = prop::sample::select(LogEvent::ALL.to_vec());
    let name = prop_oneof![
        event.prop_map(|event| Text::from(event.as_str())),
        prop::sample::select(vec!["claude_code.tool_result", "codex.tool_result"])
            .prop_map(Text::from),
        named(),
    ];
    let time = prop_oneof![3 => Just(1_783_454_255_424_123_456_u64), 1 => any::<u64>()];
    let numbers = (time, any::<u64>(), 0..25_i64, any::<u32>(), any::<u32>());
    let texts = (
        name.clone(),
        prop::option::of(name),
        prop::option::of(named()),
    );
    (numbers, texts, prop::collection::vec(attribute, 0..10)).prop_map(
        |((time, observed, severity, dropped, flags), (body, event_name, severity_text), list)| {
            let mut record = Object::new();
            let digits = |value: u64| Json::from(value.to_string());
            if time != 0 {
                record.insert("timeUnixNano", digits(time));
            }
            if observed != 0 {
                record.insert("observedTimeUnixNano", digits(observed));
            }
            if severity != 0 {
                record.insert("severityNumber", severity);
            }
            if let Some(text) = severity_text {
                record.insert("severityText", text);
            }
            record.insert("body", Object::from_iter([("stringValue", body)]));
            if !list.is_empty() {
                record.insert("attributes", list);
            }
            if dropped != 0 {
                record.insert("droppedAttributesCount", dropped);
            }
            if flags != 0 {
                record.insert("flags", flags);
            }
            if flags > 5 {
                record.insert("traceId", "0123456789abcdef0123456789abcdef");
                record.insert("spanId", "00f067aa0ba902b7");
            }
            if let Some(name) = event_name {
                record.insert("eventName", name);
            }
            record.into()
        },
    )
}

/// An export that both encodings can express, often with complete events.
fn well_typed() -> impl Strategy<Value = Json> {
    let whole = prop::sample::select(whole_events());
    let record = prop_oneof![1 => well_typed_record(), 1 => whole];
    let attribute = (named(), typed()).prop_map(|(key, value)| pair(key, Some(value)));
    let scope = prop::collection::vec(record, 1..6).prop_map(|records| {
        Json::Object(Object::from_iter([("logRecords", Json::Array(records))]))
    });
    let logs = (
        prop::option::of(prop::collection::vec(attribute, 1..4)),
        prop::collection::vec(scope, 1..3),
    )
        .prop_map(|(resource, scopes)| {
            let mut logs = Object::new();
            if let Some(attributes) = resource {
                logs.insert("resource", Object::from_iter([("attributes", attributes)]));
            }
            logs.insert("scopeLogs", scopes);
            Json::Object(logs)
        });
    prop::collection::vec(logs, 1..3)
        .prop_map(|logs| Object::from_iter([("resourceLogs", Json::Array(logs))]).into())
}

/// Records that become facts, one fact for each event, along with the results that complete them.
/// Their members are in the protocol's order.
fn whole_events() -> Vec<Json> {
    let both =
        r#""session.id":"s1","agent":"pi","tool_use_id":"t1","file_path":"a","tool_name":"Edit""#;
    let patch = r#""arguments":"*** Add File: a\n*** Move to: b""#;
    [
        ("claude_code.tool_decision", r#"{"session.id":"s1","decision":"accept","tool_name":"Edit","tool_use_id":"t1"}"#.to_owned()),
        ("claude_code.tool_result", r#"{"tool_use_id":"t1","tool_input":"{\"file_path\":\"a\"}"}"#.to_owned()),
        ("codex.tool_decision", r#"{"conversation.id":"s1","decision":"denied","tool_name":"apply_patch","call_id":"t1"}"#.to_owned()),
        ("codex.tool_result", format!(r#"{{"call_id":"t1",{patch}}}"#)),
        ("svc.tool_decision", format!(r#"{{{both},"decision":"reject","explicit":true}}"#)),
        ("svc.edit_observation", format!(r#"{{{both},"applied_text":"x","observed_file_text":"sk-abcdefghijklmnopqrst","external_lines_added":3}}"#)),
        ("svc.rejected_edit", format!(r#"{{{both},"proposed":"y"}}"#)),
        ("svc.retry_linkage", format!(r#"{{{both},"rejected_call_id":"t1","accepted_call_id":"t2"}}"#)),
    ]
    .into_iter()
    .map(|(name, members)| {
        let record = event(name, &members).into_object().unwrap();
        let member = |name: &str| (Text::from(name), record.get(name).unwrap().clone());
        let ordered = ["timeUnixNano", "body", "attributes"].map(member);
        Json::Object(Object::from_iter(ordered))
    })
    .collect()
}

/// Returns the number of facts of an export.
fn facts(captured: &CapturedLogs) -> usize {
    captured.decisions.len()
        + captured.edit_observations.len()
        + captured.rejected_edits.len()
        + captured.retry_linkages.len()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_object_is_read_as_an_export(export in prop_oneof![
        anything().prop_map(|value| value.into_object().unwrap_or_default()),
        records(),
    ]) {
        let captured = captured(export);
        let records = captured.report.records;
        prop_assert_eq!(records.received, records.translated + records.untranslated + records.malformed);
        prop_assert!(records.translated <= facts(&captured) as u64);
    }

    #[test]
    fn both_encodings_give_equal_facts(export in well_typed()) {
        let message = otlp::protobuf(&export);
        let read = decode(&message).unwrap();
        prop_assert_eq!(&Json::Object(read), &export);
        let json = LogsRequest::Json(export.into_object().unwrap());
        let facts = captured_as(json, Redaction::On);
        prop_assert_eq!(captured_as(LogsRequest::Protobuf(message), Redaction::On), facts);
    }

    #[test]
    fn decoding_any_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        drop(decode(&bytes));
    }

    #[test]
    fn decoding_a_damaged_message_never_panics(
        export in well_typed(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut message = otlp::protobuf(&export);
        let at = at.index(message.len());
        message[at] = byte;
        drop(decode(&message));
        drop(decode(&message[..at]));
    }

    #[test]
    fn other_records_do_not_change_the_facts_of_a_record(junk in prop::collection::vec(anything(), 0..5)) {
        let whole = || whole_events().into_iter();
        let alone = captured(export("{}", whole()));
        prop_assert_eq!(facts(&alone), 7);
        // None of the junk is an event, because its attributes are not lists.
        let junk = junk.into_iter().map(|value| match value {
            Json::Object(mut record) => {
                record.insert("attributes", 5);
                record.remove("body");
                record.remove("eventName");
                Json::Object(record)
            }
            other => other,
        });
        let among = captured(export("{}", whole().chain(junk)));
        prop_assert_eq!(among.decisions, alone.decisions);
        prop_assert_eq!(among.edit_observations, alone.edit_observations);
        prop_assert_eq!(among.rejected_edits, alone.rejected_edits);
        prop_assert_eq!(among.retry_linkages, alone.retry_linkages);
    }
}
