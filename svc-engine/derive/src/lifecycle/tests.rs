use serde_json::{Value, json};
use svc_engine_fact::testing::builders::id;
use svc_model::facts::AgentHarness;
use svc_model::ingest::CiResult;
use svc_model::reports::{
    AcceptedWorkSkip, Dimension, FateSkip, LifecycleReport, MembershipSkip, ModelReport,
};

use crate::cohort::world::{World, assert_same, session};

mod laws;

fn json_of(world: &World) -> Value {
    serde_json::to_value(world.lifecycle_report()).unwrap()
}

fn provenance() -> Value {
    let of = |version: &str| json!({ "policy_version": version, "quarantine_revision": 0, "policy_digest": null });
    json!({
        "lifecycle": of("3"),
        "attribution": of("2"),
        "abandonment": of("1"),
        "fate": of("1"),
        "ci_resolution": {
            "policy_version": "1", "quarantine_revision": 0, "policy_digest": "$text",
        },
        "merge_retention": of("2"),
    })
}

fn coverage(observed: u64) -> Value {
    json!({
        "observed": observed,
        "missing": {},
        "unsupported_by_integration": {},
        "ambiguous": {},
    })
}

fn stage(count: u64, denominator: u64, initial: u64) -> Value {
    let rate = |of: u64| {
        (of > 0).then(|| {
            f64::from(u32::try_from(count).unwrap()) / f64::from(u32::try_from(of).unwrap())
        })
    };
    json!({
        "count": count,
        "denominator": denominator,
        "rate": rate(denominator),
        "initial_denominator": initial,
        "initial_rate": rate(initial),
    })
}

fn scores(score: Option<f64>) -> Value {
    let count = u64::from(score.is_some());
    let threshold = |threshold: f64| {
        json!({
            "threshold": threshold,
            "below": 0,
            "total": count,
            "rate": score.map(|_| 0.0),
        })
    };
    json!({
        "distribution": {
            "count": count, "mean": score, "median": score, "p10": score, "p90": score,
        },
        "thresholds": [threshold(0.8), threshold(0.9), threshold(1.0)],
    })
}

fn examples(populations: &[(&str, &[&str])]) -> Value {
    populations
        .iter()
        .map(|(population, sessions)| json!({ "population": population, "session_ids": sessions }))
        .collect()
}

fn rework(counts: [(u64, u64); 6]) -> Value {
    let names = [
        ("explicit_rejects", "developer_decision"),
        ("retry_linkages", "retry_linkage"),
        ("modified_or_deleted_edits", "edit_observation"),
        (
            "external_line_changes",
            "edit_observation_with_known_external_counts",
        ),
        ("abandoned_sessions", "accepted_session"),
        ("failed_ci_resolutions", "ci_resolution"),
    ];
    names
        .iter()
        .zip(counts)
        .map(|((name, grain), (count, denominator))| {
            let stage = stage(count, denominator, denominator);
            json!({
                "name": name,
                "grain": grain,
                "count": count,
                "denominator": denominator,
                "rate": stage["rate"],
            })
        })
        .collect()
}

#[test]
fn an_empty_cohort_has_a_complete_report() {
    let none = stage(0, 0, 0);
    assert_same(
        &json_of(&World::default()),
        &json!({
            "org_id": "acme",
            "accepted_work": {
                "accepted_calls": 0,
                "attributed": none,
                "pull_request_membership": none,
                "ci_linked": none,
                "ci_verdict": none,
                "ci_passed": 0,
                "ci_failed": 0,
                "skips": {},
                "coverage": coverage(0),
                "examples": examples(&[
                    ("accepted", &[]),
                    ("attributed", &[]),
                    ("pull_request_membership", &[]),
                    ("ci_failed", &[]),
                ]),
            },
            "edit_retention": {
                "observations": 0,
                "eligible": 0,
                "derived_fates": 0,
                "unmodified": 0,
                "partially_modified": 0,
                "deleted": 0,
                "known_external_line_counts": 0,
                "external_lines_added": 0,
                "external_lines_removed": 0,
                "fate_rate": null,
                "skips": {},
                "coverage": coverage(0),
                "examples": examples(&[
                    ("unmodified", &[]), ("partially_modified", &[]), ("deleted", &[]),
                ]),
            },
            "merge_durability": {
                "coverage_qualification": "partial_pull_request_history",
                "attributed_file_candidates": 0,
                "unique_pull_request_membership": 0,
                "scored_rows": 0,
                "membership_rate": null,
                "scoring_rate": null,
                "membership": {},
                "scoring_skips": {},
                "head": scores(None),
                "merge": scores(None),
                "coverage": coverage(0),
                "examples": examples(&[("joined", &[]), ("scored", &[])]),
            },
            "session_attrition": {
                "eligible_sessions": 0,
                "committed": 0,
                "abandoned": 0,
                "in_flight": 0,
                "attribution_unavailable": 0,
                "skips": {},
                "coverage": coverage(0),
                "examples": examples(&[
                    ("committed", &[]),
                    ("abandoned", &[]),
                    ("in_flight", &[]),
                    ("attribution_unavailable", &[]),
                ]),
            },
            "rework": rework([(0, 0); 6]),
            "strata": [],
            "stratum_skips": {},
            "policy": { "example_session_limit": 10, "policy_version": "3" },
            "provenance": provenance(),
            "repository_skipped": {},
        }),
    );
}

#[test]
fn the_example_matches_the_report_computed_by_hand() {
    let one = stage(1, 1, 1);
    let identity = json!({
        "provider": "github", "host": "github.com", "repository_id": "101",
    });
    let stratum = |dimension: &str, value: &str, placed: bool| {
        json!({
            "dimension": dimension,
            "value": value,
            "accepted_calls": 1,
            "repo": placed.then_some("o/full"),
            "repository_identity": placed.then_some(&identity),
        })
    };
    let mut unobserved = coverage(1);
    unobserved["missing"] = json!({ "session_commit_unobserved": 1 });
    assert_same(
        &json_of(&World::example()),
        &json!({
            "org_id": "acme",
            "accepted_work": {
                "accepted_calls": 1,
                "attributed": one,
                "pull_request_membership": one,
                "ci_linked": one,
                "ci_verdict": one,
                "ci_passed": 1,
                "ci_failed": 0,
                "skips": {},
                "coverage": coverage(1),
                "examples": examples(&[
                    ("accepted", &["s1"]),
                    ("attributed", &["s1"]),
                    ("pull_request_membership", &["s1"]),
                    ("ci_failed", &[]),
                ]),
            },
            "edit_retention": {
                "observations": 1,
                "eligible": 1,
                "derived_fates": 1,
                "unmodified": 1,
                "partially_modified": 0,
                "deleted": 0,
                "known_external_line_counts": 1,
                "external_lines_added": 1,
                "external_lines_removed": 0,
                "fate_rate": 1.0,
                "skips": {},
                "coverage": coverage(1),
                "examples": examples(&[
                    ("unmodified", &["s1"]), ("partially_modified", &[]), ("deleted", &[]),
                ]),
            },
            "merge_durability": {
                "coverage_qualification": "partial_pull_request_history",
                "attributed_file_candidates": 1,
                "unique_pull_request_membership": 1,
                "scored_rows": 1,
                "membership_rate": 1.0,
                "scoring_rate": 1.0,
                "membership": {},
                "scoring_skips": { "session_commit_unobserved": 1 },
                "head": scores(Some(1.0)),
                "merge": scores(Some(1.0)),
                "coverage": unobserved,
                "examples": examples(&[("joined", &["s1"]), ("scored", &["s1"])]),
            },
            "session_attrition": {
                "eligible_sessions": 1,
                "committed": 1,
                "abandoned": 0,
                "in_flight": 0,
                "attribution_unavailable": 0,
                "skips": { "reached_a_commit": 1 },
                "coverage": coverage(1),
                "examples": examples(&[
                    ("committed", &["s1"]),
                    ("abandoned", &[]),
                    ("in_flight", &[]),
                    ("attribution_unavailable", &[]),
                ]),
            },
            "rework": rework([(0, 1), (0, 0), (0, 1), (1, 1), (0, 1), (1, 2)]),
            "strata": [
                stratum("agent_harness", "claude-code", false),
                stratum("model", "m1", false),
                stratum("repository", "o/full", true),
                stratum("workflow", "forge_actions|||CI", true),
            ],
            "stratum_skips": {},
            "policy": { "example_session_limit": 10, "policy_version": "3" },
            "provenance": provenance(),
            "repository_skipped": {},
        }),
    );
}

#[test]
fn sessions_without_a_commit_are_unknown_and_their_calls_are_unattributed() {
    let mut world = World::default();
    world.call(1, "s1", Some("a"));
    world.call(2, "s2", None);
    world.call(3, "s3", Some("a"));
    world.call(4, "s4", Some("m"));
    world.decide(10, 1, true, true);
    world.decide(11, 1, false, true);
    world.decisions[1].agent_harness = AgentHarness::Pi;
    world.decide(12, 1, false, true);
    world.decide(13, 2, true, true);
    world.decide(14, 3, true, false);
    world.decide(15, 4, false, true);
    world.lifecycle.retry_linkages = 1;
    let report = json_of(&world);
    let work = &report["accepted_work"];
    assert_eq!(work["accepted_calls"], 2);
    assert_same(&work["attributed"], &stage(0, 2, 2));
    assert_same(&work["ci_verdict"], &stage(0, 0, 2));
    assert_eq!(work["skips"], json!({ "attribution_unavailable": 2 }));
    assert_same(
        &work["examples"],
        &examples(&[
            ("accepted", &["s1", "s2"]),
            ("attributed", &[]),
            ("pull_request_membership", &[]),
            ("ci_failed", &[]),
        ]),
    );
    let sessions = &report["session_attrition"];
    assert_eq!(sessions["attribution_unavailable"], 3);
    assert_eq!(
        sessions["skips"],
        json!({ "no_accepted_decision": 1, "session_commit_unobserved": 3 })
    );
    assert_eq!(
        sessions["coverage"]["missing"],
        json!({ "attribution_unavailable": 3 })
    );
    assert_same(
        &report["rework"],
        &rework([(3, 6), (1, 1), (0, 0), (0, 0), (0, 0), (0, 0)]),
    );
    let strata: Vec<_> = report["strata"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stratum| {
            (
                stratum["dimension"].as_str().unwrap(),
                stratum["value"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(strata, [("agent_harness", "claude-code"), ("model", "a")]);
    assert_eq!(
        report["stratum_skips"],
        json!({
            "missing_model": 1,
            "missing_repository": 2,
            "missing_workflow": 2,
            "multiple_agent_harnesses": 1,
        })
    );
}

/// Five calls with two commits each: one fails, one lacks a verdict at one commit, one has runs that
/// disagree, one has no verdict, one has no CI.
fn five_calls() -> World {
    use CiResult::{Cancelled, Failed, Passed, Skipped};
    let mut world = World::default();
    world.claim(1, "o/r");
    let runs = [
        vec![('0', Passed), ('1', Failed)],
        vec![('2', Passed), ('3', Cancelled)],
        vec![('4', Passed), ('4', Failed), ('5', Failed)],
        vec![('6', Skipped)],
        vec![],
    ];
    let commits = [['0', '1'], ['2', '3'], ['4', '5'], ['6', '7'], ['8', '9']];
    for ((call, runs), commits) in (1..).zip(runs).zip(commits) {
        world.call(call, &format!("s{call}"), Some("m"));
        world.decide(100 + call, call, true, true);
        for (number, sha) in (0..).zip(commits) {
            world.tie(call, 1, sha, 10);
            world.observe(200 + 10 * call + number, call, 1, sha);
        }
        for (number, (sha, result)) in (0..).zip(runs) {
            let workflow = if number == 1 { "Lint" } else { "CI" };
            world.run(300 + 10 * call + number, 1, sha, workflow, result);
        }
        world.join(call, None);
    }
    world
}

#[test]
fn a_call_fails_if_any_commit_failed_and_passes_only_if_all_passed() {
    let report = json_of(&five_calls());
    let work = &report["accepted_work"];
    assert_same(&work["ci_linked"], &stage(4, 5, 5));
    assert_same(&work["ci_verdict"], &stage(2, 4, 5));
    assert_eq!(
        (&work["ci_passed"], &work["ci_failed"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(
        work["skips"],
        json!({ "ambiguous_ci_verdict": 1, "ci_missing": 1, "ci_non_verdict": 1 })
    );
    assert_eq!(
        work["coverage"]["ambiguous"],
        json!({ "ambiguous_ci_verdict": 1 })
    );
    assert_eq!(work["examples"][3]["session_ids"], json!(["s1"]));
    assert_same(&report["rework"][5], &rework([(2, 7); 6])[5]);
}

#[test]
fn a_run_that_contradicts_itself_makes_a_call_ambiguous() {
    let mut world = World::example();
    let mut other = world.attempts[0].clone();
    other.outcome_id = id(99);
    other.result = CiResult::Failed;
    world.attempts.push(other);
    let report = world.lifecycle_report();
    assert_eq!(
        report
            .accepted_work
            .skips
            .get(AcceptedWorkSkip::AmbiguousCiVerdict),
        1
    );
    assert_eq!(
        (
            report.accepted_work.ci_passed,
            report.accepted_work.ci_failed
        ),
        (0, 0)
    );
    assert_eq!(report.accepted_work.ci_linked.count, 1);
}

#[test]
fn a_report_survives_serialization() {
    for seed in 1..20 {
        let world = World::random(seed);
        let report = world.lifecycle_report();
        let written = serde_json::to_value(&report).unwrap();
        assert_eq!(
            serde_json::from_value::<LifecycleReport>(written).unwrap(),
            report
        );
        let report = world.model_report();
        let written = serde_json::to_value(&report).unwrap();
        assert_eq!(
            serde_json::from_value::<ModelReport>(written).unwrap(),
            report
        );
    }
}

#[test]
fn examples_are_the_first_ten_sessions() {
    let mut world = World::default();
    for call in (1..=11).rev() {
        world.call(call, &format!("s{call:02}"), Some("m"));
        world.decide(100 + call, call, true, true);
    }
    let report = world.lifecycle_report();
    let shown = &report.accepted_work.examples[0].session_ids;
    let expected: Vec<_> = (1..=10)
        .map(|call| session(&format!("s{call:02}")))
        .collect();
    assert_eq!(
        (report.accepted_work.accepted_calls, shown),
        (11, &expected)
    );
}

#[test]
fn a_cursor_decision_without_a_call_id_is_reported_as_missing() {
    let mut world = World::example();
    world.decide(50, 2, true, true);
    world.decisions[1].agent_harness = AgentHarness::Cursor;
    world.decisions[1].call_id = None;
    let report = json_of(&world);
    let skipped = json!({ "missing_decision_call_id": 1 });
    assert_eq!(report["accepted_work"]["coverage"]["missing"], skipped);
    assert_eq!(
        report["accepted_work"]["coverage"]["unsupported_by_integration"],
        json!({ "cursor_human_explicit_inference_capture": 1 })
    );
    assert_eq!(
        report["edit_retention"]["coverage"]["unsupported_by_integration"],
        json!({ "cursor_edit_observations": 1 })
    );
}

#[test]
fn files_of_several_pull_requests_are_ambiguous_and_not_scored() {
    let mut world = World::example();
    world.join(2, None);
    world.lifecycle.merges.candidates += 3;
    world
        .lifecycle
        .merges
        .membership
        .add(MembershipSkip::Ambiguous, 1);
    world
        .lifecycle
        .merges
        .membership
        .add(MembershipSkip::WithoutMerge, 2);
    let panel = world.lifecycle_report().merge_durability;
    assert_eq!(
        (
            panel.attributed_file_candidates,
            panel.unique_pull_request_membership,
            panel.scored_rows
        ),
        (5, 2, 1)
    );
    assert_eq!(
        (panel.membership_rate, panel.scoring_rate),
        (Some(0.4), Some(0.5))
    );
    let ambiguous = serde_json::to_value(&panel.coverage.ambiguous).unwrap();
    assert_eq!(ambiguous, json!({ "ambiguous_pr_membership": 1 }));
}

#[test]
fn an_accepted_call_whose_content_was_erased_is_in_no_stage() {
    let mut world = World::example();
    world.call(8, "s8", Some("m1"));
    world.decide(9, 8, true, true);
    world.erase(id(1));
    let work = world.lifecycle_report().accepted_work;
    let stage = work.attributed;
    assert_eq!((work.accepted_calls, work.coverage.observed), (2, 2));
    assert_eq!(
        (stage.count, stage.denominator, stage.initial_denominator),
        (0, 1, 1)
    );
    let skips = serde_json::to_value(&work.skips).unwrap();
    assert_eq!(
        skips,
        json!({ "attribution_unavailable": 1, "content_erased": 1 })
    );
}
