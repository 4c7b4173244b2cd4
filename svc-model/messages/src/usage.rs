//! Brings what senders report of usage to one form: tokens, cost and service tier.

use svc_model::json::Number;
use svc_model::usage::TokenCounts;

/// The most bytes of a service tier.
const TIER_BYTES_MAX: usize = 64;
/// The decimal places between a USD and a micro-USD.
const MICRO: i64 = 6;

/// Tokens as a sender reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportedTokens {
    pub input: Option<i64>,
    pub cache_read: Option<i64>,
    pub cache_write: Option<i64>,
    /// What was written for five minutes, and for an hour.
    pub cache_write_by_lifetime: Option<(i64, i64)>,
    /// All output, including reasoning.
    pub output: Option<i64>,
    pub reasoning: Option<i64>,
}

impl ReportedTokens {
    /// Returns the counts of a sender whose input excludes the cache, and whether its numbers agree.
    pub fn beside_cache(self) -> (TokenCounts, bool) {
        self.counts(self.input)
    }

    /// Returns the counts of a sender whose input includes the cache, and whether its numbers agree.
    pub fn including_cache(self) -> (TokenCounts, bool) {
        let cached = self.cache_read.unwrap_or(0).checked_add(self.written());
        let Some(input) = self.input else {
            return self.counts(None);
        };
        match cached.and_then(|cached| input.checked_sub(cached)) {
            Some(uncached) if uncached >= 0 => self.counts(Some(uncached)),
            // Nothing tells which of the numbers is wrong.
            _ => {
                let output_alone = Self {
                    output: self.output,
                    reasoning: self.reasoning,
                    ..Self::default()
                };
                (output_alone.counts(None).0, false)
            }
        }
    }

    fn written(self) -> i64 {
        let by_lifetime = self.cache_write_by_lifetime;
        let split = by_lifetime.map(|(short, long)| short.saturating_add(long));
        self.cache_write.or(split).unwrap_or(0)
    }

    fn counts(self, uncached: Option<i64>) -> (TokenCounts, bool) {
        let is_reasoning_known = self.reasoning <= self.output || self.reasoning.is_none();
        let split = self.cache_write_by_lifetime.filter(|(short, long)| {
            let sum = short.checked_add(*long);
            sum.is_some() && (self.cache_write.is_none() || sum == self.cache_write)
        });
        let (short, long) = split.unzip();
        let counts = TokenCounts {
            input_tokens_uncached: uncached,
            cache_read_tokens: self.cache_read,
            cache_write_tokens: self.cache_write.or(split.map(|(short, long)| short + long)),
            cache_write_5m_tokens: short,
            cache_write_1h_tokens: long,
            output_tokens: self.output,
            reasoning_tokens: self.reasoning.filter(|_| is_reasoning_known),
        };
        (counts, is_reasoning_known)
    }
}

/// Returns a price in USD as micro-USD: exact, then rounded half up. `None` if it is negative, not
/// finite or too large.
pub fn micro_usd(usd: &Number) -> Option<i64> {
    usd.scaled(MICRO)
}

/// Returns a service tier in lower case. The usual tier is none, whatever the sender calls it.
pub fn tier(word: &str) -> Option<String> {
    let word = word.trim();
    let usual = ["", "normal", "standard", "default", "auto"];
    let is_usual = usual.iter().any(|usual| word.eq_ignore_ascii_case(usual));
    (!is_usual && word.len() <= TIER_BYTES_MAX && !word.contains('\0')).then(|| word.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_that_includes_the_cache_is_split() {
        let reported = ReportedTokens {
            input: Some(9_400),
            cache_read: Some(6_000),
            output: Some(800),
            reasoning: Some(590),
            ..ReportedTokens::default()
        };
        let (counts, agree) = reported.including_cache();
        assert!(agree);
        assert_eq!(counts.input_tokens_uncached, Some(3_400));
        assert_eq!(counts.input_tokens(), Some(9_400));
        assert_eq!(counts.reasoning_tokens, Some(590));
    }

    #[test]
    fn numbers_that_disagree_are_absent() {
        let reported = ReportedTokens {
            input: Some(5),
            cache_read: Some(6),
            output: Some(7),
            reasoning: Some(8),
            ..ReportedTokens::default()
        };
        let (counts, agree) = reported.including_cache();
        let output_alone = TokenCounts {
            output_tokens: Some(7),
            ..TokenCounts::default()
        };
        assert_eq!((counts, agree), (output_alone, false));
        let (counts, agree) = reported.beside_cache();
        assert_eq!((counts.reasoning_tokens, agree), (None, false));
        assert_eq!(counts.input_tokens(), Some(11));
    }

    #[test]
    fn the_lifetimes_of_what_was_written_add_up_or_are_unknown() {
        let reported = |written, split| ReportedTokens {
            input: Some(0),
            cache_write: written,
            cache_write_by_lifetime: split,
            ..ReportedTokens::default()
        };
        for (written, split, expected) in [
            (Some(5), Some((2, 3)), (Some(5), Some(2), Some(3))),
            (None, Some((2, 3)), (Some(5), Some(2), Some(3))),
            (Some(5), Some((2, 2)), (Some(5), None, None)),
            (Some(5), None, (Some(5), None, None)),
            (None, Some((i64::MAX, 1)), (None, None, None)),
        ] {
            let (counts, _) = reported(written, split).beside_cache();
            let found = (
                counts.cache_write_tokens,
                counts.cache_write_5m_tokens,
                counts.cache_write_1h_tokens,
            );
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_price_is_exact_and_rounded_half_up() {
        for (usd, micros) in [
            ("0.035736", Some(35_736)),
            ("0.0357365", Some(35_737)),
            ("0.03573649999999999999999999", Some(35_736)),
            ("5.0000000000000004e-08", Some(0)),
            ("5e-7", Some(1)),
            ("4.9e-7", Some(0)),
            ("0", Some(0)),
            ("-0", Some(0)),
            ("-0.0", Some(0)),
            ("12", Some(12_000_000)),
            ("1.5e2", Some(150_000_000)),
            ("9223372036854.775807", Some(i64::MAX)),
            ("9223372036854.775808", None),
            ("9223372036854.7758075", None),
            ("0e99999999999", Some(0)),
            ("1e-99999999999", Some(0)),
            ("1e99999999999", None),
            ("1e400", None),
            ("-0.1", None),
            ("NaN", None),
            ("Infinity", None),
        ] {
            let number = Number::parse(usd).unwrap();
            assert_eq!(micro_usd(&number), micros, "{usd}");
        }
    }

    #[test]
    fn the_usual_tier_is_none() {
        for word in ["normal", "Standard", "default", "auto", "", " "] {
            assert_eq!(tier(word), None, "{word}");
        }
        assert_eq!(tier(" Priority ").as_deref(), Some("priority"));
        assert_eq!(tier(&"x".repeat(65)), None);
    }
}
