//! The rates of one model.

use svc_model::json::Number;

/// The decimal places of a rate: it counts 10^-15 USD for a token.
const PLACES: i64 = 15;
/// The highest rate, one USD for a token.
const RATE_MAX: i64 = 1_000_000_000_000_000;

/// What tokens may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    Input,
    CacheRead,
    CacheWrite5m,
    CacheWrite1h,
    Output,
    Reasoning,
}

/// What one token costs, in 10^-15 USD. A call with a large input has another rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rate {
    base: i64,
    /// The rates of calls with more input tokens than a threshold, by threshold.
    above: Box<[(u64, i64)]>,
}

impl Rate {
    /// Returns the rate of a call with few input tokens.
    pub fn base(&self) -> i64 {
        self.base
    }

    /// Returns the rates of calls with more input tokens than a threshold, by threshold.
    pub fn above(&self) -> &[(u64, i64)] {
        &self.above
    }

    /// Returns the rate of a call with this number of input tokens.
    fn at(&self, input_tokens: i128) -> i64 {
        let mut above = self.above.iter().rev();
        let found = above.find(|(threshold, _)| i128::from(*threshold) < input_tokens);
        found.map_or(self.base, |(_, rate)| *rate)
    }
}

/// What the tokens of a model cost. A rate that the table does not give is that of the input, and
/// that of reasoning is the one of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Input outside any cache.
    pub input: Rate,
    /// Input that was read from a cache.
    pub cache_read: Rate,
    /// Input that was written to a cache for five minutes.
    pub cache_write_5m: Rate,
    /// Input that was written to a cache for an hour; `None` if the table does not give it.
    pub cache_write_1h: Option<Rate>,
    /// Output.
    pub output: Rate,
    /// Output that was reasoning.
    pub reasoning: Rate,
}

/// What one token of each kind costs in a call, in 10^-15 USD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenPrices {
    /// Input outside any cache.
    pub input: i64,
    /// Input that was read from a cache.
    pub cache_read: i64,
    /// Input that was written to a cache for five minutes.
    pub cache_write_5m: i64,
    /// Input that was written to a cache for an hour, if known.
    pub cache_write_1h: Option<i64>,
    /// Output.
    pub output: i64,
    /// Output that was reasoning.
    pub reasoning: i64,
}

impl Rates {
    /// Returns what tokens cost in a call with this number of input tokens.
    pub fn at(&self, input_tokens: i128) -> TokenPrices {
        let at = |rate: &Rate| rate.at(input_tokens);
        TokenPrices {
            input: at(&self.input),
            cache_read: at(&self.cache_read),
            cache_write_5m: at(&self.cache_write_5m),
            cache_write_1h: self.cache_write_1h.as_ref().map(at),
            output: at(&self.output),
            reasoning: at(&self.reasoning),
        }
    }
}

/// Reads a rate in USD per token, or per `10^divisor` tokens. `None` if it is no price.
pub(super) fn rate(number: &Number, divisor: i64) -> Option<i64> {
    let rate = number.scaled(PLACES - divisor)?;
    (rate <= RATE_MAX).then_some(rate)
}

/// The rates that an entry of a table lists.
#[derive(Debug, Default)]
pub(super) struct ListedRates(Vec<(TokenKind, Option<u64>, i64)>);

impl ListedRates {
    /// Adds a rate: of every call, or of calls with more input tokens than a threshold.
    pub(super) fn add(&mut self, kind: TokenKind, above: Option<u64>, rate: i64) {
        self.0.push((kind, above, rate));
    }

    /// Returns the rates; `None` without one of input and one of output.
    pub(super) fn rates(&self) -> Option<Rates> {
        let input = self.rate(TokenKind::Input)?;
        let output = self.rate(TokenKind::Output)?;
        Some(Rates {
            cache_read: self.rate_or(TokenKind::CacheRead, &input),
            cache_write_5m: self.rate_or(TokenKind::CacheWrite5m, &input),
            cache_write_1h: self.rate(TokenKind::CacheWrite1h),
            reasoning: self.rate_or(TokenKind::Reasoning, &output),
            input,
            output,
        })
    }

    fn rate(&self, kind: TokenKind) -> Option<Rate> {
        let of_kind = self.0.iter().filter(|(listed, ..)| *listed == kind);
        let base = of_kind.clone().find(|(_, above, _)| above.is_none());
        Some(Rate {
            base: base?.2,
            above: self.above(kind),
        })
    }

    fn above(&self, kind: TokenKind) -> Box<[(u64, i64)]> {
        let of_kind = self.0.iter().filter(|(listed, ..)| *listed == kind);
        let mut above: Vec<_> = of_kind
            .filter_map(|(_, above, rate)| Some(((*above)?, *rate)))
            .collect();
        above.sort_by_key(|(threshold, _)| *threshold);
        above.into()
    }

    /// Returns a rate that is another one where it is not listed.
    fn rate_or(&self, kind: TokenKind, other: &Rate) -> Rate {
        self.rate(kind).unwrap_or_else(|| {
            let own = self.above(kind);
            let first = own.first().map_or(u64::MAX, |(threshold, _)| *threshold);
            let below = other.above.iter().filter(|(above, _)| *above < first);
            Rate {
                base: other.base,
                above: below.chain(&own).copied().collect(),
            }
        })
    }
}
