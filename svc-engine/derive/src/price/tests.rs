use svc_model::spend::UnpricedReason as Reason;
use svc_model::usage::TokenCounts;

use super::*;

/// Two models of one provider, one with thresholds, and one without a rate of the 1-hour cache.
const LITELLM: &str = r#"{
    "sample_spec": {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0, "mode": "chat"},
    "claude-sonnet-4-5": {
        "litellm_provider": "anthropic", "mode": "chat",
        "input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05,
        "cache_read_input_token_cost": 3e-07,
        "cache_creation_input_token_cost": 3.75e-06,
        "cache_creation_input_token_cost_above_1hr": 6e-06,
        "input_cost_per_token_batches": 1.5e-06
    },
    "gpt-5": {
        "litellm_provider": "openai", "mode": "responses",
        "input_cost_per_token": 1.25e-06, "output_cost_per_token": 1e-05,
        "cache_read_input_token_cost": 1.25e-07, "input_cost_per_token_priority": 2.5e-06
    },
    "azure/gpt-5": {
        "litellm_provider": "azure",
        "input_cost_per_token": 1.375e-06, "output_cost_per_token": 1.1e-05
    },
    "gemini-2.5-pro": {
        "litellm_provider": "vertex_ai-language-models",
        "input_cost_per_token": 1.25e-06, "output_cost_per_token": 1e-05,
        "cache_read_input_token_cost": 1.25e-07,
        "input_cost_per_token_above_200k_tokens": 2.5e-06,
        "output_cost_per_token_above_200k_tokens": 1.5e-05,
        "cache_read_input_token_cost_above_200k_tokens": 2.5e-07,
        "input_cost_per_token_above_200k_tokens_priority": 4.5e-06
    },
    "qwen-flash": {"litellm_provider": "dashscope", "mode": "chat", "tiered_pricing": [{}]},
    "text-embedding-3-small": {
        "litellm_provider": "openai", "mode": "embedding",
        "input_cost_per_token": 2e-08, "output_cost_per_token": 0.0
    },
    "whisper-1": {"litellm_provider": "openai", "input_cost_per_second": 0.0001}
}"#;

const MODELS_DEV: &str = r#"{
    "anthropic": {"id": "anthropic", "models": {
        "claude-sonnet-4-5": {"id": "claude-sonnet-4-5", "cost": {
            "input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75,
            "tiers": [
                {"input": 6, "output": 22.5, "tier": {"type": "context", "size": 200000}},
                {"input": 9, "tier": {"type": "context", "size": 500000}}
            ]
        }},
        "free": {"id": "free", "cost": {"input": 0, "output": 0}},
        "unknown": {"id": "unknown"}
    }},
    "google": {"models": {
        "gemini-2.5-pro": {"cost": {
            "input": 1.25, "output": 10, "cache_read": 0.125, "reasoning": 12,
            "context_over_200k": {"input": 2.5, "output": 15, "cache_read": 0.25}
        }}
    }},
    "google-vertex": {"models": {"gemini-2.5-pro": {"cost": {"input": 2, "output": 10}}}},
    "same-price": {"models": {"claude-sonnet-4-5": {"cost": {
        "input": 3.0, "output": 15.0, "cache_read": 3e-1, "cache_write": 3.75,
        "tiers": [
            {"input": 6, "output": 22.5, "tier": {"type": "context", "size": 2e5}},
            {"input": 9, "tier": {"type": "context", "size": 500000}}
        ]
    }}}},
    "other": {"models": {"odd": {"cost": {
        "input": 1, "output": 1, "tiers": [{"input": 2, "tier": {"type": "hour", "size": 8}}]
    }}}},
    "no provider": 7
}"#;

fn book(text: &str) -> PriceBook {
    PriceFile::read(text.as_bytes()).unwrap().book
}

/// Returns counts: uncached input, read, written, for five minutes, for an hour, and output.
fn counts(
    uncached: i64,
    read: i64,
    written: i64,
    split: Option<(i64, i64)>,
    output: i64,
) -> TokenCounts {
    let (short, long) = split.unzip();
    TokenCounts {
        input_tokens_uncached: Some(uncached),
        cache_read_tokens: Some(read),
        cache_write_tokens: Some(written),
        cache_write_5m_tokens: short,
        cache_write_1h_tokens: long,
        output_tokens: Some(output),
        reasoning_tokens: None,
    }
}

fn of<'u>(provider: &'u str, model: &'u str, tokens: TokenCounts) -> PricedUse<'u> {
    PricedUse {
        model_provider: (!provider.is_empty()).then_some(provider),
        model: Some(model),
        tokens,
        ..PricedUse::default()
    }
}

/// Returns the cost of this many uncached tokens of a model without a provider, whose entry has
/// these members.
fn cost_with(members: &str, tokens: TokenCounts) -> Result<i64, Reason> {
    let text = format!(r#"{{"m":{{{members}}}}}"#);
    cost(Some(&book(&text)), &of("", "m", tokens))
}

#[test]
fn costs_are_derived_exactly() {
    let book = book(LITELLM);
    let sonnet = ("anthropic", "claude-sonnet-4-5");
    let gpt = ("openai", "gpt-5");
    let gemini = ("vertex_ai", "gemini-2.5-pro");
    for ((provider, model), tokens, expected) in [
        (
            sonnet,
            counts(12, 41_200, 3_104, Some((3_104, 0)), 780),
            35_736,
        ),
        (
            sonnet,
            counts(12, 41_200, 3_104, Some((0, 3_104)), 780),
            42_720,
        ),
        (gpt, counts(1_808, 8_192, 0, None, 1_000), 13_284),
        (gemini, counts(60_000, 150_000, 0, None, 2_000), 217_500),
        (gemini, counts(50_000, 150_000, 0, None, 2_000), 101_250),
        (gpt, counts(0, 4, 0, None, 0), 1),
        (gpt, counts(0, 3, 0, None, 0), 0),
        (gpt, counts(0, 0, 0, None, 0), 0),
    ] {
        let found = cost(Some(&book), &of(provider, model, tokens));
        assert_eq!(found, Ok(expected), "{model} {tokens:?}");
    }
    let unknown_lifetime = of(sonnet.0, sonnet.1, counts(12, 41_200, 3_104, None, 780));
    let found = cost(Some(&book), &unknown_lifetime);
    assert_eq!(found, Err(Reason::CacheLifetimeUnknown));
    let in_tier = PricedUse {
        tier: Some("priority"),
        ..of(gpt.0, gpt.1, counts(1_808, 8_192, 0, None, 1_000))
    };
    assert_eq!(cost(Some(&book), &in_tier), Err(Reason::TierPriceUnknown));
}

#[test]
fn the_first_reason_that_applies_is_given() {
    let two_providers = r#"{"a":{"models":{"m":{"cost":{"input":1,"output":1}}}},
        "b":{"models":{"m":{"cost":{"input":2,"output":1}},
            "odd":{"cost":{"input":1,"output":1,"tiers":{}}}}}}"#;
    let two_providers = book(two_providers);
    let written = counts(1, 0, 1, None, 1);
    let sonnet = of("anthropic", "claude-sonnet-4-5", written);
    // Each makes the one before it known, and leaves the later reasons.
    let all = PricedUse {
        model_provider: None,
        model: None,
        tokens: TokenCounts::default(),
        has_unsplit_input: true,
        tier: Some("flex"),
    };
    let model = PricedUse {
        model: Some("absent"),
        ..all
    };
    let output = PricedUse {
        tokens: TokenCounts {
            output_tokens: Some(1),
            ..TokenCounts::default()
        },
        ..model
    };
    let no_input = PricedUse {
        has_unsplit_input: false,
        ..output
    };
    let tier = PricedUse {
        tokens: written,
        ..no_input
    };
    let usual = PricedUse { tier: None, ..tier };
    let listed = book(LITELLM);
    for (book, priced, reason) in [
        (None, all, Reason::NoModel),
        (None, model, Reason::NoCounts),
        (None, output, Reason::UsageNotRecorded),
        (None, no_input, Reason::NoCounts),
        (None, tier, Reason::TierPriceUnknown),
        (None, usual, Reason::NoPriceTable),
        (Some(&listed), usual, Reason::ModelNotInTable),
        (
            Some(&two_providers),
            of("", "m", written),
            Reason::AmbiguousPrice,
        ),
        (
            Some(&two_providers),
            of("", "odd", written),
            Reason::PriceFormUnknown,
        ),
        (
            Some(&listed),
            of("dashscope", "qwen-flash", written),
            Reason::PriceFormUnknown,
        ),
        (Some(&listed), sonnet, Reason::CacheLifetimeUnknown),
    ] {
        assert_eq!(cost(book, &priced), Err(reason), "{priced:?}");
    }
}

#[test]
fn each_reason_suffices_alone() {
    let book = book(LITELLM);
    let good = of("openai", "gpt-5", counts(1_808, 8_192, 0, None, 1_000));
    let without = |change: fn(&mut PricedUse<'_>)| {
        let mut priced = good;
        change(&mut priced);
        cost(Some(&book), &priced)
    };
    for (found, reason) in [
        (without(|priced| priced.model = None), Reason::NoModel),
        (
            without(|priced| priced.tokens.input_tokens_uncached = None),
            Reason::NoCounts,
        ),
        (
            without(|priced| priced.tokens.output_tokens = None),
            Reason::NoCounts,
        ),
        (
            without(|priced| priced.has_unsplit_input = true),
            Reason::UsageNotRecorded,
        ),
        (
            without(|priced| priced.tier = Some("flex")),
            Reason::TierPriceUnknown,
        ),
        (cost(None, &good), Reason::NoPriceTable),
        (
            without(|priced| priced.model = Some("gpt-6")),
            Reason::ModelNotInTable,
        ),
    ] {
        assert_eq!(found, Err(reason));
    }
    assert_eq!(without(|_| ()), Ok(13_284));
}

#[test]
fn what_used_no_tokens_costs_nothing() {
    let unused = PricedUse {
        tokens: TokenCounts {
            input_tokens_uncached: Some(0),
            output_tokens: Some(0),
            ..TokenCounts::default()
        },
        tier: Some("priority"),
        ..PricedUse::default()
    };
    assert_eq!(cost(None, &unused), Ok(0));
    let read = PricedUse {
        tokens: TokenCounts {
            cache_read_tokens: Some(1),
            ..unused.tokens
        },
        ..unused
    };
    assert_eq!(cost(None, &read), Err(Reason::NoModel));
}

#[test]
fn a_threshold_holds_above_it_for_the_whole_call() {
    let members = r#""input_cost_per_token":1e-6,"output_cost_per_token":1e-6,
        "input_cost_per_token_above_32k_tokens":2e-6,
        "input_cost_per_token_above_128k_tokens":3e-6,
        "output_cost_per_token_above_128k_tokens":1e-5"#;
    for (input, output, expected) in [
        (31_999, 0, 31_999),
        (32_000, 0, 32_000),
        (32_001, 0, 64_002),
        (127_999, 1, 255_999),
        (128_000, 1, 256_001),
        (128_001, 1, 384_013),
    ] {
        let found = cost_with(members, counts(input, 0, 0, None, output));
        assert_eq!(found, Ok(expected), "{input}");
    }
    // All input counts for the threshold, whether a cache held it or not.
    let found = cost_with(members, counts(1, 16_000, 16_000, Some((16_000, 0)), 0));
    assert_eq!(found, Ok(64_002));
}

#[test]
fn an_absent_rate_is_that_of_the_input_or_of_the_output() {
    let base = r#""input_cost_per_token":1e-6,"output_cost_per_token":2e-6,
        "input_cost_per_token_above_1k_tokens":3e-6,"output_cost_per_token_above_2k_tokens":4e-6"#;
    let reasoning = |input, output| TokenCounts {
        reasoning_tokens: Some(output),
        ..counts(input, 0, 0, None, output)
    };
    for (more, tokens, expected) in [
        ("", counts(0, 1_000, 0, None, 0), 1_000),
        ("", counts(0, 1_001, 0, None, 0), 3_003),
        ("", counts(0, 0, 1_001, Some((1_001, 0)), 0), 3_003),
        ("", reasoning(0, 5), 10),
        ("", reasoning(2_001, 5), 6_003 + 20),
        (
            r#","output_cost_per_reasoning_token":7e-6"#,
            reasoning(0, 5),
            35,
        ),
        (
            r#","output_cost_per_reasoning_token":7e-6"#,
            reasoning(2_001, 5),
            6_003 + 35,
        ),
        // A rate of its own only above a threshold.
        (
            r#","cache_read_input_token_cost_above_2k_tokens":1e-5"#,
            counts(0, 1_500, 0, None, 0),
            4_500,
        ),
        (
            r#","cache_read_input_token_cost_above_2k_tokens":1e-5"#,
            counts(0, 2_001, 0, None, 0),
            20_010,
        ),
        // A rate of its own, which has no threshold.
        (
            r#","cache_read_input_token_cost":1e-7"#,
            counts(0, 2_001, 0, None, 0),
            200,
        ),
    ] {
        let found = cost_with(&format!("{base}{more}"), tokens);
        assert_eq!(found, Ok(expected), "{more} {tokens:?}");
    }
    // Output has at least the tokens of its reasoning.
    let more = TokenCounts {
        output_tokens: Some(3),
        ..reasoning(0, 5)
    };
    assert_eq!(cost_with(base, more), Ok(6));
}

#[test]
fn a_cache_of_an_hour_has_a_rate_of_its_own() {
    let base = r#""input_cost_per_token":1e-6,"output_cost_per_token":1e-6,
        "cache_creation_input_token_cost":2e-6"#;
    let hour = r#","cache_creation_input_token_cost_above_1hr":4e-6,
        "cache_creation_input_token_cost_above_1hr_above_200k_tokens":8e-6,
        "cache_creation_input_token_cost_above_200k_tokens":3e-6"#;
    let same = r#","cache_creation_input_token_cost_above_1hr":2e-6"#;
    let unknown = Err(Reason::CacheLifetimeUnknown);
    for (more, tokens, expected) in [
        (hour, counts(0, 0, 10, Some((4, 6)), 0), Ok(32)),
        (hour, counts(200_000, 0, 10, Some((4, 6)), 0), Ok(200_060)),
        (hour, counts(0, 0, 10, None, 0), unknown),
        (hour, counts(0, 0, 0, None, 1), Ok(1)),
        (same, counts(0, 0, 10, None, 0), Ok(20)),
        ("", counts(0, 0, 10, None, 0), Ok(20)),
        ("", counts(0, 0, 10, Some((10, 0)), 0), Ok(20)),
        ("", counts(0, 0, 10, Some((9, 1)), 0), unknown),
    ] {
        let found = cost_with(&format!("{base}{more}"), tokens);
        assert_eq!(found, expected, "{more} {tokens:?}");
    }
    let one_part = |short, long| TokenCounts {
        cache_write_5m_tokens: short,
        cache_write_1h_tokens: long,
        ..counts(0, 0, 10, None, 0)
    };
    let with_hour = format!("{base}{hour}");
    assert_eq!(cost_with(&with_hour, one_part(Some(10), None)), Ok(20));
    assert_eq!(cost_with(&with_hour, one_part(None, Some(10))), Ok(40));
}

#[test]
fn files_have_two_forms() {
    let litellm = PriceFile::read(LITELLM.as_bytes()).unwrap();
    let counts = (litellm.format, litellm.models, litellm.ignored);
    assert_eq!(counts, (PriceFormat::Litellm, 5, 3));
    let models_dev = PriceFile::read(MODELS_DEV.as_bytes()).unwrap();
    let counts = (models_dev.format, models_dev.models, models_dev.ignored);
    assert_eq!(counts, (PriceFormat::ModelsDev, 6, 1));
}

#[test]
fn rates_of_models_dev_are_for_a_million_tokens() {
    let book = book(MODELS_DEV);
    let sonnet = |tokens| cost(Some(&book), &of("anthropic", "claude-sonnet-4-5", tokens));
    let gemini = |tokens| cost(Some(&book), &of("google", "gemini-2.5-pro", tokens));
    assert_eq!(sonnet(counts(12, 41_200, 3_104, None, 780)), Ok(35_736));
    assert_eq!(
        sonnet(counts(1, 0, 1, Some((0, 1)), 1)),
        Err(Reason::CacheLifetimeUnknown)
    );
    assert_eq!(sonnet(counts(200_000, 0, 0, None, 2)), Ok(600_030));
    assert_eq!(sonnet(counts(200_001, 0, 0, None, 2)), Ok(1_200_051));
    // The output has no rate in the second tier.
    assert_eq!(sonnet(counts(500_001, 0, 0, None, 2)), Ok(4_500_009 + 45));
    assert_eq!(gemini(counts(60_000, 150_000, 0, None, 2_000)), Ok(217_500));
    assert_eq!(gemini(counts(50_000, 150_000, 0, None, 2_000)), Ok(101_250));
    let reasoning = TokenCounts {
        reasoning_tokens: Some(1),
        ..counts(0, 0, 0, None, 2)
    };
    assert_eq!(gemini(reasoning), Ok(22));
    let free = of("anthropic", "free", counts(1_000, 0, 0, None, 1_000));
    assert_eq!(cost(Some(&book), &free), Ok(0));
}

#[test]
fn a_model_is_found_by_its_provider() {
    let listed = book(LITELLM);
    let input = |book: &PriceBook, provider: &str, model: &str| {
        let provider = (!provider.is_empty()).then_some(provider);
        Ok(book.rates(provider, model)?.input.base())
    };
    let (openai, azure) = (1_250_000_000, 1_375_000_000);
    for (provider, model, expected) in [
        ("openai", "gpt-5", Ok(openai)),
        ("", "gpt-5", Ok(openai)),
        ("azure", "gpt-5", Ok(azure)),
        ("azure.ai.openai", "gpt-5", Ok(azure)),
        ("", "azure/gpt-5", Ok(azure)),
        ("azure", "azure/gpt-5", Ok(azure)),
        ("gcp.vertex_ai", "gemini-2.5-pro", Ok(1_250_000_000)),
        ("google-vertex", "gemini-2.5-pro", Ok(1_250_000_000)),
        ("anthropic", "claude-sonnet-4-5[1m]", Ok(3_000_000_000)),
        ("google", "gemini-2.5-pro", Err(Reason::ModelNotInTable)),
        ("anthropic", "gpt-5", Err(Reason::ModelNotInTable)),
        ("OpenAI", "gpt-5", Err(Reason::ModelNotInTable)),
        ("openai", "GPT-5", Err(Reason::ModelNotInTable)),
        ("openai", "gpt-5-2025", Err(Reason::ModelNotInTable)),
        ("", "", Err(Reason::ModelNotInTable)),
    ] {
        assert_eq!(
            input(&listed, provider, model),
            expected,
            "{provider} {model}"
        );
    }
    let listed = book(MODELS_DEV);
    for (provider, model, expected) in [
        ("google", "gemini-2.5-pro", Ok(1_250_000_000)),
        ("gcp.gemini", "gemini-2.5-pro", Ok(1_250_000_000)),
        ("gcp.vertex_ai", "gemini-2.5-pro", Ok(2_000_000_000)),
        ("", "gemini-2.5-pro", Err(Reason::AmbiguousPrice)),
        ("", "claude-sonnet-4-5", Ok(3_000_000_000)),
        (
            "",
            "anthropic/claude-sonnet-4-5",
            Err(Reason::ModelNotInTable),
        ),
        ("openai", "claude-sonnet-4-5", Err(Reason::ModelNotInTable)),
        ("other", "odd", Err(Reason::PriceFormUnknown)),
    ] {
        assert_eq!(
            input(&listed, provider, model),
            expected,
            "{provider} {model}"
        );
    }
}

#[test]
fn a_rate_is_read_from_its_spelling() {
    let rate_of = |spelling: &str| {
        let text = format!(
            r#"{{"m":{{"input_cost_per_token":{spelling},"output_cost_per_token":0}},
                "n":{{"input_cost_per_token":0,"output_cost_per_token":0}}}}"#
        );
        let rates = book(&text).rates(None, "m").cloned().ok()?;
        Some(rates.input.base())
    };
    for (spelling, expected) in [
        ("5.0000000000000004e-08", Some(50_000_000)),
        ("0", Some(0)),
        ("0.0", Some(0)),
        ("1", Some(1_000_000_000_000_000)),
        ("1.1", None),
        ("1e400", None),
        ("-1e-9", None),
        ("NaN", None),
        ("\"3e-6\"", None),
        ("null", None),
        ("true", None),
    ] {
        assert_eq!(rate_of(spelling), expected, "{spelling}");
    }
}

#[test]
fn an_entry_with_a_rate_that_is_no_price_is_passed_over() {
    for member in [
        r#""cache_read_input_token_cost":-1"#,
        r#""cache_read_input_token_cost_above_200k_tokens":"a""#,
        r#""mode":"embedding""#,
        r#""mode":null"#,
    ] {
        let text =
            format!(r#"{{"m":{{"input_cost_per_token":0,"output_cost_per_token":0,{member}}}}}"#);
        let found = PriceFile::read(text.as_bytes()).unwrap_err();
        assert_eq!(found, PriceFileError::NoModels, "{member}");
    }
    // A rate that is not read may be anything.
    let text = r#"{"m":{"input_cost_per_token":0,"output_cost_per_token":0,
        "input_cost_per_token_batches":-1,"input_cost_per_token_above_200k_tokens_flex":"a",
        "input_cost_per_token_above_many_tokens":[]}}"#;
    assert_eq!(PriceFile::read(text.as_bytes()).unwrap().models, 1);
}

#[test]
fn other_files_are_refused() {
    let many: Vec<String> = (0..=PRICE_MODELS_MAX)
        .map(|n| format!(r#""{n}":{{"input_cost_per_token":0,"output_cost_per_token":0}}"#))
        .collect();
    let most = format!("{{{}}}", many[1..].join(","));
    assert_eq!(PriceFile::read(most.as_bytes()).unwrap().models, 50_000);
    let too_many = format!("{{{}}}", many.join(","));
    let large = format!("[{}0]", "[],".repeat(8 * 1024 * 1024));
    for (text, expected) in [
        ("{}", PriceFileError::UnknownForm),
        ("[]", PriceFileError::UnknownForm),
        ("null", PriceFileError::UnknownForm),
        (r#"{"m":{"mode":"chat"}}"#, PriceFileError::UnknownForm),
        (
            r#"{"m":{"tiered_pricing":[]}}"#,
            PriceFileError::UnknownForm,
        ),
        (r#"{"p":{"models":[]}}"#, PriceFileError::UnknownForm),
        (r#"{"p":{"models":{}}}"#, PriceFileError::NoModels),
        (
            r#"{"sample_spec":{"input_cost_per_token":0,"output_cost_per_token":0}}"#,
            PriceFileError::NoModels,
        ),
        (&too_many, PriceFileError::TooManyModels),
        (&large, PriceFileError::TooLarge),
    ] {
        let found = PriceFile::read(text.as_bytes()).unwrap_err();
        assert_eq!(found, expected, "{text:.40}");
    }
    for garbage in [&b""[..], b"{", b"\xff\xfe\xfd", b"PK\x03\x04", b"{} {}"] {
        let found = PriceFile::read(garbage).unwrap_err();
        assert!(matches!(found, PriceFileError::Malformed(_)), "{garbage:?}");
    }
}

#[test]
fn a_cost_without_bounds_is_the_largest_one() {
    let tokens = TokenCounts {
        reasoning_tokens: Some(i64::MAX),
        ..counts(
            i64::MAX,
            i64::MAX,
            i64::MAX,
            Some((i64::MAX, i64::MAX)),
            i64::MAX,
        )
    };
    let members = r#""input_cost_per_token":1,"output_cost_per_token":1,
        "cache_creation_input_token_cost_above_1hr":1,
        "input_cost_per_token_above_18446744073709551615k_tokens":0,
        "input_cost_per_token_above_18446744073709551k_tokens":0"#;
    assert_eq!(cost_with(members, tokens), Ok(i64::MAX));
    assert_eq!(
        cost_with(members, counts(-5, -5, -5, None, 1)),
        Ok(1_000_000)
    );
}
