use proptest::prelude::*;
use svc_engine_fact::testing::builders::{at, edit};

use super::*;

fn lines(count: usize) -> String {
    let lines: Vec<String> = (0..count)
        .map(|i| format!("value_{i} = compute({i})"))
        .collect();
    lines.join("\n")
}

#[test]
fn containment_matches_the_table() {
    for (applied, observed, share) in [
        ("abcd", "abcd", 1.0),
        ("abcdefgh", "xxabcdefghyy", 1.0),
        ("abcdefgh", "abcdXefgh", 0.4),
        ("aaaaaa", "aaaa", 0.333_333_333_333_333_3),
        ("abc", "zzabczz", 1.0),
        ("abc", "ab", 0.0),
        ("", "x", 1.0),
        ("", "", 1.0),
        ("x", "", 0.0),
        ("abcdef", "abc", 0.0),
        ("return x + 1\n", "return x + 2\n", 0.8),
        ("0123456789abc", "0123456789ab", 0.9),
        ("0123456789abc", "0123", 0.1),
        (&lines(10), &(lines(8) + "\n"), 0.800_970_873_786_407_7),
        (&lines(10), &(lines(5) + "\n"), 0.495_145_631_067_961_17),
    ] {
        let actual = containment(applied, observed);
        assert!((actual - share).abs() < 1e-15, "{applied:?}: {actual}");
        let texts = containment_of_texts(&Text::from(applied), &Text::from(observed));
        assert_eq!(texts.to_bits(), actual.to_bits());
    }
}

#[test]
fn the_fate_follows_from_the_share_that_was_kept() {
    for (observed, fate) in [
        ("0123456789ab", Fate::Unmodified),
        ("0123456789a", Fate::PartiallyModified),
        ("01234", Fate::PartiallyModified),
        ("0123", Fate::Deleted),
        ("", Fate::Deleted),
    ] {
        assert_eq!(
            classify(containment("0123456789abc", observed)),
            fate,
            "{observed}"
        );
    }
}

#[test]
fn each_lone_surrogate_is_a_character_of_its_own() {
    let text = |bytes: &[u8]| Text::from_wtf8(bytes.to_vec()).unwrap();
    let (high, other) = (text(b"\xed\xa0\x80abcd"), text(b"\xed\xa0\x81abcd"));
    assert!((containment_of_texts(&high, &other) - 0.5).abs() < 1e-15);
    assert!((containment_of_texts(&high, &high) - 1.0).abs() < 1e-15);
    let short = text(b"\xed\xa0\x80a");
    assert!((containment_of_texts(&short, &high) - 1.0).abs() < 1e-15);
    assert!(containment_of_texts(&short, &other).abs() < 1e-15);
}

/// The definition, without any optimisation.
fn plain(applied: &str, observed: &str) -> f64 {
    let (a, o): (Vec<char>, Vec<char>) = (applied.chars().collect(), observed.chars().collect());
    if a.is_empty() {
        return 1.0;
    }
    if a.len() < 4 {
        return if observed.contains(applied) { 1.0 } else { 0.0 };
    }
    let count = |text: &[char], gram: &[char]| text.windows(4).filter(|run| *run == gram).count();
    let mut grams: Vec<&[char]> = a.windows(4).collect();
    grams.sort_unstable();
    grams.dedup();
    let found: usize = grams
        .iter()
        .map(|gram| count(&a, gram).min(count(&o, gram)))
        .sum();
    real(found as u64) / real(a.len() as u64 - 3)
}

proptest! {
    #[test]
    fn fast_containment_equals_its_definition(
        applied in "[ab\u{e9}\u{1f600}]{0,24}",
        observed in "[ab\u{e9}\u{1f600}]{0,40}",
        plain_text in "[ab]{0,24}",
    ) {
        for (a, o) in [(&applied, &observed), (&plain_text, &observed), (&applied, &plain_text)] {
            prop_assert!((containment(a, o) - plain(a, o)).abs() < 1e-15, "{a:?} {o:?}");
        }
    }
}

/// In quadratic time, this takes minutes.
#[test]
fn a_megabyte_that_shares_only_short_runs_is_compared() {
    let applied: String = (0..250_000_u64)
        .map(|i| char::from(b'a' + (i * i % 23) as u8))
        .collect();
    let observed: String = (0..1_000_000_u64)
        .map(|i| char::from(b'a' + (i % 26) as u8))
        .collect();
    assert!(containment(&applied, &observed) < 0.1);
    assert!(containment(&"ab".repeat(500_000), &"ba".repeat(400_000)) < 0.9);
}

fn counted(number: u128, call_id: &str, seconds: i64, lines: Option<(i64, i64)>) -> EditFate {
    let mut observation = edit(number, call_id);
    observation.occurred_at = at(seconds);
    observation.external_lines_added = lines.map(|(added, _)| added);
    observation.external_lines_removed = lines.map(|(_, removed)| removed);
    EditFate::of(&observation)
}

#[test]
fn external_lines_add_up_along_the_edits_of_a_file() {
    let mut other_file = counted(4, "d", 4, Some((7, 7)));
    other_file.file_path = "src/b.rs".into();
    let edits = [
        counted(1, "c", 3, Some((2, 0))),
        counted(2, "a", 1, Some((0, 1))),
        counted(3, "b", 2, None),
        other_file,
    ];
    let total = |added, removed| Some(ExternalLines { added, removed });
    assert_eq!(
        external_totals(&edits.each_ref()),
        [total(2, 0), None, None, total(7, 7)]
    );
    let edits = [
        counted(1, "b", 1, Some((2, 0))),
        counted(2, "a", 1, Some((0, 1))),
    ];
    assert_eq!(
        external_totals(&edits.each_ref()),
        [total(2, 0), total(2, 1)]
    );
}

#[test]
fn edits_are_ordered_regardless_of_arrival_order_and_redeliveries() {
    let edits = [
        counted(3, "b", 3, None),
        counted(2, "a", 9, None),
        counted(1, "c", 1, None),
    ];
    let mut again = [&edits[..], &edits[..]].concat();
    again.reverse();
    let (first, second) = (ordered(&edits), ordered(&again));
    assert_eq!(first, second);
    let calls: Vec<&str> = first.iter().map(|edit| &*edit.call_id).collect();
    assert_eq!(calls, ["a", "b", "c"]);
}
