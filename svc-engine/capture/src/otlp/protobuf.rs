//! Decodes an export in protobuf into the tree of the same export in OTLP/JSON.
//!
//! So both encodings are handled in the same way, and equal exports become equal facts. Members are
//! in the order of the protocol's definition, and a field with its default value is absent, as on
//! the wire. Fields that nothing reads, such as the attributes of scopes, are skipped like unknown
//! ones.
//!
//! The bytes are decoded directly into the tree. An empty record takes two bytes on the wire, but
//! the structs of generated code would take hundreds. So each list is counted before memory is
//! allocated for it, and every value takes its memory from the request's budget before it is
//! created.

#[cfg(test)]
mod reference;
mod span;
mod wire;

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use svc_model::json::{Json, NodeBudget, Number, Object, Text};

use self::wire::{WireField, fields};
use super::LogsError;
use super::export::{LOGS, Signal, TRACES};

/// The maximum nesting of messages, as in other implementations of the protocol.
const DEPTH_MAX: usize = 100;

type LogsResult<T> = Result<T, LogsError>;

/// Decodes an export of log records.
///
/// # Errors
///
/// If the bytes are not an export, or contain more than one request may.
pub(super) fn decode(message: &[u8], memory: &NodeBudget) -> LogsResult<Object> {
    Decoder::new(memory, &LOGS, Decoder::record).export(message)
}

/// Decodes an export of spans.
///
/// # Errors
///
/// As [`decode`].
pub(super) fn decode_traces(message: &[u8], memory: &NodeBudget) -> LogsResult<Object> {
    Decoder::new(memory, &TRACES, Decoder::span).export(message)
}

/// Reads the message of a field at some depth.
type Read<'b> = fn(&mut Decoder<'b>, &[u8], usize) -> LogsResult<Json>;

struct Decoder<'b> {
    memory: &'b NodeBudget,
    signal: &'static Signal,
    record: Read<'b>,
    records_left: usize,
}

impl<'b> Decoder<'b> {
    const fn new(memory: &'b NodeBudget, signal: &'static Signal, record: Read<'b>) -> Self {
        Self {
            memory,
            signal,
            record,
            records_left: signal.records_max,
        }
    }

    fn export(mut self, message: &[u8]) -> LogsResult<Object> {
        let resources = self.list(message, 1, DEPTH_MAX, Self::of_resource)?;
        self.object([(self.signal.resources, resources)])
    }

    fn of_resource(&mut self, message: &[u8], depth: usize) -> LogsResult<Json> {
        let mut resource = Single::default();
        for field in fields(message) {
            let field = field?;
            if field.number == 1 {
                resource.add(field.bytes()?, self.memory)?;
            }
        }
        let resource = match resource.0 {
            Some(resource) => {
                let attributes = self.list(&resource, 1, deeper(depth)?, Self::key_value)?;
                Some(Json::Object(self.object([("attributes", attributes)])?))
            }
            None => None,
        };
        let scopes = self.list(message, 2, depth, Self::of_scope)?;
        let members = self.object([("resource", resource), (self.signal.scopes, scopes)])?;
        Ok(Json::Object(members))
    }

    fn of_scope(&mut self, message: &[u8], depth: usize) -> LogsResult<Json> {
        let records = count(message, 2)?;
        self.records_left = self
            .records_left
            .checked_sub(records)
            .ok_or(LogsError::TooLarge)?;
        let scope = self.scope(message)?;
        let records = self.list(message, 2, depth, self.record)?;
        let members = [("scope", scope), (self.signal.records, records)];
        Ok(Json::Object(self.object(members)?))
    }

    /// Reads the name of a scope, if it has one. Nothing else of it is read.
    fn scope(&mut self, message: &[u8]) -> LogsResult<Option<Json>> {
        let mut scope = Single::default();
        for field in fields(message) {
            let field = field?;
            if field.number == 1 {
                scope.add(field.bytes()?, self.memory)?;
            }
        }
        let mut name: &[u8] = b"";
        let scope = scope.0.unwrap_or_default();
        for field in fields(&scope) {
            let field = field?;
            if field.number == 1 {
                name = field.bytes()?;
            }
        }
        let name = self.some_text(name)?;
        let has_name = name.is_some();
        let scope = has_name
            .then(|| self.object([("name", name)]))
            .transpose()?;
        Ok(scope.map(Json::Object))
    }

    fn record(&mut self, message: &[u8], depth: usize) -> LogsResult<Json> {
        let (mut time, mut observed_time, mut severity, mut dropped, mut flags) = (0, 0, 0, 0, 0);
        let (mut severity_text, mut event_name): (&[u8], &[u8]) = (b"", b"");
        let (mut trace_id, mut span_id): (&[u8], &[u8]) = (b"", b"");
        let mut body = Single::default();
        for field in fields(message) {
            let field = field?;
            match field.number {
                1 => time = field.fixed_64()?,
                11 => observed_time = field.fixed_64()?,
                2 => severity = field.int_32()?,
                3 => severity_text = field.bytes()?,
                5 => body.add(field.bytes()?, self.memory)?,
                7 => dropped = field.uint_32()?,
                8 => flags = field.fixed_32()?,
                9 => trace_id = field.bytes()?,
                10 => span_id = field.bytes()?,
                12 => event_name = field.bytes()?,
                _ => {}
            }
        }
        let members = [
            ("timeUnixNano", nanoseconds(time)),
            ("observedTimeUnixNano", nanoseconds(observed_time)),
            ("severityNumber", number(severity.into())),
            ("severityText", self.some_text(severity_text)?),
            ("body", self.one(body, depth, Self::any_value)?),
            ("attributes", self.list(message, 6, depth, Self::key_value)?),
            ("droppedAttributesCount", number(dropped.into())),
            ("flags", number(flags.into())),
            ("traceId", self.hexadecimal(trace_id)?),
            ("spanId", self.hexadecimal(span_id)?),
            ("eventName", self.some_text(event_name)?),
        ];
        Ok(Json::Object(self.object(members)?))
    }

    fn key_value(&mut self, message: &[u8], depth: usize) -> LogsResult<Json> {
        let mut key: &[u8] = b"";
        let mut value = Single::default();
        for field in fields(message) {
            let field = field?;
            match field.number {
                1 => key = field.bytes()?,
                2 => value.add(field.bytes()?, self.memory)?,
                _ => {}
            }
        }
        let members = [
            ("key", self.some_text(key)?),
            ("value", self.one(value, depth, Self::any_value)?),
        ];
        Ok(Json::Object(self.object(members)?))
    }

    fn any_value(&mut self, message: &[u8], depth: usize) -> LogsResult<Json> {
        let mut value = None;
        for field in fields(message) {
            let field = field?;
            value = match (field.number, value) {
                (1, _) => Some(ProtobufValue::Text(field.bytes()?)),
                (2, _) => Some(ProtobufValue::Bool(field.varint()? != 0)),
                (3, _) => Some(ProtobufValue::Int(field.varint()?.cast_signed())),
                (4, _) => Some(ProtobufValue::Double(f64::from_bits(field.fixed_64()?))),
                (5, Some(ProtobufValue::Array(array))) => {
                    Some(ProtobufValue::Array(self.merged(array, &field)?))
                }
                (6, Some(ProtobufValue::Pairs(pairs))) => {
                    Some(ProtobufValue::Pairs(self.merged(pairs, &field)?))
                }
                (5, _) => Some(ProtobufValue::Array(field.bytes()?.into())),
                (6, _) => Some(ProtobufValue::Pairs(field.bytes()?.into())),
                (7, _) => Some(ProtobufValue::Bytes(field.bytes()?)),
                (_, value) => value,
            };
        }
        let Some(value) = value else {
            return Ok(Json::Object(Object::new()));
        };
        let (name, json) = match value {
            ProtobufValue::Text(bytes) => ("stringValue", self.text(bytes)?),
            ProtobufValue::Bool(value) => ("boolValue", value.into()),
            ProtobufValue::Int(value) => ("intValue", value.to_string().into()),
            ProtobufValue::Double(value) => ("doubleValue", self.double(value)?),
            ProtobufValue::Array(array) => {
                let values = self.list(&array, 1, deeper(depth)?, Self::any_value)?;
                ("arrayValue", self.object([("values", values)])?.into())
            }
            ProtobufValue::Pairs(pairs) => {
                let values = self.list(&pairs, 1, deeper(depth)?, Self::key_value)?;
                ("kvlistValue", self.object([("values", values)])?.into())
            }
            ProtobufValue::Bytes(bytes) => {
                self.memory.text(bytes.len().div_ceil(3) * 4)?;
                ("bytesValue", STANDARD.encode(bytes).into())
            }
        };
        Ok(Json::Object(self.object([(name, Some(json))])?))
    }

    fn merged<'m>(
        &self,
        before: Cow<'m, [u8]>,
        field: &WireField<'m>,
    ) -> LogsResult<Cow<'m, [u8]>> {
        let mut value = Single(Some(before));
        value.add(field.bytes()?, self.memory)?;
        Ok(value.0.unwrap_or_default())
    }

    /// Reads the message of a field, if the field is present.
    fn one(
        &mut self,
        message: Single<'_>,
        depth: usize,
        read: Read<'b>,
    ) -> LogsResult<Option<Json>> {
        let Some(message) = message.0 else {
            return Ok(None);
        };
        read(self, &message, deeper(depth)?).map(Some)
    }

    /// Reads the messages of a repeated field, if there are any.
    fn list(
        &mut self,
        message: &[u8],
        number: u32,
        depth: usize,
        read: Read<'b>,
    ) -> LogsResult<Option<Json>> {
        let count = count(message, number)?;
        if count == 0 {
            return Ok(None);
        }
        let depth = deeper(depth)?;
        self.memory.array(count)?;
        let mut items = Vec::with_capacity(count);
        for field in fields(message) {
            let field = field?;
            if field.number == number {
                items.push(read(self, field.bytes()?, depth)?);
            }
        }
        Ok(Some(Json::Array(items)))
    }

    /// Returns an object of the members that are present.
    fn object<const N: usize>(
        &self,
        members: [(&'static str, Option<Json>); N],
    ) -> LogsResult<Object> {
        let count = members.iter().filter(|(_, value)| value.is_some()).count();
        self.memory.object(count)?;
        let mut object = Object::with_capacity(count);
        for (name, value) in members {
            if let Some(value) = value {
                object.insert(name, value);
            }
        }
        Ok(object)
    }

    fn some_text(&self, bytes: &[u8]) -> LogsResult<Option<Json>> {
        if bytes.is_empty() {
            return Ok(None);
        }
        self.text(bytes).map(Some)
    }

    /// Returns a text. As in JSON, it may contain lone surrogates.
    fn text(&self, bytes: &[u8]) -> LogsResult<Json> {
        self.memory.text(bytes.len())?;
        let text = match str::from_utf8(bytes) {
            Ok(text) => Some(text.into()),
            Err(_) => Text::from_wtf8(bytes.to_vec()),
        };
        text.map(Json::String).ok_or(LogsError::Malformed)
    }

    /// Returns a double. OTLP/JSON writes one that JSON cannot express as a string.
    fn double(&self, value: f64) -> LogsResult<Json> {
        let number = Number::from_f64(value);
        self.memory.text(number.as_str().len())?;
        Ok(if number.is_finite() {
            Json::Number(number)
        } else {
            number.as_str().into()
        })
    }

    fn hexadecimal(&self, bytes: &[u8]) -> LogsResult<Option<Json>> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        if bytes.is_empty() {
            return Ok(None);
        }
        self.memory.text(bytes.len() * 2)?;
        let digits = bytes
            .iter()
            .flat_map(|byte| [byte >> 4, byte & 15])
            .map(|digit| char::from(DIGITS[usize::from(digit)]));
        Ok(Some(digits.collect::<String>().into()))
    }
}

/// The content of an `AnyValue`: the field that was set last.
enum ProtobufValue<'m> {
    Text(&'m [u8]),
    Bool(bool),
    Int(i64),
    Double(f64),
    Array(Cow<'m, [u8]>),
    Pairs(Cow<'m, [u8]>),
    Bytes(&'m [u8]),
}

/// The message of a field that is not repeated by definition. If it occurs again, the messages are
/// merged by concatenating their encodings.
#[derive(Default)]
struct Single<'m>(Option<Cow<'m, [u8]>>);

impl<'m> Single<'m> {
    fn add(&mut self, message: &'m [u8], memory: &NodeBudget) -> LogsResult<()> {
        match &mut self.0 {
            None => self.0 = Some(message.into()),
            Some(before) => {
                // A vector may allocate twice the memory that it needs.
                memory.take((before.len() + message.len()) * 2)?;
                before.to_mut().extend_from_slice(message);
            }
        }
        Ok(())
    }
}

fn deeper(depth: usize) -> LogsResult<usize> {
    depth.checked_sub(1).ok_or(LogsError::Malformed)
}

/// Counts how often a field with a message occurs.
fn count(message: &[u8], number: u32) -> LogsResult<usize> {
    let mut count = 0;
    for field in fields(message) {
        let field = field?;
        if field.number == number {
            field.bytes()?;
            count += 1;
        }
    }
    Ok(count)
}

fn nanoseconds(value: u64) -> Option<Json> {
    (value != 0).then(|| value.to_string().into())
}

fn number(value: i64) -> Option<Json> {
    (value != 0).then(|| value.into())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use svc_model::limit::LOG_RECORDS_MAX;

    use super::super::testing::written;
    use super::*;

    fn decode(message: &[u8]) -> LogsResult<Object> {
        super::decode(message, &NodeBudget::unlimited())
    }

    /// Encodes a field that holds bytes.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut length = Vec::new();
        prost::encode_length_delimiter(bytes.len(), &mut length).unwrap();
        [&[number << 3 | 2], length.as_slice(), bytes].concat()
    }

    /// Encodes an export of one record.
    fn export(record: &[u8]) -> Vec<u8> {
        field(1, &field(2, &field(2, record)))
    }

    fn record(bytes: &[u8]) -> LogsResult<String> {
        let written = written(&decode(&export(bytes))?.into());
        let record = written
            .strip_prefix(r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":["#)
            .and_then(|rest| rest.strip_suffix("]}]}]}"));
        Ok(record.unwrap().to_owned())
    }

    #[test]
    fn absent_fields_are_absent_members() {
        assert_eq!(decode(b""), Ok(Object::new()));
        assert_eq!(record(&[]).unwrap(), "{}");
        // Fields that are written although they have the default: an empty text, a zero, an empty
        // value.
        let zeros = [field(3, b""), vec![2 << 3, 0], field(5, b"")].concat();
        assert_eq!(record(&zeros).unwrap(), r#"{"body":{}}"#);
        let empty = field(5, &field(1, b""));
        assert_eq!(record(&empty).unwrap(), r#"{"body":{"stringValue":""}}"#);
    }

    #[test]
    fn unknown_fields_are_ignored() {
        let newer = [field(15, b"newer"), field(3, b"INFO")].concat();
        assert_eq!(record(&newer).unwrap(), r#"{"severityText":"INFO"}"#);
        let scoped = [field(1, &field(1, b"scope")), field(2, b"")].concat();
        let logs = [field(3, b"schema"), field(2, &scoped)].concat();
        assert_eq!(
            written(&decode(&field(1, &logs)).unwrap().into()),
            r#"{"resourceLogs":[{"scopeLogs":[{"scope":{"name":"scope"},"logRecords":[{}]}]}]}"#
        );
    }

    #[test]
    fn surrogates_in_a_text_are_kept_and_other_invalid_utf_8_is_refused() {
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
            assert_eq!(body(broken), Err(LogsError::Malformed));
        }
        assert_eq!(body(&[]).unwrap(), r#"{"body":{"stringValue":""}}"#);
    }

    #[test]
    fn a_number_is_decoded_as_its_json_form() {
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
        assert_eq!(nested(500), Err(LogsError::Malformed));
    }

    #[test]
    fn an_export_with_too_many_records_is_refused() {
        let records = |count: usize| field(1, &field(2, &field(2, b"").repeat(count)));
        assert!(decode(&records(LOG_RECORDS_MAX)).is_ok());
        assert_eq!(
            decode(&records(LOG_RECORDS_MAX + 1)),
            Err(LogsError::TooLarge)
        );
        let half = field(2, &field(2, b"").repeat(LOG_RECORDS_MAX / 2 + 1));
        assert_eq!(
            decode(&field(1, &half.repeat(2))),
            Err(LogsError::TooLarge),
            "over all scopes"
        );
    }

    #[test]
    fn decoding_charges_the_memory_that_the_decoded_tree_uses() {
        let value = |bytes: &[u8]| field(5, &field(1, bytes));
        let attribute = |bytes: &[u8]| field(6, &[field(1, b"a key"), field(2, bytes)].concat());
        let pairs = field(6, &field(1, b"").repeat(1_000));
        let array = field(5, &field(1, b"").repeat(1_000));
        for record in [
            Vec::new(),
            value(b"a text that is not kept in place"),
            field(9, &[7; 16]),
            attribute(b"").repeat(100),
            attribute(&field(7, &[7; 100])),
            attribute(&pairs),
            field(5, &array),
            attribute(&[&[4 << 3 | 1], f64::MIN_POSITIVE.to_le_bytes().as_slice()].concat()),
        ] {
            let export = export(&record.repeat(10));
            let memory = NodeBudget::new(usize::MAX);
            let tree = super::decode(&export, &memory).unwrap();
            let taken = usize::MAX - memory.left();
            assert!(tree.memory() <= taken, "{} > {taken}", tree.memory());
            let short = NodeBudget::new(taken - 1);
            let refused = super::decode(&export, &short);
            assert_eq!(refused, Err(LogsError::TooLarge), "{taken}");
        }
    }

    #[test]
    fn merging_messages_is_charged_to_the_memory_budget() {
        // Each level is merged from a small and a large message, so each would be copied.
        let nested = (0..40).fold(vec![0; 1_000], |inside, _| {
            [field(5, b""), field(5, &field(1, &inside))].concat()
        });
        let memory = NodeBudget::new(20_000);
        let refused = super::decode(&export(&field(5, &nested)), &memory);
        assert_eq!(refused, Err(LogsError::TooLarge));
    }

    /// The bytes of a message, often well-formed, with fields that are known at some level.
    fn message() -> impl Strategy<Value = Vec<u8>> {
        let scalar = prop_oneof![
            (1_u8..16, vec(any::<u8>(), 0..6)).prop_map(|(number, bytes)| field(number, &bytes)),
            (1_u8..16, any::<u8>()).prop_map(|(number, value)| vec![number << 3, value & 0x7f]),
            (1_u8..16, any::<[u8; 8]>()).prop_map(|(number, value)| [
                &[number << 3 | 1],
                value.as_slice()
            ]
            .concat()),
            (1_u8..16, any::<[u8; 4]>()).prop_map(|(number, value)| [
                &[number << 3 | 5],
                value.as_slice()
            ]
            .concat()),
            (1_u8..16).prop_map(|number| vec![number << 3 | 3, 0x08, 0x01, number << 3 | 4]),
            vec(any::<u8>(), 0..4),
        ];
        scalar.prop_recursive(5, 40, 6, |inside| {
            (1_u8..8, vec(inside, 0..6))
                .prop_map(|(number, inside)| field(number, &inside.concat()))
        })
    }

    /// The bytes of a message in which each field holds what it should.
    fn well_formed() -> impl Strategy<Value = Vec<u8>> {
        let value = prop_oneof![
            "[a-z]{0,30}".prop_map(|text| field(1, text.as_bytes())),
            any::<bool>().prop_map(|value| vec![2 << 3, value.into()]),
            (0..128_u8).prop_map(|value| vec![3 << 3, value]),
            any::<f64>().prop_map(|value| [&[4 << 3 | 1], value.to_le_bytes().as_slice()].concat()),
            vec(any::<u8>(), 0..9).prop_map(|bytes| field(7, &bytes)),
            Just(Vec::new()),
        ];
        let value = value.prop_recursive(4, 24, 4, |inside| {
            let pair = ("[a-z]{0,3}", inside.clone())
                .prop_map(|(key, value)| [field(1, key.as_bytes()), field(2, &value)].concat());
            prop_oneof![
                vec(inside.clone(), 0..4).prop_map(|values| field(5, &each(1, &values))),
                vec(pair, 0..4).prop_map(|pairs| field(6, &each(1, &pairs))),
                // Several fields for one value: the last one counts, or they are merged.
                vec(inside, 0..3).prop_map(|values| values.concat()),
            ]
        });
        vec((5_u8..7, value), 0..5).prop_map(|fields| {
            let fields = fields.into_iter().map(|(number, value)| match number {
                5 => field(5, &value),
                _ => field(6, &field(2, &value)),
            });
            export(&fields.collect::<Vec<_>>().concat())
        })
    }

    fn each(number: u8, messages: &[Vec<u8>]) -> Vec<u8> {
        let messages = messages.iter().map(|message| field(number, message));
        messages.collect::<Vec<_>>().concat()
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_as_by_generated_code(
            bytes in vec(message(), 0..4).prop_map(|messages| messages.concat()),
        ) {
            // Generated code also looks inside a value that another one replaces.
            for bytes in [export(&bytes), bytes] {
                if let Ok(expected) = reference::decode(&bytes) {
                    prop_assert_eq!(decode(&bytes).unwrap(), expected);
                }
            }
        }

        #[test]
        fn an_export_is_decoded_as_by_generated_code(bytes in well_formed()) {
            let read = decode(&bytes).unwrap();
            prop_assert_eq!(read, reference::decode(&bytes).unwrap());
        }
    }
}
