//! LiteLLM's list of models: an object from a model's key to its rates in USD per token.

use svc_model::json::{Json, Object};

use super::book::{Price, PriceBook};
use super::rates::{ListedRates, TokenKind, rate};

const INPUT: &str = "input_cost_per_token";
/// The members that give a rate, each also with a threshold.
const MEMBERS: [(&str, TokenKind); 6] = [
    (INPUT, TokenKind::Input),
    ("output_cost_per_token", TokenKind::Output),
    ("cache_read_input_token_cost", TokenKind::CacheRead),
    ("cache_creation_input_token_cost", TokenKind::CacheWrite5m),
    (
        "cache_creation_input_token_cost_above_1hr",
        TokenKind::CacheWrite1h,
    ),
    ("output_cost_per_reasoning_token", TokenKind::Reasoning),
];
/// The modes of models that answer with text. Without a mode, a model is one of these.
const MODES: [&str; 3] = ["chat", "responses", "completion"];
/// An entry that explains the others.
const EXPLANATION: &str = "sample_spec";

/// Returns whether an object looks like an entry of such a list.
pub(super) fn is_entry(entry: &Object) -> bool {
    entry.contains_key(INPUT)
}

/// Returns the rates of a list, and the number of its entries that have none.
pub(super) fn book(entries: &Object) -> (PriceBook, u64) {
    let mut book = PriceBook::default();
    for (key, entry) in entries {
        let key = key.as_str().filter(|key| *key != EXPLANATION);
        let Some((key, entry)) = key.zip(entry.as_object()) else {
            continue;
        };
        if let Some(price) = price(entry) {
            let provider = entry.get("litellm_provider").and_then(Json::as_str);
            book.add_key(key, provider, price);
        }
    }
    let ignored = (entries.len() - book.len()) as u64;
    (book, ignored)
}

/// Returns the price of an entry; `None` if it is to be passed over.
fn price(entry: &Object) -> Option<Price> {
    if !answers_with_text(entry) {
        return None;
    }
    // Ranges of input with rates of their own, which replace the others.
    if entry.contains_key("tiered_pricing") {
        return Some(Price::UnknownForm);
    }
    let mut listed = ListedRates::default();
    for (name, value) in entry {
        let Some((kind, above)) = name.as_str().and_then(member) else {
            continue;
        };
        match value {
            Json::Array(_) | Json::Object(_) => return Some(Price::UnknownForm),
            _ => listed.add(kind, above, rate(value.as_number()?, 0)?),
        }
    }
    listed.rates().map(Price::Rates)
}

fn answers_with_text(entry: &Object) -> bool {
    let mode = entry.get("mode").map(Json::as_str);
    mode.is_none_or(|mode| mode.is_some_and(|mode| MODES.contains(&mode)))
}

/// Returns which rate a member is, and the input above which it holds.
fn member(name: &str) -> Option<(TokenKind, Option<u64>)> {
    MEMBERS.iter().find_map(|(member, kind)| {
        let suffix = name.strip_prefix(member)?;
        if suffix.is_empty() {
            return Some((*kind, None));
        }
        Some((*kind, Some(threshold(suffix)?)))
    })
}

fn threshold(suffix: &str) -> Option<u64> {
    let thousands = suffix.strip_prefix("_above_")?.strip_suffix("k_tokens")?;
    thousands.parse::<u64>().ok()?.checked_mul(1_000)
}
