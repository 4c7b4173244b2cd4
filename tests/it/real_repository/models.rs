//! The report of models.

use serde_json::{Value, json};

use super::SIMILAR;

/// Checks the report of models.
pub(super) fn check(report: &Value) {
    let row = |model: usize, name: &str| report["rows"][model][name].clone();
    assert_eq!(report["rows"].as_array().map(Vec::len), Some(3));
    let counts = |model: usize| {
        let names = [
            "completions",
            "attributed_inference_calls",
            "ci_linked",
            "ci_passed",
            "explicit_accepts",
            "explicit_rejects",
            "session_commit_unobserved",
        ];
        names.map(|name| row(model, name).as_u64().expect("a count"))
    };
    // m1: calls one and four, both attributed. Of their observed commits F and N, only F was
    // checked, and it passed. Both calls were accepted. Nobody observed the guess at S.
    assert_eq!(counts(0), [2, 2, 1, 1, 2, 0, 1]);
    // m2: calls two and three. Of R1 and Q, only Q was checked, and it failed. The guesses at R2
    // and Q' are each for one Session.
    assert_eq!(counts(1), [2, 2, 1, 0, 1, 0, 2]);
    // m3: call five, which led to nothing and was rejected.
    assert_eq!(counts(2), [1, 0, 0, 0, 0, 1, 0]);
    // Three files of m1, all the same. Six of m2: four the same, two at 7/9.
    let similarity = |model| row(model, "mean_similarity").as_f64().expect("a number");
    assert!((similarity(0) - 1.0).abs() < 1e-9);
    assert!((similarity(1) - (4.0 + 2.0 * SIMILAR) / 6.0).abs() < 1e-9);
    assert!(similarity(2).abs() < 1e-9);
    // What became of the two observed edits, each by an accepted call.
    assert_eq!(row(0, "fates"), json!({"unmodified": 1}));
    assert_eq!(row(0, "explicit_accept_fates"), json!({"unmodified": 1}));
    assert_eq!(
        row(0, "fates_with_external_changes"),
        json!({"unmodified": 1})
    );
    assert_eq!(row(1, "fates"), json!({"deleted": 1}));
    assert_eq!(row(1, "explicit_accept_fates"), json!({"deleted": 1}));
    assert_eq!(row(1, "fates_with_external_changes"), json!({}));
    assert_eq!(row(1, "ci_failures_by_workflow"), json!({"Build": 1}));
    assert_eq!(
        row(2, "explicit_rejects_by_agent_harness"),
        json!({"claude-code": 1})
    );
    for (model, observations) in [2, 2, 0].into_iter().enumerate() {
        let ids = row(model, "session_commit_observation_ids");
        assert_eq!(ids.as_array().map(Vec::len), Some(observations));
    }
    // Attributed calls with a checked observed commit: one of m1 (call one, at F), and both of m2,
    // because Q contains a file of each. Those with an explicit decision: one and four, and two.
    // Calls with either are eligible.
    let funnel = |model: usize| {
        let names = [
            "completions_total",
            "attributed",
            "ci_linked",
            "has_decision",
        ];
        let funnel = &report["signal_funnel"][model];
        let counts = names.map(|name| funnel[name].as_u64().expect("a count"));
        (
            counts,
            funnel["training_row_eligible"].as_u64().expect("a count"),
        )
    };
    assert_eq!(funnel(0), ([2, 2, 1, 2], 2));
    assert_eq!(funnel(1), ([2, 2, 2, 1], 2));
    assert_eq!(funnel(2), ([1, 0, 0, 0], 0));
    // One repository alone says nothing about others. Its cells: 1 of 1 for m1, 0 of 1 for m2.
    let stratification = &report["stratification"];
    assert_eq!(stratification[0]["status"], "not_enough_repos");
    assert_eq!(stratification[0]["checked_repos"], 1);
    assert_eq!(stratification[0]["session_commit_unobserved"], 3);
    assert_eq!(stratification[1]["status"], "not_checkable");
    // s1, s2 and s3 accepted something and reached a commit; s4 accepted nothing.
    let reached = json!({"no_accepted_decision": 1, "reached_a_commit": 3});
    assert_eq!(report["abandonment"]["derivation_skipped"], reached);
    // Seven commits were pushed near some call: F, R1, Q and N have a note that fits; R2, S and Q'
    // have a guess.
    let shares = report["attribution_share"].as_array().expect("rows");
    assert_eq!(shares.len(), 1);
    let share = |name: &str| shares[0][name].as_u64().expect("a count");
    assert_eq!(share("agent_plausible_commits"), 7);
    assert_eq!(share("git_notes_attributed"), 4);
    assert_eq!(share("jaccard_attributed"), 3);
    assert_eq!(share("unattributed"), 0);
    let part = shares[0]["git_notes_share"].as_f64().expect("a number");
    assert!((part - 4.0 / 7.0).abs() < 1e-9);
    assert_eq!(shares[0]["repo"], "own/app");
    assert_eq!(report["attribution_alerts"], json!([]));
    // Everything is in one repository, and no run contradicts another.
    for skipped in ["fate_skipped", "ci_skipped", "repository_skipped"] {
        assert_eq!(report[skipped], json!({}), "{skipped}");
    }
}
