//! The document of models.dev: an object from a provider to its models, with rates in USD per million
//! tokens.

use svc_model::json::{Json, Object};

use super::book::{Price, PriceBook};
use super::rates::{ListedRates, TokenKind, rate};

/// Rates are for ten to this power tokens.
const TOKENS_EXPONENT: i64 = 6;
/// There is no rate of a cache that is kept for an hour.
const MEMBERS: [(&str, TokenKind); 5] = [
    ("input", TokenKind::Input),
    ("output", TokenKind::Output),
    ("cache_read", TokenKind::CacheRead),
    ("cache_write", TokenKind::CacheWrite5m),
    ("reasoning", TokenKind::Reasoning),
];
/// The rates of calls with more input than this, of a document without `tiers`.
const LONG_CONTEXT: (&str, u64) = ("context_over_200k", 200_000);

/// Returns whether an object looks like a provider of such a document.
pub(super) fn is_provider(provider: &Object) -> bool {
    models(provider).is_some()
}

fn models(provider: &Object) -> Option<&Object> {
    provider.get("models").and_then(Json::as_object)
}

/// Returns the rates of a document, and the number of its models that have none.
pub(super) fn book(providers: &Object) -> (PriceBook, u64) {
    let mut book = PriceBook::by_provider();
    let mut ignored = 0;
    for (provider, models) in providers.iter().filter_map(|(provider, entry)| {
        let models = models(entry.as_object()?)?;
        Some((provider.as_str()?, models))
    }) {
        for (model, entry) in models {
            let price = entry.as_object().and_then(|entry| entry.get("cost"));
            let price = price.and_then(Json::as_object).and_then(price_of);
            match model.as_str().zip(price) {
                Some((model, price)) => book.add_of_provider(provider, model, price),
                None => ignored += 1,
            }
        }
    }
    (book, ignored)
}

/// Why the rates of a model are not read.
enum Unread {
    /// One of them is no price.
    NoPrice,
    /// They have a form that is not read.
    UnknownForm,
}

/// Returns the price of a model; `None` if it is to be passed over.
fn price_of(cost: &Object) -> Option<Price> {
    let mut listed = ListedRates::default();
    match add_all(&mut listed, cost) {
        Ok(()) => listed.rates().map(Price::Rates),
        Err(Unread::UnknownForm) => Some(Price::UnknownForm),
        Err(Unread::NoPrice) => None,
    }
}

fn add_all(listed: &mut ListedRates, cost: &Object) -> Result<(), Unread> {
    add(listed, None, cost)?;
    if let Some(tiers) = cost.get("tiers") {
        for tier in tiers.as_array().ok_or(Unread::UnknownForm)? {
            let tier = tier.as_object().ok_or(Unread::UnknownForm)?;
            let above = size(tier).ok_or(Unread::UnknownForm)?;
            add(listed, Some(above), tier)?;
        }
        return Ok(());
    }
    let (name, above) = LONG_CONTEXT;
    match cost.get(name) {
        Some(rates) => {
            let rates = rates.as_object().ok_or(Unread::UnknownForm)?;
            add(listed, Some(above), rates)
        }
        None => Ok(()),
    }
}

/// Adds the rates of an object.
fn add(listed: &mut ListedRates, above: Option<u64>, rates: &Object) -> Result<(), Unread> {
    for (name, kind) in MEMBERS {
        match rates.get(name) {
            Some(Json::Array(_) | Json::Object(_)) => return Err(Unread::UnknownForm),
            Some(value) => {
                let number = value.as_number().ok_or(Unread::NoPrice)?;
                let rate = rate(number, TOKENS_EXPONENT).ok_or(Unread::NoPrice)?;
                listed.add(kind, above, rate);
            }
            None => {}
        }
    }
    Ok(())
}

/// Returns the input above which the rates of a tier hold.
fn size(tier: &Object) -> Option<u64> {
    let tier = tier.get("tier")?.as_object()?;
    let is_context = tier.get("type").and_then(Json::as_str) == Some("context");
    let size = tier.get("size")?.as_number()?.scaled(0)?;
    is_context.then(|| u64::try_from(size).ok())?
}
