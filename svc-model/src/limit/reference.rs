//! The table of docs/reference/limits.md.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::all;

/// The unit of a limit, by a word of its name. For other limits, it is the first word of the
/// sentence.
const UNITS: [(&str, &str); 4] = [
    ("BYTES", "bytes"),
    ("CHARACTERS", "characters"),
    ("SECONDS", "seconds"),
    ("DAYS", "days"),
];

fn unit(name: &str) -> &'static str {
    let words: BTreeSet<&str> = name.split('_').collect();
    let mut units = UNITS.iter().filter(|(word, _)| words.contains(word));
    units.next().map_or("", |(_, unit)| unit)
}

/// Returns a number for people: with commas, and also in KiB, MiB or GiB if it is a multiple of
/// that.
fn shown(value: &str, unit: &str) -> String {
    let mut text = String::new();
    for (index, digit) in value.chars().enumerate() {
        if index > 0 && (value.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if !unit.is_empty() {
        text.extend([" ", unit]);
    }
    let sizes = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let number: u64 = value.parse().expect("a number that is not negative");
    let round = |(_, size): &(&str, u64)| unit == "bytes" && number.is_multiple_of(*size);
    if let Some((name, size)) = sizes.into_iter().find(round) {
        // Writing to a text never fails.
        let _ = write!(text, " ({} {name})", number / size);
    }
    text
}

fn table() -> String {
    let mut table = String::from("| Limit | Value | What it bounds |\n|---|---|---|\n");
    for (name, value, what) in all() {
        let value = shown(&value, unit(name));
        // Writing to a text never fails.
        let _ = writeln!(table, "| `{name}` | {value} | {} |", what.trim());
    }
    table
}

#[test]
fn the_documentation_has_this_table() {
    let table = table();
    assert!(
        include_str!("../../../docs/reference/limits.md").contains(&table),
        "put this into docs/reference/limits.md:\n{table}"
    );
}

#[test]
fn every_limit_has_its_own_description() {
    let limits = all();
    assert!(limits.len() > 60, "{}", limits.len());
    let sentences: BTreeSet<&str> = limits.iter().map(|(_, _, what)| *what).collect();
    assert_eq!(sentences.len(), limits.len());
    for (name, _, what) in limits {
        let what = what.trim();
        let is_one = what.ends_with('.') && what.starts_with(char::is_uppercase);
        assert!(is_one || what.starts_with("The `"), "{name}: {what}");
    }
}

#[test]
fn a_value_is_shown_with_its_unit() {
    assert_eq!(shown("26214400", "bytes"), "26,214,400 bytes (25 MiB)");
    assert_eq!(shown("1000", ""), "1,000");
    assert_eq!(shown("100", "bytes"), "100 bytes");
    assert_eq!(unit("READ_DEADLINE_SECONDS"), "seconds");
    assert_eq!(unit("CI_PAGE_MAX"), "");
}
