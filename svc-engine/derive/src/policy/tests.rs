use std::collections::BTreeSet;

use super::*;
use crate::attribution::{
    GUESS_FLOOR, GUESS_MINUTES_BEFORE, MINUTES_AFTER, NOTE_FLOOR, NOTE_MINUTES_BEFORE,
};
use crate::attribution_share::{BASELINE_DAYS, DECLINE_CASES_MIN, WINDOW_DAYS};
use crate::comparison::TWO_SIDED_CONFIDENCE;
use crate::lifecycle::EXAMPLE_SESSIONS_MAX;
use crate::merge_retention::FILE_BYTES_MAX;
use crate::model_report::MODEL_PAIRS_MAX;
use crate::silence::{ARRIVALS_MIN, MICROSECONDS_MIN, TIMES};
use crate::statistics::{ALPHA, BONFERRONI_ALPHA, FAMILY_SIZE, SMALL_N, Z_80, Z_95, Z_975};
use crate::{fate, retention_scores};

/// Every version that a derivation has had, with its numbers. To change a number, append a line
/// with a new version, and change no existing line.
fn history(policy: Policy) -> Vec<(&'static str, &'static str)> {
    match policy {
        Policy::AttributionShare => vec![
            (
                "1",
                "the last 7 days, 28 days before, a decline from 97 commits",
            ),
            (
                "2",
                "the last 7 days, 28 days before, a decline from 97 commits, \
                 no guess where an erased call may have been noted",
            ),
        ],
        Policy::Attribution => vec![
            (
                "1",
                "noted from 3/10 in -10080 to 10 minutes, guessed from 7/10 in -60 to 10 minutes",
            ),
            (
                "2",
                "noted from 3/10 in -10080 to 10 minutes, guessed from 7/10 in -60 to 10 minutes, \
                 no code only if every section is readable",
            ),
        ],
        Policy::ModelReport => vec![
            (
                "1",
                "alpha 0.05, corrected 0.025 of 2, small below 30, two-sided 0.9, \
                 z 0.8416212335729142 1.6448536269514726 1.959963984540054, pairs 200000",
            ),
            (
                "2",
                "alpha 0.05, corrected 0.025 of 2, small below 30, two-sided 0.9, \
                 z 0.8416212335729142 1.6448536269514726 1.959963984540054, pairs 200000, \
                 erased calls in no rate",
            ),
            (
                "3",
                "alpha 0.05, corrected 0.025 of 2, small below 30, two-sided 0.9, \
                 z 0.8416212335729142 1.6448536269514726 1.959963984540054, pairs 200000, \
                 erased calls in no rate, undetermined outcomes among the sources",
            ),
        ],
        Policy::Abandonment => vec![("1", "")],
        Policy::Fate => vec![("1", "4 characters, deleted to 0.1, unmodified from 0.9")],
        Policy::CiResolution => vec![(
            "1",
            r#"{"absent_attempt":0,"policy_version":"1","verdicts":["passed","failed"]}"#,
        )],
        Policy::MergeRetention => {
            vec![
                ("1", "4 characters of 1000000 bytes, below [0.8, 0.9, 1.0]"),
                (
                    "2",
                    "4 characters of 1000000 bytes, below [0.8, 0.9, 1.0], \
                     an undetermined outcome leaves open the pull request that it names",
                ),
            ]
        }
        Policy::Lifecycle => vec![
            ("1", "10 examples, below [0.8, 0.9, 1.0]"),
            (
                "2",
                "10 examples, below [0.8, 0.9, 1.0], erased calls and edits in no rate",
            ),
            (
                "3",
                "10 examples, below [0.8, 0.9, 1.0], erased calls and edits in no rate, \
                 undetermined facts among the scoring skips",
            ),
        ],
        Policy::Spend => vec![(
            "spend-1",
            r#"{"apart_microseconds":900000000,"cost_tolerance":1,"policy_version":"spend-1"}"#,
        )],
        Policy::Overview => vec![
            (
                "1",
                "silent for 10 times as long as usual, after 5 arrivals and 259200000000 \
                 microseconds",
            ),
            (
                "2",
                "silent for 10 times as long as usual, after 5 arrivals and 259200000000 \
                 microseconds, red if a workflow failed",
            ),
        ],
    }
}

/// The current numbers of a derivation.
fn numbers(policy: Policy) -> String {
    let thresholds = retention_scores::THRESHOLDS;
    let characters = fate::GRAM_CHARACTERS;
    match policy {
        Policy::Abandonment => String::new(),
        Policy::AttributionShare => format!(
            "the last {WINDOW_DAYS} days, {BASELINE_DAYS} days before, \
             a decline from {DECLINE_CASES_MIN} commits, \
             no guess where an erased call may have been noted"
        ),
        Policy::Attribution => format!(
            "noted from {}/{} in -{NOTE_MINUTES_BEFORE} to {MINUTES_AFTER} minutes, \
             guessed from {}/{} in -{GUESS_MINUTES_BEFORE} to {MINUTES_AFTER} minutes, \
             no code only if every section is readable",
            NOTE_FLOOR.common, NOTE_FLOOR.either, GUESS_FLOOR.common, GUESS_FLOOR.either
        ),
        Policy::ModelReport => format!(
            "alpha {ALPHA}, corrected {BONFERRONI_ALPHA} of {FAMILY_SIZE}, small below {SMALL_N}, \
             two-sided {TWO_SIDED_CONFIDENCE}, z {Z_80} {Z_95} {Z_975}, pairs {MODEL_PAIRS_MAX}, \
             erased calls in no rate, undetermined outcomes among the sources"
        ),
        Policy::Fate => format!(
            "{characters} characters, deleted to {}, unmodified from {}",
            fate::DELETED_MAX,
            fate::UNMODIFIED_MIN
        ),
        Policy::CiResolution => ci_rules(),
        Policy::MergeRetention => {
            format!(
                "{characters} characters of {FILE_BYTES_MAX} bytes, below {thresholds:?}, \
                 an undetermined outcome leaves open the pull request that it names"
            )
        }
        Policy::Lifecycle => format!(
            "{EXAMPLE_SESSIONS_MAX} examples, below {thresholds:?}, \
             erased calls and edits in no rate, \
             undetermined facts among the scoring skips"
        ),
        Policy::Spend => spend_rules(),
        Policy::Overview => format!(
            "silent for {TIMES} times as long as usual, \
             after {ARRIVALS_MIN} arrivals and {MICROSECONDS_MIN} microseconds, \
             red if a workflow failed"
        ),
    }
}

#[test]
fn a_policy_changes_its_numbers_only_with_its_version() {
    for policy in [
        Policy::Attribution,
        Policy::ModelReport,
        Policy::Abandonment,
        Policy::Fate,
        Policy::CiResolution,
        Policy::MergeRetention,
        Policy::AttributionShare,
        Policy::Lifecycle,
        Policy::Spend,
        Policy::Overview,
    ] {
        let history = history(policy);
        let versions: BTreeSet<_> = history.iter().map(|(version, _)| version).collect();
        assert_eq!(
            versions.len(),
            history.len(),
            "{policy:?} lists a version twice"
        );
        let (version, known) = *history.last().unwrap();
        assert_eq!(
            (version, known.to_owned()),
            (policy.version(), numbers(policy)),
            "{policy:?} needs a new version"
        );
    }
}

#[test]
fn the_rules_of_ci_have_a_digest() {
    let provenance = Policy::CiResolution.provenance(2);
    let digest = provenance.policy_digest.unwrap();
    assert!(digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(provenance.quarantine_revision, 2);
    assert_eq!(Policy::Fate.provenance(2).policy_digest, None);
}
