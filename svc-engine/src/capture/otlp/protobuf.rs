//! An export in protobuf becomes the tree that it would have been as OTLP/JSON.
//!
//! So there is one path for both encodings, and equal exports become equal facts. The members stand
//! in the order of the protocol's definition; a field at its default is absent, as it is on the wire.
//! Fields that nothing reads, those of scopes among them, are passed over like unknown ones.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use prost::Message as _;
use svc_model::json::{Json, Number, Object, Text};

/// The bytes are no `ExportLogsServiceRequest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message is malformed")]
pub struct MalformedProtobuf;

/// Reads an export.
pub(super) fn decode(message: Vec<u8>) -> Result<Object, MalformedProtobuf> {
    let export =
        ExportLogsServiceRequest::decode(Bytes::from(message)).map_err(|_| MalformedProtobuf)?;
    let mut members = Members::default();
    members.list("resourceLogs", export.resource_logs, ResourceLogs::json)?;
    Ok(members.0)
}

#[derive(Clone, PartialEq, prost::Message)]
struct ExportLogsServiceRequest {
    #[prost(message, repeated, tag = "1")]
    resource_logs: Vec<ResourceLogs>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ResourceLogs {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_logs: Vec<ScopeLogs>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ScopeLogs {
    #[prost(message, repeated, tag = "2")]
    log_records: Vec<LogRecord>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct LogRecord {
    #[prost(fixed64, tag = "1")]
    time_unix_nano: u64,
    #[prost(fixed64, tag = "11")]
    observed_time_unix_nano: u64,
    #[prost(int32, tag = "2")]
    severity_number: i32,
    #[prost(bytes = "bytes", tag = "3")]
    severity_text: Bytes,
    #[prost(message, optional, tag = "5")]
    body: Option<AnyValue>,
    #[prost(message, repeated, tag = "6")]
    attributes: Vec<KeyValue>,
    #[prost(uint32, tag = "7")]
    dropped_attributes_count: u32,
    #[prost(fixed32, tag = "8")]
    flags: u32,
    #[prost(bytes = "bytes", tag = "9")]
    trace_id: Bytes,
    #[prost(bytes = "bytes", tag = "10")]
    span_id: Bytes,
    #[prost(bytes = "bytes", tag = "12")]
    event_name: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeyValue {
    #[prost(bytes = "bytes", tag = "1")]
    key: Bytes,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 2, 3, 4, 5, 6, 7")]
    value: Option<Value>,
}

/// Strings are declared as bytes, which are the same on the wire: they are checked and copied once.
#[derive(Clone, PartialEq, prost::Oneof)]
enum Value {
    #[prost(bytes = "bytes", tag = "1")]
    String(Bytes),
    #[prost(bool, tag = "2")]
    Bool(bool),
    #[prost(int64, tag = "3")]
    Int(i64),
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(message, tag = "5")]
    Array(ArrayValue),
    #[prost(message, tag = "6")]
    Pairs(KeyValueList),
    #[prost(bytes = "bytes", tag = "7")]
    Bytes(Bytes),
}

#[derive(Clone, PartialEq, prost::Message)]
struct ArrayValue {
    #[prost(message, repeated, tag = "1")]
    values: Vec<AnyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeyValueList {
    #[prost(message, repeated, tag = "1")]
    values: Vec<KeyValue>,
}

type Read<T> = Result<T, MalformedProtobuf>;

impl ResourceLogs {
    fn json(self) -> Read<Json> {
        let mut members = Members::default();
        if let Some(resource) = self.resource {
            let mut inside = Members::default();
            inside.list("attributes", resource.attributes, KeyValue::json)?;
            members.add("resource", Json::Object(inside.0));
        }
        members.list("scopeLogs", self.scope_logs, ScopeLogs::json)?;
        Ok(Json::Object(members.0))
    }
}

impl ScopeLogs {
    fn json(self) -> Read<Json> {
        let mut members = Members::default();
        members.list("logRecords", self.log_records, LogRecord::json)?;
        Ok(Json::Object(members.0))
    }
}

impl LogRecord {
    fn json(self) -> Read<Json> {
        let mut members = Members(Object::with_capacity(11));
        members.nanoseconds("timeUnixNano", self.time_unix_nano);
        members.nanoseconds("observedTimeUnixNano", self.observed_time_unix_nano);
        members.number("severityNumber", self.severity_number.into());
        members.text("severityText", &self.severity_text)?;
        if let Some(body) = self.body {
            members.add("body", body.json()?);
        }
        members.list("attributes", self.attributes, KeyValue::json)?;
        members.number(
            "droppedAttributesCount",
            self.dropped_attributes_count.into(),
        );
        members.number("flags", self.flags.into());
        members.hexadecimal("traceId", &self.trace_id);
        members.hexadecimal("spanId", &self.span_id);
        members.text("eventName", &self.event_name)?;
        Ok(Json::Object(members.0))
    }
}

impl KeyValue {
    fn json(self) -> Read<Json> {
        let mut members = Members(Object::with_capacity(2));
        members.text("key", &self.key)?;
        if let Some(value) = self.value {
            members.add("value", value.json()?);
        }
        Ok(Json::Object(members.0))
    }
}

impl AnyValue {
    fn json(self) -> Read<Json> {
        let mut members = Members::default();
        match self.value {
            None => {}
            Some(Value::String(bytes)) => members.add("stringValue", text(&bytes)?.into()),
            Some(Value::Bool(value)) => members.add("boolValue", value.into()),
            Some(Value::Int(value)) => members.add("intValue", value.to_string().into()),
            Some(Value::Double(value)) => members.add("doubleValue", double(value)),
            Some(Value::Array(array)) => {
                let mut inside = Members::default();
                inside.list("values", array.values, Self::json)?;
                members.add("arrayValue", Json::Object(inside.0));
            }
            Some(Value::Pairs(list)) => {
                let mut inside = Members::default();
                inside.list("values", list.values, KeyValue::json)?;
                members.add("kvlistValue", Json::Object(inside.0));
            }
            Some(Value::Bytes(bytes)) => members.add("bytesValue", STANDARD.encode(bytes).into()),
        }
        Ok(Json::Object(members.0))
    }
}

/// The members of an object in the making.
#[derive(Default)]
struct Members(Object);

impl Members {
    fn add(&mut self, name: &'static str, value: Json) {
        self.0.insert(name, value);
    }

    fn list<T>(
        &mut self,
        name: &'static str,
        items: Vec<T>,
        json: impl Fn(T) -> Read<Json>,
    ) -> Read<()> {
        if !items.is_empty() {
            let items: Read<Vec<Json>> = items.into_iter().map(json).collect();
            self.add(name, Json::Array(items?));
        }
        Ok(())
    }

    fn text(&mut self, name: &'static str, bytes: &[u8]) -> Read<()> {
        if !bytes.is_empty() {
            self.add(name, text(bytes)?.into());
        }
        Ok(())
    }

    fn nanoseconds(&mut self, name: &'static str, value: u64) {
        if value != 0 {
            self.add(name, value.to_string().into());
        }
    }

    fn number(&mut self, name: &'static str, value: i64) {
        if value != 0 {
            self.add(name, value.into());
        }
    }

    fn hexadecimal(&mut self, name: &'static str, bytes: &[u8]) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        if !bytes.is_empty() {
            let digits = bytes
                .iter()
                .flat_map(|byte| [byte >> 4, byte & 15])
                .map(|digit| char::from(DIGITS[usize::from(digit)]));
            self.add(name, digits.collect::<String>().into());
        }
    }
}

/// Returns a text; like JSON, it may hold lone surrogates.
fn text(bytes: &[u8]) -> Read<Text> {
    match str::from_utf8(bytes) {
        Ok(text) => Ok(text.into()),
        Err(_) => Text::from_wtf8(bytes.to_vec()).ok_or(MalformedProtobuf),
    }
}

/// Returns a double; what JSON has no number for is a string in OTLP/JSON.
fn double(value: f64) -> Json {
    let number = Number::from_f64(value);
    if number.is_finite() {
        Json::Number(number)
    } else {
        number.as_str().into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::written;
    use super::*;

    /// Returns a message of one field that holds bytes.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut length = Vec::new();
        prost::encode_length_delimiter(bytes.len(), &mut length).unwrap();
        [&[number << 3 | 2], length.as_slice(), bytes].concat()
    }

    /// Returns an export of one record.
    fn export(record: &[u8]) -> Vec<u8> {
        field(1, &field(2, &field(2, record)))
    }

    fn record(bytes: &[u8]) -> Read<String> {
        let written = written(&decode(export(bytes))?.into());
        let record = written
            .strip_prefix(r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":["#)
            .and_then(|rest| rest.strip_suffix("]}]}]}"));
        Ok(record.unwrap().to_owned())
    }

    #[test]
    fn what_is_at_its_default_is_absent() {
        assert_eq!(decode(Vec::new()), Ok(Object::new()));
        assert_eq!(record(&[]).unwrap(), "{}");
        // Written all the same: an empty text, a zero, an empty value.
        let zeros = [field(3, b""), vec![2 << 3, 0], field(5, b"")].concat();
        assert_eq!(record(&zeros).unwrap(), r#"{"body":{}}"#);
        let empty = field(5, &field(1, b""));
        assert_eq!(record(&empty).unwrap(), r#"{"body":{"stringValue":""}}"#);
    }

    #[test]
    fn what_is_unknown_is_passed_over() {
        let newer = [field(15, b"newer"), field(3, b"INFO")].concat();
        assert_eq!(record(&newer).unwrap(), r#"{"severityText":"INFO"}"#);
        let scoped = [field(1, &field(1, b"scope")), field(2, b"")].concat();
        let logs = [field(3, b"schema"), field(2, &scoped)].concat();
        assert_eq!(
            written(&decode(field(1, &logs)).unwrap().into()),
            r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{}]}]}]}"#
        );
    }

    #[test]
    fn a_text_is_generalised_utf_8() {
        let body = |bytes: &[u8]| record(&field(5, &field(1, bytes)));
        assert_eq!(
            body(b"\xed\xa0\x80\0").unwrap(),
            r#"{"body":{"stringValue":"\ud800\u0000"}}"#
        );
        for broken in [
            &b"\xff"[..],
            b"caf\xe9",
            b"\xe2\x80",
            b"\xed\xa0\xbd\xed\xb8\x80",
        ] {
            assert_eq!(body(broken), Err(MalformedProtobuf));
        }
        assert_eq!(body(&[]).unwrap(), r#"{"body":{"stringValue":""}}"#);
    }

    #[test]
    fn a_number_is_what_json_has_for_it() {
        for (value, expected) in [
            (1.5, "1.5"),
            (-0.0, "-0.0"),
            (f64::NAN, r#""NaN""#),
            (f64::NEG_INFINITY, r#""-Infinity""#),
        ] {
            let bytes = [&[4 << 3 | 1], value.to_le_bytes().as_slice()].concat();
            let expected = format!(r#"{{"body":{{"doubleValue":{expected}}}}}"#);
            assert_eq!(record(&field(5, &bytes)).unwrap(), expected);
        }
        let time = [&[1 << 3 | 1], u64::MAX.to_le_bytes().as_slice()].concat();
        assert_eq!(
            record(&time).unwrap(),
            r#"{"timeUnixNano":"18446744073709551615"}"#
        );
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| {
            let value = (0..depth).fold(Vec::new(), |inside, _| field(5, &field(1, &inside)));
            record(&field(5, &value))
        };
        assert!(nested(20).is_ok());
        assert_eq!(nested(500), Err(MalformedProtobuf));
    }
}
