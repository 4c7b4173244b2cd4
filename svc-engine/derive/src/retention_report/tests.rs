use std::sync::Arc;

use serde_json::json;
use svc_engine_fact::Lifetime;
use svc_engine_fact::testing::builders::{commit, decision, id, repository};
use svc_model::id::SessionId;
use svc_model::query::AttributionSource;
use svc_model::reports::{MembershipSkip, ScoringSkip};

use super::*;
use crate::attribution::{Attribution, Similarity};
use crate::cohort::world::assert_same;
use crate::decision::{CallOwner, Decision};
use crate::lifecycle::LifecycleFile;
use crate::merge_retention::{Merge, Scores};

fn file(call: u128, path: &str) -> Attribution {
    Attribution {
        repository: Lifetime::Identified(repository(1)),
        commit_sha: commit('a'),
        file_path: path.to_owned(),
        inference_call_id: id(call),
        session_id: SessionId::new("s").unwrap(),
        similarity: Similarity {
            common: 1,
            either: 1,
        },
        source: AttributionSource::GitNotes,
        push_id: id(9),
    }
}

fn joined(call: u128) -> LifecycleFile {
    LifecycleFile {
        inference_call_id: id(call),
        session_id: SessionId::new("s").unwrap(),
        scores: None,
    }
}

fn row(call: u128, path: &str, head: f64, merge: f64) -> RetentionRow {
    RetentionRow {
        attribution: file(call, path),
        observation_ids: vec![id(8)],
        merge: Arc::new(Merge {
            merge_id: id(7),
            repository: Lifetime::Identified(repository(1)),
            head_repository: Ok(Lifetime::Identified(repository(1))),
            pr_number: 5,
            head_sha: commit('b'),
            base_sha: commit('c'),
            merge_commit_sha: commit('d'),
        }),
        scores: Scores {
            head_path: path.to_owned(),
            head,
            merge_path: path.to_owned(),
            merge,
        },
    }
}

/// Three files in one pull request, two of them with scores, and one file in none.
fn retention() -> MergeRetention {
    MergeRetention {
        candidates: 4,
        joined: vec![joined(1), joined(2), joined(2)],
        membership: Counts::from_iter([(MembershipSkip::WithoutMerge, 1)]),
        skipped: Counts::from_iter([
            (ScoringSkip::BinaryFile, 1),
            (ScoringSkip::RepositorySourceAbsent, 2),
        ]),
        rows: vec![
            row(1, "a.py", 0.800_970_873_786_407_7, 0.495_145_631_067_961_17),
            row(2, "b.py", 1.0, 1.0),
        ],
        joined_pull_requests: 1,
        scored_pull_requests: 1,
        ..MergeRetention::default()
    }
}

#[test]
fn a_report_shows_the_scores_of_all_files_and_of_accepted_files() {
    let org_id = OrgId::new("acme").unwrap();
    let on = |number, call_id: &str| {
        let mut fact = decision(number);
        fact.call_id = Some(call_id.to_owned());
        Decision::from(&fact)
    };
    let owners = [CallOwner {
        call_id: "t1".to_owned(),
        inference_call_id: id(1),
        session_id: SessionId::new("s").unwrap(),
    }];
    let decisions = Decisions::attach(vec![on(1, "t1"), on(2, "unknown")], &owners);
    let skips = Counts::from_iter([
        (AttributionSkip::NoMatch, 3),
        (AttributionSkip::MalformedDiffSection, 1),
    ]);
    let others = RetentionParts {
        org_id: &org_id,
        quarantine_revision: 2,
        attribution_skips: &skips,
        decisions: &decisions,
        repository_skipped: &RetentionRepositorySkips::default(),
        unchecked_pull_requests: &[],
    };
    let share = |threshold: f64, below: u64, total: u64, rate: f64| json!({ "threshold": threshold, "below": below, "total": total, "rate": rate });
    let provenance = json!({
        "policy_version": "2", "quarantine_revision": 2, "policy_digest": null,
    });
    assert_same(
        &serde_json::to_value(report(&retention(), others)).unwrap(),
        &json!({
            "org_id": "acme",
            "attributed_file_candidates": 4,
            "candidates_joined_to_merge": 3,
            "scored_rows": 2,
            "joined_pull_requests": 1,
            "scored_pull_requests": 1,
            "membership": { "attribution_without_merge": 1 },
            "scoring_skips": { "binary_file": 1, "repository_source_absent": 2 },
            "attribution_skips": { "malformed_diff_section": 1, "no_match": 3 },
            "decision_attachment_skips": { "unmatched_decision_call_id": 1 },
            "head": {
                "distribution": {
                    "count": 2,
                    "mean": 0.900_485_436_893_203_8,
                    "median": 0.900_485_436_893_203_8,
                    "p10": 0.820_873_786_407_767,
                    "p90": 0.980_097_087_378_640_8,
                },
                "thresholds": [
                    share(0.8, 0, 2, 0.0), share(0.9, 1, 2, 0.5), share(1.0, 1, 2, 0.5),
                ],
            },
            "merge": {
                "distribution": {
                    "count": 2,
                    "mean": 0.747_572_815_533_980_6,
                    "median": 0.747_572_815_533_980_6,
                    "p10": 0.545_631_067_961_165_1,
                    "p90": 0.949_514_563_106_796_2,
                },
                "thresholds": [
                    share(0.8, 1, 2, 0.5), share(0.9, 1, 2, 0.5), share(1.0, 1, 2, 0.5),
                ],
            },
            "explicit_accept_rows": 1,
            "explicit_accept_head_thresholds": [
                share(0.8, 0, 1, 0.0), share(0.9, 1, 1, 1.0), share(1.0, 1, 1, 1.0),
            ],
            "explicit_accept_merge_thresholds": [
                share(0.8, 1, 1, 1.0), share(0.9, 1, 1, 1.0), share(1.0, 1, 1, 1.0),
            ],
            "attribution_provenance": provenance,
            "merge_retention_provenance": provenance,
            "repository_skipped": {},
            "unchecked_pull_requests": [],
        }),
    );
}
