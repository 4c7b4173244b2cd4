//! Deserializes derived types from a [`Json`].

use std::vec;

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::bridge::{self, EXACT};
use super::memory::NodeBudget;
use super::number::Number;
use super::parse::DEPTH_MAX;
use super::shape::{FromSliceError, PathSegment, ShapeError, ShapeErrorKind};
use super::text::Text;
use super::value::Json;

/// Reads a whole document as a `T`. The rules of the syntax are those of [`Json::parse`].
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FromSliceError> {
    Ok(from_value(Json::parse(bytes)?)?)
}

/// Reads what [`to_vec`](super::to_vec) or the storage form wrote. Such a document may contain a
/// captured one some levels down, which may itself be [`DEPTH_MAX`] deep.
pub fn from_written<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FromSliceError> {
    from_written_within(bytes, &NodeBudget::unlimited())
}

/// Reads what [`from_written`] reads, if its values take no more memory than is left of a budget.
pub fn from_written_within<T: DeserializeOwned>(
    bytes: &[u8],
    budget: &NodeBudget,
) -> Result<T, FromSliceError> {
    Ok(from_value(Json::parse_nested(
        bytes,
        2 * DEPTH_MAX,
        budget,
    )?)?)
}

/// Converts a value into a `T`. A [`Json`] inside the `T` is moved, not copied.
pub fn from_value<T: DeserializeOwned>(value: Json) -> Result<T, ShapeError> {
    T::deserialize(value)
}

macro_rules! integers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
            self.integer(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Json {
    type Error = ShapeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
        match self {
            Self::Null => visitor.visit_unit(),
            Self::Bool(value) => visitor.visit_bool(value),
            Self::Number(number) => {
                if let Some(value) = number.as_u64() {
                    visitor.visit_u64(value)
                } else if let Some(value) = number.as_i64() {
                    visitor.visit_i64(value)
                } else {
                    visitor.visit_f64(number.as_f64())
                }
            }
            Self::String(text) => match text.into_string() {
                Ok(string) => visitor.visit_string(string),
                Err(broken) => visitor.visit_bytes(broken.as_bytes()),
            },
            Self::Array(items) => {
                let mut items = Items {
                    items: items.into_iter(),
                    index: 0,
                };
                let value = visitor.visit_seq(&mut items)?;
                if items.items.len() == 0 {
                    Ok(value)
                } else {
                    Err(ShapeErrorKind::Value.into())
                }
            }
            Self::Object(object) => visitor.visit_map(UnreadMembers {
                members: object.into_iter(),
                current: None,
            }),
        }
    }

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
        match self {
            Self::Number(number) => match number.as_f64() {
                value if value.is_finite() => visitor.visit_f64(value),
                _ => Err(ShapeErrorKind::Value.into()),
            },
            _ => Err(ShapeErrorKind::Type.into()),
        }
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
        self.deserialize_string(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
        self.deserialize_string(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
        match self {
            Self::String(text) if text.has_surrogate() => Err(ShapeErrorKind::Surrogate.into()),
            other => other.deserialize_any(visitor),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
        self.deserialize_byte_buf(visitor)
    }

    /// Reads the bytes of a string in generalised UTF-8, or those that an array lists.
    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
        match self {
            Self::String(text) => visitor.visit_byte_buf(text.as_bytes().to_vec()),
            other => other.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
        match self {
            Self::Null => visitor.visit_none(),
            other => visitor.visit_some(other),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ShapeError> {
        if name == EXACT {
            bridge::hand_over(self, visitor)
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ShapeError> {
        match self {
            Self::String(name) => visitor.visit_enum(Variant {
                name,
                content: None,
            }),
            Self::Object(object) if object.len() == 1 => {
                let (name, content) = object.into_iter().next().expect("there is one member");
                visitor.visit_enum(Variant {
                    name,
                    content: Some(content),
                })
            }
            Self::Object(_) => Err(ShapeErrorKind::Value.into()),
            _ => Err(ShapeErrorKind::Type.into()),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool unit unit_struct seq tuple tuple_struct map struct identifier
    }
}

impl Json {
    fn integer<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
        match self {
            Self::Number(number) if number.is_integer() => integer(&number, visitor),
            _ => Err(ShapeErrorKind::Type.into()),
        }
    }
}

fn integer<'de, V: Visitor<'de>>(number: &Number, visitor: V) -> Result<V::Value, ShapeError> {
    if let Some(value) = number.as_u64() {
        visitor.visit_u64(value)
    } else if let Some(value) = number.as_i64() {
        visitor.visit_i64(value)
    } else if let Ok(value) = number.as_str().parse::<i128>() {
        visitor.visit_i128(value)
    } else if let Ok(value) = number.as_str().parse::<u128>() {
        visitor.visit_u128(value)
    } else {
        Err(ShapeErrorKind::Value.into())
    }
}

/// The elements of an array that have not been read yet.
struct Items {
    items: vec::IntoIter<Json>,
    index: usize,
}

impl<'de> SeqAccess<'de> for &mut Items {
    type Error = ShapeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ShapeError> {
        let Some(item) = self.items.next() else {
            return Ok(None);
        };
        let index = self.index;
        self.index += 1;
        seed.deserialize(item)
            .map(Some)
            .map_err(|error| error.within(PathSegment::Index(index)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

/// The members of an object that have not been read yet.
struct UnreadMembers {
    members: vec::IntoIter<(Text, Json)>,
    /// The member whose name has been read, but whose value has not.
    current: Option<(Text, Json)>,
}

impl<'de> MapAccess<'de> for UnreadMembers {
    type Error = ShapeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ShapeError> {
        self.current = self.members.next();
        let Some((name, _)) = &self.current else {
            return Ok(None);
        };
        let key = seed.deserialize(Name(name));
        key.map(Some)
            .map_err(|error| error.within(PathSegment::Member(name.clone())))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, ShapeError> {
        let (name, value) = self
            .current
            .take()
            .expect("serde asks for a value after its key");
        seed.deserialize(value)
            .map_err(|error| error.within(PathSegment::Member(name)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.members.len())
    }
}

/// The name of a member or variant.
struct Name<'a>(&'a Text);

impl Name<'_> {
    fn integer<'de, V: Visitor<'de>>(&self, visitor: V) -> Result<V::Value, ShapeError> {
        let number = self
            .0
            .as_str()
            .and_then(Number::parse)
            .filter(Number::is_integer);
        integer(&number.ok_or(ShapeErrorKind::Value)?, visitor)
    }
}

impl<'de> Deserializer<'de> for Name<'_> {
    type Error = ShapeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
        match self.0.as_str() {
            Some(name) => visitor.visit_str(name),
            None => visitor.visit_bytes(self.0.as_bytes()),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
        visitor.visit_str(self.0.as_str().ok_or(ShapeErrorKind::Surrogate)?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
        self.deserialize_str(visitor)
    }

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
        match self.0.as_str() {
            Some("true") => visitor.visit_bool(true),
            Some("false") => visitor.visit_bool(false),
            _ => Err(ShapeErrorKind::Value.into()),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ShapeError> {
        if name == EXACT {
            bridge::hand_over(Json::String(self.0.clone()), visitor)
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ShapeError> {
        visitor.visit_enum(Variant {
            name: self.0.clone(),
            content: None,
        })
    }

    forward_to_deserialize_any! {
        f32 f64 char bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier
        ignored_any
    }
}

/// A variant of an enum: only its name, or the single member of an object.
struct Variant {
    name: Text,
    content: Option<Json>,
}

impl<'de> EnumAccess<'de> for Variant {
    type Error = ShapeError;
    type Variant = VariantContent;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, VariantContent), ShapeError> {
        let variant = seed.deserialize(Name(&self.name))?;
        Ok((variant, VariantContent(self)))
    }
}

/// What a variant contains.
struct VariantContent(Variant);

impl VariantContent {
    fn read<T>(self, read: impl FnOnce(Json) -> Result<T, ShapeError>) -> Result<T, ShapeError> {
        let content = self.0.content.ok_or(ShapeErrorKind::Type)?;
        read(content).map_err(|error| error.within(PathSegment::Member(self.0.name)))
    }
}

impl<'de> VariantAccess<'de> for VariantContent {
    type Error = ShapeError;

    fn unit_variant(self) -> Result<(), ShapeError> {
        match self.0.content {
            None | Some(Json::Null) => Ok(()),
            Some(_) => {
                Err(ShapeError::from(ShapeErrorKind::Type).within(PathSegment::Member(self.0.name)))
            }
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, ShapeError> {
        self.read(|content| seed.deserialize(content))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ShapeError> {
        self.read(|content| content.deserialize_seq(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ShapeError> {
        self.read(|content| content.deserialize_any(visitor))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use serde::Deserialize;

    use super::*;
    use crate::json::{Object, RawJson};

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(deny_unknown_fields)]
    struct Request {
        name: String,
        text: Option<Text>,
        #[serde(default)]
        shapes: Vec<Shape>,
        payload: Option<Json>,
        #[serde(alias = "n")]
        number: Option<Number>,
        small: Option<u8>,
        float: Option<f64>,
    }

    #[derive(Deserialize, PartialEq, Debug)]
    enum Shape {
        Unit,
        Newtype(u8),
        Tuple(u8, String),
        Struct { a: i64 },
    }

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(tag = "type", rename_all = "snake_case")]
    enum Tagged {
        Plain { value: Json, text: Text },
    }

    fn read<T: DeserializeOwned>(document: &str) -> Result<T, ShapeError> {
        from_value(Json::parse(document.as_bytes()).unwrap())
    }

    fn json(document: &str) -> Json {
        Json::parse(document.as_bytes()).unwrap()
    }

    /// Returns what is wrong and where, as `kind at a/0/b`.
    fn refusal<T: DeserializeOwned + std::fmt::Debug>(document: &str) -> (ShapeErrorKind, String) {
        let error = read::<T>(document).unwrap_err();
        let path = error.path().map(|segment| match segment {
            PathSegment::Member(name) => name.to_string_lossy().into_owned(),
            PathSegment::Index(index) => index.to_string(),
        });
        (error.kind(), path.collect::<Vec<_>>().join("/"))
    }

    #[test]
    fn exact_members_are_read_exactly() {
        let payload =
            r#"{"\ud800":[1.10,{"a":1,"a":NaN},"\udfff",123456789012345678901234567890]}"#;
        let request: Request = read(&format!(
            r#"{{"name":"n","payload":{payload},"text":"\u0000\ud83d","number":1.10}}"#
        ))
        .unwrap();
        assert_eq!(request.payload, Some(json(payload)));
        assert_eq!(request.number, Number::parse("1.10"));
        assert_eq!(
            request.text.map(Json::from),
            Some(json(r#""\u0000\ud83d""#))
        );
        let raw: Vec<RawJson> = read(r#"[ {"a": 1.10} , "\uD800" ]"#).unwrap();
        assert_eq!(
            raw,
            [
                RawJson::from(&json(r#"{"a":1.10}"#)),
                RawJson::from(&json(r#""\ud800""#))
            ]
        );
        let map: BTreeMap<Text, Object> = read(r#"{"\ud800":{"a":1}}"#).unwrap();
        assert_eq!(to_json(&map), json(r#"{"\ud800":{"a":1}}"#));
    }

    fn to_json(value: &impl serde::Serialize) -> Json {
        crate::json::to_value(value).unwrap()
    }

    #[test]
    fn every_kind_of_enum_is_read() {
        let shapes: Vec<Shape> =
            read(r#"["Unit",{"Unit":null},{"Newtype":1},{"Tuple":[2,"two"]},{"Struct":{"a":-3}}]"#)
                .unwrap();
        let expected = [
            Shape::Unit,
            Shape::Unit,
            Shape::Newtype(1),
            Shape::Tuple(2, "two".into()),
            Shape::Struct { a: -3 },
        ];
        assert_eq!(shapes, expected);
    }

    #[test]
    fn internally_tagged_enums_keep_strings_and_lose_spellings() {
        let tagged: Tagged =
            read(r#"{"value":[1.10,"\ud800",7],"type":"plain","text":"\ud800"}"#).unwrap();
        let Tagged::Plain { value, text } = tagged;
        assert_eq!(value, json(r#"[1.1,"\ud800",7]"#));
        assert_eq!(Json::from(text), json(r#""\ud800""#));
    }

    #[test]
    fn scalars_of_all_widths_are_read() {
        assert_eq!(
            read::<(u8, i8, u64, i64)>("[255,-128,18446744073709551615,-0]"),
            Ok((255, -128, u64::MAX, 0))
        );
        assert_eq!(read::<i128>(&i128::MIN.to_string()), Ok(i128::MIN));
        assert_eq!(read::<u128>(&u128::MAX.to_string()), Ok(u128::MAX));
        assert_eq!(
            read::<(f32, f64, f64)>("[0.5,7,1E2]"),
            Ok((0.5, 7.0, 100.0))
        );
        assert_eq!(
            read::<(char, bool, ())>(r#"["\ud83d\ude42",true,null]"#),
            Ok(('🙂', true, ()))
        );
        assert_eq!(read::<Option<Option<u8>>>("null"), Ok(None));
        assert_eq!(read::<[u8; 2]>("[1,2]"), Ok([1, 2]));
        assert_eq!(read::<Box<str>>(r#""a""#), Ok("a".into()));
    }

    #[test]
    fn keys_are_read_as_numbers_and_booleans_too() {
        assert_eq!(
            read::<HashMap<u64, u8>>(r#"{"7":1}"#),
            Ok(HashMap::from([(7, 1)]))
        );
        assert_eq!(
            read::<HashMap<bool, u8>>(r#"{"true":1}"#),
            Ok(HashMap::from([(true, 1)]))
        );
        assert_eq!(
            read::<HashMap<Option<char>, u8>>(r#"{"c":1}"#),
            Ok(HashMap::from([(Some('c'), 1)]))
        );
        assert_eq!(
            read::<BTreeMap<String, u8>>(r#"{"b":1,"a":2,"b":3}"#).unwrap()["b"],
            3
        );
        assert_eq!(
            refusal::<HashMap<u64, u8>>(r#"{"7.0":1}"#),
            (ShapeErrorKind::Value, "7.0".into())
        );
        assert_eq!(
            refusal::<HashMap<String, u8>>(r#"{"\ud800":1}"#),
            (ShapeErrorKind::Surrogate, "\u{fffd}".into())
        );
    }

    #[test]
    fn refusals_name_the_kind_and_the_path() {
        use ShapeErrorKind as Kind;
        let table = [
            ("[]", Kind::Value, ""),
            ("7", Kind::Type, ""),
            ("{}", Kind::MissingMember("name"), ""),
            (r#"{"name":1}"#, Kind::Type, "name"),
            (r#"{"name":null}"#, Kind::Type, "name"),
            (r#"{"name":"\ud800"}"#, Kind::Surrogate, "name"),
            (r#"{"name":"n","extra":1}"#, Kind::UnknownMember, "extra"),
            (
                r#"{"name":"n","\ud800":1}"#,
                Kind::UnknownMember,
                "\u{fffd}",
            ),
            (r#"{"number":1,"n":2}"#, Kind::DuplicateMember("number"), ""),
            (r#"{"text":1}"#, Kind::Type, "text"),
            (r#"{"number":"1"}"#, Kind::Type, "number"),
            (r#"{"small":1.0}"#, Kind::Type, "small"),
            (r#"{"small":"1"}"#, Kind::Type, "small"),
            (r#"{"small":256}"#, Kind::Value, "small"),
            (r#"{"small":-1}"#, Kind::Value, "small"),
            (
                r#"{"small":1234567890123456789012345678901234567890}"#,
                Kind::Value,
                "small",
            ),
            (r#"{"float":1e400}"#, Kind::Value, "float"),
            (r#"{"float":NaN}"#, Kind::Value, "float"),
            (r#"{"float":"1"}"#, Kind::Type, "float"),
            (r#"{"shapes":{}}"#, Kind::Type, "shapes"),
            (r#"{"shapes":["Unit","Nope"]}"#, Kind::Variant, "shapes/1"),
            (r#"{"shapes":["\ud800"]}"#, Kind::Variant, "shapes/0"),
            (r#"{"shapes":[7]}"#, Kind::Type, "shapes/0"),
            (r#"{"shapes":[{}]}"#, Kind::Value, "shapes/0"),
            (r#"{"shapes":["Newtype"]}"#, Kind::Type, "shapes/0"),
            (r#"{"shapes":[{"Unit":1}]}"#, Kind::Type, "shapes/0/Unit"),
            (
                r#"{"shapes":[{"Struct":{"a":"x"}}]}"#,
                Kind::Type,
                "shapes/0/Struct/a",
            ),
            (
                r#"{"shapes":[{"Struct":{}}]}"#,
                Kind::MissingMember("a"),
                "shapes/0/Struct",
            ),
            (
                r#"{"shapes":[{"Tuple":[1]}]}"#,
                Kind::Value,
                "shapes/0/Tuple",
            ),
            (
                r#"{"shapes":[{"Tuple":[1,"",3]}]}"#,
                Kind::Value,
                "shapes/0/Tuple",
            ),
        ];
        for (document, kind, path) in table {
            assert_eq!(
                refusal::<Request>(document),
                (kind, path.to_owned()),
                "{document}"
            );
        }
    }

    #[test]
    fn messages_repeat_no_content_of_the_document() {
        let error = from_slice::<Request>(br#"{"name":"n","secret":1}"#).unwrap_err();
        assert_eq!(error.to_string(), "undeclared member");
        let error = from_slice::<Request>(br#"{"shapes":["secret"]}"#).unwrap_err();
        assert_eq!(error.to_string(), "value outside the closed set");
        let error = from_slice::<uuid::Uuid>(br#""secret""#).unwrap_err();
        assert_eq!(error.to_string(), "value out of range or malformed");
        let error = from_slice::<Request>(b"secret").unwrap_err();
        assert_eq!(error.to_string(), "expected a value at byte 0");
    }

    #[test]
    fn the_deepest_document_is_read_through_every_buffer() {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Buffered {
            Any(Json),
        }
        let depth = crate::json::DEPTH_MAX;
        let deepest = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let Buffered::Any(value) = read(&deepest).unwrap();
        assert_eq!(value.to_canonical(), deepest.as_bytes());
        assert_eq!(
            crate::json::to_vec(&value, deepest.len()).unwrap(),
            deepest.as_bytes()
        );
    }
}
