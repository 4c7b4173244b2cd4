//! Writes any serializable value as compact ASCII, within a budget.

use std::fmt::Display;
use std::io::Write as _;

use serde::ser::{self, Serialize};

use super::bridge::{EXACT_NUMBER, EXACT_TEXT};
use super::error::ParseError;
use super::escape;
use super::memory::NodeBudget;
use super::number::{self, Number};
use super::parse::DEPTH_MAX;
use super::raw::EXACT_RAW;
use super::value::Json;

/// Why a value was not written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WriteError {
    /// A number is not finite, and strict JSON has no spelling for it.
    #[error("non-finite number")]
    NonFinite,
    /// The text would be longer than its budget.
    #[error("text over the budget of bytes")]
    Budget,
    /// The key of a map is not a string, integer, boolean or unit variant.
    #[error("map key that is no string")]
    Key,
    /// The written text is not one that [`Json::parse`] reads back.
    #[error("unreadable text: {0}")]
    Unreadable(#[from] ParseError),
    /// An implementation of `Serialize` returned an error.
    #[error("{0}")]
    Refused(String),
}

impl ser::Error for WriteError {
    fn custom<T: Display>(message: T) -> Self {
        Self::Refused(message.to_string())
    }
}

/// Writes a value as compact ASCII JSON of at most `budget` bytes.
///
/// The form is strict: a non-finite number anywhere is an error, whether it comes from a [`Json`],
/// a [`Number`] or a float. Writing stops when the budget is used up, so an oversized answer costs
/// no more than a permitted one.
pub fn to_vec<T: Serialize + ?Sized>(value: &T, budget: usize) -> Result<Vec<u8>, WriteError> {
    let mut writer = Writer {
        out: Vec::new(),
        budget,
        non_finite: NonFinite::Refused,
    };
    value.serialize(Serializer::value(&mut writer))?;
    Ok(writer.out)
}

/// Returns the value as [`Json`], non-finite numbers included.
pub fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Json, WriteError> {
    let mut writer = Writer {
        out: Vec::new(),
        budget: usize::MAX,
        non_finite: NonFinite::Kept,
    };
    value.serialize(Serializer::value(&mut writer))?;
    Ok(Json::parse_nested(
        &writer.out,
        2 * DEPTH_MAX,
        &NodeBudget::unlimited(),
    )?)
}

struct Writer {
    out: Vec<u8>,
    /// At least the length of `out`.
    budget: usize,
    non_finite: NonFinite,
}

#[derive(PartialEq)]
enum NonFinite {
    Refused,
    Kept,
}

impl Writer {
    fn room(&self) -> usize {
        self.budget - self.out.len()
    }

    fn push(&mut self, text: &[u8]) -> Result<(), WriteError> {
        if text.len() > self.room() {
            return Err(WriteError::Budget);
        }
        self.out.extend_from_slice(text);
        Ok(())
    }

    fn string(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        // An escape is at most six times as long as its character, so the exact length matters only
        // near the budget.
        let longest = bytes.len().saturating_mul(6).saturating_add(2);
        if longest > self.room() && escape::string_len(bytes) > self.room() {
            return Err(WriteError::Budget);
        }
        escape::string(bytes, &mut self.out);
        Ok(())
    }

    fn number(&mut self, spelling: &str) -> Result<(), WriteError> {
        if self.non_finite == NonFinite::Refused && !number::is_finite(spelling) {
            return Err(WriteError::NonFinite);
        }
        self.push(spelling.as_bytes())
    }

    fn display(&mut self, value: impl Display) -> Result<(), WriteError> {
        let start = self.out.len();
        write!(self.out, "{value}").map_err(<WriteError as ser::Error>::custom)?;
        if self.out.len() > self.budget {
            self.out.truncate(start);
            return Err(WriteError::Budget);
        }
        Ok(())
    }
}

struct Serializer<'a> {
    writer: &'a mut Writer,
    place: WritePosition,
}

/// What is being written.
#[derive(Clone, Copy, PartialEq)]
enum WritePosition {
    /// A value.
    Value,
    /// The key of a map: scalars only, in quotes.
    Key,
    /// The content of one of the exact types, which is passed as bytes; see
    /// [`bridge`](super::bridge).
    Exact(Exact),
}

#[derive(Clone, Copy, PartialEq)]
enum Exact {
    Number,
    Text,
    Raw,
}

impl<'a> Serializer<'a> {
    fn value(writer: &'a mut Writer) -> Self {
        Self {
            writer,
            place: WritePosition::Value,
        }
    }

    /// Writes a scalar; as a key, it becomes a string.
    fn scalar(
        self,
        write: impl FnOnce(&mut Writer) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        if self.place == WritePosition::Key {
            self.writer.push(b"\"")?;
            write(self.writer)?;
            self.writer.push(b"\"")
        } else {
            write(self.writer)
        }
    }

    /// Returns the writer, for a value that cannot be a key.
    fn not_a_key(self) -> Result<&'a mut Writer, WriteError> {
        if self.place == WritePosition::Key {
            Err(WriteError::Key)
        } else {
            Ok(self.writer)
        }
    }

    fn compound(self, begin: &[u8], end: &'static [u8]) -> Result<Compound<'a>, WriteError> {
        let writer = self.not_a_key()?;
        writer.push(begin)?;
        Ok(Compound {
            writer,
            empty: true,
            end,
        })
    }

    /// Begins an object whose only member is a variant with content.
    fn variant(self, name: &str) -> Result<&'a mut Writer, WriteError> {
        let writer = self.not_a_key()?;
        writer.push(b"{")?;
        writer.string(name.as_bytes())?;
        writer.push(b":")?;
        Ok(writer)
    }
}

macro_rules! integers {
    ($($method:ident $type:ty),*) => {$(
        fn $method(self, value: $type) -> Result<(), WriteError> {
            self.scalar(|writer| writer.display(value))
        }
    )*};
}

impl<'a> ser::Serializer for Serializer<'a> {
    type Ok = ();
    type Error = WriteError;
    type SerializeSeq = Compound<'a>;
    type SerializeTuple = Compound<'a>;
    type SerializeTupleStruct = Compound<'a>;
    type SerializeTupleVariant = Compound<'a>;
    type SerializeMap = Compound<'a>;
    type SerializeStruct = Compound<'a>;
    type SerializeStructVariant = Compound<'a>;

    integers! {
        serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64,
        serialize_i128 i128, serialize_u128 u128
    }

    fn serialize_bool(self, value: bool) -> Result<(), WriteError> {
        self.scalar(|writer| writer.push(if value { b"true" } else { b"false" }))
    }

    fn serialize_f32(self, value: f32) -> Result<(), WriteError> {
        self.not_a_key()?.number(Number::from_f32(value).as_str())
    }

    fn serialize_f64(self, value: f64) -> Result<(), WriteError> {
        self.not_a_key()?.number(Number::from_f64(value).as_str())
    }

    fn serialize_char(self, value: char) -> Result<(), WriteError> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), WriteError> {
        self.writer.string(value.as_bytes())
    }

    /// Writes an array of integers, except for the exact types.
    fn serialize_bytes(self, value: &[u8]) -> Result<(), WriteError> {
        match self.place {
            WritePosition::Exact(Exact::Number) => self
                .writer
                .number(str::from_utf8(value).map_err(<WriteError as ser::Error>::custom)?),
            WritePosition::Exact(Exact::Text) => self.writer.string(value),
            WritePosition::Exact(Exact::Raw) => self.writer.push(value),
            WritePosition::Value | WritePosition::Key => self.collect_seq(value),
        }
    }

    fn serialize_none(self) -> Result<(), WriteError> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), WriteError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), WriteError> {
        self.not_a_key()?.push(b"null")
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), WriteError> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
    ) -> Result<(), WriteError> {
        self.serialize_str(name)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), WriteError> {
        let exact = match name {
            EXACT_TEXT => Exact::Text,
            EXACT_NUMBER => Exact::Number,
            EXACT_RAW => Exact::Raw,
            _ => return value.serialize(self),
        };
        if self.place == WritePosition::Key && exact != Exact::Text {
            return Err(WriteError::Key);
        }
        self.place = WritePosition::Exact(exact);
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        value: &T,
    ) -> Result<(), WriteError> {
        let writer = self.variant(name)?;
        value.serialize(Serializer::value(writer))?;
        writer.push(b"}")
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Compound<'a>, WriteError> {
        self.compound(b"[", b"]")
    }

    fn serialize_tuple(self, _: usize) -> Result<Compound<'a>, WriteError> {
        self.compound(b"[", b"]")
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Compound<'a>, WriteError> {
        self.compound(b"[", b"]")
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Compound<'a>, WriteError> {
        Serializer::value(self.variant(name)?).compound(b"[", b"]}")
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Compound<'a>, WriteError> {
        self.compound(b"{", b"}")
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Compound<'a>, WriteError> {
        self.compound(b"{", b"}")
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Compound<'a>, WriteError> {
        Serializer::value(self.variant(name)?).compound(b"{", b"}}")
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<(), WriteError> {
        self.serialize_str(&value.to_string())
    }

    fn is_human_readable(&self) -> bool {
        !matches!(self.place, WritePosition::Exact(_))
    }
}

/// An array or object that is being written.
struct Compound<'a> {
    writer: &'a mut Writer,
    empty: bool,
    end: &'static [u8],
}

impl Compound<'_> {
    fn separate(&mut self) -> Result<(), WriteError> {
        if std::mem::take(&mut self.empty) {
            Ok(())
        } else {
            self.writer.push(b",")
        }
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), WriteError> {
        self.separate()?;
        value.serialize(Serializer::value(self.writer))
    }

    fn key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), WriteError> {
        self.separate()?;
        key.serialize(Serializer {
            writer: self.writer,
            place: WritePosition::Key,
        })
    }

    fn member_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), WriteError> {
        self.writer.push(b":")?;
        value.serialize(Serializer::value(self.writer))
    }

    fn finish(self) -> Result<(), WriteError> {
        self.writer.push(self.end)
    }
}

macro_rules! arrays {
    ($($trait:ident $method:ident),*) => {$(
        impl ser::$trait for Compound<'_> {
            type Ok = ();
            type Error = WriteError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), WriteError> {
                self.item(value)
            }

            fn end(self) -> Result<(), WriteError> {
                self.finish()
            }
        }
    )*};
}

arrays! {
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
}

macro_rules! structs {
    ($($trait:ident),*) => {$(
        impl ser::$trait for Compound<'_> {
            type Ok = ();
            type Error = WriteError;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), WriteError> {
                self.key(name)?;
                self.member_value(value)
            }

            fn end(self) -> Result<(), WriteError> {
                self.finish()
            }
        }
    )*};
}

structs! { SerializeStruct, SerializeStructVariant }

impl ser::SerializeMap for Compound<'_> {
    type Ok = ();
    type Error = WriteError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), WriteError> {
        self.key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), WriteError> {
        self.member_value(value)
    }

    fn end(self) -> Result<(), WriteError> {
        self.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Serialize;
    use serde_json::json;

    use super::*;
    use crate::json::{RawJson, Text};

    fn written<T: Serialize + ?Sized>(value: &T) -> Result<String, WriteError> {
        to_vec(value, usize::MAX).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[derive(Serialize)]
    enum Shape {
        Unit,
        Newtype(u8),
        Tuple(u8, &'static str),
        Struct { a: Option<u8>, b: () },
    }

    #[derive(Serialize)]
    #[serde(tag = "type", rename_all = "snake_case")]
    enum Tagged {
        Exact { value: Json, raw: RawJson },
    }

    #[derive(Serialize)]
    struct Everything {
        shapes: Vec<Shape>,
        newtype: Newtype,
        unit: Unit,
        tuple: (char, bool, i8),
        float: (f32, f64),
        wide: (i128, u128),
        bytes: serde_json::Value,
        map: BTreeMap<&'static str, Option<i64>>,
    }

    #[derive(Serialize)]
    struct Newtype(u64);

    #[derive(Serialize)]
    struct Unit;

    #[test]
    fn ordinary_types_are_written_as_by_serde_json() {
        let everything = Everything {
            shapes: vec![
                Shape::Unit,
                Shape::Newtype(1),
                Shape::Tuple(2, "two"),
                Shape::Struct { a: None, b: () },
            ],
            newtype: Newtype(u64::MAX),
            unit: Unit,
            tuple: ('\n', true, -1),
            float: (0.1, 2.5),
            wide: (i128::MIN, u128::MAX),
            bytes: json!([1, 2.25, null, {}, [], "\u{1}"]),
            map: BTreeMap::from([("", Some(i64::MIN)), ("x", None)]),
        };
        assert_eq!(
            written(&everything).unwrap(),
            serde_json::to_string(&everything).unwrap()
        );
    }

    #[test]
    fn exact_types_are_written_exactly() {
        let json =
            Json::parse(br#"{"\ud800":[1.10,"\udfff\u0000",123456789012345678901234567890]}"#);
        let json = json.unwrap();
        let canonical = String::from_utf8(json.to_canonical()).unwrap();
        assert_eq!(written(&json).unwrap(), canonical);
        let tagged = Tagged::Exact {
            raw: RawJson::from(&json),
            value: json,
        };
        let expected = format!(r#"{{"type":"exact","value":{canonical},"raw":{canonical}}}"#);
        assert_eq!(written(&tagged).unwrap(), expected);
        assert_eq!(
            to_value(&tagged).unwrap().to_canonical(),
            expected.into_bytes()
        );
    }

    #[test]
    fn strings_are_ascii_and_floats_shortest() {
        assert_eq!(
            written("é\u{7f}🙂").unwrap(),
            r#""\u00e9\u007f\ud83d\ude42""#
        );
        assert_eq!(
            written(&[1e16, 1e-5, -0.0, 100.0]).unwrap(),
            "[1e+16,1e-05,-0.0,100.0]"
        );
    }

    #[test]
    fn keys_are_strings_or_become_strings() {
        let broken = Json::parse(br#""\ud800""#).unwrap().into_text().unwrap();
        let pairs = |key| BTreeMap::from([(key, 1)]);
        assert_eq!(written(&pairs(broken)).unwrap(), r#"{"\ud800":1}"#);
        assert_eq!(written(&pairs(Text::from("é"))).unwrap(), r#"{"\u00e9":1}"#);
        assert_eq!(
            written(&BTreeMap::from([(-1, 'a')])).unwrap(),
            r#"{"-1":"a"}"#
        );
        assert_eq!(
            written(&BTreeMap::from([(true, 'a')])).unwrap(),
            r#"{"true":"a"}"#
        );
        assert_eq!(
            written(&BTreeMap::from([('"', 'a')])).unwrap(),
            r#"{"\"":"a"}"#
        );
        assert_eq!(written(&BTreeMap::from([((), 'a')])), Err(WriteError::Key));
        assert_eq!(written(&BTreeMap::from([([1], 'a')])), Err(WriteError::Key));
        assert_eq!(
            written(&BTreeMap::from([(Some("a"), 'a')])).unwrap(),
            r#"{"a":"a"}"#
        );
        assert_eq!(
            written(&BTreeMap::from([(None::<u8>, 'a')])),
            Err(WriteError::Key)
        );
        let number = std::collections::HashMap::from([(Number::from(1_u64), 'a')]);
        assert_eq!(written(&number), Err(WriteError::Key));
    }

    #[test]
    fn non_finite_numbers_are_refused_from_every_source() {
        for spelling in ["NaN", "Infinity", "-Infinity", "1e400"] {
            let json = Json::parse(format!(r#"{{"a":[{spelling}]}}"#).as_bytes()).unwrap();
            assert_eq!(written(&json), Err(WriteError::NonFinite), "{spelling}");
            assert_eq!(
                written(&Number::parse(spelling)),
                Err(WriteError::NonFinite)
            );
            assert_eq!(to_value(&json).unwrap(), json);
        }
        assert_eq!(written(&f64::NAN), Err(WriteError::NonFinite));
        assert_eq!(written(&f32::INFINITY), Err(WriteError::NonFinite));
        assert_eq!(to_value(&f64::NAN).unwrap().to_canonical(), b"NaN");
    }

    #[test]
    fn a_document_may_be_exactly_as_long_as_its_budget() {
        let value = json!({"a": ["é🙂\n", 12345, true, null, 0.5], "b": {}});
        let whole = to_vec(&value, usize::MAX).unwrap();
        for budget in 0..whole.len() {
            assert_eq!(to_vec(&value, budget), Err(WriteError::Budget), "{budget}");
        }
        assert_eq!(to_vec(&value, whole.len()).unwrap(), whole);
    }

    #[test]
    fn other_refusals_keep_their_reason() {
        struct Stubborn;
        impl Serialize for Stubborn {
            fn serialize<S: ser::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(ser::Error::custom("not today"))
            }
        }
        assert_eq!(written(&[Stubborn]).unwrap_err().to_string(), "not today");
        let raw = RawJson::from_canonical(b"[".to_vec());
        assert!(matches!(to_value(&raw), Err(WriteError::Unreadable(_))));
    }
}
