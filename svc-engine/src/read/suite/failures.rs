//! A repository's outcomes, page by page.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use svc_model::json::Text;

use super::*;

fn ask(repository: RepositorySelector) -> CiFailuresRequest {
    CiFailuresRequest::new(repository, at(0), at(1_000))
}

fn ids(page: &CiFailures) -> Vec<FactId> {
    page.outcomes
        .iter()
        .map(|outcome| outcome.outcome_id)
        .collect()
}

fn limit(limit: u64) -> PageLimit {
    PageLimit::new(limit).unwrap()
}

#[rstest]
fn outcomes_under_every_name_of_a_repository_are_listed_together(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let under = |number, run: &str, repo: &str, seconds| {
        ci(CiOutcome {
            repo: repo.to_owned(),
            ..checked(number, run, Some(7), seconds)
        })
    };
    stage.add([
        under(1, "a", "own/old", 1),
        under(2, "b", "own/new", 2),
        under(3, "c", "own/old", 3),
        under(4, "d", "own/new", 3),
        under(5, "nameless", "", 4),
        ci(checked(6, "other", Some(8), 2)),
    ]);
    let expected = [id(5), id(4), id(3), id(2), id(1)];
    for selector in [by_identity(7), by_name("own/old"), by_name("own/new")] {
        assert_eq!(ids(&stage.failures(&ask(selector)).unwrap()), expected);
    }
    let page = stage.failures(&ask(by_identity(7))).unwrap();
    assert_eq!(
        page.outcomes[0].repository_identity,
        Some(LifetimeIdentity::from(repository(7)))
    );
    assert_eq!(page.outcomes[1].repo, "own/new");
}

#[rstest]
fn bounds_are_half_open_and_as_of_is_inclusive(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    stage.add((1..6).map(|number| {
        let seconds = i64::try_from(number).unwrap();
        ci(checked(number, &format!("r{number}"), None, seconds))
    }));
    let between = |from, to, as_of: Option<i64>| {
        let request = CiFailuresRequest {
            as_of: as_of.map(at),
            ..CiFailuresRequest::new(by_name("own/repo"), at(from), at(to))
        };
        ids(&stage.failures(&request).unwrap())
    };
    assert_eq!(between(2, 4, None), [id(3), id(2)]);
    assert_eq!(between(0, 9, Some(3)), [id(3), id(2), id(1)]);
    assert_eq!(
        between(2, 4, Some(9)),
        [id(3), id(2)],
        "it only widens the context"
    );
    assert_eq!(between(6, 9, None), []);
    assert_eq!(between(0, 9, Some(0)), []);
}

#[rstest]
fn a_page_can_be_filtered_by_result_workflow_and_pull_request(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let different = |number, run: &str, change: fn(&mut CiOutcome)| {
        let mut outcome = checked(number, run, None, 1);
        change(&mut outcome);
        ci(outcome)
    };
    stage.add([
        different(1, "a", |_| ()),
        different(2, "b", |outcome| outcome.result = CiResult::TimedOut),
        different(3, "c", |outcome| outcome.workflow_name = Text::from("")),
        different(4, "d", |outcome| {
            outcome.workflow_name = Text::from("CI\0\u{e9}");
        }),
        different(5, "e", |outcome| outcome.pr_number = Some(12)),
    ]);
    let found = |change: fn(&mut CiFailuresRequest)| {
        let mut request = ask(by_name("own/repo"));
        change(&mut request);
        ids(&stage.failures(&request).unwrap())
    };
    assert_eq!(found(|_| ()), [id(5), id(4), id(3), id(1)]);
    assert_eq!(
        found(|request| request.result = CiResult::TimedOut),
        [id(2)]
    );
    assert_eq!(
        found(|request| request.workflow_name = Some(String::new())),
        [id(3)]
    );
    assert_eq!(
        found(|request| request.workflow_name = Some("CI\0\u{e9}".to_owned())),
        [id(4)]
    );
    assert_eq!(
        found(|request| request.workflow_name = Some("CI".to_owned())),
        [id(5), id(1)]
    );
    assert_eq!(found(|request| request.pr_number = Some(12)), [id(5)]);
    assert_eq!(found(|request| request.pr_number = Some(13)), []);
}

#[rstest]
fn a_full_last_page_has_no_next(#[values(Backend::Sqlite, Backend::Postgres)] backend: Backend) {
    let stage = stage!(backend);
    stage.add([ci(checked(1, "a", None, 1)), ci(checked(2, "b", None, 1))]);
    let mut request = ask(by_name("own/repo"));
    request.limit = limit(2);
    let page = stage.failures(&request).unwrap();
    assert_eq!((page.outcomes.len(), page.next_cursor), (2, None));
    request.limit = limit(1);
    let first = stage.failures(&request).unwrap();
    assert_eq!(ids(&first), [id(2)]);
    request.cursor = first.next_cursor;
    let second = stage.failures(&request).unwrap();
    assert_eq!((ids(&second), second.next_cursor), (vec![id(1)], None));
}

#[rstest]
fn a_selector_without_a_match_gives_an_empty_page_and_accepts_no_cursor(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    stage.add([
        ci(checked(1, "a", Some(7), 1)),
        ci(checked(2, "b", Some(7), 2)),
    ]);
    let mut request = ask(by_identity(7));
    request.limit = limit(1);
    let cursor = stage.failures(&request).unwrap().next_cursor;
    assert!(cursor.is_some());
    for selector in [by_identity(9), by_name("no/body")] {
        let mut request = ask(selector);
        let page = stage.failures(&request).unwrap();
        assert_eq!((page.outcomes, page.next_cursor), (Vec::new(), None));
        request.cursor.clone_from(&cursor);
        is_faulted(&stage.failures(&request), QueryFault::CursorMismatch);
    }
    let mut by_its_name = ask(by_name("own/repo"));
    by_its_name.cursor = cursor;
    assert_eq!(
        ids(&stage.failures(&by_its_name).unwrap()),
        [id(1)],
        "the same repository, selected in another way"
    );
    let mut garbage = ask(by_identity(7));
    garbage.cursor = Some(svc_model::query::CiCursor::new("x"));
    is_faulted(&stage.failures(&garbage), QueryFault::InvalidCursor);
}

#[rstest]
fn selectors_that_cannot_be_answered_are_refused(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    stage.add([
        ci(checked(1, "a", Some(7), 1)),
        ci(checked(2, "b", Some(8), 1)),
    ]);
    is_declined(
        &stage.failures(&ask(by_name("own/repo"))),
        &Decline::RepositorySelectorAmbiguous,
    );
    let contradicting = RepositorySelector {
        repo: Some(name("own/other")),
        identity: Some(repository(7)),
    };
    is_faulted(
        &stage.failures(&ask(contradicting)),
        QueryFault::SelectorConflict,
    );
    // Quarantining a fact also removes its proof of a name.
    stage.quarantine(FactTable::CiOutcomes, id(2));
    assert_eq!(
        ids(&stage.failures(&ask(by_name("own/repo"))).unwrap()),
        [id(1)]
    );
    // At an earlier boundary, nobody had claimed the name.
    let earlier = CiFailuresRequest {
        as_of: Some(at(0)),
        ..ask(by_name("own/repo"))
    };
    assert_eq!(ids(&stage.failures(&earlier).unwrap()), []);
}

#[rstest]
fn quarantine_and_release_between_two_pages_invalidate_the_cursor(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    stage.add((1..4).map(|number| ci(checked(number, &format!("r{number}"), None, 1))));
    stage.add([pushed(push(50))]);
    for (action, table, fact_id) in [
        (QuarantineAction::Quarantine, FactTable::CiOutcomes, id(2)),
        (QuarantineAction::Release, FactTable::CiOutcomes, id(2)),
        // This holds for any fact: what was proven on the first page may not be proven on the
        // second.
        (QuarantineAction::Quarantine, FactTable::Pushes, id(50)),
    ] {
        let mut request = ask(by_name("own/repo"));
        request.limit = limit(1);
        request.cursor = stage.failures(&request).unwrap().next_cursor;
        assert!(request.cursor.is_some());
        stage.mark(table, fact_id, action);
        is_faulted(&stage.failures(&request), QueryFault::CursorMismatch);
    }
}

/// What is stored between two pages.
#[derive(Clone, Debug)]
struct Step {
    limit: u64,
    inserted: usize,
}

/// Law: for any page sizes, and whatever is stored meanwhile, following the cursors returns the
/// failures that were stored at the first page: the latest first, and those of one moment by
/// descending id.
#[test]
fn paging_returns_in_order_what_was_stored_at_the_first_page() {
    let stages: Vec<Stage> = [Backend::Sqlite, Backend::Postgres]
        .into_iter()
        .filter_map(Stage::open)
        .collect();
    let next = Cell::new(1_u128);
    let strategy = (
        proptest::collection::vec((0..6_i64, 0..3_u8), 1..40),
        proptest::collection::vec(
            (1..8_u64, 0..3_usize).prop_map(|(limit, inserted)| Step { limit, inserted }),
            1..6,
        ),
        any::<bool>(),
    );
    let mut runner = TestRunner::new(Config {
        cases: 24,
        failure_persistence: None,
        ..Config::default()
    });
    runner
        .run(&strategy, |(stored, steps, identified)| {
            // Each run has a repository of its own, with two names if it has an identity.
            let first = next.get();
            let repository_id = u32::try_from(first).unwrap();
            let insert = |seconds: i64, kind: u8| {
                let number = next.replace(next.get() + 1);
                let repo = match kind {
                    0 if identified => format!("law/former-{first}"),
                    _ => format!("law/repo-{first}"),
                };
                // Random ids, because they decide the order within one moment.
                let fact =
                    Uuid::from_u128(number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
                let outcome = CiOutcome {
                    outcome_id: FactId::new(fact),
                    repo,
                    result: if kind == 2 {
                        CiResult::Passed
                    } else {
                        CiResult::Failed
                    },
                    ..checked(
                        0,
                        &format!("run {number}"),
                        identified.then_some(repository_id),
                        seconds,
                    )
                };
                for stage in &stages {
                    stage.add([ci(outcome.clone())]);
                }
                (seconds, fact)
            };
            let mut expected = Vec::new();
            for (seconds, kind) in stored {
                let stored = insert(seconds, kind);
                if kind != 2 {
                    expected.push(stored);
                }
            }
            expected.sort_unstable();
            let expected = expected.into_iter().rev();
            let expected: Vec<FactId> = expected.map(|(_, fact)| FactId::new(fact)).collect();
            let selector = if identified {
                by_identity(repository_id)
            } else {
                by_name(&format!("law/repo-{first}"))
            };
            let mut walks: Vec<(Vec<FactId>, CiFailuresRequest, bool)> = stages
                .iter()
                .map(|_| (Vec::new(), ask(selector.clone()), false))
                .collect();
            for step in steps.iter().cycle() {
                for (stage, (walked, request, ended)) in stages.iter().zip(&mut walks) {
                    if *ended {
                        continue;
                    }
                    request.limit = limit(step.limit);
                    let page = stage.failures(request).unwrap();
                    prop_assert!(page.outcomes.len() as u64 <= step.limit);
                    walked.extend(ids(&page));
                    *ended = page.next_cursor.is_none();
                    request.cursor = page.next_cursor;
                }
                if walks.iter().all(|(.., ended)| *ended) {
                    break;
                }
                // Facts that are stored meanwhile are received later than the existing ones.
                for number in 0..step.inserted {
                    insert(10 + i64::try_from(number).unwrap(), 1);
                }
            }
            for (walked, ..) in &walks {
                prop_assert_eq!(walked, &expected);
            }
            Ok(())
        })
        .unwrap();
}

#[rstest]
fn outcomes_with_the_name_but_no_identity_are_counted_and_shown(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    stage.add([
        ci(checked(1, "before", None, 1)),
        ci(checked(2, "with", Some(7), 2)),
        ci(checked(3, "without", None, 3)),
        ci(CiOutcome {
            result: CiResult::Passed,
            ..checked(4, "passed", None, 4)
        }),
        ci(checked(5, "late", None, 1_000)),
    ]);
    for selector in [by_name("own/repo"), by_identity(7)] {
        let mut request = ask(selector);
        request.limit = limit(1);
        let page = stage.failures(&request).unwrap();
        assert_eq!(ids(&page), [id(2)]);
        assert!(!page.repository_known, "only an outcome names it");
        let skipped = page.repository_skipped.unwrap();
        assert_eq!(
            skipped,
            [(RepositoryDecline::IdentityUnresolved.into(), 2)].into()
        );
        let unresolved = page.unresolved_ci_outcomes.unwrap();
        let shown: Vec<_> = unresolved
            .iter()
            .map(|unresolved| unresolved.outcome_id)
            .collect();
        assert_eq!(shown, [id(3)], "as many as a page has, the latest first");
        assert_eq!(unresolved[0].repository_identity, None);
    }
    // While no other repository has the name, the outcome belongs to the repository of that name.
    let mut request = ask(by_name("own/repo"));
    request.as_of = Some(at(1));
    let page = stage.failures(&request).unwrap();
    assert_eq!((ids(&page), page.repository_skipped), (vec![id(1)], None));
    // A quarantined outcome is not counted.
    stage.quarantine(FactTable::CiOutcomes, id(3));
    let page = stage.failures(&ask(by_name("own/repo"))).unwrap();
    let skipped = page.repository_skipped.unwrap();
    assert_eq!(skipped.into_values().collect::<Vec<_>>(), [1]);
}

#[rstest]
fn a_repository_without_failures_is_known_and_an_unknown_one_is_not(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    stage.add([
        ci(CiOutcome {
            result: CiResult::Passed,
            ..checked(1, "a", None, 1)
        }),
        ci(CiOutcome {
            repo: "own/other".to_owned(),
            result: CiResult::Passed,
            ..checked(2, "b", Some(7), 1)
        }),
    ]);
    let known = |selector| stage.failures(&ask(selector)).unwrap().repository_known;
    let unexplained = CiFailuresRequest {
        explain: false,
        ..ask(by_identity(7))
    };
    let page = stage.failures(&unexplained).unwrap();
    assert!(!page.repository_known && page.repository_skipped.is_none());
    assert_eq!(page.unresolved_ci_outcomes, None);
    assert!(known(by_name("own/repo")));
    assert!(known(by_name("own/other")));
    assert!(known(by_identity(7)));
    assert!(!known(by_name("own/nothing")));
    assert!(!known(by_identity(8)));
    let mut early = ask(by_name("own/repo"));
    early.as_of = Some(at(0));
    assert!(!stage.failures(&early).unwrap().repository_known);
}
