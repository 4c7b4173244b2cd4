use serde_json::{Value, json};
use svc_engine_fact::testing::builders::id;
use svc_model::ingest::CiResult;
use svc_model::reports::{
    Comparison, CompletionSkip, Counts, Fate, ModelReport, ModelRow, SignalFunnel,
    StratificationStatus, Unobservable,
};
use svc_model::repository::RepositoryDecline;

use crate::attribution::Attribution;
use crate::cohort::CohortCall;
use crate::cohort::world::{World, assert_only_lost, assert_same};
use crate::comparison::{Cases, compare, non_inferiority};

fn json_of(world: &World) -> Value {
    serde_json::to_value(world.model_report()).unwrap()
}

fn provenance() -> Value {
    json!({ "policy_version": "1", "quarantine_revision": 0, "policy_digest": null })
}

fn of_rows() -> Value {
    json!({ "policy_version": "3", "quarantine_revision": 0, "policy_digest": null })
}

#[test]
fn an_empty_cohort_has_a_complete_report() {
    assert_same(
        &json_of(&World::default()),
        &json!({
            "rows": [],
            "stratification": [
                {
                    "metric": "ci_pass_rate",
                    "status": "not_enough_models",
                    "checked_repos": 0,
                    "comparisons": [],
                    "reason": "$text",
                    "session_commit_unobserved": 0,
                    "adjusted_comparisons": [],
                    "shrunk_rates": [],
                },
                {
                    "metric": "attribution_rate",
                    "status": "not_checkable",
                    "checked_repos": 0,
                    "comparisons": [],
                    "reason": "$text",
                    "session_commit_unobserved": 0,
                    "adjusted_comparisons": [],
                    "shrunk_rates": [],
                },
            ],
            "signal_funnel": [],
            "abandonment": {
                "abandoned_sessions": 0,
                "grade_eligible_sessions": 0,
                "implicit_only_sessions": 0,
                "negative_completions": 0,
                "explicit_accepts_unjoined": 0,
                "derivation_skipped": {},
                "provenance": provenance(),
            },
            "fate_skipped": {},
            "repository_skipped": {},
            "ci_skipped": {},
            "fate_provenance": provenance(),
            "attribution_share": [],
            "attribution_alerts": [],
        }),
    );
}

#[test]
fn the_example_matches_the_report_computed_by_hand() {
    let one = [0.206_549_314_377_237_45, 1.0];
    let identity = json!({
        "provider": "github", "host": "github.com", "repository_id": "101",
    });
    assert_same(
        &json_of(&World::example()),
        &json!({
            "rows": [
                {
                    "model": "m1",
                    "since_days": 3,
                    "completions": 1,
                    "attributed_inference_calls": 1,
                    "attribution_rate": 1.0,
                    "attribution_rate_ci": one,
                    "ci_linked": 1,
                    "ci_passed": 1,
                    "ci_pass_rate": 1.0,
                    "ci_pass_rate_ci": one,
                    "explicit_accepts": 1,
                    "explicit_rejects": 0,
                    "mean_similarity": 0.8,
                    "provenance": of_rows(),
                    "grain": "commit",
                    "ci_failures_by_workflow": {},
                    "explicit_rejects_by_agent_harness": {},
                    "fates": { "unmodified": 1 },
                    "explicit_accept_fates": { "unmodified": 1 },
                    "fates_with_external_changes": { "unmodified": 1 },
                    "session_commit_unobserved": 0,
                    "session_commit_observation_ids": [id(3).to_string()],
                },
                {
                    "model": "m2",
                    "since_days": 3,
                    "completions": 1,
                    "attributed_inference_calls": 1,
                    "attribution_rate": 1.0,
                    "attribution_rate_ci": one,
                    "ci_linked": 0,
                    "ci_passed": 0,
                    "ci_pass_rate": 0.0,
                    "ci_pass_rate_ci": [0.0, 0.0],
                    "explicit_accepts": 0,
                    "explicit_rejects": 0,
                    "mean_similarity": 1.0,
                    "provenance": of_rows(),
                    "grain": "commit",
                    "ci_failures_by_workflow": {},
                    "explicit_rejects_by_agent_harness": {},
                    "fates": {},
                    "explicit_accept_fates": {},
                    "fates_with_external_changes": {},
                    "session_commit_unobserved": 1,
                    "session_commit_observation_ids": [],
                },
            ],
            "stratification": [
                {
                    "metric": "ci_pass_rate",
                    "status": "not_enough_repos",
                    "checked_repos": 1,
                    "comparisons": [],
                    "reason": "$text",
                    "session_commit_unobserved": 1,
                    "adjusted_comparisons": [],
                    "shrunk_rates": [{
                        "org_id": "acme",
                        "repo": "o/full",
                        "repository_identity": identity,
                        "model_rates": {
                            "m1": {
                                "model": "m1",
                                "numerator": 1,
                                "denominator": 1,
                                "raw_rate": 1.0,
                                "shrunk_rate": 1.0,
                                "grand_mean": 1.0,
                                "shrinkage_weight": 0.5,
                                "pooling_strength": 1.0,
                            },
                        },
                    }],
                },
                {
                    "metric": "attribution_rate",
                    "status": "not_checkable",
                    "checked_repos": 0,
                    "comparisons": [],
                    "reason": "$text",
                    "session_commit_unobserved": 0,
                    "adjusted_comparisons": [],
                    "shrunk_rates": [],
                },
            ],
            "signal_funnel": [
                {
                    "model": "m1",
                    "since_days": 3,
                    "completions_total": 1,
                    "attributed": 1,
                    "attribution_rate": 1.0,
                    "ci_linked": 1,
                    "ci_linked_retention_rate": 1.0,
                    "has_decision": 1,
                    "has_decision_retention_rate": 1.0,
                    "training_row_eligible": 1,
                    "training_row_eligible_retention_rate": 1.0,
                    "session_commit_unobserved": 0,
                },
                {
                    "model": "m2",
                    "since_days": 3,
                    "completions_total": 1,
                    "attributed": 1,
                    "attribution_rate": 1.0,
                    "ci_linked": 0,
                    "ci_linked_retention_rate": 0.0,
                    "has_decision": 0,
                    "has_decision_retention_rate": 0.0,
                    "training_row_eligible": 0,
                    "training_row_eligible_retention_rate": 0.0,
                    "session_commit_unobserved": 1,
                },
            ],
            "abandonment": {
                "abandoned_sessions": 0,
                "grade_eligible_sessions": 0,
                "implicit_only_sessions": 0,
                "negative_completions": 0,
                "explicit_accepts_unjoined": 0,
                "derivation_skipped": { "reached_a_commit": 1 },
                "provenance": provenance(),
            },
            "fate_skipped": {},
            "repository_skipped": {},
            "ci_skipped": {},
            "fate_provenance": provenance(),
            "attribution_share": [],
            "attribution_alerts": [],
        }),
    );
}

#[test]
fn a_commit_with_conflicting_workflows_counts_for_the_funnel_but_not_for_the_row() {
    let mut world = World::example();
    world.run(8, 101, 'a', "Lint", CiResult::Failed);
    let report = world.model_report();
    assert_eq!(report.rows[0].ci_linked, 0);
    assert_eq!(report.signal_funnel[0].ci_linked, 1);
    let skips = serde_json::to_value(&report.ci_skipped).unwrap();
    assert_eq!(
        skips,
        json!({ "commits": { "ambiguous_workflow_verdicts": 1 } })
    );
}

#[test]
fn failures_are_counted_once_per_workflow_and_commit() {
    let mut world = World::default();
    world.claim(1, "o/r");
    world.call(1, "s", Some("m"));
    for (number, sha) in (10..).zip(['a', 'b']) {
        world.tie(1, 1, sha, 10);
        world.observe(number, 1, 1, sha);
    }
    for (number, sha, workflow) in [
        (20, 'a', "CI"),
        (21, 'a', "CI"),
        (22, 'a', ""),
        (23, 'b', "CI"),
    ] {
        world.run(number, 1, sha, workflow, CiResult::Failed);
    }
    let row = &world.model_report().rows[0];
    assert_eq!((row.ci_linked, row.ci_passed), (2, 0));
    let failures: Vec<_> = row.ci_failures_by_workflow.iter().collect();
    assert_eq!(
        failures,
        [(&"CI".to_owned(), &2), (&"unnamed".to_owned(), &1)]
    );
}

#[test]
fn a_fate_counts_only_if_a_decision_of_its_call_is_attached() {
    let mut world = World::default();
    world.call(1, "s1", Some("m"));
    world.call(2, "s2", Some("m"));
    world.call(3, "s3", None);
    world.decide(10, 1, true, false);
    world.decide(11, 3, true, true);
    world.edit(20, 1, "0123", None);
    world.edit(21, 2, "0123", None);
    world.edit(22, 3, "0123", None);
    let row = &world.model_report().rows[0];
    assert_eq!((row.completions, row.explicit_accepts), (2, 0));
    assert_eq!((row.fates.get(Fate::Deleted), row.fates.total()), (1, 1));
    assert!(row.explicit_accept_fates.is_empty());
}

#[test]
fn a_difference_with_the_opposite_sign_in_a_repository_is_a_reversal() {
    let mut world = World::default();
    world.claim(1, "o/r");
    world.claim(2, "o/two");
    for (call, model, repository, sha, result) in [
        (1, "a", 1, 'a', CiResult::Passed),
        (2, "a", 1, 'b', CiResult::Passed),
        (3, "b", 1, 'c', CiResult::Failed),
        (4, "a", 2, 'd', CiResult::Failed),
        (5, "b", 2, 'e', CiResult::Passed),
    ] {
        world.call(call, &format!("s{call}"), Some(model));
        world.tie(call, repository, sha, 10);
        world.observe(10 + call, call, repository, sha);
        world.run(20 + call, repository, sha, "CI", result);
    }
    let report = json_of(&world);
    let rate = |model: &str, numerator: u64, denominator: u64, rate: f64| {
        json!({
            "model": model, "numerator": numerator, "denominator": denominator, "rate": rate,
        })
    };
    let (left, right) = (rate("a", 2, 3, 2.0 / 3.0), rate("b", 1, 2, 0.5));
    let stratification = &report["stratification"][0];
    assert_eq!(stratification["status"], "reversal_detected");
    assert_same(
        &stratification["comparisons"],
        &json!([{
            "left_model": "a",
            "right_model": "b",
            "aggregate_left": left,
            "aggregate_right": right,
            "aggregate_delta": 1.0 / 6.0,
            "compared_repos": 2,
            "skipped_repos": 0,
            "reversals": [{
                "repo": "o/two",
                "left": rate("a", 0, 1, 0.0),
                "right": rate("b", 1, 1, 1.0),
                "aggregate_left": left,
                "aggregate_right": right,
                "aggregate_delta": 1.0 / 6.0,
                "repo_delta": -1.0,
                "org_id": "acme",
                "repository_identity": {
                    "provider": "github", "host": "github.com", "repository_id": "2",
                },
            }],
        }]),
    );
    assert_same(
        &stratification["adjusted_comparisons"],
        &json!([{
            "left_model": "a",
            "right_model": "b",
            "aggregate_left": left,
            "aggregate_right": right,
            "naive_delta": 1.0 / 6.0,
            "adjusted_delta": 1.0 / 7.0,
            "compared_repos": 2,
            "skipped_repos": 0,
            "weight_sum": 7.0 / 6.0,
        }]),
    );
    world.attempts.truncate(3);
    let report = world.model_report();
    let [ci, _] = &report.stratification[..] else {
        panic!("there are two rates");
    };
    assert_eq!(ci.status, StratificationStatus::NotEnoughRepos);
    assert_eq!(ci.adjusted_comparisons.len(), 1);
}

#[test]
fn a_decision_or_a_verdict_at_an_observed_commit_makes_a_call_eligible() {
    let mut world = World::default();
    world.claim(1, "o/r");
    for (call, sha) in (1..).zip(['a', 'b', 'c']) {
        world.call(call, &format!("s{call}"), Some(&format!("m{call}")));
        world.tie(call, 1, sha, 10);
        world.run(20 + call, 1, sha, "CI", CiResult::Failed);
    }
    world.decide(10, 1, false, true);
    world.observe(11, 2, 1, 'b');
    let eligible: Vec<_> = world
        .model_report()
        .signal_funnel
        .iter()
        .map(|funnel| {
            (
                funnel.ci_linked,
                funnel.has_decision,
                funnel.training_row_eligible,
            )
        })
        .collect();
    assert_eq!(eligible, [(0, 1, 1), (1, 0, 1), (0, 0, 0)]);
}

#[test]
fn a_comparison_takes_its_counts_from_the_rows() {
    let report = World::example().model_report();
    let comparison = compare(&report.rows, "m1", "nobody", Cases::All);
    assert_eq!(
        (
            comparison.attribution_rate.n_a,
            comparison.attribution_rate.n_b
        ),
        (1, 0)
    );
    assert!(comparison.ci_pass_rate.insufficient_data);
    assert_eq!(comparison.ci_pass_rate.p_value, None);
    let posteriors = &comparison.bayesian_attribution_rate;
    assert!(posteriors.insufficient_data && posteriors.probability_a_gt_b.is_none());
    let comparison = compare(&report.rows, "m1", "m2", Cases::All);
    assert!(comparison.attribution_rate.small_n && comparison.attribution_rate.degenerate_se);
    let posteriors = comparison.bayesian_attribution_rate;
    assert!((posteriors.probability_a_gt_b.unwrap() - 0.5).abs() < 1e-12);
    let tests = non_inferiority(&report.rows, "m1", "m2", 0.2, Cases::All);
    assert!(tests.attribution_rate.is_non_inferior);
    assert!(tests.ci_pass_rate.insufficient_data && !tests.ci_pass_rate.is_non_inferior);
}

#[test]
fn a_report_does_not_depend_on_arrival_order_or_redeliveries() {
    for seed in 1..60 {
        let world = World::random(seed);
        assert_eq!(
            world.shuffled().model_report(),
            world.model_report(),
            "seed {seed}"
        );
    }
}

#[test]
fn facts_outside_the_cohort_change_nothing() {
    for seed in 1..30 {
        let world = World::random(seed);
        let before = world.model_report();
        let more = world.with_others();
        assert_eq!(more.model_report(), before, "seed {seed}");
    }
}

#[test]
fn every_population_adds_up() {
    for seed in 1..60 {
        let world = World::random(seed);
        let report = world.model_report();
        let nameless = world
            .calls
            .iter()
            .filter(|call| call.model.is_none())
            .count() as u64;
        let completions: u64 = report.rows.iter().map(|row| row.completions).sum();
        assert_eq!(completions + nameless, world.calls.len() as u64);
        for (row, funnel) in report.rows.iter().zip(&report.signal_funnel) {
            assert_eq!(row.attributed_inference_calls, funnel.attributed);
            assert_eq!(row.completions_skipped, funnel.completions_skipped);
            assert_eq!(row.attribution_cases(), funnel.attribution_cases());
            assert!(funnel.attributed <= funnel.attribution_cases());
            let erased =
                |call: &&CohortCall| call.is_erased && call.model.as_deref() == Some(&row.model);
            let erased = world.calls.iter().filter(erased).count() as u64;
            let skipped = Counts::from_iter([(CompletionSkip::ContentErased, erased)]);
            assert_eq!(row.completions_skipped, skipped);
            assert_eq!(row.attribution_cases() + erased, row.completions);
            assert!(funnel.ci_linked <= funnel.attributed);
            assert!(funnel.training_row_eligible >= funnel.has_decision);
            assert!(row.explicit_accept_fates.total() <= row.fates.total());
            assert!(row.fates_with_external_changes.total() <= row.fates.total());
        }
        let cells: u64 = report.stratification[0]
            .shrunk_rates
            .iter()
            .flat_map(|repository| repository.model_rates.values())
            .map(|rate| rate.denominator)
            .sum();
        let linked: u64 = report.rows.iter().map(|row| row.ci_linked).sum();
        assert_eq!(cells, linked);
    }
}

#[test]
fn missing_evidence_never_adds_a_negative() {
    for seed in 1..60 {
        let world = World::random(seed);
        let negatives = |world: &World| {
            let report = world.model_report();
            let failed: u64 = report
                .rows
                .iter()
                .map(|row| row.ci_linked - row.ci_passed)
                .sum();
            let rejects: u64 = report.rows.iter().map(|row| row.explicit_rejects).sum();
            let deleted: u64 = report
                .rows
                .iter()
                .map(|row| row.fates.get(Fate::Deleted))
                .sum();
            [failed, rejects, deleted]
        };
        let all = negatives(&world);
        let mut without = world.clone();
        without.attempts.clear();
        assert_eq!(negatives(&without)[0], 0);
        for place in 0..world.observations.len() {
            let mut without = world.clone();
            without.observations.remove(place);
            assert!(negatives(&without)[0] <= all[0], "seed {seed}");
        }
        for place in 0..world.decisions.len() {
            let mut without = world.clone();
            without.decisions.remove(place);
            let fewer = negatives(&without);
            assert!(fewer[1] <= all[1] && fewer[2] <= all[2], "seed {seed}");
        }
        for place in 0..world.edits.len() {
            let mut without = world.clone();
            without.edits.remove(place);
            assert!(negatives(&without)[2] <= all[2], "seed {seed}");
        }
        // A failed run is a recorded failure; without it, no commit counts as failed.
        let mut without = world.clone();
        without
            .attempts
            .retain(|attempt| attempt.result != CiResult::Failed);
        assert_eq!(negatives(&without)[0], 0);
    }
}

/// The rates of a model, each as numerator and denominator.
fn rates(row: &ModelRow, funnel: &SignalFunnel) -> [(u64, u64); 6] {
    let attributed = row.attributed_inference_calls;
    [
        (attributed, row.attribution_cases()),
        (funnel.attributed, funnel.attribution_cases()),
        (row.ci_passed, row.ci_linked),
        (funnel.ci_linked, attributed),
        (funnel.has_decision, attributed),
        (funnel.training_row_eligible, attributed),
    ]
}

#[test]
fn an_erased_call_leaves_its_rates_and_never_becomes_a_failure() {
    for seed in 1..40 {
        let world = World::random(seed);
        let before = world.model_report();
        for call in world.calls.iter().filter(|call| !call.is_erased) {
            let mut erased = world.clone();
            erased.erase(call.inference_call_id);
            let after = erased.model_report();
            let is_tied = |world: &World| {
                let of_call = |file: &Attribution| file.inference_call_id == call.inference_call_id;
                u64::from(world.files.iter().any(of_call))
            };
            let both = before.rows.iter().zip(&before.signal_funnel);
            let both = both.zip(after.rows.iter().zip(&after.signal_funnel));
            for ((row, funnel), (left, left_funnel)) in both {
                if call.model.as_deref() != Some(&row.model) {
                    assert_eq!((row, funnel), (left, left_funnel), "seed {seed}");
                    continue;
                }
                let (rates_before, rates_after) = (rates(row, funnel), rates(left, left_funnel));
                assert_only_lost(&rates_before, &rates_after, seed);
                // The rate loses exactly the case of this call.
                let (part, whole) = rates_before[0];
                assert_eq!(
                    rates_after[0],
                    (part - is_tied(&world), whole - 1),
                    "seed {seed}"
                );
                // Counts that need no text stay.
                let facts = |row: &ModelRow| {
                    let decided = (row.explicit_accepts, row.explicit_rejects);
                    (row.completions, decided, row.fates.clone())
                };
                assert_eq!(facts(row), facts(left), "seed {seed}");
            }
        }
    }
}

#[test]
fn erasing_everything_a_model_wrote_leaves_no_rate_to_compare() {
    let compared =
        |report: &ModelReport| -> Comparison { compare(&report.rows, "m1", "m2", Cases::All) };
    let mut world = World::default();
    for call in 1..=40_u128 {
        let model = ["m1", "m2"][usize::from(call > 20)];
        world.call(call, &format!("s{call}"), Some(model));
        if call % 2 == 0 {
            world.tie(call, 1, 'a', 10);
        }
    }
    let before = compared(&world.model_report()).attribution_rate;
    assert_eq!((before.difference, before.n_b), (Some(0.0), 20));
    for call in 31..=40_u128 {
        world.erase(id(call));
    }
    let half = compared(&world.model_report()).attribution_rate;
    assert_eq!((half.difference, half.n_b), (Some(0.0), 10));
    for call in 21..=30_u128 {
        world.erase(id(call));
    }
    let report = world.model_report();
    let none = compared(&report).attribution_rate;
    assert!(none.insufficient_data && !none.significant_at_alpha);
    assert_eq!((none.n_a, none.n_b, none.p_value), (20, 0, None));
    let row = json_of(&world)["rows"][1].clone();
    assert_eq!(row["completions"], 20);
    assert_eq!(row["completions_skipped"], json!({ "content_erased": 20 }));
    assert_eq!(row["attribution_rate_ci"], json!([0.0, 0.0]));
}

#[test]
fn an_observation_of_an_unknown_repository_links_no_call_to_ci() {
    let mut world = World::example();
    world.observations[0].repository = Err(RepositoryDecline::IdentityUnresolved);
    let report = world.model_report();
    assert_eq!(report.rows[0].ci_linked, 0);
    assert_eq!(report.rows[0].session_commit_unobserved, 1);
    let found = serde_json::to_value(&report.abandonment.derivation_skipped).unwrap();
    assert_eq!(
        found,
        json!({ "repository_identity_unresolved": 1, "session_commit_unobserved": 1 })
    );
}

#[test]
fn calls_that_nobody_could_observe_are_counted_beside_the_rate() {
    let reasons = [
        Unobservable::NoPush,
        Unobservable::NoPush,
        Unobservable::NoMirror,
    ];
    let mut world = World::default();
    for (call, model) in [
        (1, "m1"),
        (2, "m1"),
        (3, "m1"),
        (4, "m2"),
        (5, "m2"),
        (6, "m2"),
    ] {
        world.call(call, &format!("s{call}"), Some(model));
    }
    world.tie(1, 1, 'a', 10);
    world.erase(id(6));
    let all = (2..=6).map(id).zip(reasons.into_iter().cycle());
    // An attributed call was observed, whatever else is said of it.
    world.unobservable = std::iter::once((id(1), Unobservable::NoDiff))
        .chain(all)
        .collect();
    let report = world.model_report();
    let rows: Vec<_> = report.rows.iter().collect();
    let counts = |row: &ModelRow| (row.attribution_observable, row.attribution_cases());
    assert_eq!(
        rows.iter().map(|row| counts(row)).collect::<Vec<_>>(),
        [(Some(1), 3), (Some(0), 2)]
    );
    let both: Counts<Unobservable> = [(Unobservable::NoPush, 2)].into_iter().collect();
    assert_eq!(rows[0].attribution_unobservable, both);
    assert_eq!(
        (rows[0].unobservable(), report.unobservable()),
        (None, None)
    );
    // Of reasons with the same count, the first is given.
    assert_eq!(rows[1].unobservable(), Some(Unobservable::NoMirror));
    let json = json_of(&world);
    assert_eq!(json["rows"][0]["attribution_rate"], 1.0 / 3.0);
    assert_eq!(
        json["rows"][1]["attribution_unobservable"],
        json!({ "mirror_absent": 1, "push_absent": 1 })
    );
    let of = |cases| compare(&report.rows, "m1", "m2", cases).attribution_rate;
    assert_eq!((of(Cases::All).n_a, of(Cases::All).n_b), (3, 2));
    let observable = of(Cases::Observable);
    assert!(observable.insufficient_data);
    assert_eq!((observable.n_a, observable.n_b), (1, 0));
    let tested = non_inferiority(&report.rows, "m1", "m2", 0.2, Cases::Observable);
    assert_eq!(tested.attribution_rate.n_a, 1);
}

#[test]
fn observable_and_unobservable_calls_add_up_to_the_cases() {
    for (seed, skipped) in (1..40).zip(0_usize..) {
        let mut world = World::random(seed);
        let calls = world.calls.iter().map(|call| call.inference_call_id);
        let reasons = Unobservable::ALL.iter().copied().cycle().skip(skipped);
        world.unobservable = calls.zip(reasons).step_by(2).collect();
        for row in world.model_report().rows {
            let unobservable = row.attribution_unobservable.total();
            let observable = row.observable_cases();
            assert_eq!(observable + unobservable, row.attribution_cases());
            assert_eq!(
                row.attribution_observable,
                (unobservable > 0).then_some(observable)
            );
            assert!(row.attributed_inference_calls <= observable);
        }
    }
}
