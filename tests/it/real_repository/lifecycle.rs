//! The report of accepted work.

use serde_json::{Value, json};

use super::merges;

/// Checks the report of accepted work.
pub(super) fn check(report: &Value) {
    let counts = |panel: &str, names: &[&str]| -> Vec<u64> {
        let count = |name: &&str| report[panel][*name].as_u64().expect("a count");
        names.iter().map(count).collect()
    };
    // Calls one, two and four were accepted, and each is linked to an observed commit. One is in
    // pull request 1, two in pull request 2. Four's commit N is a squashed one, and no head
    // contains it.
    let accepted = &report["accepted_work"];
    assert_eq!(accepted["accepted_calls"], 3);
    for (stage, count, denominator) in [
        ("attributed", 3, 3),
        ("pull_request_membership", 2, 3),
        // F passed. Of two's observed commits, R1 was not checked and Q failed.
        ("ci_linked", 2, 2),
        ("ci_verdict", 2, 2),
    ] {
        assert_eq!(accepted[stage]["count"], count, "{stage}");
        assert_eq!(accepted[stage]["denominator"], denominator, "{stage}");
    }
    assert_eq!(
        (&accepted["ci_passed"], &accepted["ci_failed"]),
        (&json!(1), &json!(1))
    );
    // Edges of accepted calls that nobody observed: S with s1, Q' with s2.
    assert_eq!(
        accepted["skips"],
        json!({"pull_request_membership_unavailable": 1, "session_commit_unobserved": 2})
    );
    let edits = [
        "observations",
        "eligible",
        "derived_fates",
        "unmodified",
        "partially_modified",
    ];
    assert_eq!(counts("edit_retention", &edits), [2, 2, 2, 1, 0]);
    let external = [
        "deleted",
        "known_external_line_counts",
        "external_lines_added",
        "external_lines_removed",
    ];
    assert_eq!(counts("edit_retention", &external), [1, 1, 2, 0]);
    merges::check(&report["merge_durability"]);
    let sessions = ["eligible_sessions", "committed", "abandoned", "in_flight"];
    assert_eq!(counts("session_attrition", &sessions), [3, 3, 0, 0]);
    assert_eq!(report["session_attrition"]["attribution_unavailable"], 0);
    assert_eq!(
        report["session_attrition"]["skips"],
        json!({"no_accepted_decision": 1, "reached_a_commit": 3})
    );
    let rework: Vec<(&str, u64, u64)> = report["rework"]
        .as_array()
        .expect("components")
        .iter()
        .map(|component| {
            let count = |name: &str| component[name].as_u64().expect("a count");
            let name = component["name"].as_str().expect("a name");
            (name, count("count"), count("denominator"))
        })
        .collect();
    assert_eq!(
        rework,
        [
            ("explicit_rejects", 1, 4),
            ("retry_linkages", 1, 1),
            ("modified_or_deleted_edits", 1, 2),
            ("external_line_changes", 1, 1),
            ("abandoned_sessions", 0, 3),
            // Of the attributed commits, F and Q were checked.
            ("failed_ci_resolutions", 1, 2),
        ]
    );
    let strata: Vec<(&str, &str, u64)> = report["strata"]
        .as_array()
        .expect("strata")
        .iter()
        .map(|component| {
            let text = |name: &str| component[name].as_str().expect("a text");
            let count = component["accepted_calls"].as_u64().expect("a count");
            (text("dimension"), text("value"), count)
        })
        .collect();
    assert_eq!(
        strata,
        [
            ("agent_harness", "claude-code", 3),
            ("model", "m1", 2),
            ("model", "m2", 1),
            ("repository", "own/app", 3),
            ("workflow", "ci_a|||Build", 2),
        ]
    );
    // Call four's only observed commit was not checked.
    assert_eq!(report["stratum_skips"], json!({"missing_workflow": 1}));
    assert_eq!(report["repository_skipped"], json!({}));
}
