//! What a payload says of the cost of a call, and of the kinds of its tokens.

use svc_messages::usage::{ReportedTokens, micro_usd, tier};
use svc_model::json::{Json, Object};
use svc_model::usage::CallUsage;

use super::scalar::integer;
use svc_messages::identity::identity;

/// The most bytes of an id of a response. The proxy writes longer ones itself, to find the way back
/// to a deployment; no other source has them.
const RESPONSE_ID_BYTES_MAX: usize = 128;

/// Returns the cost and the kinds of tokens. Kinds that contradict the counts are absent.
pub(super) fn of(
    payload: &Object,
    usage: Option<&Object>,
    input_tokens: Option<i64>,
    output_tokens: Option<i64>,
) -> CallUsage {
    let (counts, _) = reported(usage, input_tokens, output_tokens).including_cache();
    let cost = cost(payload, input_tokens, output_tokens);
    CallUsage::new(counts, cost, usage.and_then(service_tier))
}

fn reported(usage: Option<&Object>, input: Option<i64>, output: Option<i64>) -> ReportedTokens {
    let member = |name| usage?.get(name);
    let details = member("prompt_tokens_details").and_then(Json::as_object);
    let detail = |name| integer(details?.get(name));
    let lifetimes = details.and_then(|details| details.get("cache_creation_token_details"));
    let lifetime = |name| integer(lifetimes?.as_object()?.get(name));
    let output_details = member("completion_tokens_details").and_then(Json::as_object);
    ReportedTokens {
        input,
        cache_read: detail("cached_tokens").or_else(|| integer(member("cache_read_input_tokens"))),
        cache_write: detail("cache_creation_tokens")
            .or_else(|| integer(member("cache_creation_input_tokens"))),
        cache_write_by_lifetime: lifetime("ephemeral_5m_input_tokens")
            .zip(lifetime("ephemeral_1h_input_tokens")),
        output,
        reasoning: output_details.and_then(|details| integer(details.get("reasoning_tokens"))),
    }
}

fn service_tier(usage: &Object) -> Option<String> {
    let word = |name| usage.get(name)?.as_str();
    ["speed", "service_tier"]
        .into_iter()
        .find_map(|name| word(name).and_then(tier))
}

/// Returns what a call cost, as the proxy computed it. It writes 0 for a model whose price it does not
/// know, so 0 counts only for an answer from its cache, or if no tokens were used.
pub(super) fn cost(payload: &Object, input: Option<i64>, output: Option<i64>) -> Option<i64> {
    let reported = payload.get("response_cost")?.as_number()?;
    let cost = micro_usd(reported)?;
    let is_cached = payload.get("cache_hit").and_then(Json::as_bool) == Some(true);
    let is_unused = input.unwrap_or(0) == 0 && output.unwrap_or(0) == 0;
    (reported.as_f64() > 0.0 || is_cached || is_unused).then_some(cost)
}

/// Returns the id that the model gave its answer.
pub(super) fn response_id(payload: &Object) -> Option<String> {
    let id = identity(payload.get("id")).ok()??;
    (id.len() <= RESPONSE_ID_BYTES_MAX).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> Object {
        Json::parse(text.as_bytes()).unwrap().into_object().unwrap()
    }

    #[test]
    fn the_kinds_of_tokens_have_two_spellings() {
        for usage in [
            r#"{"prompt_tokens_details":{"cached_tokens":6,"cache_creation_tokens":3,
                "cache_creation_token_details":{"ephemeral_5m_input_tokens":1,"ephemeral_1h_input_tokens":2}},
                "completion_tokens_details":{"reasoning_tokens":4}}"#,
            r#"{"cache_read_input_tokens":6,"cache_creation_input_tokens":3,
                "prompt_tokens_details":{"cached_tokens":null,
                "cache_creation_token_details":{"ephemeral_5m_input_tokens":1,"ephemeral_1h_input_tokens":2}},
                "completion_tokens_details":{"reasoning_tokens":4}}"#,
        ] {
            let found = of(&Object::new(), Some(&object(usage)), Some(10), Some(5));
            let expected = CallUsage {
                cache_read_tokens: Some(6),
                cache_write_tokens: Some(3),
                cache_write_5m_tokens: Some(1),
                cache_write_1h_tokens: Some(2),
                reasoning_tokens: Some(4),
                ..CallUsage::default()
            };
            assert_eq!(found, expected, "{usage}");
            // More was cached than was sent.
            let found = of(&Object::new(), Some(&object(usage)), Some(8), Some(5));
            assert_eq!(found.cache_read_tokens, None, "{usage}");
        }
        let none = of(&Object::new(), None, Some(8), Some(5));
        assert_eq!(none, CallUsage::default());
    }

    #[test]
    fn no_cost_is_no_zero() {
        for (payload, tokens, expected) in [
            (r#"{"response_cost":0.00033000000000000005}"#, 30, Some(330)),
            (r#"{"response_cost":1e-9}"#, 30, Some(0)),
            (r#"{"response_cost":0.0}"#, 30, None),
            (r#"{"response_cost":0}"#, 0, Some(0)),
            (r#"{"response_cost":0,"cache_hit":true}"#, 30, Some(0)),
            (r#"{"response_cost":0,"cache_hit":"True"}"#, 30, None),
            (r#"{"response_cost":-1}"#, 30, None),
            (r#"{"response_cost":NaN}"#, 30, None),
            (r#"{"response_cost":"0.1"}"#, 30, None),
            (r#"{"response_cost":null}"#, 30, None),
            ("{}", 30, None),
        ] {
            assert_eq!(
                cost(&object(payload), Some(tokens), None),
                expected,
                "{payload}"
            );
        }
    }

    #[test]
    fn a_tier_and_an_id_are_read_where_they_mean_something() {
        let usage = object(r#"{"speed":"standard","service_tier":"Priority"}"#);
        let found = of(&Object::new(), Some(&usage), None, None);
        assert_eq!(found.tier.as_deref(), Some("priority"));
        let id = |text: &str| response_id(&object(text));
        assert_eq!(id(r#"{"id":" msg_1 "}"#).as_deref(), Some("msg_1"));
        assert_eq!(id(r#"{"id":"\u0000"}"#), None);
        assert_eq!(id(r#"{"id":5}"#), None);
        assert_eq!(id(&format!(r#"{{"id":"{}"}}"#, "x".repeat(129))), None);
    }
}
