//! The cost of one call.

use svc_model::spend::UnpricedReason;
use svc_model::usage::TokenCounts;

use super::book::PriceBook;
use super::rates::TokenPrices;

/// A rate counts 10^-15 USD, a cost 10^-6.
const RATE_UNITS_PER_MICRO_USD: i128 = 1_000_000_000;

/// What is priced: the words and the tokens of a call, or of a usage receipt.
#[derive(Clone, Copy, Debug, Default)]
pub struct PricedUse<'u> {
    /// The provider of the model.
    pub model_provider: Option<&'u str>,
    /// The model.
    pub model: Option<&'u str>,
    /// The tokens.
    pub tokens: TokenCounts,
    /// Whether a call was stored with its whole input, but without the parts of it. Then its uncached
    /// input is unknown.
    pub has_unsplit_input: bool,
    /// The service tier, if it is not the usual one.
    pub tier: Option<&'u str>,
}

/// Returns the cost in micro-USD, at the rates of the book: exact, then rounded half up, once. A cost
/// beyond the range of an `i64` is the largest one.
///
/// What used no tokens costs nothing, whatever else is unknown of it.
///
/// # Errors
///
/// The first reason, in their order, why the cost is unknown.
pub fn cost(book: Option<&PriceBook>, priced: &PricedUse<'_>) -> Result<i64, UnpricedReason> {
    if used_nothing(priced) {
        return Ok(0);
    }
    let model = priced.model.ok_or(UnpricedReason::NoModel)?;
    let (uncached, output) = counted(priced)?;
    if priced.tier.is_some() {
        return Err(UnpricedReason::TierPriceUnknown);
    }
    let book = book.ok_or(UnpricedReason::NoPriceTable)?;
    let rates = book.rates(priced.model_provider, model)?;
    let read = count(priced.tokens.cache_read_tokens);
    let prices = rates.at(uncached + read + written(&priced.tokens));
    let reasoning = count(priced.tokens.reasoning_tokens).min(output);
    let exact = uncached * i128::from(prices.input)
        + read * i128::from(prices.cache_read)
        + cost_of_writes(&priced.tokens, &prices)?
        + (output - reasoning) * i128::from(prices.output)
        + reasoning * i128::from(prices.reasoning);
    Ok(rounded(exact))
}

fn used_nothing(priced: &PricedUse<'_>) -> bool {
    let tokens = &priced.tokens;
    let known = [tokens.input_tokens_uncached, tokens.output_tokens];
    let others = [
        tokens.cache_read_tokens,
        tokens.cache_write_tokens,
        tokens.cache_write_5m_tokens,
        tokens.cache_write_1h_tokens,
        tokens.reasoning_tokens,
    ];
    let are_others_zero = others.into_iter().flatten().all(|count| count == 0);
    known == [Some(0); 2] && are_others_zero && !priced.has_unsplit_input
}

/// Returns the uncached input and the output.
fn counted(priced: &PricedUse<'_>) -> Result<(i128, i128), UnpricedReason> {
    let uncached = priced.tokens.input_tokens_uncached;
    let output = priced
        .tokens
        .output_tokens
        .ok_or(UnpricedReason::NoCounts)?;
    if priced.has_unsplit_input {
        return Err(UnpricedReason::UsageNotRecorded);
    }
    let uncached = uncached.ok_or(UnpricedReason::NoCounts)?;
    Ok((count(Some(uncached)), count(Some(output))))
}

/// Returns a count. What is unknown is none, and no count is below zero.
fn count(tokens: Option<i64>) -> i128 {
    tokens.unwrap_or(0).max(0).into()
}

/// Returns the tokens that were written for five minutes and for an hour; `None` if that is unknown.
fn split(tokens: &TokenCounts) -> Option<(i128, i128)> {
    let short = tokens.cache_write_5m_tokens;
    let long = tokens.cache_write_1h_tokens;
    let rest = |part: i128| (count(tokens.cache_write_tokens) - part).max(0);
    match (short, long) {
        (Some(_), Some(_)) => Some((count(short), count(long))),
        (Some(_), None) => Some((count(short), rest(count(short)))),
        (None, Some(_)) => Some((rest(count(long)), count(long))),
        (None, None) => None,
    }
}

fn written(tokens: &TokenCounts) -> i128 {
    let split = split(tokens).map(|(short, long)| short + long);
    split.unwrap_or_else(|| count(tokens.cache_write_tokens))
}

fn cost_of_writes(tokens: &TokenCounts, prices: &TokenPrices) -> Result<i128, UnpricedReason> {
    let short_price = i128::from(prices.cache_write_5m);
    let long_price = prices.cache_write_1h.map(i128::from);
    match split(tokens) {
        Some((short, 0)) => Ok(short * short_price),
        Some((short, long)) => {
            let price = long_price.ok_or(UnpricedReason::CacheLifetimeUnknown)?;
            Ok(short * short_price + long * price)
        }
        None => {
            let written = count(tokens.cache_write_tokens);
            let is_same = long_price.is_none_or(|price| price == short_price);
            if written == 0 || is_same {
                Ok(written * short_price)
            } else {
                Err(UnpricedReason::CacheLifetimeUnknown)
            }
        }
    }
}

fn rounded(exact: i128) -> i64 {
    let micros = (exact + RATE_UNITS_PER_MICRO_USD / 2) / RATE_UNITS_PER_MICRO_USD;
    i64::try_from(micros).unwrap_or(i64::MAX)
}
