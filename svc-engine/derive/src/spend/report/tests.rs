use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use svc_engine_fact::Lifetime;
use svc_engine_fact::testing::builders::{at, commit, id, repository};
use svc_model::id::{SessionId, UserId};
use svc_model::spend::{SpendKey, SpendRowWithoutKey, UnpricedReason};
use svc_model::usage::TokenCounts;

use super::*;
use crate::call_outcome::Landed;
use crate::price::PriceFile;
use crate::pull_requests::PullRequestMembership;
use crate::spend::{Model, ReceiptCounts};

const PRICES: &str = r#"{
    "claude-sonnet-4-5": {
        "litellm_provider": "anthropic", "input_cost_per_token": 3e-06,
        "output_cost_per_token": 1.5e-05, "cache_read_input_token_cost": 3e-07,
        "cache_creation_input_token_cost": 3.75e-06,
        "cache_creation_input_token_cost_above_1hr": 6e-06
    },
    "gpt-5": {
        "litellm_provider": "openai", "input_cost_per_token": 1.25e-06,
        "output_cost_per_token": 1e-05, "cache_read_input_token_cost": 1.25e-07
    }
}"#;

fn book() -> PriceBook {
    PriceFile::read(PRICES.as_bytes()).unwrap().book
}

fn item(number: u128, session: &str, model: (&str, &str)) -> Item {
    Item {
        call: Some(id(number)),
        session_id: SessionId::new(session).unwrap(),
        user_id: None,
        agent: None,
        model: Some(Model {
            provider: Some(model.0.into()),
            name: model.1.into(),
        }),
        at: at(i64::try_from(number).unwrap()),
        tokens: TokenCounts::default(),
        has_unsplit_input: false,
        has_counts: false,
        tier: None,
        cost_usd_micros: None,
        is_disputed: false,
        receipts: ReceiptCounts::default(),
    }
}

const SONNET: (&str, &str) = ("anthropic", "claude-sonnet-4-5");
const GPT: (&str, &str) = ("openai", "gpt-5");

/// Six items of two models in four Sessions.
fn world() -> Vec<Item> {
    let of_sonnet = TokenCounts {
        input_tokens_uncached: Some(12),
        cache_read_tokens: Some(41_200),
        cache_write_tokens: Some(3_104),
        cache_write_5m_tokens: Some(3_104),
        cache_write_1h_tokens: Some(0),
        output_tokens: Some(780),
        reasoning_tokens: None,
    };
    let of_gpt = TokenCounts {
        input_tokens_uncached: Some(1_808),
        cache_read_tokens: Some(8_192),
        output_tokens: Some(1_000),
        ..TokenCounts::default()
    };
    let captured = |item: Item, cost| Item {
        cost_usd_micros: Some(cost),
        ..item
    };
    let counted = |item: Item, tokens| Item {
        tokens,
        has_counts: true,
        ..item
    };
    let priority = Item {
        tier: Some("priority".into()),
        ..counted(item(4, "s3", GPT), of_gpt)
    };
    let receipt = Item {
        call: None,
        ..captured(item(5, "s1", SONNET), 500)
    };
    vec![
        captured(item(1, "s1", SONNET), 40_000),
        captured(item(2, "s1", SONNET), 10_000),
        counted(item(3, "s2", GPT), of_gpt),
        priority,
        receipt,
        counted(item(6, "s4", SONNET), of_sonnet),
    ]
}

fn reached(digit: char, pull_request: Option<(i64, bool)>) -> ReachedCommit {
    ReachedCommit {
        repository: Lifetime::Identified(repository(7)),
        commit_sha: commit(digit),
        pull_request: pull_request.map(|(pr_number, is_merged)| PullRequestMembership {
            pr_number,
            is_merged,
            merge_commit_sha: None,
        }),
        verdict: (digit == 'a').then_some(Verdict::Passed),
        landed: Landed {
            commit_sha: commit(digit),
            is_merge: false,
            verdict: None,
            failed_workflows: BTreeSet::new(),
        },
    }
}

fn became(outcome: Outcome, commit: Option<usize>) -> CallOutcome {
    CallOutcome {
        outcome,
        source: commit.map(|_| AttributionSource::GitNotes),
        commit,
        commits: commit.into_iter().collect(),
        acceptance: None,
        is_erased: false,
    }
}

/// Commit a is in merged pull request 7, and commit b in none.
fn outcomes_of_world() -> CallOutcomes {
    let session = |name: &str| SessionId::new(name).unwrap();
    CallOutcomes {
        commits: vec![reached('a', Some((7, true))), reached('b', None)],
        calls: [
            (id(1), became(Outcome::Merged, Some(0))),
            (id(2), became(Outcome::SessionCommitted, None)),
            (id(3), became(Outcome::Committed, Some(1))),
            (id(4), became(Outcome::NoCommitEvidence, None)),
            (id(6), became(Outcome::SessionCommitted, None)),
        ]
        .into_iter()
        .collect(),
        sessions: [
            (session("s1"), vec![0]),
            (session("s2"), vec![1]),
            (session("s4"), vec![0, 1]),
        ]
        .into_iter()
        .collect(),
    }
}

fn report_of(items: &[Item], outcomes: &CallOutcomes, by: SpendBy, rows_max: usize) -> CohortSpend {
    let (book, repositories) = (book(), Repositories::default());
    let question = Question {
        by,
        rows_max,
        work: Some(Work {
            outcomes,
            repositories: &repositories,
        }),
        outcomes: true,
        book: Some(&book),
    };
    report(items, &question, None, 0).unwrap()
}

/// A row in short: its key, its cost, its items, and how many of them are attributed.
fn short(row: &SpendRow) -> (String, i64, u64, Option<u64>) {
    let key = match &row.key {
        SpendKey::Without { row } => row.to_string(),
        SpendKey::Model { model, .. } => model.clone(),
        SpendKey::Session { session_id } => session_id.to_string(),
        SpendKey::Commit { commit_sha, .. } => commit_sha.as_str()[..1].to_owned(),
        SpendKey::PullRequest {
            pr_number, merged, ..
        } => format!("{pr_number} {merged}"),
        SpendKey::Repository { .. } => "repository".to_owned(),
        other => format!("{other:?}"),
    };
    let figure = &row.figure;
    (
        key,
        figure.cost_usd_micros,
        figure.items(),
        row.attributed_items,
    )
}

fn rows_of(by: SpendBy) -> Vec<(String, i64, u64, Option<u64>)> {
    let report = report_of(&world(), &outcomes_of_world(), by, 100);
    report.rows.iter().map(short).collect()
}

fn row(
    key: &str,
    cost: i64,
    items: u64,
    attributed: Option<u64>,
) -> (String, i64, u64, Option<u64>) {
    (key.to_owned(), cost, items, attributed)
}

#[test]
fn a_total_tells_captured_derived_and_unknown_costs_apart() {
    let report = report_of(&world(), &outcomes_of_world(), SpendBy::Model, 100);
    let total = report.total;
    assert_eq!((total.calls, total.receipts_only), (5, 1));
    let costs = [total.captured, total.derived].map(|cost| (cost.items, cost.cost_usd_micros));
    assert_eq!(costs, [(3, 50_500), (2, 49_020)]);
    assert_eq!((total.unpriced_items, total.cost_usd_micros), (1, 99_520));
    assert_eq!(report.unpriced.get(UnpricedReason::TierPriceUnknown), 1);
    assert_eq!(report.unpriced.total(), 1);
    assert_eq!(total.input_tokens_uncached, 12 + 2 * 1_808);
    assert_eq!(total.items_without_counts, 3);
}

#[test]
fn each_kind_of_row_divides_the_total() {
    for (by, expected) in [
        (
            SpendBy::Model,
            vec![
                row("claude-sonnet-4-5", 86_236, 4, None),
                row("gpt-5", 13_284, 2, None),
            ],
        ),
        (
            SpendBy::Commit,
            vec![
                row("a", 50_500, 3, Some(1)),
                row("shared", 35_736, 1, Some(0)),
                row("b", 13_284, 1, Some(1)),
                row("no_commit_evidence", 0, 1, Some(0)),
            ],
        ),
        (
            SpendBy::PullRequest,
            vec![
                row("7 true", 50_500, 3, Some(1)),
                row("shared", 35_736, 1, Some(0)),
                row("no_pull_request", 13_284, 1, Some(1)),
                row("no_commit_evidence", 0, 1, Some(0)),
            ],
        ),
        (
            SpendBy::Repository,
            vec![
                row("repository", 99_520, 5, Some(2)),
                row("no_commit_evidence", 0, 1, Some(0)),
            ],
        ),
        (
            SpendBy::Session,
            vec![
                row("s1", 50_500, 3, None),
                row("s4", 35_736, 1, None),
                row("s2", 13_284, 1, None),
                row("s3", 0, 1, None),
            ],
        ),
        (SpendBy::User, vec![row("no_user", 99_520, 6, None)]),
        (SpendBy::Agent, vec![row("no_agent", 99_520, 6, None)]),
    ] {
        assert_eq!(rows_of(by), expected, "{by}");
    }
}

#[test]
fn outcomes_and_verdicts_divide_the_total() {
    let report = report_of(&world(), &outcomes_of_world(), SpendBy::Model, 100);
    let outcomes = report.outcomes.unwrap();
    let found = all(&outcomes).map(|of| (of.figure.cost_usd_micros, of.figure.items()));
    let expected = [
        (40_000, 1),
        (13_284, 1),
        (0, 0),
        (0, 0),
        (0, 0),
        (46_236, 3),
        (0, 1),
    ];
    assert_eq!(found, expected);
    assert_eq!(outcomes.merged.git_notes_items, 1);
    let ci = report.ci.unwrap();
    let found = [ci.passed, ci.failed, ci.no_verdict].map(|of| of.cost_usd_micros);
    // Session s4 was observed at two commits, so none is its own.
    assert_eq!(found, [50_500, 0, 49_020]);
}

#[test]
fn without_an_item_its_row_shrinks_and_its_session_stays_where_it_was() {
    let items = world().split_off(1);
    let report = report_of(&items, &outcomes_of_world(), SpendBy::Commit, 100);
    assert_eq!(report.total.cost_usd_micros, 59_520);
    let of_a = report.rows.iter().map(short).find(|row| row.0 == "a");
    assert_eq!(of_a, Some(row("a", 10_500, 2, Some(0))));
}

#[test]
fn a_session_with_commits_in_and_outside_a_pull_request_is_shared() {
    let mut outcomes = outcomes_of_world();
    outcomes.calls.clear();
    let commits = [
        ([Some((7, true)), Some((7, true))], "7 true"),
        ([Some((7, true)), Some((8, true))], "shared"),
        ([Some((7, true)), None], "shared"),
        ([None, None], "no_pull_request"),
    ];
    for (pull_requests, expected) in commits {
        let [one, other] = pull_requests;
        outcomes.commits = vec![reached('a', one), reached('b', other)];
        let report = report_of(&world()[5..], &outcomes, SpendBy::PullRequest, 100);
        assert_eq!(short(&report.rows[0]).0, expected);
    }
}

#[test]
fn a_sum_beyond_the_range_of_numbers_is_refused() {
    let costly = Item {
        cost_usd_micros: Some(i64::MAX),
        ..item(1, "s", SONNET)
    };
    let question = Question {
        by: SpendBy::Model,
        rows_max: 1,
        work: None,
        outcomes: false,
        book: None,
    };
    let report = |items: &[Item]| report(items, &question, None, 0).map(|found| found.total);
    assert!(report(std::slice::from_ref(&costly)).is_ok());
    assert_eq!(report(&[costly.clone(), costly]), Err(SumTooLarge));
}

fn all(outcomes: &SpendOutcomes) -> [OutcomeSpend; 7] {
    [
        outcomes.merged,
        outcomes.committed,
        outcomes.edits_kept,
        outcomes.edits_deleted,
        outcomes.rejected,
        outcomes.session_committed,
        outcomes.no_commit_evidence,
    ]
}

/// The members of a figure, as a list.
fn members(figure: &SpendFigure) -> [i128; 13] {
    [
        figure.calls.into(),
        figure.receipts_only.into(),
        figure.captured.items.into(),
        figure.captured.cost_usd_micros.into(),
        figure.derived.items.into(),
        figure.derived.cost_usd_micros.into(),
        figure.unpriced_items.into(),
        figure.cost_usd_micros.into(),
        figure.input_tokens_uncached.into(),
        figure.cache_read_tokens.into(),
        figure.cache_write_tokens.into(),
        figure.output_tokens.into(),
        figure.items_without_counts.into(),
    ]
}

fn sum<'f>(figures: impl IntoIterator<Item = &'f SpendFigure>) -> [i128; 13] {
    figures.into_iter().fold([0; 13], |mut sum, figure| {
        for (sum, member) in sum.iter_mut().zip(members(figure)) {
            *sum += member;
        }
        sum
    })
}

prop_compose! {
    fn any_item(number: u128)(
        is_call in any::<bool>(),
        session in 0..4_u8,
        user in proptest::option::of(0..3_u8),
        agent in proptest::option::of(prop::sample::select(vec!["codex", "pi"])),
        model in proptest::option::of(prop::sample::select(vec![SONNET, GPT, ("openai", "other")])),
        cost in proptest::option::of(0..1_000_000_000_i64),
        counts in proptest::option::of((0..1_000_000_i64, 0..1_000_000_i64)),
        read in proptest::option::of(0..1_000_000_i64),
        tier in proptest::option::weighted(0.1, Just("flex")),
    ) -> Item {
        let mut item = item(number, &format!("s{session}"), SONNET);
        item.call = item.call.filter(|_| is_call);
        item.user_id = user.map(|user| UserId::new(&format!("u{user}")).unwrap());
        item.agent = agent.map(Into::into);
        item.model = model.map(|(provider, name)| Model {
            provider: Some(provider.into()),
            name: name.into(),
        });
        item.cost_usd_micros = cost;
        item.tokens.input_tokens_uncached = counts.map(|counts| counts.0);
        item.tokens.output_tokens = counts.map(|counts| counts.1);
        item.tokens.cache_read_tokens = read;
        item.has_counts = counts.is_some();
        item.tier = tier.map(Into::into);
        item
    }
}

fn any_items() -> impl Strategy<Value = Vec<Item>> {
    proptest::collection::vec(any::<u8>(), 0..40).prop_flat_map(|numbers| {
        let items = numbers.iter().enumerate();
        let items: Vec<_> = items
            .map(|(number, _)| any_item(number as u128 + 1))
            .collect();
        items
    })
}

/// The cost of an item by the rates of the table in micro-USD, eight times over, computed anew.
fn slow_cost(item: &Item) -> Option<i64> {
    if item.cost_usd_micros.is_some() {
        return item.cost_usd_micros;
    }
    let tokens = &item.tokens;
    let counts = [
        tokens.input_tokens_uncached,
        tokens.cache_read_tokens,
        tokens.output_tokens,
    ];
    if counts == [Some(0), Some(0), Some(0)] || counts == [Some(0), None, Some(0)] {
        return Some(0);
    }
    let [uncached, read, output] = counts;
    let (uncached, read, output) = (uncached?, read.unwrap_or(0), output?);
    if item.tier.is_some() {
        return None;
    }
    let rates = match &*item.model.as_ref()?.name {
        "claude-sonnet-4-5" => [240, 24, 1_200],
        "gpt-5" => [100, 10, 800],
        _ => return None,
    };
    let eighties = uncached * rates[0] + read * rates[1] + output * rates[2];
    Some((eighties + 40).div_euclid(80))
}

proptest! {
    #[test]
    fn every_division_of_random_items_sums_to_a_slow_total(
        items in any_items(),
        rows_max in 1..4_usize,
        outcomes in proptest::collection::vec((0..7_u8, 0..2_usize), 40),
        sessions in proptest::collection::vec(proptest::collection::vec(0..3_usize, 0..3), 4),
    ) {
        let mut known = outcomes_of_world();
        known.commits.push(reached('c', Some((8, false))));
        known.calls = items.iter().filter_map(|item| item.call).zip(&outcomes)
            .map(|(call, (outcome, commit))| (call, match outcome {
                0 => became(Outcome::Merged, Some(0)),
                1 => became(Outcome::Committed, Some(1 + commit)),
                2 => became(Outcome::EditsKept, None),
                3 => became(Outcome::EditsDeleted, None),
                4 => became(Outcome::Rejected, None),
                5 => became(Outcome::SessionCommitted, None),
                _ => became(Outcome::NoCommitEvidence, None),
            }))
            .collect();
        known.sessions = sessions.iter().enumerate().filter(|(_, commits)| !commits.is_empty())
            .map(|(session, commits)| {
                (SessionId::new(&format!("s{session}")).unwrap(), commits.clone())
            })
            .collect();
        let costs: Vec<Option<i64>> = items.iter().map(slow_cost).collect();
        for by in SpendBy::ALL {
            let report = report_of(&items, &known, *by, rows_max);
            let total = members(&report.total);
            prop_assert_eq!(total[7], costs.iter().flatten().copied().map(i128::from).sum());
            prop_assert_eq!(total[6], costs.iter().filter(|cost| cost.is_none()).count() as i128);
            prop_assert_eq!(total[0] + total[1], items.len() as i128);
            prop_assert_eq!(total[6], i128::from(report.unpriced.total()));
            let others = report.other_rows.iter().map(|others| &others.figure);
            let rows = report.rows.iter().map(|row| &row.figure);
            prop_assert_eq!(sum(rows.chain(others)), total);
            prop_assert!(report.rows.len() <= rows_max);
            let outcomes = all(&report.outcomes.unwrap());
            prop_assert_eq!(sum(outcomes.iter().map(|of| &of.figure)), total);
            let ci = report.ci.unwrap();
            prop_assert_eq!(sum([&ci.passed, &ci.failed, &ci.no_verdict]), total);
        }
        // Rows by model, computed anew.
        let mut slow: BTreeMap<Option<&str>, i64> = BTreeMap::new();
        for (item, cost) in items.iter().zip(&costs) {
            *slow.entry(item.model.as_ref().map(|model| &*model.name)).or_default() += cost.unwrap_or(0);
        }
        let rows = report_of(&items, &known, SpendBy::Model, 100).rows;
        let found: BTreeMap<Option<&str>, i64> = rows.iter().map(|row| (match &row.key {
            SpendKey::Model { model, .. } => Some(model.as_str()),
            SpendKey::Without { row } => {
                assert_eq!(row.known(), Some(&SpendRowWithoutKey::NoModel));
                None
            }
            other => panic!("{other:?}"),
        }, row.figure.cost_usd_micros)).collect();
        prop_assert_eq!(found, slow);
    }
}
