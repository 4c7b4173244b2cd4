//! What calls write and commits contain: lines of code made of invented words, a few of them
//! frequent and most rare.

use std::fmt::Write as _;

use super::Texts;
use crate::population::mix;

/// Parts of words.
const SYLLABLES: [&str; 32] = [
    "read", "page", "ledger", "count", "merge", "line", "total", "index", "write", "field",
    "value", "batch", "record", "buffer", "column", "session", "reply", "header", "object",
    "query", "limit", "error", "status", "client", "route", "module", "branch", "folder", "offset",
    "digest", "model", "queue",
];

/// The lines of a file that one call writes completely, and of an edit of a larger file.
pub(super) const FILE_LINES: u64 = 40;
pub(super) const EDIT_LINES: u64 = 20;

/// Appends a word. Small numbers are frequent words.
fn word(text: &mut String, number: u64) {
    let parts = [number % 32, number / 32 % 32, number / 1_024 % 32];
    let count = if number < 32 {
        1
    } else if number < 1_024 {
        2
    } else {
        3
    };
    for (at, part) in parts.into_iter().take(count).enumerate() {
        if at > 0 {
            text.push('_');
        }
        text.push_str(SYLLABLES[part as usize]);
    }
}

/// Returns the lines of a text, each with its line break.
pub(super) fn lines(texts: Texts, seed: u64, count: u64) -> Vec<String> {
    (0..count)
        .map(|line| code_line(texts, seed, line))
        .collect()
}

fn code_line(texts: Texts, seed: u64, line: u64) -> String {
    let words: u64 = match texts {
        Texts::Ordinary => 30_000,
        Texts::Alike => 400,
    };
    let mut bits = mix(seed.wrapping_mul(1_009) + line, 201);
    let mut draw = || {
        bits = mix(bits, 202);
        let (left, right) = (bits % words, (bits >> 20) % words);
        let third = (bits >> 40) % words;
        left.min(right).min(third)
    };
    let mut text = String::from("    let ");
    word(&mut text, draw());
    text.push_str(" = ");
    word(&mut text, draw());
    text.push('.');
    word(&mut text, draw());
    text.push('(');
    word(&mut text, draw());
    writeln!(text, ", {});", draw() % 100).expect("writing to a string cannot fail");
    text
}

/// Returns what a commit contains of what a call wrote: mostly the same, sometimes with a few
/// changes, sometimes with many.
pub(super) fn committed(texts: Texts, seed: u64, count: u64) -> Vec<String> {
    let mut held = lines(texts, seed, count);
    let changed_of = match mix(seed, 203) % 10 {
        0..7 => u64::MAX,
        7..9 => 12,
        _ => 2,
    };
    for (at, line) in (0..).zip(&mut held) {
        if at % changed_of == changed_of - 1 {
            *line = code_line(texts, seed ^ 0xffff_0000, at);
        }
    }
    held
}

/// Returns the text of an answer that writes nothing.
pub(super) fn prose(texts: Texts, seed: u64) -> String {
    lines(texts, seed ^ 0xff_0000_0000, 12).concat()
}
