//! Private keys, in PEM form and in PuTTY's.

use std::ops::Range;

use super::anchor::Anchor;
use super::cursor::{Cursor, is_blank};
use super::looks::{is_plain_words, is_worded};

const DASHES: &[u8] = b"-----";

/// Returns the private key whose first line starts at the anchor, including its first and last
/// line.
///
/// Line breaks may be escaped, and code may build the key from pieces, but all or a good part of
/// the body must be lines of Base64. Neither a mere mention of the two lines nor prose between them
/// is a key. A key that is cut off ends where it stops looking like one.
pub(super) fn block(text: &[u8], anchor: Anchor) -> Option<Range<usize>> {
    const LABEL_BYTES_MAX: usize = 64;
    const BODY_BYTES_MAX: usize = 64 * 1024;
    const CUT_OFF_BYTES_MIN: usize = 40;
    const CLOSED_BYTES_MIN: usize = 16;
    const OPEN_BYTES_MIN: usize = 32;
    let label = &text[anchor.end..text.len().min(anchor.end + LABEL_BYTES_MAX)];
    let label = &label[..find(label, DASHES)?];
    let in_label = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b' ';
    if !label.iter().all(in_label) || find(label, b"PRIVATE KEY").is_none() {
        return None;
    }
    let body_start = anchor.end + label.len() + DASHES.len();
    let body = &text[body_start..text.len().min(body_start + BODY_BYTES_MAX)];
    let body = &body[..find(body, DASHES).unwrap_or(body.len())];
    let end = body_start + body.len();
    let mut cursor = Cursor::new(text, end);
    let last_line = cursor.word(b"-----END ").and_then(|()| {
        cursor.word(label)?;
        cursor.word(DASHES)
    });
    if last_line.is_some() {
        let is_key = holds_key(body, CLOSED_BYTES_MIN) || is_lines(body);
        return is_key.then_some(anchor.start..cursor.at);
    }
    let mut cursor = Cursor::new(text, body_start);
    cursor.run(|byte| is_base64(byte) || is_blank(byte) || byte == b'\\');
    let key = &text[body_start..cursor.at];
    let length = key.iter().filter(|byte| is_base64(**byte)).count();
    (length >= CUT_OFF_BYTES_MIN && holds_key(key, OPEN_BYTES_MIN))
        .then_some(anchor.start..cursor.at)
}

/// Returns the private lines of a key in PuTTY's form. The anchor is the `Key` of its first line:
/// `PuTTY-User-Key-File-2: ssh-rsa`.
pub(super) fn of_putty(text: &[u8], anchor: Anchor) -> Option<Range<usize>> {
    const KEY_BYTES_MAX: usize = 4 * 1024;
    const BODY_BYTES_MIN: usize = 40;
    if !text[..anchor.start].ends_with(b"PuTTY-User-") {
        return None;
    }
    let key = &text[anchor.end..text.len().min(anchor.end + KEY_BYTES_MAX)];
    let title = b"Private-Lines:";
    let mut cursor = Cursor::new(text, anchor.end + find(key, title)? + title.len());
    cursor.run(|byte| byte == b' ' || byte.is_ascii_digit());
    cursor.breaks();
    let start = cursor.at;
    let mut end = start;
    // A line that continues with a colon is the next title.
    while cursor.run(is_base64) > 0 && cursor.peek() != Some(b'-') && cursor.peek() != Some(b':') {
        end = cursor.at;
        cursor.breaks();
    }
    (end - start >= BODY_BYTES_MIN).then_some(start..end)
}

/// Returns whether a body starts on a line of its own and consists only of lines of Base64, however
/// short, that are not words. A single line of mixed case is Base64: words are not written like
/// that.
fn is_lines(body: &[u8]) -> bool {
    let mut lines = Vec::new();
    let mut rest = body;
    while let Some((byte, after)) = rest.split_first() {
        if let Some(after) = after_line_break(rest) {
            // Words are separated by one blank.
            if lines.last().is_some_and(|last| *last != b' ') {
                lines.push(b' ');
            }
            rest = after;
        } else if is_base64(*byte) && rest.len() < body.len() {
            lines.push(*byte);
            rest = after;
        } else {
            return false;
        }
    }
    let words = lines.strip_prefix(b" ").unwrap_or(&lines);
    let words = words.strip_suffix(b" ").unwrap_or(words);
    let is_line = !words.contains(&b' ');
    !words.is_empty() && (is_line && is_mixed(words) || !is_plain_words(words))
}

/// Returns whether letters of both cases follow the first letter.
fn is_mixed(word: &[u8]) -> bool {
    let rest = word.get(1..).unwrap_or_default();
    rest.iter().any(u8::is_ascii_lowercase) && rest.iter().any(u8::is_ascii_uppercase)
}

/// Returns what follows the line break at the start of a text. The line break may be escaped.
fn after_line_break(text: &[u8]) -> Option<&[u8]> {
    let backslashes = text.iter().take_while(|byte| **byte == b'\\').count();
    match text[backslashes..] {
        [b'\n' | b'\r', ref rest @ ..] => Some(rest),
        [b'n' | b'r', ref rest @ ..] if backslashes > 0 => Some(rest),
        _ => None,
    }
}

/// Returns whether at least `shortest` bytes of a body are in lines of Base64.
fn holds_key(body: &[u8], shortest: usize) -> bool {
    const RUN_BYTES_MIN: usize = 16;
    /// The lines must be at least one part in this many: headers, quotes and concatenation signs
    /// may stand beside them.
    const PART_MIN: usize = 3;
    let key: usize = body
        .split(|byte| !is_base64(*byte))
        .filter(|run| run.len() >= RUN_BYTES_MIN && !is_worded(run))
        .map(<[u8]>::len)
        .sum();
    let written = body.iter().filter(|byte| !is_blank(**byte)).count();
    key >= shortest && key * PART_MIN >= written
}

const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

fn find(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|window| window == word)
}
