//! Tokens that their surroundings or their own prefix give away.

use std::ops::Range;

use super::anchor::{Anchor, Provider};
use super::cursor::{Cursor, is_blank, is_word, preceded_by};

/// The least length of a token in a header.
const HEADER_TOKEN_BYTES_MIN: usize = 16;

/// Returns the token of the `Authorization` header at the anchor.
pub(super) fn authorization_header(text: &[u8], anchor: Anchor) -> Option<Range<usize>> {
    if preceded_by(text, anchor.start, is_word) {
        return None;
    }
    let mut cursor = Cursor::new(text, anchor.end);
    cursor.blanks();
    cursor.one(|byte| matches!(byte, b':' | b'='))?;
    cursor.blanks();
    cursor.word(b"bearer")?;
    header_token(cursor)
}

/// Returns the bearer token after the anchor.
pub(super) fn bearer(text: &[u8], anchor: Anchor) -> Option<Range<usize>> {
    if preceded_by(text, anchor.start, is_word) {
        return None;
    }
    header_token(Cursor::new(text, anchor.end))
}

/// Returns the token of a value that is nothing but `Bearer` and a token.
pub(super) fn whole_bearer(value: &[u8]) -> Option<Range<usize>> {
    let mut cursor = Cursor::new(value, 0);
    cursor.word(b"bearer")?;
    header_token(cursor).filter(|token| token.end == value.len())
}

/// Returns a value without the word `Bearer` and the blanks before it.
pub(super) fn without_bearer(value: &[u8]) -> &[u8] {
    let mut cursor = Cursor::new(value, 0);
    match cursor.word(b"bearer").and_then(|()| cursor.gap()) {
        Some(()) => &value[cursor.at..],
        None => value,
    }
}

fn header_token(mut cursor: Cursor<'_>) -> Option<Range<usize>> {
    cursor.gap()?;
    let start = cursor.at;
    cursor
        .token(HEADER_TOKEN_BYTES_MIN)
        .map(|()| start..cursor.at)
}

/// Returns the key whose prefix is the anchor.
pub(super) fn provider_key(
    text: &[u8],
    anchor: Anchor,
    provider: Provider,
) -> Option<Range<usize>> {
    let is_key = |byte| is_word(byte) || byte == b'-';
    let touches = |byte| match provider {
        Provider::Secret | Provider::Chat => is_key(byte),
        Provider::Forge | Provider::ForgeFineGrained | Provider::Cloud => is_word(byte),
    };
    if preceded_by(text, anchor.start, touches) {
        return None;
    }
    let mut cursor = Cursor::new(text, anchor.end);
    let long_enough = match provider {
        Provider::Secret => cursor.run(is_key) >= 16,
        Provider::Forge => {
            let length = cursor.run(|byte| byte.is_ascii_alphanumeric());
            cursor.run(is_word);
            length >= 16
        }
        Provider::ForgeFineGrained => cursor.run(is_word) >= 16,
        Provider::Cloud => {
            let length = cursor.run(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
            length >= 16 && !cursor.peek().is_some_and(is_word)
        }
        Provider::Chat => cursor.run(|byte| byte.is_ascii_alphanumeric() || byte == b'-') >= 10,
    };
    long_enough.then_some(anchor.start..cursor.at)
}

/// Returns the JSON web token that begins at the anchor: three to five segments.
pub(super) fn web_token(text: &[u8], anchor: Anchor) -> Option<Range<usize>> {
    const SEGMENT_BYTES_MIN: usize = 8;
    let is_segment = |byte| is_word(byte) || byte == b'-';
    if preceded_by(text, anchor.start, is_segment) {
        return None;
    }
    let mut cursor = Cursor::new(text, anchor.start);
    let mut end = cursor.at;
    for segment in 0..5 {
        let dot = segment == 0 || cursor.one(|byte| byte == b'.').is_some();
        if !dot || cursor.run(is_segment) < SEGMENT_BYTES_MIN {
            return (segment >= 3).then_some(anchor.start..end);
        }
        end = cursor.at;
    }
    Some(anchor.start..end)
}

/// Returns whether a text is nothing but blanks.
pub(super) fn is_all_blank(text: &[u8]) -> bool {
    text.iter().all(|byte| is_blank(*byte))
}
