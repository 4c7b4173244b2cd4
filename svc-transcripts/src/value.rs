//! Reads single values of lines.

use svc_messages::usage::micro_usd;
use svc_model::id::ForeignId;
use svc_model::json::{Json, Number, Object};
use svc_model::limit::{AGENT_WORD_CHARACTERS_MAX, PATH_BYTES_MAX};
use svc_model::time::{Instant, UNIX_SECONDS_MAX};

/// Returns an identity, if the value is one.
pub(crate) fn id(value: Option<&Json>) -> Option<ForeignId> {
    ForeignId::new(value?.as_str()?).ok()
}

/// Returns a word that a call may have: a tier, a reason, a version.
pub(crate) fn word(value: Option<&Json>) -> Option<String> {
    let word = value?.as_str()?.trim();
    let fits = !word.is_empty() && word.chars().count() <= AGENT_WORD_CHARACTERS_MAX;
    (fits && !word.contains('\0')).then(|| word.to_owned())
}

/// Returns a path or the name of a branch.
pub(crate) fn path(value: Option<&Json>) -> Option<String> {
    let path = value?.as_str()?;
    let fits = !path.trim().is_empty() && path.len() <= PATH_BYTES_MAX;
    (fits && !path.contains('\0')).then(|| path.to_owned())
}

/// Returns a count that is a member of an object.
pub(crate) fn count(object: &Object, name: &str) -> Option<i64> {
    object
        .get(name)?
        .as_number()?
        .as_i64()
        .filter(|count| *count >= 0)
}

/// Returns a time: text, or a number of seconds or milliseconds since 1970.
pub(crate) fn instant(value: Option<&Json>) -> Option<Instant> {
    match value? {
        Json::String(text) => Instant::parse(text.as_str()?.trim()).ok(),
        Json::Number(number) => unix_time(number),
        _ => None,
    }
}

fn unix_time(number: &Number) -> Option<Instant> {
    let time = number.as_f64();
    let factor = if time.abs() > UNIX_SECONDS_MAX {
        1e3
    } else {
        1e6
    };
    let microseconds = (time * factor).round();
    if !(0.0..9.3e15).contains(&microseconds) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "checked to be in range above"
    )]
    Instant::from_microseconds(microseconds as i64)
}

/// Returns the cost of a call in micro-USD. A cost of 0 for tokens means that it is not known.
pub(crate) fn cost(amount: Option<&Number>, has_tokens: bool) -> Option<i64> {
    micro_usd(amount?).filter(|micros| *micros > 0 || !has_tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_read_from_its_spelling_and_rounded_half_up() {
        for (spelling, micros) in [
            ("0.0123455", Some(12_346)),
            ("0.01234549", Some(12_345)),
            ("0", Some(0)),
            ("0.000", Some(0)),
            ("1", Some(1_000_000)),
            ("1.5e-3", Some(1_500)),
            ("5e-7", Some(1)),
            ("4.9e-7", Some(0)),
            ("1e-400", Some(0)),
            ("2E2", Some(200_000_000)),
            ("0.1", Some(100_000)),
            ("-1", None),
            ("NaN", None),
            ("1e99999999999999999999", None),
            ("9999999999999999999", None),
            ("1e300", None),
        ] {
            let number = Number::parse(spelling).unwrap();
            assert_eq!(micro_usd(&number), micros, "{spelling}");
        }
    }

    #[test]
    fn a_cost_of_nothing_for_tokens_is_not_known() {
        let zero = Number::parse("0.0").unwrap();
        assert_eq!(cost(Some(&zero), true), None);
        assert_eq!(cost(Some(&zero), false), Some(0));
        assert_eq!(cost(None, true), None);
    }

    #[test]
    fn a_time_is_text_or_a_number_since_1970() {
        let expected = Instant::parse("2026-11-02T10:00:04Z").ok();
        assert!(expected.is_some());
        for value in [
            Json::from("2026-11-02T10:00:04.000Z"),
            Json::from(1_793_613_604_000_i64),
            Json::from(1_793_613_604_i64),
        ] {
            assert_eq!(instant(Some(&value)), expected, "{value:?}");
        }
        for value in [Json::from("now"), Json::Null, Json::from(-5_i64)] {
            assert_eq!(instant(Some(&value)), None, "{value:?}");
        }
    }
}
