//! What remained of attributed files at merges.

use harness::server::Server;
use serde_json::{Value, json};

use super::REMAINED;
use crate::cli::{done, svc};

/// Checks what remained of attributed files. Of the nine, five are at observed commits: those of F,
/// R1, Q and N. The others are three edges: R2, S and Q'.
///
/// | File | In | At the head | At the merge |
/// |---|---|---|---|
/// | `F` `pager.py` | 1: it is the head | 1 | 1: the file was moved as it is |
/// | `R1` `parser.py` | 2: `R2`, its first head, holds it | 31/41 | 31/41 |
/// | `Q` `parser.py`, `lexer.py` | 2: it is the head | 1, 1 | 1, 1 |
/// | `N` `net.py` | none: no head holds a squashed commit | | |
pub(super) fn check(merges: &Value) {
    for (name, count) in [
        ("attributed_file_candidates", 5),
        ("unique_pull_request_membership", 4),
        ("scored_rows", 4),
    ] {
        assert_eq!(merges[name], count, "{name}");
    }
    assert_eq!(
        merges["membership"],
        json!({"attribution_without_merge": 1})
    );
    assert_eq!(
        merges["scoring_skips"],
        json!({"session_commit_unobserved": 3})
    );
    scores_are(merges);
}

/// Checks the operator's report of all history, which has the same merges.
pub(super) fn check_history(server: &Server) {
    let text = done(&svc(
        server,
        &["report", "merge-retention", "--explain", "--json"],
    ));
    let report: Value = serde_json::from_str(&text).expect("JSON");
    for (name, count) in [
        ("attributed_file_candidates", 5),
        ("candidates_joined_to_merge", 4),
        ("scored_rows", 4),
        ("joined_pull_requests", 2),
        ("scored_pull_requests", 2),
        // One's file in F, and two's in R1 and Q. Nobody made a decision about call three.
        ("explicit_accept_rows", 3),
    ] {
        assert_eq!(report[name], count, "{name}");
    }
    assert_eq!(
        report["membership"],
        json!({"attribution_without_merge": 1})
    );
    assert_eq!(
        report["scoring_skips"],
        json!({"session_commit_unobserved": 3})
    );
    assert_eq!(report["unchecked_pull_requests"], json!([]));
    // Every pushed commit adds code, and each file has a call.
    assert_eq!(report["attribution_skips"], json!({}));
    scores_are(&report);
}

/// Checks the scores 31/41, 1, 1, 1, at the head and at the merge.
fn scores_are(scores: &Value) {
    for side in ["head", "merge"] {
        let distribution = &scores[side]["distribution"];
        assert_eq!(distribution["count"], 4);
        for (name, expected) in [
            ("mean", (REMAINED + 3.0) / 4.0),
            ("median", 1.0),
            // Three tenths of the way from the first to the second.
            ("p10", REMAINED + 0.3 * (1.0 - REMAINED)),
            ("p90", 1.0),
        ] {
            let value = distribution[name].as_f64().expect("a number");
            assert!((value - expected).abs() < 1e-9, "{side} {name}: {value}");
        }
        for (place, threshold) in [0.8, 0.9, 1.0].into_iter().enumerate() {
            let counted = &scores[side]["thresholds"][place];
            let expected = json!({"threshold": threshold, "below": 1, "total": 4, "rate": 0.25});
            assert_eq!(*counted, expected, "{side}");
        }
    }
}
