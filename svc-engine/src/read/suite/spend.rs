//! Spend reports of a world that was computed by hand.

use svc_engine_fact::testing::builders::{text, usage};
use svc_engine_fact::{CallKey, CallKeyKind, InferenceCall, PullRequestMerge, UsageReceipt};
use svc_engine_store::testing::price_table;
use svc_model::problem::ReportBound;
use svc_model::reports::ReportScope;
use svc_model::spend::{
    CohortSpend, SpendBy, SpendFigure, SpendKey, SpendRequest, SpendRow, UnpricedReason,
};
use svc_model::usage::{CallUsage, TokenCounts};

use super::reports::{Forge, GUESSED, NOTED, Sources};
use super::*;
use crate::read::reports::items;

/// The repository id of [`Forge`].
const NUMBER: u32 = 101;
const DAY: i64 = 24 * 60 * 60;

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

fn sonnet(call: &mut InferenceCall) {
    call.model = Some("claude-sonnet-4-5".to_owned());
    call.model_provider = Some("anthropic".to_owned());
}

/// A call of gpt-5 with 10,000 tokens of input, of which a cache held 8,192.
fn gpt(call: &mut InferenceCall) {
    call.model = Some("gpt-5".to_owned());
    call.model_provider = Some("openai".to_owned());
    (call.input_tokens, call.output_tokens) = (Some(10_000), Some(1_000));
    call.usage.cache_read_tokens = Some(8_192);
}

fn cached(call: &mut InferenceCall) {
    sonnet(call);
    (call.input_tokens, call.output_tokens) = (Some(44_316), Some(780));
    call.usage = CallUsage {
        cache_read_tokens: Some(41_200),
        cache_write_tokens: Some(3_104),
        cache_write_5m_tokens: Some(3_104),
        cache_write_1h_tokens: Some(0),
        ..CallUsage::default()
    };
}

fn receipt(number: u128, request_id: &str, cost: i64) -> Append {
    let receipt = UsageReceipt {
        session_id: SessionId::new("s1").unwrap(),
        model: Some("claude-sonnet-4-5".to_owned()),
        model_provider: Some("anthropic".to_owned()),
        request_id: Some(request_id.to_owned()),
        tokens: TokenCounts::default(),
        cost_usd_micros: Some(cost),
        occurred_at: at(1_000),
        captured_at: at(1_001),
        ..usage(number)
    };
    Append::UsageReceipt(Box::new(receipt))
}

impl Stage {
    fn priced_call(
        &self,
        number: u128,
        session: &str,
        answer: &str,
        set: impl FnOnce(&mut InferenceCall),
    ) -> Append {
        let mut call: InferenceCall = call(number)
            .session(session)
            .observed(1_000)
            .output(vec![text("assistant", answer)])
            .build();
        set(&mut call);
        Append::InferenceCall(Box::new(self.store.encode(call, at(1_001))))
    }

    fn spend_of(&self, sources: &Sources, request: &SpendRequest) -> Result<CohortSpend, Error> {
        spend_report(&mut self.snapshot(), sources.all(), request).map(|spend| spend.report)
    }

    fn spend(&self, sources: &Sources, by: SpendBy) -> CohortSpend {
        let request = SpendRequest {
            by,
            ..SpendRequest::new(scope())
        };
        let report = self.spend_of(sources, &request).unwrap();
        check_sums(&report);
        report
    }
}

fn scope() -> ReportScope {
    ReportScope::new(at(0)..at(3_000), at(9_000)).unwrap()
}

/// Checks that every division has the sums of the total.
pub(super) fn check_sums(report: &CohortSpend) {
    let others = report.other_rows.iter().map(|others| others.figure);
    let rows = report.rows.iter().map(|row| row.figure).chain(others);
    assert_eq!(sum(rows), report.total);
    if let Some(outcomes) = &report.outcomes {
        let all = [
            outcomes.merged,
            outcomes.committed,
            outcomes.edits_kept,
            outcomes.edits_deleted,
            outcomes.rejected,
            outcomes.session_committed,
            outcomes.no_commit_evidence,
        ];
        assert_eq!(sum(all.into_iter().map(|of| of.figure)), report.total);
    }
    if let Some(ci) = &report.ci {
        assert_eq!(sum([ci.passed, ci.failed, ci.no_verdict]), report.total);
    }
}

fn sum(figures: impl IntoIterator<Item = SpendFigure>) -> SpendFigure {
    let mut sum = SpendFigure::default();
    for figure in figures {
        svc_engine_derive::spend::add(&mut sum, &figure).unwrap();
    }
    sum
}

/// Two commits, of which only the first is in merged pull request 7; four Sessions; six items.
fn world(stage: &Stage, forge: &Forge) -> Vec<Append> {
    let [base, noted, guessed, merged] = &forge.commits;
    let pushed_to = Push {
        repository: Some(repository(NUMBER)),
        before_sha: base.clone(),
        after_sha: guessed.clone(),
        captured_at: at(2_000),
        ..push(11)
    };
    let seen = |number: u128, session: &str, commit: &CommitSha| {
        observed(SessionCommitObservation {
            session_id: SessionId::new(session).unwrap(),
            repository: Some(repository(NUMBER)),
            commit_sha: commit.clone(),
            captured_at: at(2_001),
            ..observation(number, id(11))
        })
    };
    let mut merge = PullRequestMerge {
        merge_commit_sha: merged.clone(),
        merged_at: at(2_004),
        captured_at: at(2_004),
        ..merge(15)
    };
    merge.pull_request.repository = Some(repository(NUMBER));
    merge.pull_request.head_repository = Some(repository(NUMBER));
    merge.pull_request.head_repo = Some("own/repo".to_owned());
    merge.pull_request.head_sha = noted.clone();
    merge.pull_request.base_sha = base.clone();
    let passed = CiOutcome {
        commit_sha: noted.clone(),
        result: CiResult::Passed,
        ..checked(14, "run", Some(NUMBER), 2_003)
    };
    vec![
        stage.priced_call(1, "s1", NOTED, |call| {
            sonnet(call);
            call.usage.cost_usd_micros = Some(40_000);
        }),
        stage.priced_call(2, "s1", "done", |call| {
            sonnet(call);
            call.request_id = Some("req_2".to_owned());
            call.keys = vec![CallKey::new(CallKeyKind::Request, "req_2")];
        }),
        stage.priced_call(3, "s2", GUESSED, gpt),
        stage.priced_call(4, "s3", "done", |call| {
            gpt(call);
            call.usage.tier = Some("priority".to_owned());
        }),
        stage.priced_call(6, "s4", "done", cached),
        receipt(22, "req_2", 10_000),
        receipt(25, "req_5", 500),
        pushed(pushed_to),
        seen(31, "s1", noted),
        seen(32, "s2", guessed),
        seen(33, "s4", noted),
        seen(34, "s4", guessed),
        ci(passed),
        Append::PullRequestMerge(Box::new(merge)),
    ]
}

/// A row in short: its key, its cost, its items, and how many of them are attributed.
fn short(row: &SpendRow) -> (String, i64, u64, Option<u64>) {
    let key = match &row.key {
        SpendKey::Without { row } => row.to_string(),
        SpendKey::Model { model, .. } => model.clone(),
        SpendKey::Session { session_id } => session_id.to_string(),
        SpendKey::Commit { commit_sha, .. } => commit_sha.to_string(),
        SpendKey::PullRequest {
            repo,
            pr_number,
            merged,
            ..
        } => format!("{repo} {pr_number} {merged}"),
        SpendKey::Repository { repo, .. } => repo.clone(),
        SpendKey::Agent { agent } => agent.clone(),
        SpendKey::User { user_id } => user_id.to_string(),
    };
    let (figure, attributed) = (&row.figure, row.attributed_items);
    (key, figure.cost_usd_micros, figure.items(), attributed)
}

#[rstest]
fn each_kind_of_row_divides_what_was_spent(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (forge, sources) = (Forge::new(), Sources::new());
    sources.mirror(&forge.repository, NUMBER);
    stage.add(world(&stage, &forge));
    let table = price_table(1, PRICES.as_bytes());
    stage.store.load_price_table_now(table).unwrap();
    let before = facts(&mut stage.snapshot()).unwrap();

    let [_, noted, guessed, _] = &forge.commits;
    let row = |key: &str, cost, items, attributed| (key.to_owned(), cost, items, attributed);
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
                row(noted.as_str(), 50_500, 3, Some(1)),
                row("shared", 35_736, 1, Some(0)),
                row(guessed.as_str(), 13_284, 1, Some(1)),
                row("no_commit_evidence", 0, 1, Some(0)),
            ],
        ),
        (
            SpendBy::PullRequest,
            vec![
                row("own/repo 7 true", 50_500, 3, Some(1)),
                row("shared", 35_736, 1, Some(0)),
                row("no_pull_request", 13_284, 1, Some(1)),
                row("no_commit_evidence", 0, 1, Some(0)),
            ],
        ),
        (
            SpendBy::Repository,
            vec![
                row("own/repo", 99_520, 5, Some(2)),
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
        (
            SpendBy::Agent,
            vec![
                row("no_agent", 89_020, 4, None),
                row("claude-code", 10_500, 2, None),
            ],
        ),
    ] {
        let report = stage.spend(&sources, by);
        let rows: Vec<_> = report.rows.iter().map(short).collect();
        assert_eq!(rows, expected, "{by}");
        let total = report.total;
        assert_eq!((total.calls, total.receipts_only), (5, 1));
        let costs = [total.captured, total.derived].map(|of| (of.items, of.cost_usd_micros));
        assert_eq!(costs, [(3, 50_500), (2, 49_020)]);
        assert_eq!((total.cost_usd_micros, total.unpriced_items), (99_520, 1));
        assert_eq!(report.unpriced.get(UnpricedReason::TierPriceUnknown), 1);
        assert_eq!(
            (report.joined_receipts.ids, report.joined_receipts.unjoined),
            (1, 1)
        );
        assert_eq!(report.price_table.unwrap().loaded_at, at(1));
    }

    let report = stage.spend(&sources, SpendBy::Model);
    let outcomes = report.outcomes.unwrap();
    let found = [
        outcomes.merged,
        outcomes.committed,
        outcomes.session_committed,
        outcomes.no_commit_evidence,
    ]
    .map(|of| (of.figure.cost_usd_micros, of.figure.items()));
    assert_eq!(found, [(40_000, 1), (13_284, 1), (46_236, 3), (0, 1)]);
    assert_eq!(outcomes.merged.git_notes_items, 1);
    let ci = report.ci.unwrap();
    assert_eq!((ci.passed.cost_usd_micros, ci.failed.items()), (50_500, 0));

    assert_eq!(facts(&mut stage.snapshot()).unwrap(), before);
    stage.quarantine(FactTable::InferenceCalls, id(1));
    let report = stage.spend(&sources, SpendBy::Commit);
    assert_eq!(report.total.cost_usd_micros, 59_520);
    let of_noted = report
        .rows
        .iter()
        .map(short)
        .find(|row| row.0 == noted.as_str());
    assert_eq!(of_noted, Some(row(noted.as_str(), 10_500, 2, Some(0))));
    // With its call, its receipt is hidden too.
    stage.quarantine(FactTable::InferenceCalls, id(2));
    assert_eq!(
        stage.spend(&sources, SpendBy::Model).total.cost_usd_micros,
        49_520
    );
}

#[rstest]
fn a_call_in_quarantine_takes_the_receipt_that_only_its_counts_join(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let sources = Sources::new();
    let tokens = TokenCounts {
        input_tokens_uncached: Some(7),
        output_tokens: Some(5),
        ..TokenCounts::default()
    };
    let receipt = UsageReceipt {
        session_id: SessionId::new("s1").unwrap(),
        model: Some("claude-sonnet-4-5".to_owned()),
        tokens,
        cost_usd_micros: Some(40),
        occurred_at: at(1_000),
        captured_at: at(1_001),
        ..usage(21)
    };
    stage.add([
        stage.priced_call(1, "s1", "done", |call| {
            sonnet(call);
            (call.input_tokens, call.output_tokens) = (Some(7), Some(5));
            call.usage.cost_usd_micros = None;
        }),
        stage.priced_call(2, "s1", "hidden before", sonnet),
        Append::UsageReceipt(Box::new(receipt)),
    ]);
    stage.quarantine(FactTable::InferenceCalls, id(2));
    let items = |stage: &Stage| {
        let total = stage.spend(&sources, SpendBy::Model).total;
        (total.calls, total.receipts_only, total.cost_usd_micros)
    };
    assert_eq!(items(&stage), (1, 0, 40));
    stage.quarantine(FactTable::InferenceCalls, id(1));
    assert_eq!(items(&stage), (0, 0, 0));
}

#[rstest]
fn a_report_covers_what_was_known_and_priced_by_its_boundary(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let sources = Sources::new();
    let mut call = call(1).session("s").observed(100).build();
    gpt(&mut call);
    let late = Append::InferenceCall(Box::new(stage.store.encode(call, at(500))));
    stage.add([late, receipt(22, "req_2", 7)]);
    let table = price_table(200, PRICES.as_bytes());
    stage.store.load_price_table_now(table).unwrap();
    let report = |cohort: std::ops::Range<i64>, as_of| {
        let scope = ReportScope::new(at(cohort.start)..at(cohort.end), at(as_of)).unwrap();
        let request = SpendRequest {
            outcomes: false,
            ..SpendRequest::new(scope)
        };
        let report = stage.spend_of(&sources, &request).unwrap();
        assert!(report.outcomes.is_none() && report.ci.is_none());
        report
    };
    // The call was received later, and the receipt too.
    assert_eq!(report(0..150, 499).total, SpendFigure::default());
    let priced = report(0..150, 500);
    assert_eq!(
        (priced.total.calls, priced.total.cost_usd_micros),
        (1, 13_284)
    );
    assert_eq!(report(0..1_000, 1_000).total.items(), 1);
    assert_eq!(report(0..1_001, 1_001).total.items(), 2);
    assert_eq!(report(150..1_000, 1_000).total.items(), 0);
}

#[rstest]
fn a_receipt_follows_its_call_wherever_its_own_time_lies(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let sources = Sources::new();
    let call = |number, session: &str, seconds, request_id: &str| {
        let mut call = call(number).session(session).observed(seconds).build();
        sonnet(&mut call);
        call.request_id = Some(request_id.to_owned());
        call.keys = vec![CallKey::new(CallKeyKind::Request, request_id)];
        Append::InferenceCall(Box::new(stage.store.encode(call, at(9 * DAY))))
    };
    let receipt = |number, session: &str, seconds, request_id: &str, cost| {
        let receipt = UsageReceipt {
            session_id: SessionId::new(session).unwrap(),
            request_id: Some(request_id.to_owned()),
            cost_usd_micros: Some(cost),
            occurred_at: at(seconds),
            captured_at: at(9 * DAY),
            ..usage(number)
        };
        Append::UsageReceipt(Box::new(receipt))
    };
    stage.add([
        call(1, "s", 5 * DAY, "req_1"),
        call(2, "s", 2 * DAY, "req_2"),
        // Of the call in the cohort, long before it.
        receipt(11, "s", DAY, "req_1", 3),
        // In the cohort, of a call before it.
        receipt(12, "s", 5 * DAY, "req_2", 5),
        // Of no call; its group began before the cohort.
        receipt(13, "t", 4 * DAY - 1, "req_3", 7),
        receipt(14, "t", 5 * DAY, "req_3", 11),
    ]);
    let scope = ReportScope::new(at(4 * DAY)..at(6 * DAY), at(9 * DAY)).unwrap();
    let report = stage.spend_of(&sources, &SpendRequest::new(scope)).unwrap();
    check_sums(&report);
    assert_eq!((report.total.calls, report.total.receipts_only), (1, 0));
    assert_eq!(
        (report.total.cost_usd_micros, report.joined_receipts.ids),
        (3, 1)
    );
}

#[rstest]
fn more_items_than_a_report_covers_are_refused(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let priced = |number, cost| {
        stage.priced_call(number, "s1", "done", |call| {
            sonnet(call);
            call.usage.cost_usd_micros = Some(cost);
        })
    };
    stage.add([priced(1, 3), priced(2, 5), receipt(22, "req_5", 7)]);
    let extent = Extent::from(&scope());
    for (items_max, is_refused) in [(1, true), (2, true), (3, false)] {
        let read = items::read(&mut stage.snapshot(), &extent, items_max);
        match read {
            Ok(items) => assert!(!is_refused && items.len() == 3, "{items_max}"),
            Err(error) => {
                let is_bound = matches!(error, Error::ReportBound(ReportBound::Evidence));
                assert!(is_refused && is_bound, "{items_max}: {error:?}");
            }
        }
    }
    // Each cost is a number, but not their sum.
    stage.add([priced(3, i64::MAX)]);
    let report = stage.spend_of(&Sources::new(), &SpendRequest::new(scope()));
    assert!(
        matches!(report, Err(Error::ReportBound(ReportBound::Reply))),
        "{report:?}"
    );
}
