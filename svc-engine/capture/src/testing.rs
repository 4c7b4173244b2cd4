//! OTLP exports in protobuf, of log records and of spans, encoded by hand, to test the reader
//! against.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use svc_model::json::{Json, Number, Object, Text};

/// Encodes an export that is given as OTLP/JSON.
///
/// # Panics
///
/// If a member does not have the type that the protocol requires.
pub fn protobuf(export: &Json) -> Vec<u8> {
    let mut message = Message::default();
    message.each(1, object(export), "resourceLogs", resource_logs);
    message.0
}

fn resource_logs(message: &mut Message, value: &Json) {
    let members = object(value);
    message.one(1, members, "resource", |message, resource| {
        message.each(1, object(resource), "attributes", key_value);
    });
    message.each(2, members, "scopeLogs", scope_logs);
    message.text(3, members, "schemaUrl");
}

fn scope_logs(message: &mut Message, value: &Json) {
    let members = object(value);
    message.one(1, members, "scope", |message, scope| {
        message.text(1, object(scope), "name");
        message.text(2, object(scope), "version");
    });
    message.each(2, members, "logRecords", log_record);
    message.text(3, members, "schemaUrl");
}

fn log_record(message: &mut Message, value: &Json) {
    let members = object(value);
    message.fixed_64(1, members, "timeUnixNano");
    message.fixed_64(11, members, "observedTimeUnixNano");
    message.varint(2, members, "severityNumber");
    message.text(3, members, "severityText");
    message.one(5, members, "body", any_value);
    message.each(6, members, "attributes", key_value);
    message.varint(7, members, "droppedAttributesCount");
    if let Some(flags) = members.get("flags") {
        message.tag(8, 5);
        let flags = u32::try_from(integer(flags)).expect("32 bits");
        message.0.extend(flags.to_le_bytes());
    }
    message.hexadecimal(9, members, "traceId");
    message.hexadecimal(10, members, "spanId");
    message.text(12, members, "eventName");
}

/// Encodes an export of spans that is given as OTLP/JSON.
///
/// # Panics
///
/// If a member does not have the type that the protocol requires.
pub fn traces_protobuf(export: &Json) -> Vec<u8> {
    let mut message = Message::default();
    message.each(1, object(export), "resourceSpans", resource_spans);
    message.0
}

fn resource_spans(message: &mut Message, value: &Json) {
    let members = object(value);
    message.one(1, members, "resource", |message, resource| {
        message.each(1, object(resource), "attributes", key_value);
    });
    message.each(2, members, "scopeSpans", |message, value| {
        let members = object(value);
        message.one(1, members, "scope", |message, scope| {
            message.text(1, object(scope), "name");
            message.text(2, object(scope), "version");
        });
        message.each(2, members, "spans", span);
    });
}

fn span(message: &mut Message, value: &Json) {
    let members = object(value);
    message.hexadecimal(1, members, "traceId");
    message.hexadecimal(2, members, "spanId");
    message.hexadecimal(4, members, "parentSpanId");
    message.text(5, members, "name");
    message.varint(6, members, "kind");
    message.fixed_64(7, members, "startTimeUnixNano");
    message.fixed_64(8, members, "endTimeUnixNano");
    message.each(9, members, "attributes", key_value);
    message.each(11, members, "events", |message, event| {
        let members = object(event);
        message.fixed_64(1, members, "timeUnixNano");
        message.text(2, members, "name");
        message.each(3, members, "attributes", key_value);
    });
    message.one(15, members, "status", |message, status| {
        message.text(2, object(status), "message");
        message.varint(3, object(status), "code");
    });
}

fn key_value(message: &mut Message, value: &Json) {
    let members = object(value);
    message.text(1, members, "key");
    message.one(2, members, "value", any_value);
}

fn any_value(message: &mut Message, value: &Json) {
    let Some((name, inside)) = object(value).iter().next() else {
        return;
    };
    match name.as_str().expect("a name") {
        "stringValue" => message.bytes(1, text(inside).as_bytes()),
        "boolValue" => {
            message.tag(2, 0);
            message.0.push(inside.as_bool().expect("a boolean").into());
        }
        "intValue" => {
            message.tag(3, 0);
            message.number(integer(inside).cast_unsigned());
        }
        "doubleValue" => {
            let double = match inside {
                Json::String(word) => word.as_str().expect("text").parse().expect("a word"),
                number => number.as_number().expect("a number").as_f64(),
            };
            message.tag(4, 1);
            message.0.extend(double.to_le_bytes());
        }
        "arrayValue" => message.nested(5, inside, |message, array| {
            message.each(1, object(array), "values", any_value);
        }),
        "kvlistValue" => message.nested(6, inside, |message, list| {
            message.each(1, object(list), "values", key_value);
        }),
        "bytesValue" => {
            let bytes = STANDARD.decode(text(inside).as_bytes()).expect("base64");
            message.bytes(7, &bytes);
        }
        other => panic!("{other} is no kind of value"),
    }
}

fn object(value: &Json) -> &Object {
    value.as_object().expect("an object")
}

fn text(value: &Json) -> &Text {
    value.as_text().expect("a string")
}

/// Returns an integer that is written as a number or as a string.
fn integer(value: &Json) -> i64 {
    match value {
        Json::String(digits) => digits.as_str().expect("text").parse().expect("digits"),
        number => number
            .as_number()
            .and_then(Number::as_i64)
            .expect("an integer"),
    }
}

/// A message that is being built.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn number(&mut self, mut number: u64) {
        while number > 127 {
            self.0
                .push(u8::try_from(number & 127).expect("seven bits") | 128);
            number >>= 7;
        }
        self.0.push(u8::try_from(number).expect("seven bits"));
    }

    fn tag(&mut self, field: u64, wire_type: u64) {
        self.number(field << 3 | wire_type);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.tag(field, 2);
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn nested(&mut self, field: u64, value: &Json, write: impl Fn(&mut Self, &Json)) {
        let mut inside = Self::default();
        write(&mut inside, value);
        self.bytes(field, &inside.0);
    }

    fn one(&mut self, field: u64, members: &Object, name: &str, write: impl Fn(&mut Self, &Json)) {
        if let Some(value) = members.get(name) {
            self.nested(field, value, write);
        }
    }

    fn each(&mut self, field: u64, members: &Object, name: &str, write: fn(&mut Self, &Json)) {
        for value in members
            .get(name)
            .and_then(Json::as_array)
            .unwrap_or_default()
        {
            self.nested(field, value, write);
        }
    }

    fn text(&mut self, field: u64, members: &Object, name: &str) {
        if let Some(value) = members.get(name) {
            self.bytes(field, text(value).as_bytes());
        }
    }

    fn hexadecimal(&mut self, field: u64, members: &Object, name: &str) {
        let Some(value) = members.get(name) else {
            return;
        };
        let digits = text(value).as_str().expect("digits");
        let bytes: Vec<u8> = (0..digits.len() / 2)
            .map(|at| u8::from_str_radix(&digits[at * 2..at * 2 + 2], 16).expect("digits"))
            .collect();
        self.bytes(field, &bytes);
    }

    fn varint(&mut self, field: u64, members: &Object, name: &str) {
        if let Some(value) = members.get(name) {
            self.tag(field, 0);
            self.number(integer(value).cast_unsigned());
        }
    }

    fn fixed_64(&mut self, field: u64, members: &Object, name: &str) {
        if let Some(value) = members.get(name) {
            self.tag(field, 1);
            let digits = text(value).as_str().expect("digits");
            let nanoseconds: u64 = digits.parse().expect("digits");
            self.0.extend(nanoseconds.to_le_bytes());
        }
    }
}
