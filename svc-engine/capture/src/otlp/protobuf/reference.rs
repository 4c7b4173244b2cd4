//! Reads an export with generated code and structs, as the reference for the reader under test.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use prost::Message as _;
use svc_model::json::{Json, Number, Object, Text};

/// The bytes are not an export.
#[derive(Debug, PartialEq)]
pub(super) struct Malformed;

pub(super) fn decode(message: &[u8]) -> Result<Object, Malformed> {
    let message = Bytes::copy_from_slice(message);
    let export = ExportLogsServiceRequest::decode(message).map_err(|_| Malformed)?;
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
    #[prost(message, optional, tag = "1")]
    scope: Option<InstrumentationScope>,
    #[prost(message, repeated, tag = "2")]
    log_records: Vec<LogRecord>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct InstrumentationScope {
    #[prost(bytes = "bytes", tag = "1")]
    name: Bytes,
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

/// Strings are declared as bytes, which look the same on the wire, so that they are checked and
/// copied once.
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

type Reference<T> = Result<T, Malformed>;

impl ResourceLogs {
    fn json(self) -> Reference<Json> {
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
    fn json(self) -> Reference<Json> {
        let mut members = Members::default();
        if let Some(scope) = self.scope {
            let mut inside = Members::default();
            inside.text("name", &scope.name)?;
            if !inside.0.is_empty() {
                members.add("scope", Json::Object(inside.0));
            }
        }
        members.list("logRecords", self.log_records, LogRecord::json)?;
        Ok(Json::Object(members.0))
    }
}

impl LogRecord {
    fn json(self) -> Reference<Json> {
        let mut members = Members::default();
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
    fn json(self) -> Reference<Json> {
        let mut members = Members::default();
        members.text("key", &self.key)?;
        if let Some(value) = self.value {
            members.add("value", value.json()?);
        }
        Ok(Json::Object(members.0))
    }
}

impl AnyValue {
    fn json(self) -> Reference<Json> {
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

/// The members of an object that is being built.
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
        json: impl Fn(T) -> Reference<Json>,
    ) -> Reference<()> {
        if !items.is_empty() {
            let items: Reference<Vec<Json>> = items.into_iter().map(json).collect();
            self.add(name, Json::Array(items?));
        }
        Ok(())
    }

    fn text(&mut self, name: &'static str, bytes: &[u8]) -> Reference<()> {
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

/// Returns a text. As in JSON, it may contain lone surrogates.
fn text(bytes: &[u8]) -> Reference<Text> {
    match str::from_utf8(bytes) {
        Ok(text) => Ok(text.into()),
        Err(_) => Text::from_wtf8(bytes.to_vec()).ok_or(Malformed),
    }
}

/// Returns a double. OTLP/JSON writes one that JSON has no number for as a string.
fn double(value: f64) -> Json {
    let number = Number::from_f64(value);
    if number.is_finite() {
        Json::Number(number)
    } else {
        number.as_str().into()
    }
}
