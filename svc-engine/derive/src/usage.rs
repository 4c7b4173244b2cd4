//! Which usage receipts and inference calls are about one call of a model.
//!
//! A call that a gateway copied and that its client reported is one call, and is spent once. Both
//! are joined by an id of the provider, or else by their Session, model and counts: behind a proxy,
//! a client has no id of the call that it could report.

use std::collections::HashMap;

use svc_engine_fact::CallKey;
use svc_model::time::Instant;
use svc_model::usage::{CallUsage, JoinBasis, TokenCounts};

/// How far apart a call and a receipt may be that only their counts join.
const APART_MAX_MICROSECONDS: u64 = 15 * 60 * 1_000_000;

/// What a join needs of a call or of a receipt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// When it was observed or reported.
    pub at: Option<Instant>,
    /// The model.
    pub model: Option<String>,
    /// All input tokens, those read from a cache, those written to one, and the output tokens.
    pub counts: Option<[i64; 4]>,
    /// What identifies the call.
    pub keys: Vec<CallKey>,
}

impl Usage {
    /// Returns the counts of a receipt to compare; `None` if the input or the output is unknown.
    pub fn counts(tokens: &TokenCounts) -> Option<[i64; 4]> {
        let cached = [tokens.cache_read_tokens, tokens.cache_write_tokens];
        compared(tokens.input_tokens(), cached, tokens.output_tokens)
    }

    /// Returns the counts of a call to compare; `None` if the input or the output is unknown.
    pub fn counts_of_call(
        input: Option<i64>,
        usage: &CallUsage,
        output: Option<i64>,
    ) -> Option<[i64; 4]> {
        let cached = [usage.cache_read_tokens, usage.cache_write_tokens];
        compared(input, cached, output)
    }

    /// Returns whether both have an id of one type, and the ids differ.
    fn contradicts(&self, other: &Self) -> bool {
        self.keys.iter().any(|own| {
            let mut same = other.keys.iter().filter(|key| key.kind == own.kind);
            same.clone().next().is_some() && !same.any(|key| key == own)
        })
    }

    fn is_near(&self, other: &Self) -> bool {
        let microseconds = |usage: &Self| usage.at.map(Instant::microseconds);
        let apart = microseconds(self).zip(microseconds(other));
        apart.is_some_and(|(one, other)| one.abs_diff(other) <= APART_MAX_MICROSECONDS)
    }
}

/// Returns counts in the form in which they are compared. A cache that is not named held nothing.
fn compared(input: Option<i64>, cached: [Option<i64>; 2], output: Option<i64>) -> Option<[i64; 4]> {
    let [read, written] = cached.map(|count| count.unwrap_or(0));
    Some([input?, read, written, output?])
}

/// Returns for each receipt the call that it is about, and what told so. All are of one Session.
///
/// Each receipt joins one call at most. Several receipts may join a call by its ids; by counts, one
/// joins a call that no other receipt joins.
pub fn join(calls: &[Usage], receipts: &[Usage]) -> Vec<Option<(usize, JoinBasis)>> {
    let mut by_key = HashMap::new();
    for (place, call) in calls.iter().enumerate() {
        for key in &call.keys {
            by_key.entry(key).or_insert(place);
        }
    }
    let mut joined: Vec<Option<(usize, JoinBasis)>> = receipts
        .iter()
        .map(|receipt| {
            let call = receipt.keys.iter().find_map(|key| by_key.get(key));
            Some((*call?, JoinBasis::Ids))
        })
        .collect();
    let mut is_taken = vec![false; calls.len()];
    for (call, _) in joined.iter().flatten() {
        is_taken[*call] = true;
    }
    let alone = |number: &usize| joined[*number].is_none();
    let receipts_left: Vec<usize> = (0..receipts.len()).filter(alone).collect();
    let calls_left: Vec<usize> = (0..calls.len()).filter(|call| !is_taken[*call]).collect();
    let of = |all: &[Usage], numbers: &[usize]| -> Vec<Usage> {
        numbers.iter().map(|number| all[*number].clone()).collect()
    };
    let by_counts = join_by_counts(&of(calls, &calls_left), &of(receipts, &receipts_left));
    for (receipt, call) in receipts_left.into_iter().zip(by_counts) {
        joined[receipt] = call.map(|call| (calls_left[call], JoinBasis::Counts));
    }
    joined
}

/// Returns for each receipt the call with the same counts, of those that no id joins. All are of one
/// Session.
pub(crate) fn join_by_counts(calls: &[Usage], receipts: &[Usage]) -> Vec<Option<usize>> {
    let mut alike: HashMap<_, Vec<usize>> = HashMap::new();
    for place in in_order(calls) {
        if let Some(key) = comparable(&calls[place]) {
            alike.entry(key).or_default().push(place);
        }
    }
    let mut joined = vec![None; receipts.len()];
    for place in in_order(receipts) {
        let receipt = &receipts[place];
        let Some(candidates) = comparable(receipt).and_then(|key| alike.get_mut(&key)) else {
            continue;
        };
        let fits =
            |call: &usize| calls[*call].is_near(receipt) && !calls[*call].contradicts(receipt);
        if let Some(found) = candidates.iter().position(fits) {
            joined[place] = Some(candidates.remove(found));
        }
    }
    joined
}

/// Returns the places of calls or receipts in the order of their times.
fn in_order(all: &[Usage]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..all.len()).collect();
    places.sort_by_key(|place| all[*place].at);
    places
}

fn comparable(usage: &Usage) -> Option<(String, [i64; 4])> {
    Some((common_model(usage.model.as_deref()?), usage.counts?))
}

/// Returns the name that gateways and clients have in common for a model: in lower case, without
/// provider, date, version and length of context.
pub fn common_model(model: &str) -> String {
    let mut name = model.to_lowercase();
    if let Some(provider) = name.rfind('/') {
        name.drain(..=provider);
    }
    loop {
        let shorter = shortened(&name);
        if shorter.len() == name.len() {
            return name;
        }
        name.truncate(shorter.len());
    }
}

/// Returns a name without one suffix, if it has one.
fn shortened(name: &str) -> &str {
    let is_date = |date: &str| date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit());
    let is_version = |version: &str| {
        let number = version
            .strip_prefix('v')
            .and_then(|rest| rest.split_once(':'));
        let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty();
        number.is_some_and(|(major, minor)| is_number(major) && is_number(minor))
    };
    if let Some(rest) = name.strip_suffix("[1m]") {
        return rest;
    }
    let cut = name
        .rsplit_once(['-', '@'])
        .filter(|(_, last)| is_date(last) || is_version(last));
    cut.map_or(name, |(rest, _)| rest)
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::CallKeyKind;
    use svc_engine_fact::testing::builders::at;

    use super::*;

    /// Returns a key from its written form.
    fn key(written: &str) -> CallKey {
        let (kind, id) = written.split_once(':').unwrap();
        let mut kinds = CallKeyKind::ALL.into_iter();
        CallKey::new(kinds.find(|known| known.as_str() == kind).unwrap(), id)
    }

    fn usage(seconds: i64, model: &str, counts: [i64; 4], ids: &[&str]) -> Usage {
        Usage {
            at: Some(at(seconds)),
            model: Some(model.to_owned()),
            counts: Some(counts),
            keys: ids.iter().map(|id| key(id)).collect(),
        }
    }

    #[test]
    fn an_equal_id_joins_whatever_else_differs() {
        let calls = [
            usage(0, "m", [1, 0, 0, 1], &["response:msg_1"]),
            usage(0, "m", [1, 0, 0, 1], &["request:req_1"]),
        ];
        let receipts = [
            usage(9_000, "other", [7, 0, 0, 7], &["request:req_1"]),
            usage(0, "m", [1, 0, 0, 1], &["request:req_2"]),
        ];
        let expected = [Some((1, JoinBasis::Ids)), Some((0, JoinBasis::Counts))];
        assert_eq!(join(&calls, &receipts), expected);
    }

    #[test]
    fn equal_counts_join_one_to_one_in_order_of_time() {
        let call = |seconds| usage(seconds, "Anthropic/Claude-X-20260101", [5, 3, 0, 2], &[]);
        let receipt = |seconds| usage(seconds, "claude-x", [5, 3, 0, 2], &[]);
        let joined = join(
            &[call(20), call(10)],
            &[receipt(30), receipt(12), receipt(40)],
        );
        let expected = [
            Some((0, JoinBasis::Counts)),
            Some((1, JoinBasis::Counts)),
            None,
        ];
        assert_eq!(joined, expected);
    }

    #[test]
    fn differing_ids_of_one_type_or_a_quarter_of_an_hour_forbid_a_join_by_counts() {
        let calls = [usage(0, "m", [1, 0, 0, 1], &["request:req_1"])];
        for (receipt, is_joined) in [
            (usage(900, "m", [1, 0, 0, 1], &[]), true),
            (usage(901, "m", [1, 0, 0, 1], &[]), false),
            (usage(0, "m", [1, 0, 0, 1], &["request:req_2"]), false),
            (usage(0, "m", [1, 0, 0, 1], &["response:msg_2"]), true),
            (usage(0, "m", [1, 1, 0, 1], &[]), false),
            (usage(0, "n", [1, 0, 0, 1], &[]), false),
            (
                Usage {
                    counts: None,
                    ..usage(0, "m", [0; 4], &[])
                },
                false,
            ),
        ] {
            let joined = join(&calls, std::slice::from_ref(&receipt));
            assert_eq!(joined[0].is_some(), is_joined, "{receipt:?}");
        }
    }

    #[test]
    fn names_of_one_model_have_one_form() {
        for (name, common) in [
            ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
            ("Claude-Opus-4-5[1m]", "claude-opus-4-5"),
            ("us.anthropic/claude-3@20240229", "claude-3"),
            ("bedrock/claude-haiku-20251001-v1:0", "claude-haiku"),
            ("gpt-4o", "gpt-4o"),
            ("x-1234567", "x-1234567"),
            ("", ""),
        ] {
            assert_eq!(common_model(name), common, "{name}");
        }
    }
}
