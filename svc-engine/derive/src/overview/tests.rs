use std::collections::BTreeSet;

use svc_engine_fact::testing::builders::{at, commit, id};
use svc_model::ingest::CiResult;

use super::*;
use crate::call_outcome::{self, OutcomeInputs, ReachedCommit};
use crate::ci::CiResolution;
use crate::cohort::world::{World, home, session};
use crate::merge_retention::ReachedFrom;
use crate::pull_requests::{CommitsOf, KnownPullRequest, Memberships, PullRequests};
use crate::spend::{Model, ReceiptCounts};

const DAY: i64 = 24 * 60 * 60;
const KEPT: &str = "0123456789abc";

/// A call, or with no number the receipt of one, at a time in seconds.
fn item(call: Option<u128>, of: &str, seconds: i64) -> Item {
    Item {
        call: call.map(id),
        session_id: session(of),
        user_id: None,
        agent: None,
        model: None,
        at: at(seconds),
        tokens: svc_model::usage::TokenCounts::default(),
        has_unsplit_input: false,
        has_counts: true,
        tier: None,
        cost_usd_micros: None,
        is_disputed: false,
        receipts: ReceiptCounts::default(),
    }
}

fn by(item: Item, user: &str, model: &str) -> Item {
    Item {
        user_id: UserId::new(user).ok(),
        model: Some(Model {
            provider: None,
            name: model.into(),
        }),
        ..item
    }
}

/// A week of three Sessions. Call 1 is accepted by ann, merged as e, where CI fails now; call 2 is in
/// an open pull request that passed; call 3 was accepted by a rule and is in no commit; call 4's edit
/// is gone; call 5 was rejected; nobody could have seen a commit of call 6; call 7 only talked.
struct Week {
    world: World,
    items: Vec<(Item, Cost)>,
    unobservable: HashMap<FactId, Unobservable, RandomState>,
    window: Range<Instant>,
}

impl Week {
    fn new() -> Self {
        let mut world = World::default();
        for (call, of) in [
            (1, "s1"),
            (2, "s1"),
            (3, "s2"),
            (4, "s2"),
            (5, "s2"),
            (6, "s3"),
            (7, "s3"),
        ] {
            world.call(call, of, None);
        }
        world.tie(1, 1, 'a', 8);
        world.files[0].source = AttributionSource::GitNotes;
        world.tie(2, 2, 'c', 8);
        world.observe(20, 1, 1, 'a');
        world.run(30, 1, 'a', "CI", CiResult::Passed);
        world.run(31, 2, 'c', "CI", CiResult::Passed);
        world.decide(41, 1, true, true);
        world.decide(43, 3, true, false);
        world.edit(54, 4, "", None);
        world.decide(45, 5, false, true);
        world.decide(46, 6, true, true);
        let unknown = Cost::Unknown(UnpricedReason::NoPriceTable);
        let items = vec![
            (
                by(item(Some(1), "s1", 10), "ann", "m1"),
                Cost::Captured(100),
            ),
            (by(item(Some(2), "s1", DAY), "ann", "m2"), Cost::Derived(20)),
            (
                by(item(Some(3), "s2", DAY + 1), "bob", "m1"),
                Cost::Captured(3),
            ),
            (by(item(Some(4), "s2", 2 * DAY), "bob", "m1"), unknown),
            (by(item(Some(5), "s2", 2 * DAY), "bob", "m1"), unknown),
            (item(Some(6), "s3", 3 * DAY), Cost::Captured(0)),
            (item(Some(7), "s3", 3 * DAY), unknown),
            (
                by(item(None, "s4", 3 * DAY), "eve", "m1"),
                Cost::Captured(5),
            ),
        ];
        Self {
            world,
            items,
            unobservable: [(id(6), Unobservable::NoPush), (id(1), Unobservable::NoPush)]
                .into_iter()
                .collect(),
            window: at(5)..at(3 * DAY + 5),
        }
    }

    fn outcomes(&self) -> CallOutcomes {
        let known = |pr_number, head, merge: Option<char>| KnownPullRequest {
            pr_number,
            head_repositories: BTreeSet::new(),
            head_declined: None,
            heads: BTreeSet::from([commit(head)]),
            base_sha: commit('0'),
            merge_commit_sha: merge.map(commit),
        };
        let pull_requests = PullRequests::from([
            (home(1), vec![known(7, 'a', Some('e'))]),
            (home(2), vec![known(8, 'c', None)]),
        ]);
        let commits = CommitsOf::from([
            (home(1), BTreeSet::from([commit('a')])),
            (home(2), BTreeSet::from([commit('c')])),
        ]);
        let unread = |_: &Lifetime, _: &svc_model::repository::CommitSha| -> ReachedFrom<'_> {
            Box::new(|_| None)
        };
        let memberships = Memberships::new(&pull_requests, &commits, &[], &unread);
        let mut of_merge = World::default();
        of_merge.run(900, 1, 'e', "CI", CiResult::Failed);
        let merge_ci = CiResolution::new(&of_merge.attempts);
        let inputs = OutcomeInputs {
            pushed_at: &HashMap::default(),
            memberships: &memberships,
            merge_ci: &merge_ci,
            edit_owners: &self.world.owners,
        };
        self.world
            .derive(|evidence| call_outcome::derive(evidence, inputs))
    }

    fn tables(&self, selected: Selected<'_>, reverted: &[usize]) -> OverviewTables {
        let outcomes = self.outcomes();
        let evidence = OverviewEvidence {
            window: &self.window,
            items: &self.items,
            outcomes: &outcomes,
            unobservable: &self.unobservable,
            reverted: &reverted.iter().copied().collect(),
        };
        derive(evidence, selected).unwrap()
    }
}

#[test]
fn every_figure_counts_what_it_says() {
    let figures = Week::new().tables(Selected::default(), &[]).figures;
    let spend = figures.spend;
    assert_eq!(
        (spend.calls, spend.receipts_only, spend.unpriced_items),
        (7, 1, 3)
    );
    assert_eq!(
        (
            spend.captured.items,
            spend.derived.items,
            spend.cost_usd_micros
        ),
        (4, 1, 128)
    );
    let expected = OverviewFigures {
        calls: 7,
        sessions: 3,
        people: 2,
        changes: 5,
        accepted: 3,
        accepted_by_people: 2,
        committed: 2,
        committed_by_similarity: 1,
        merged: 1,
        reverted: 0,
        passed: 1,
        failed: 1,
        no_verdict: 0,
        deleted: 1,
        no_commit_found: 1,
        not_observable: 1,
        rejected: 1,
        spend,
    };
    assert_eq!(figures, expected);
}

#[test]
fn a_change_that_was_committed_is_seen_whatever_else_could_not_be() {
    let tables = Week::new().tables(Selected::default(), &[]);
    let unobservable: Vec<_> = tables.unobservable.iter().collect();
    assert_eq!(unobservable, [(Unobservable::NoPush, 1)]);
    let unpriced: Vec<_> = tables.unpriced.iter().collect();
    assert_eq!(unpriced, [(UnpricedReason::NoPriceTable, 3)]);
}

#[test]
fn each_table_adds_up_to_the_figures() {
    let tables = Week::new().tables(Selected::default(), &[]);
    let sums = |rows: Vec<&OverviewFigures>| {
        let sum = |of: fn(&OverviewFigures) -> u64| rows.iter().map(|row| of(row)).sum::<u64>();
        [
            sum(|row| row.calls),
            sum(|row| row.changes),
            sum(|row| row.committed),
            sum(|row| row.failed),
            sum(|row| row.not_observable),
            sum(|row| row.spend.unpriced_items),
            u64::try_from(
                rows.iter()
                    .map(|row| row.spend.cost_usd_micros)
                    .sum::<i64>(),
            )
            .unwrap(),
        ]
    };
    let all = sums(vec![&tables.figures]);
    assert_eq!(sums(tables.days.iter().map(|(_, row)| row).collect()), all);
    assert_eq!(sums(tables.repositories.values().collect()), all);
    assert_eq!(sums(tables.models.values().collect()), all);
    assert_eq!(
        sums(tables.sessions.iter().map(|row| &row.figures).collect()),
        all
    );
    let figures = tables.figures;
    let committed = figures.passed + figures.failed + figures.no_verdict;
    assert_eq!(figures.committed, committed);
    let parts = figures.deleted + figures.no_commit_found + figures.not_observable;
    assert_eq!(figures.changes, figures.committed + parts);
}

#[test]
fn days_are_cut_to_the_window() {
    let tables = Week::new().tables(Selected::default(), &[]);
    let days: Vec<_> = tables
        .days
        .iter()
        .map(|(day, row)| (day.clone(), row.calls))
        .collect();
    // The first second of the tests is the start of a day in UTC.
    let expected = [
        (at(5)..at(DAY), 1),
        (at(DAY)..at(2 * DAY), 2),
        (at(2 * DAY)..at(3 * DAY), 2),
        (at(3 * DAY)..at(3 * DAY + 5), 2),
    ];
    assert_eq!(days, expected);
}

#[test]
fn a_filter_selects_calls_and_an_outcome_only_sessions() {
    let week = Week::new();
    let calls = |selected| {
        let tables = week.tables(selected, &[]);
        let sessions: Vec<String> = tables
            .sessions
            .iter()
            .map(|row| row.session_id.as_str().to_owned())
            .collect();
        (tables.figures.calls, sessions.join(" "))
    };
    let all = Selected::default();
    assert_eq!(calls(all), (7, "s3 s4 s2 s1".to_owned()));
    let home_one = home(1);
    let repository = Selected {
        repository: Some(&home_one),
        ..all
    };
    assert_eq!(calls(repository), (1, "s1".to_owned()));
    assert_eq!(
        calls(Selected {
            model: Some("m1"),
            ..all
        }),
        (4, "s4 s2 s1".to_owned())
    );
    let bob = UserId::new("bob").unwrap();
    assert_eq!(
        calls(Selected {
            user_id: Some(&bob),
            ..all
        }),
        (3, "s2".to_owned())
    );
    for (outcome, sessions) in [
        (OverviewOutcome::Changes, "s3 s2 s1"),
        (OverviewOutcome::Accepted, "s3 s2 s1"),
        (OverviewOutcome::Committed, "s1"),
        (OverviewOutcome::Merged, "s1"),
        (OverviewOutcome::Reverted, ""),
        (OverviewOutcome::Passed, "s1"),
        (OverviewOutcome::Failed, "s1"),
        (OverviewOutcome::NoVerdict, ""),
        (OverviewOutcome::Deleted, "s2"),
        (OverviewOutcome::NoCommitFound, "s2"),
        (OverviewOutcome::NotObservable, "s3"),
        (OverviewOutcome::Rejected, "s2"),
        (OverviewOutcome::Unpriced, "s3 s2"),
    ] {
        let selected = Selected {
            outcome: Some(outcome),
            ..all
        };
        assert_eq!(calls(selected), (7, sessions.to_owned()), "{outcome}");
    }
}

#[test]
fn a_session_shows_what_its_work_reached() {
    let tables = Week::new().tables(Selected::default(), &[]);
    let row = tables
        .sessions
        .iter()
        .find(|row| row.session_id == session("s1"))
        .unwrap();
    let expected = BTreeSet::from([(home(1), 7, true), (home(2), 8, false)]);
    assert_eq!(row.pull_requests, expected);
    assert_eq!(row.repositories, BTreeSet::from([home(1), home(2)]));
    assert_eq!(row.last_observed_at, at(DAY));
    let models: Vec<&str> = row.models.iter().map(|model| &**model).collect();
    assert_eq!(models, ["m1", "m2"]);
}

#[test]
fn a_reverted_commit_takes_its_calls_with_it() {
    let week = Week::new();
    let merged = week
        .outcomes()
        .commits
        .iter()
        .position(ReachedCommit::is_merged)
        .unwrap();
    let tables = week.tables(Selected::default(), &[merged]);
    assert_eq!((tables.figures.reverted, tables.figures.merged), (1, 1));
}

#[test]
fn an_erased_call_is_not_observable() {
    let mut week = Week::new();
    week.world.erase(id(3));
    let tables = week.tables(Selected::default(), &[]);
    assert_eq!(
        (
            tables.figures.no_commit_found,
            tables.figures.not_observable
        ),
        (0, 2)
    );
    assert_eq!(tables.unobservable.get(Unobservable::ContentErased), 1);
}
