//! Private keys in PEM form.

use std::ops::Range;

use super::anchor::Anchor;
use super::cursor::{Cursor, is_blank};

const DASHES: &[u8] = b"-----";

/// Returns the private key whose first line begins at the anchor, its first and last line included.
///
/// The body may be anything that holds a run of Base64, so that a key whose line breaks are escaped
/// or which is pieced together in code is found, and the mere mention of the two lines is not. A key
/// that is cut off goes as far as it looks like one.
pub(super) fn block(text: &[u8], anchor: Anchor) -> Option<Range<usize>> {
    const LABEL_BYTES_MAX: usize = 64;
    const BODY_BYTES_MAX: usize = 64 * 1024;
    const RUN_BYTES_MIN: usize = 16;
    const CUT_OFF_BYTES_MIN: usize = 40;
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
        let runs = body.split(|byte| !is_base64(*byte));
        return runs
            .map(<[u8]>::len)
            .any(|run| run >= RUN_BYTES_MIN)
            .then_some(anchor.start..cursor.at);
    }
    let mut cursor = Cursor::new(text, body_start);
    cursor.run(|byte| is_base64(byte) || is_blank(byte) || byte == b'\\');
    let key = &text[body_start..cursor.at];
    let length = key.iter().filter(|byte| is_base64(**byte)).count();
    (length >= CUT_OFF_BYTES_MIN).then_some(anchor.start..cursor.at)
}

const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

fn find(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|window| window == word)
}
