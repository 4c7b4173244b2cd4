//! Assignments to a name that says what the value is: `API_KEY=...`, `password: "..."`.

use std::ops::Range;

use super::anchor::Anchor;
use super::cursor::{Cursor, is_blank, is_word, preceded_by};
use super::name::{Secret, Written};

/// Returns the value that is assigned to the API key at the anchor.
///
/// Words before it belong to the name when they are joined by `_` or `-`.
pub(super) fn api_key(text: &[u8], anchor: Anchor) -> Option<Range<usize>> {
    const QUOTED_CHARACTERS_MIN: usize = 8;
    const BARE_BYTES_MIN: usize = 16;
    if preceded_by(text, anchor.start, |byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let mut cursor = Cursor::new(text, anchor.end);
    cursor.quote();
    cursor.blanks();
    cursor.one(is_assignment)?;
    cursor.blanks();
    if let Some(value) = quoted(&mut cursor) {
        let content = &text[value.clone()];
        let characters = content.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
        return (characters >= QUOTED_CHARACTERS_MIN).then_some(value);
    }
    let start = cursor.at;
    cursor.token(BARE_BYTES_MIN).map(|()| start..cursor.at)
}

/// Returns the value that is assigned to the token or password at the anchor, when it looks like a
/// credential.
///
/// Code assigns expressions to such names all the time, so the value has to look random, and a bare
/// one must not go on as a call, an index or a template.
pub(super) fn secret(text: &[u8], anchor: Anchor, secret: Secret) -> Option<Range<usize>> {
    let mut cursor = Cursor::new(text, anchor.end);
    if cursor.peek().is_some_and(is_word) {
        return None;
    }
    cursor.quote();
    cursor.run(|byte| matches!(byte, b' ' | b'\t'));
    let sign = cursor.one(is_assignment)?;
    if cursor.peek() == Some(b'=') {
        cursor.at += usize::from(sign == b':');
    }
    cursor.run(|byte| matches!(byte, b' ' | b'\t'));
    if let Some(value) = quoted(&mut cursor) {
        return secret
            .looks_real(&text[value.clone()], Written::Quoted)
            .then_some(value);
    }
    let start = cursor.at;
    cursor.token(1)?;
    let goes_on = cursor
        .peek()
        .is_some_and(|byte| matches!(byte, b'(' | b'[' | b'{' | b'<' | b'$'));
    let value = start..cursor.at;
    (!goes_on && secret.looks_real(&text[value.clone()], Written::Bare)).then_some(value)
}

const fn is_assignment(byte: u8) -> bool {
    matches!(byte, b':' | b'=')
}

/// Passes a quoted value without quotes and blanks in it; returns its content.
fn quoted(cursor: &mut Cursor<'_>) -> Option<Range<usize>> {
    let mut ahead = *cursor;
    let open = ahead.quote()?;
    let start = ahead.at;
    ahead.run(|byte| !matches!(byte, b'"' | b'\'') && !is_blank(byte));
    ahead.at = ahead
        .at
        .checked_sub(open.backslashes)
        .filter(|end| *end >= start)?;
    let end = ahead.at;
    ahead.same_quote(open)?;
    *cursor = ahead;
    Some(start..end)
}
