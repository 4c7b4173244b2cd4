//! Converts exact JSON to values that the protocol's libraries can represent, and records where
//! they differ.
//!
//! The service's replies keep every captured value exactly. The libraries that agents use to parse
//! messages do not: a lone surrogate or a deeply nested document invalidates the whole message, and
//! an integer of forty digits is rounded. Such a value is replaced by the nearest text, and its
//! place is recorded.

use serde_json::{Map, Number as Plain, Value};
use svc_model::json::{Json, Number};

/// The maximum nesting depth. A deeper value is replaced by its JSON text. The strictest known
/// library stops at 128, which includes a few levels of the message around the value.
const DEPTH_MAX: usize = 96;
/// The maximum number of places that are recorded.
const PLACES_MAX: usize = 64;
/// The maximum bytes of a place. The names in it are captured and may be of any length.
const PLACE_BYTES_MAX: usize = 1_024;

/// A value that every library can represent.
#[derive(Debug)]
pub(crate) struct Structured {
    /// The value.
    pub(crate) value: Value,
    /// The first places where the value differs from what was captured, as JSON Pointers.
    pub(crate) inexact: Vec<String>,
    /// How many more places differ.
    pub(crate) inexact_more: u64,
}

impl Structured {
    pub(crate) fn of(json: &Json) -> Self {
        let mut walk = Walk::default();
        let value = walk.value(json, 0);
        Self {
            value,
            inexact: walk.inexact,
            inexact_more: walk.inexact_more,
        }
    }
}

#[derive(Default)]
struct Walk {
    place: String,
    inexact: Vec<String>,
    inexact_more: u64,
}

impl Walk {
    fn value(&mut self, json: &Json, depth: usize) -> Value {
        match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => plain(number).unwrap_or_else(|| {
                self.differs();
                Value::String(number.as_str().to_owned())
            }),
            Json::String(text) => {
                if text.has_surrogate() {
                    self.differs();
                }
                Value::String(text.to_string_lossy().into_owned())
            }
            Json::Array(_) | Json::Object(_) if depth == DEPTH_MAX => {
                self.differs();
                Value::String(String::from_utf8_lossy(&json.to_canonical()).into_owned())
            }
            Json::Array(items) => {
                let items = items.iter().enumerate();
                items
                    .map(|(index, item)| self.within(&index.to_string(), item, depth))
                    .collect()
            }
            Json::Object(members) => {
                let mut plain = Map::new();
                for (name, member) in members {
                    if name.has_surrogate() {
                        self.differs();
                    }
                    let name = name.to_string_lossy().into_owned();
                    let value = self.within(&name, member, depth);
                    plain.insert(name, value);
                }
                Value::Object(plain)
            }
        }
    }

    fn within(&mut self, step: &str, json: &Json, depth: usize) -> Value {
        let length = self.place.len();
        self.place.push('/');
        self.place
            .push_str(&step.replace('~', "~0").replace('/', "~1"));
        let value = self.value(json, depth + 1);
        self.place.truncate(length);
        value
    }

    fn differs(&mut self) {
        if self.inexact.len() < PLACES_MAX && self.place.len() <= PLACE_BYTES_MAX {
            self.inexact.push(self.place.clone());
        } else {
            self.inexact_more += 1;
        }
    }
}

/// Returns the same number, if 64-bit integers or doubles can represent it.
fn plain(number: &Number) -> Option<Value> {
    if let Some(integer) = number.as_i64() {
        return Some(integer.into());
    }
    if let Some(integer) = number.as_u64() {
        return Some(integer.into());
    }
    let double = number.as_f64();
    let same = decimal(number.as_str())? == decimal(&format!("{double:e}"))?;
    same.then(|| Plain::from_f64(double))
        .flatten()
        .map(Value::Number)
}

/// Splits a number into its sign, its digits without leading and trailing zeros, and the power of
/// ten of its last digit.
fn decimal(spelling: &str) -> Option<(bool, String, i64)> {
    let negative = spelling.starts_with('-');
    let (mantissa, exponent) = spelling
        .trim_start_matches('-')
        .split_once(['e', 'E'])
        .unwrap_or((spelling.trim_start_matches('-'), "0"));
    let exponent: i64 = exponent.trim_start_matches('+').parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let kept = digits.trim_end_matches('0');
    let dropped = i64::try_from(digits.len() - kept.len()).ok()?;
    let kept = kept.trim_start_matches('0').to_owned();
    let scale = i64::try_from(fraction.len()).ok()?;
    let power = exponent.checked_sub(scale)?.checked_add(dropped)?;
    Some(if kept.is_empty() {
        (negative, kept, 0)
    } else {
        (negative, kept, power)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structured(text: &str) -> Structured {
        Structured::of(&Json::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn values_that_every_json_library_reads_stay_unchanged() {
        for text in [
            "null",
            "[true,false,\"\\u0000 \\u00e9\"]",
            "{\"a\":[1,-2,18446744073709551615,1.5,1e-7,-0.25]}",
            "{\"b/c\":{}}",
        ] {
            let found = structured(text);
            assert_eq!(found.value, serde_json::from_str::<Value>(text).unwrap());
            assert!(found.inexact.is_empty(), "{text}: {:?}", found.inexact);
        }
    }

    #[test]
    fn another_spelling_of_a_number_is_not_inexact() {
        let found = structured("[1.10,1.0,1E2,100e-2,0.1000]");
        assert_eq!(found.value, serde_json::json!([1.1, 1.0, 100.0, 1.0, 0.1]));
        assert!(found.inexact.is_empty(), "{:?}", found.inexact);
    }

    #[test]
    fn values_that_a_library_would_round_or_refuse_become_text_and_are_listed() {
        let found = structured(
            "{\"n\":[12345678901234567890123,1e400,0.1000000000000000055],\"a/b\":\"x\\ud800y\"}",
        );
        assert_eq!(
            found.value,
            serde_json::json!({
                "n": ["12345678901234567890123", "1e400", "0.1000000000000000055"],
                "a/b": "x\u{fffd}y",
            })
        );
        assert_eq!(found.inexact, ["/n/0", "/n/1", "/n/2", "/a~1b"]);
    }

    #[test]
    fn a_too_deep_document_becomes_text() {
        let text = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        let found = structured(&text);
        assert_eq!(found.inexact.len(), 1);
        let written = found.value.to_string();
        serde_json::from_str::<Value>(&written).unwrap();
        assert!(written.contains("\"[[[["));
    }

    #[test]
    fn the_list_of_inexact_places_is_bounded() {
        let name = "x".repeat(2 * PLACE_BYTES_MAX);
        let number = "12345678901234567890123";
        let found = structured(&format!(r#"{{"{name}":[{number},{number}],"a":{number}}}"#));
        assert_eq!(
            (found.inexact, found.inexact_more),
            (vec!["/a".to_owned()], 2)
        );
        let numbers = vec![number; PLACES_MAX + 3].join(",");
        let found = structured(&format!("[{numbers}]"));
        assert_eq!((found.inexact.len(), found.inexact_more), (PLACES_MAX, 3));
    }
}
