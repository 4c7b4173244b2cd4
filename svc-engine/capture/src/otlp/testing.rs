//! Shared by the tests of this module.

use svc_engine_fact::DeveloperDecision;
use svc_engine_fact::clock::Ids;
use svc_model::id::OrgId;
use svc_model::ingest::LogsRequest;
use svc_model::json::{Json, NodeBudget, Object};
use svc_model::time::Instant;

use super::{CapturedLogs, capture};
use crate::redaction::Secrets;
use crate::{Receipt, Redaction};

/// The time of every record, 2026-07-07T19:57:35.424Z, in nanoseconds.
pub(super) const TIME: &str = "1783454255424000000";

pub(super) fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

pub(super) fn object(text: &str) -> Object {
    json(text).into_object().unwrap()
}

pub(super) fn written(value: &Json) -> String {
    String::from_utf8(value.to_canonical()).unwrap()
}

/// Returns the members of `base`, replaced by those of `changes`; null removes a member.
pub(super) fn changed(base: &str, changes: &str) -> String {
    let mut base = object(base);
    for (name, value) in object(changes) {
        if value.is_null() {
            base.remove(name.as_str().unwrap());
        } else {
            base.insert(name, value);
        }
    }
    written(&base.into())
}

/// Returns an attribute list with its values wrapped as exporters wrap them.
pub(super) fn attributes(members: &str) -> Json {
    let wrapped = |value: Json| -> Json {
        let name = match &value {
            Json::String(_) => "stringValue",
            Json::Bool(_) => "boolValue",
            Json::Number(number) if number.is_integer() => {
                return Object::from_iter([("intValue", number.as_str())]).into();
            }
            Json::Number(_) => "doubleValue",
            // The value is sent as given.
            Json::Null | Json::Array(_) | Json::Object(_) => return value,
        };
        Object::from_iter([(name, value)]).into()
    };
    object(members)
        .into_iter()
        .map(|(name, value)| Object::from_iter([("key", name.into()), ("value", wrapped(value))]))
        .collect()
}

/// Returns a record with these attributes, at [`TIME`].
pub(super) fn record(members: &str) -> Object {
    Object::from_iter([
        ("timeUnixNano", Json::from(TIME)),
        ("attributes", attributes(members)),
    ])
}

/// Returns a record whose body is the name of its event.
pub(super) fn event(name: &str, members: &str) -> Json {
    let mut record = record(members);
    record.insert("body", Object::from_iter([("stringValue", name)]));
    record.into()
}

/// Returns an export of records under one resource with these attributes.
pub(super) fn export(resource: &str, records: impl IntoIterator<Item = Json>) -> Object {
    let resource = Object::from_iter([("attributes", attributes(resource))]);
    let records = Object::from_iter([("logRecords", Json::from_iter(records))]);
    let logs = Object::from_iter([
        ("resource", resource.into()),
        ("scopeLogs", Json::from_iter([records])),
    ]);
    Object::from_iter([("resourceLogs", Json::from_iter([logs]))])
}

pub(super) fn captured_as(request: LogsRequest, redaction: Redaction) -> CapturedLogs {
    let receipt = Receipt {
        org_id: &OrgId::new("acme").unwrap(),
        received_at: Instant::from_microseconds(1).unwrap(),
        ids: &Ids::counting(),
        redaction,
        secrets: &Secrets::default(),
    };
    capture(request, receipt, &NodeBudget::unlimited()).unwrap()
}

/// Captures an export.
pub(super) fn captured(export: Object) -> CapturedLogs {
    captured_as(LogsRequest::Json(export), Redaction::On)
}

/// Captures records without a resource.
pub(super) fn captured_records(records: impl IntoIterator<Item = Json>) -> CapturedLogs {
    captured(export("{}", records))
}

/// Returns the only decision that these records give.
pub(super) fn the_decision(records: impl IntoIterator<Item = Json>) -> DeveloperDecision {
    let mut captured = captured_records(records);
    assert_eq!(captured.decisions.len(), 1, "{:?}", captured.report);
    captured.decisions.remove(0)
}

/// Returns why records were skipped, as `event: reason` with a count. Checks that nothing became a
/// fact.
pub(super) fn skips(captured: &CapturedLogs) -> Vec<(String, u64)> {
    assert_eq!(captured.report.facts, super::FactCounts::default());
    assert_eq!(captured.report.records.translated, 0);
    let skip = |((event, reason), count): (&(_, _), &u64)| {
        let (event, reason): (svc_model::ingest::LogEvent, svc_model::ingest::LogSkip) =
            (*event, *reason);
        (format!("{event}: {reason}"), *count)
    };
    captured.report.skipped.iter().map(skip).collect()
}

/// Checks that a record is skipped for this reason.
pub(super) fn check_skip(resource: &str, record: Json, expected: &str) {
    let text = written(&record);
    let captured = captured(export(resource, [record]));
    assert_eq!(skips(&captured), [(expected.to_owned(), 1)], "{text}");
}

/// Returns a JSON value as exporters send it.
pub(super) fn any_value(value: &Json) -> Json {
    let values = |values: Json| Json::Object(Object::from_iter([("values", values)]));
    let (name, inside): (&str, Json) = match value {
        Json::Null => return Object::new().into(),
        Json::String(text) => ("stringValue", text.clone().into()),
        Json::Bool(value) => ("boolValue", (*value).into()),
        Json::Number(number) if number.is_integer() => ("intValue", number.as_str().into()),
        Json::Number(number) => ("doubleValue", number.clone().into()),
        Json::Array(items) => ("arrayValue", values(items.iter().map(any_value).collect())),
        Json::Object(members) => ("kvlistValue", values(pairs(members))),
    };
    Object::from_iter([(name, inside)]).into()
}

/// Returns an attribute list.
pub(super) fn pairs(members: &Object) -> Json {
    let pair = |(name, value): (&svc_model::json::Text, &Json)| {
        Object::from_iter([("key", name.clone().into()), ("value", any_value(value))])
    };
    members.iter().map(pair).collect()
}

/// Returns members whose values have no structure: lists and objects become JSON text.
pub(super) fn as_texts(members: &Object) -> Object {
    let text = |value: &Json| match value {
        Json::Array(_) | Json::Object(_) => written(value).into(),
        plain => plain.clone(),
    };
    let members = members.iter();
    members
        .map(|(name, value)| (name.clone(), text(value)))
        .collect()
}
