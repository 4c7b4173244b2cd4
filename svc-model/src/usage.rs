//! What calls of models used and cost: the counts that every source is brought to, and the clients
//! that report them.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::closed_set;

closed_set! {
    /// The client that reported the usage of a call.
    pub enum UsageSource {
        /// Claude Code.
        ClaudeCode = "claude_code",
        /// Gemini CLI.
        GeminiCli = "gemini_cli",
        /// Codex.
        Codex = "codex",
        /// Copilot Chat.
        Copilot = "copilot",
        /// A program that follows OpenTelemetry's conventions for generative AI.
        GenAi = "genai",
        /// Another program.
        Other = "other",
    }
}

closed_set! {
    /// What told that a usage receipt and an inference call are about one call of a model.
    pub enum JoinBasis {
        /// Both have one id of the provider.
        Ids = "ids",
        /// Both are of one Session and one model, and have the same counts.
        Counts = "counts",
    }
}

closed_set! {
    /// Where an inference call was captured.
    pub enum CallSource {
        /// A gateway sent it.
        Gateway = "gateway",
        /// A client logged it.
        Telemetry = "telemetry",
        /// A span of a trace had it.
        Span = "span",
        /// The transcript of an agent had it.
        Transcript = "transcript",
        /// A program sent it itself.
        Sdk = "sdk",
    }
}

/// What the source of an inference call says of its cost and of its tokens, besides all input and
/// all output. What is unknown is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CallUsage {
    /// The cost in micro-USD as the source reported it, at list price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd_micros: Option<i64>,
    /// Input tokens that were read from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<i64>,
    /// Input tokens that were written to a cache, whatever their lifetime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<i64>,
    /// Those of them that the cache keeps for five minutes; absent if the lifetime is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_5m_tokens: Option<i64>,
    /// Those of them that the cache keeps for an hour; absent if the lifetime is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_1h_tokens: Option<i64>,
    /// The output tokens that were reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<i64>,
    /// The service tier, if it is not the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
}

#[cfg(feature = "service")]
impl CallUsage {
    /// Returns the usage of a call with these tokens, at this cost and service tier.
    pub fn new(tokens: TokenCounts, cost_usd_micros: Option<i64>, tier: Option<String>) -> Self {
        Self {
            cost_usd_micros,
            cache_read_tokens: tokens.cache_read_tokens,
            cache_write_tokens: tokens.cache_write_tokens,
            cache_write_5m_tokens: tokens.cache_write_5m_tokens,
            cache_write_1h_tokens: tokens.cache_write_1h_tokens,
            reasoning_tokens: tokens.reasoning_tokens,
            tier,
        }
    }
}

/// The tokens of a call. What is unknown is absent.
///
/// Every source is brought to these counts when it is captured: the input tokens exclude the cache,
/// and the output tokens include reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct TokenCounts {
    /// Input tokens that were neither read from a cache nor written to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens_uncached: Option<i64>,
    /// Input tokens that were read from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<i64>,
    /// Input tokens that were written to a cache, whatever their lifetime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<i64>,
    /// Those of them that the cache keeps for five minutes; absent if the lifetime is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_5m_tokens: Option<i64>,
    /// Those of them that the cache keeps for an hour; absent if the lifetime is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_1h_tokens: Option<i64>,
    /// All output tokens, including reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<i64>,
    /// The output tokens that were reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<i64>,
}

impl TokenCounts {
    /// Returns all input tokens, whether a cache held them or not; absent if those outside the cache
    /// are unknown.
    pub fn input_tokens(&self) -> Option<i64> {
        self.input_tokens_uncached?
            .checked_add(self.cache_read_tokens.unwrap_or(0))?
            .checked_add(self.cache_write_tokens.unwrap_or(0))
    }

    /// Returns whether no count is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_input_is_known_only_if_the_uncached_part_is() {
        let counts = |uncached, read, write| TokenCounts {
            input_tokens_uncached: uncached,
            cache_read_tokens: read,
            cache_write_tokens: write,
            ..TokenCounts::default()
        };
        for (counts, input) in [
            (counts(Some(12), Some(41_200), Some(3_104)), Some(44_316)),
            (counts(Some(12), None, None), Some(12)),
            (counts(None, Some(1), Some(1)), None),
            (counts(Some(i64::MAX), Some(1), None), None),
        ] {
            assert_eq!(counts.input_tokens(), input, "{counts:?}");
        }
    }
}
