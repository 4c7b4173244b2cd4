//! The ids and numbers of a call.

use svc_model::json::{Json, Object};
use svc_model::time::UNIX_SECONDS_MAX;

use crate::gateway::GatewayError;
use crate::value;
use svc_messages::identity::identity;

/// Returns the gateway's id of the call, or else the id of the model's answer, or else the gateway's
/// id if it is an integer.
pub(super) fn model_call_id(payload: &Object) -> Result<Option<String>, GatewayError> {
    if let Some(id) = identity(payload.get("litellm_call_id"))? {
        return Ok(Some(id.to_owned()));
    }
    let answer = payload.get("response").and_then(Json::as_object);
    if let Some(id) = identity(answer.and_then(|answer| answer.get("id")))? {
        return Ok(Some(id.to_owned()));
    }
    let number = payload.get("litellm_call_id").and_then(Json::as_number);
    let number = number.filter(|number| number.is_integer());
    let id = number.map(|number| Json::from(number.to_string()));
    Ok(identity(id.as_ref())?.map(str::to_owned))
}

/// Returns the object with the token counts, from the payload or else from the answer.
pub(super) fn usage<'p>(payload: &'p Object, answer: Option<&'p Object>) -> Option<&'p Object> {
    let own = payload
        .get("usage")
        .and_then(Json::as_object)
        .filter(|usage| !usage.is_empty());
    own.or_else(|| answer?.get("usage")?.as_object())
}

/// Returns the counts of all input tokens and of all output tokens.
pub(super) fn all_tokens(payload: &Object, usage: Option<&Object>) -> [Option<i64>; 2] {
    [
        tokens(payload, usage, "prompt_tokens", "input_tokens"),
        tokens(payload, usage, "completion_tokens", "output_tokens"),
    ]
}

/// Returns a token count by the gateway's name for it, or else by the model's.
fn tokens(payload: &Object, usage: Option<&Object>, name: &str, native: &str) -> Option<i64> {
    let used = |name| integer(usage?.get(name));
    used(name)
        .or_else(|| integer(payload.get(name)))
        .or_else(|| used(native))
}

/// Returns the duration of the call in milliseconds.
///
/// For a streamed call, the gateway's response time is the time to the first token, so the start
/// and end times take precedence.
pub(super) fn duration_ms(payload: &Object) -> Option<i64> {
    let seconds = |name| Some(payload.get(name)?.as_number()?.as_f64());
    let reported = || {
        integer(payload.get("response_time_ms")).or_else(|| milliseconds(seconds("response_time")?))
    };
    let measured = || {
        let (start, end) = (seconds("startTime")?, seconds("endTime")?);
        // Unix times may be in milliseconds.
        match [start, end].map(|time| time > UNIX_SECONDS_MAX) {
            [false, false] => milliseconds(end - start),
            [true, true] => whole(end - start),
            [false, true] => whole(end - start * 1_000.0),
            [true, false] => whole(end * 1_000.0 - start),
        }
    };
    if payload.get("stream").and_then(Json::as_bool) == Some(true) {
        measured().or_else(reported)
    } else {
        reported().or_else(measured)
    }
}

/// Returns a number truncated toward zero, from 0 to 2^63-1.
pub(crate) fn integer(value: Option<&Json>) -> Option<i64> {
    value::truncated(value?.as_number()?).filter(|integer| *integer >= 0)
}

/// Converts seconds to milliseconds; `None` if they are negative.
fn milliseconds(seconds: f64) -> Option<i64> {
    whole(seconds * 1_000.0)
}

fn whole(milliseconds: f64) -> Option<i64> {
    value::whole(milliseconds).filter(|milliseconds| *milliseconds >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> Object {
        Json::parse(text.as_bytes()).unwrap().into_object().unwrap()
    }

    #[test]
    fn the_id_of_the_call_has_two_sources() {
        for (payload, expected) in [
            (
                r#"{"litellm_call_id":" c ","response":{"id":"r"}}"#,
                Some("c"),
            ),
            (
                r#"{"litellm_call_id":"  ","response":{"id":" r "}}"#,
                Some("r"),
            ),
            (r#"{"litellm_call_id":5,"response":{"id":"r"}}"#, Some("r")),
            (r#"{"litellm_call_id":5}"#, Some("5")),
            (r#"{"litellm_call_id":5.0}"#, None),
            (r#"{"litellm_call_id":true,"response":{"id":6}}"#, None),
            (r#"{"id":"top","response":"text"}"#, None),
        ] {
            assert_eq!(
                model_call_id(&object(payload)),
                Ok(expected.map(str::to_owned)),
                "{payload}"
            );
        }
        for payload in [
            r#"{"litellm_call_id":"x\u0000","response":{"id":"r"}}"#,
            r#"{"response":{"id":"\ud800"}}"#,
        ] {
            assert_eq!(
                model_call_id(&object(payload)),
                Err(GatewayError::InvalidPayload),
                "{payload}"
            );
        }
    }

    #[test]
    fn token_counts_are_read_from_usage_before_the_payload() {
        for (payload, expected) in [
            (
                r#"{"usage":{"prompt_tokens":1},"response":{"usage":{"prompt_tokens":2}},"prompt_tokens":3}"#,
                Some(1),
            ),
            (
                r#"{"usage":{},"response":{"usage":{"prompt_tokens":2}},"prompt_tokens":3}"#,
                Some(2),
            ),
            (
                r#"{"usage":[],"response":{"usage":{"prompt_tokens":"x"}},"prompt_tokens":3}"#,
                Some(3),
            ),
            (
                r#"{"usage":{"other":1},"response":{"usage":{"prompt_tokens":2}}}"#,
                None,
            ),
            (r#"{"response":{"usage":{"input_tokens":7}}}"#, Some(7)),
            (
                r#"{"usage":{"prompt_tokens":true,"input_tokens":7},"prompt_tokens":3}"#,
                Some(3),
            ),
            (r#"{"response":"text"}"#, None),
        ] {
            let payload_object = object(payload);
            let answer = payload_object.get("response").and_then(Json::as_object);
            let usage = usage(&payload_object, answer);
            let found = tokens(&payload_object, usage, "prompt_tokens", "input_tokens");
            assert_eq!(found, expected, "{payload}");
        }
    }

    #[test]
    fn an_integer_is_truncated_and_must_be_in_range() {
        for (number, expected) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("11", Some(11)),
            ("1.9", Some(1)),
            ("-0.9", Some(0)),
            ("1e3", Some(1_000)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("9.3e18", None),
            ("-1", None),
            ("-1.0", None),
            ("1e400", None),
            ("NaN", None),
            ("Infinity", None),
            ("true", None),
            ("\"5\"", None),
            ("null", None),
        ] {
            let value = Json::parse(number.as_bytes()).unwrap();
            assert_eq!(integer(Some(&value)), expected, "{number}");
        }
        assert_eq!(integer(None), None);
    }

    #[test]
    fn the_duration_comes_from_the_first_usable_source() {
        for (payload, expected) in [
            (
                r#"{"response_time_ms":350,"response_time":1.25,"startTime":1,"endTime":3}"#,
                Some(350),
            ),
            (
                r#"{"response_time_ms":-1,"response_time":1.25,"startTime":1,"endTime":3}"#,
                Some(1_250),
            ),
            (
                r#"{"response_time":"x","startTime":1.5,"endTime":3}"#,
                Some(1_500),
            ),
            (r#"{"response_time":-1,"startTime":3,"endTime":1}"#, None),
            (r#"{"response_time":1e308}"#, None),
            (r#"{"startTime":1.5,"endTime":1e309}"#, None),
            (r#"{"startTime":NaN,"endTime":5}"#, None),
            (r#"{"endTime":5}"#, None),
            (
                r#"{"startTime":1795177187250,"endTime":1795177189500}"#,
                Some(2_250),
            ),
            (
                r#"{"startTime":1795177187.25,"endTime":1795177189.5}"#,
                Some(2_250),
            ),
            (
                r#"{"stream":true,"response_time":0.1,"startTime":1,"endTime":3}"#,
                Some(2_000),
            ),
            (
                r#"{"stream":true,"response_time":0.1,"endTime":3}"#,
                Some(100),
            ),
            (
                r#"{"stream":false,"response_time":0.1,"startTime":1,"endTime":3}"#,
                Some(100),
            ),
            ("{}", None),
        ] {
            assert_eq!(duration_ms(&object(payload)), expected, "{payload}");
        }
    }
}
