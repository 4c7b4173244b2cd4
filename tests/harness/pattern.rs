//! What a case expects of a JSON value.
//!
//! A pattern is JSON itself. It is matched exactly, objects by equal sets of members and arrays in
//! order, except where it has a matcher such as `"$uuid"` or `{"$subset": {..}}`. `cases/README.md`
//! lists the matchers. Numbers compare by value (`1` equals `1.0`), but never equal a Boolean. Two
//! texts that are both timestamps are equal if they are the same instant.

use std::fmt;

use jiff::Timestamp;
use svc_model::json::{Json, Number, Object, Text};

/// Characters of a value that a message shows.
const SHOWN_MAX: usize = 300;

/// Why a value or an answer is not what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch(pub String);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Mismatch {
    fn from(reason: String) -> Self {
        Self(reason)
    }
}

/// Returns a value in the form that messages show.
pub fn shown(value: &Json) -> String {
    String::from_utf8_lossy(&value.to_canonical())
        .chars()
        .take(SHOWN_MAX)
        .collect()
}

/// Matches a value against a pattern. `at` says where the value is.
///
/// # Errors
///
/// The first difference.
pub fn matches(pattern: &Json, value: &Json, at: &str) -> Result<(), Mismatch> {
    match pattern {
        Json::String(name) if is_kind(name) => {
            let kind = name.to_string_lossy();
            require(has_kind(&kind, value), || {
                format!("{at}: {} is no {kind}", shown(value))
            })
        }
        Json::Object(object) => match matcher(object) {
            Some((name, argument)) => matches_with(name, argument, value, at),
            None => matches_object(object, value, at),
        },
        Json::Array(patterns) => matches_array(patterns, value, at),
        Json::String(_) | Json::Number(_) | Json::Bool(_) | Json::Null => {
            require(same_scalar(pattern, value), || {
                format!("{at}: {}, not {}", shown(value), shown(pattern))
            })
        }
    }
}

fn require(holds: bool, reason: impl FnOnce() -> String) -> Result<(), Mismatch> {
    if holds {
        Ok(())
    } else {
        Err(Mismatch(reason()))
    }
}

const KINDS: [&str; 8] = [
    "$any",
    "$string",
    "$int",
    "$number",
    "$bool",
    "$uuid",
    "$sha256",
    "$timestamp",
];

fn is_kind(name: &Text) -> bool {
    name.as_str().is_some_and(|name| KINDS.contains(&name))
}

fn has_kind(kind: &str, value: &Json) -> bool {
    match kind {
        "$any" => true,
        "$string" => value.as_text().is_some(),
        "$bool" => value.as_bool().is_some(),
        "$int" => value.as_number().is_some_and(Number::is_integer),
        "$number" => value.as_number().is_some(),
        "$uuid" => value.as_str().is_some_and(is_uuid),
        "$sha256" => value
            .as_str()
            .is_some_and(|text| text.len() == 64 && is_lower_hex(text)),
        _ => value.as_str().is_some_and(|text| instant(text).is_some()),
    }
}

fn is_lower_hex(text: &str) -> bool {
    text.bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.into_iter().all(is_lower_hex)
}

/// Returns the instant, in microseconds, of a text with a date, a time to the second and an offset.
fn instant(text: &str) -> Option<i64> {
    let shape: String = text
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    let rest = shape.strip_prefix("0000-00-00T00:00:00")?;
    let offset = match rest.strip_prefix('.') {
        Some(fraction) if fraction.starts_with('0') => fraction.trim_start_matches('0'),
        Some(_) => return None,
        None => rest,
    };
    let known = matches!(offset, "Z" | "+00:00" | "-00:00");
    known
        .then(|| text.parse::<Timestamp>().ok())
        .flatten()
        .map(Timestamp::as_microsecond)
}

/// Returns the matcher, if the object is one.
fn matcher(object: &Object) -> Option<(&str, &Json)> {
    let mut members = object.iter();
    match (members.next(), members.next()) {
        (Some((name, argument)), None) => name
            .as_str()
            .filter(|name| name.starts_with('$'))
            .map(|name| (name, argument)),
        _ => None,
    }
}

fn matches_with(name: &str, argument: &Json, value: &Json, at: &str) -> Result<(), Mismatch> {
    match (name, argument) {
        ("$subset", Json::Object(wanted)) => matches_subset(wanted, value, at),
        ("$unordered", Json::Array(wanted)) => matches_items(wanted, value, at, true),
        ("$contains", Json::Array(wanted)) => matches_items(wanted, value, at, false),
        ("$oneof", Json::Array(choices)) => {
            let any = choices
                .iter()
                .any(|choice| matches(choice, value, at).is_ok());
            require(any, || {
                format!("{at}: {} is none of {}", shown(value), shown(argument))
            })
        }
        ("$len", wanted) => {
            let length = length(value);
            let equal = length.is_some_and(|length| same_scalar(wanted, &Json::from(length)));
            require(equal, || {
                format!("{at}: length {length:?}, not {}", shown(wanted))
            })
        }
        ("$approx", _) => {
            let (wanted, tolerance) = match argument {
                Json::Array(pair) if pair.len() == 2 => (double(&pair[0]), double(&pair[1])),
                single => (double(single), Some(1e-9)),
            };
            let (Some(wanted), Some(tolerance)) = (wanted, tolerance) else {
                return Err(Mismatch(format!("{at}: $approx takes numbers")));
            };
            let near = double(value).is_some_and(|value| (value - wanted).abs() <= tolerance);
            require(near, || {
                format!("{at}: {} is not {wanted} +- {tolerance}", shown(value))
            })
        }
        ("$instant", Json::String(wanted)) => {
            let wanted = wanted.as_str().and_then(instant);
            let same = wanted.is_some() && value.as_str().and_then(instant) == wanted;
            require(same, || {
                format!(
                    "{at}: {} is not the instant {}",
                    shown(value),
                    shown(argument)
                )
            })
        }
        _ => Err(Mismatch(format!(
            "{at}: unknown matcher {name} of {}",
            shown(argument)
        ))),
    }
}

fn matches_subset(wanted: &Object, value: &Json, at: &str) -> Result<(), Mismatch> {
    let Some(object) = value.as_object() else {
        return Err(Mismatch(format!("{at}: {} is no object", shown(value))));
    };
    for (name, pattern) in wanted {
        let at = format!("{at}.{}", name.to_string_lossy());
        let absent = pattern
            .as_object()
            .and_then(matcher)
            .is_some_and(|(kind, argument)| kind == "$absent" && *argument == Json::Bool(true));
        match (member(object, name), absent) {
            (Some(_), true) => return Err(Mismatch(format!("{at}: present, should be absent"))),
            (None, false) => return Err(Mismatch(format!("{at}: absent in {}", shown(value)))),
            (Some(value), false) => matches(pattern, value, &at)?,
            (None, true) => {}
        }
    }
    Ok(())
}

fn matches_items(wanted: &[Json], value: &Json, at: &str, all: bool) -> Result<(), Mismatch> {
    let Some(items) = value.as_array() else {
        return Err(Mismatch(format!("{at}: {} is no list", shown(value))));
    };
    let mut left: Vec<&Json> = items.iter().collect();
    for pattern in wanted {
        let found = left
            .iter()
            .position(|item| matches(pattern, item, at).is_ok());
        let Some(found) = found else {
            return Err(Mismatch(format!(
                "{at}: no item matches {} in {}",
                shown(pattern),
                shown(value)
            )));
        };
        left.remove(found);
    }
    require(left.is_empty() || !all, || {
        format!("{at}: {} more items in {}", left.len(), shown(value))
    })
}

fn matches_object(pattern: &Object, value: &Json, at: &str) -> Result<(), Mismatch> {
    let Some(object) = value.as_object() else {
        return Err(Mismatch(format!("{at}: {} is no object", shown(value))));
    };
    let absent = |from: &Object, of: &Object| -> Vec<String> {
        of.iter()
            .filter(|(name, _)| member(from, name).is_none())
            .map(|(name, _)| name.to_string_lossy().into_owned())
            .collect()
    };
    let (missing, extra) = (absent(object, pattern), absent(pattern, object));
    require(missing.is_empty() && extra.is_empty(), || {
        format!("{at}: members missing {missing:?}, extra {extra:?}")
    })?;
    for (name, pattern) in pattern {
        if let Some(value) = member(object, name) {
            matches(pattern, value, &format!("{at}.{}", name.to_string_lossy()))?;
        }
    }
    Ok(())
}

fn matches_array(patterns: &[Json], value: &Json, at: &str) -> Result<(), Mismatch> {
    let Some(items) = value
        .as_array()
        .filter(|items| items.len() == patterns.len())
    else {
        return Err(Mismatch(format!(
            "{at}: {} has not the {} items wanted",
            shown(value),
            patterns.len()
        )));
    };
    for (index, (pattern, item)) in patterns.iter().zip(items).enumerate() {
        matches(pattern, item, &format!("{at}[{index}]"))?;
    }
    Ok(())
}

/// Returns a member by its exact name, which may contain surrogates.
pub fn member<'a>(object: &'a Object, name: &Text) -> Option<&'a Json> {
    match name.as_str() {
        Some(name) => object.get(name),
        None => object
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value),
    }
}

/// Returns the value at a dotted path of names and indices.
pub fn dig<'a>(value: &'a Json, path: &str) -> Option<&'a Json> {
    path.split('.').try_fold(value, |value, step| match value {
        Json::Array(items) => items.get(step.parse::<usize>().ok()?),
        Json::Object(object) => object.get(step),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => None,
    })
}

fn length(value: &Json) -> Option<u64> {
    let length = match value {
        Json::Array(items) => items.len(),
        Json::Object(object) => object.len(),
        // In characters, where a lone surrogate counts as one.
        Json::String(text) => text
            .as_bytes()
            .iter()
            .filter(|byte| **byte & 0xc0 != 0x80)
            .count(),
        Json::Null | Json::Bool(_) | Json::Number(_) => return None,
    };
    u64::try_from(length).ok()
}

fn double(value: &Json) -> Option<f64> {
    value
        .as_number()
        .and_then(|number| number.as_str().parse().ok())
}

fn same_scalar(pattern: &Json, value: &Json) -> bool {
    match (pattern, value) {
        (Json::Number(pattern), Json::Number(value)) => same_number(pattern, value),
        (Json::String(pattern), Json::String(value)) => {
            let instants = |text: &Text| text.as_str().and_then(instant);
            pattern == value
                || instants(pattern).is_some_and(|wanted| instants(value) == Some(wanted))
        }
        _ => pattern == value,
    }
}

/// Compares integers by their digits, doubles by their values, and one with the other exactly.
fn same_number(first: &Number, second: &Number) -> bool {
    match (first.is_integer(), second.is_integer()) {
        (true, true) => digits(first.as_str()) == digits(second.as_str()),
        (true, false) => {
            whole(second).is_some_and(|whole| digits(&whole) == digits(first.as_str()))
        }
        (false, true) => same_number(second, first),
        (false, false) => {
            let values: Option<(f64, f64)> = first
                .as_str()
                .parse()
                .ok()
                .zip(second.as_str().parse().ok());
            // Deliberately exact: both sides are the nearest double to what is written.
            values.is_some_and(|(first, second)| {
                first.total_cmp(&second).is_eq() || (first == 0.0 && second == 0.0)
            })
        }
    }
}

/// Returns the sign of an integer and its digits without leading zeros. Zero has no sign.
fn digits(spelling: &str) -> (bool, &str) {
    let digits = spelling.trim_start_matches('-').trim_start_matches('0');
    (spelling.starts_with('-') && !digits.is_empty(), digits)
}

/// Returns all digits of a double that has no fraction.
fn whole(number: &Number) -> Option<String> {
    let value: f64 = number.as_str().parse().ok()?;
    (value.is_finite() && value.fract() == 0.0).then(|| format!("{value:.0}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.as_bytes()).expect("JSON")
    }

    /// Asserts whether each pattern matches each value.
    fn check(cases: &[(&str, &str, bool)]) {
        for (pattern, value, wanted) in cases {
            let outcome = matches(&json(pattern), &json(value), "$");
            assert_eq!(
                outcome.is_ok(),
                *wanted,
                "{pattern} against {value}: {outcome:?}"
            );
        }
    }

    #[test]
    fn scalars_compare_by_value_and_truth_values_are_no_numbers() {
        check(&[
            ("1", "1.0", true),
            ("1.0", "1", true),
            ("100000.0", "1e5", true),
            ("-0", "0", true),
            ("0.0", "-0.0", true),
            ("12345678901234567890123", "12345678901234567890123", true),
            ("12345678901234567890123", "12345678901234567890124", false),
            ("9007199254740993", "9007199254740992.0", false),
            ("1", "true", false),
            ("false", "0", false),
            ("null", "false", false),
            ("\"1\"", "1", false),
            ("0.1", "0.10", true),
            ("NaN", "1.0", false),
            (r#""\ud800""#, r#""\ud800""#, true),
            (r#""\ud800""#, r#""\ud801""#, false),
        ]);
    }

    #[test]
    fn timestamps_are_equal_when_they_are_the_same_instant() {
        check(&[
            (
                r#""2026-01-02T03:04:05Z""#,
                r#""2026-01-02T05:04:05.000000+00:00""#,
                false,
            ),
            (
                r#""2026-01-02T03:04:05Z""#,
                r#""2026-01-02T03:04:05.000000+00:00""#,
                true,
            ),
            (
                r#"{"$instant":"2026-01-02T03:04:05.1Z"}"#,
                r#""2026-01-02T05:04:05.100+02:00""#,
                true,
            ),
            (
                r#"{"$instant":"2026-01-02T03:04:05Z"}"#,
                r#""2026-01-02T03:04:06Z""#,
                false,
            ),
            (r#"{"$instant":"2026-01-02T03:04:05Z"}"#, "5", false),
            (r#""$timestamp""#, r#""2026-01-02T03:04:05.5-08:00""#, true),
            (r#""$timestamp""#, r#""2026-01-02T03:04:05""#, false),
            (r#""$timestamp""#, r#""2026-01-02 03:04:05Z""#, false),
        ]);
    }

    #[test]
    fn matchers_distinguish_kinds_of_values() {
        let uuid = r#""531f97ae-8872-41e7-8b99-d5840ab3cd2f""#;
        check(&[
            (r#""$any""#, "null", true),
            (r#""$string""#, "1", false),
            (r#""$int""#, "1", true),
            (r#""$int""#, "1.0", false),
            (r#""$int""#, "true", false),
            (r#""$number""#, "1.5", true),
            (r#""$number""#, "true", false),
            (r#""$bool""#, "true", true),
            (r#""$bool""#, "1", false),
            (r#""$uuid""#, uuid, true),
            (r#""$uuid""#, &uuid.to_uppercase(), false),
            (r#""$uuid""#, r#""531f97ae887241e78b99d5840ab3cd2f""#, false),
            (r#""$sha256""#, &format!("\"{}\"", "0a".repeat(32)), true),
            (r#""$sha256""#, &format!("\"{}\"", "0A".repeat(32)), false),
            (r#""$other""#, r#""$other""#, true),
        ]);
    }

    #[test]
    fn objects_and_lists_match_exactly_unless_a_matcher_says_otherwise() {
        check(&[
            (r#"{"a":1}"#, r#"{"a":1}"#, true),
            (r#"{"a":1}"#, r#"{"a":1,"b":2}"#, false),
            (r#"{"a":1,"b":2}"#, r#"{"a":1}"#, false),
            (r#"{"a":1}"#, "[1]", false),
            ("[1,2]", "[2,1]", false),
            ("[1]", "[1,2]", false),
            (r#"{"$subset":{"a":1}}"#, r#"{"a":1,"b":2}"#, true),
            (
                r#"{"$subset":{"a":1,"b":{"$absent":true}}}"#,
                r#"{"a":1}"#,
                true,
            ),
            (
                r#"{"$subset":{"b":{"$absent":true}}}"#,
                r#"{"b":null}"#,
                false,
            ),
            (r#"{"$subset":{"c":"$any"}}"#, r#"{"a":1}"#, false),
            (r#"{"$unordered":[1,2]}"#, "[2,1]", true),
            (r#"{"$unordered":[1]}"#, "[2,1]", false),
            (r#"{"$unordered":[1,1]}"#, "[1,2]", false),
            (r#"{"$contains":[1]}"#, "[2,1]", true),
            (r#"{"$contains":[3]}"#, "[2,1]", false),
            (r#"{"$len":2}"#, "[2,1]", true),
            (r#"{"$len":2}"#, r#""\ud83d\ude00\ud800""#, true),
            (r#"{"$len":2}"#, "12", false),
            (r#"{"$oneof":[1,"$string"]}"#, r#""x""#, true),
            (r#"{"$oneof":[1,"$string"]}"#, "2", false),
            (r#"{"$approx":[1,0.1]}"#, "1.05", true),
            (r#"{"$approx":[1,0.1]}"#, "1.2", false),
            (r#"{"$approx":1}"#, "1.0000000001", true),
            (r#"{"$approx":[1,0.1]}"#, "true", false),
            (r#"{"$unknown":1}"#, "1", false),
            (r#"{"$oneof":[1],"x":2}"#, r#"{"$oneof":[1],"x":2}"#, true),
        ]);
    }

    #[test]
    fn a_mismatch_names_its_place() {
        let reason = matches(
            &json(r#"{"a":[{"b":1}]}"#),
            &json(r#"{"a":[{"b":2}]}"#),
            "$",
        );
        assert_eq!(reason, Err(Mismatch("$.a[0].b: 2, not 1".into())));
    }

    #[test]
    fn a_path_leads_through_names_and_indices() {
        let value = Json::parse(br#"{"a":[{"b":1},2]}"#).expect("JSON");
        assert_eq!(dig(&value, "a.0.b").map(shown).as_deref(), Some("1"));
        assert_eq!(dig(&value, "a.1").map(shown).as_deref(), Some("2"));
        assert_eq!(
            (dig(&value, "a.2"), dig(&value, "b"), dig(&value, "a.1.x")),
            (None, None, None)
        );
    }
}
