//! Assignments to a name that says what the value is: `API_KEY=...`, `password: "..."`.

use std::ops::Range;

use super::anchor::Anchor;
use super::cursor::{Cursor, Quote, is_blank, is_word, preceded_by, starts_word};
use super::looks::{is_code, is_reference, is_request, is_several_words};
use super::member;
use super::name::{self, Written};

/// The longest part of a name before and after the word that gives it away.
const NAME_BYTES_MAX: usize = 64;

/// Returns the value that is assigned to the API key at the anchor.
///
/// Words before the anchor belong to the name if `_` or `-` joins them. A value is recognised by
/// its alphabet and length alone, so words are a key too, but a variable or other code is not.
pub(super) fn api_key(text: &[u8], anchor: Anchor) -> Option<Range<usize>> {
    const QUOTED_CHARACTERS_MIN: usize = 8;
    const BARE_BYTES_MIN: usize = 16;
    if !starts_word(text, anchor.start) && !preceded_by(text, anchor.start, |byte| byte == b'_') {
        return None;
    }
    let mut cursor = Cursor::new(text, anchor.end);
    cursor.quote();
    cursor.blanks();
    cursor.one(|byte| matches!(byte, b':' | b'='))?;
    cursor.blanks();
    let (value, is_code) = if let Some(value) = quoted(&mut cursor) {
        let content = &text[value.clone()];
        let characters = content.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
        (characters >= QUOTED_CHARACTERS_MIN).then_some((value, false))?
    } else {
        let start = cursor.at;
        cursor.token(BARE_BYTES_MIN)?;
        let content = &text[start..cursor.at];
        let is_code = is_code(content, cursor.goes_on()) || name::is_api_key_variable(content);
        (start..cursor.at, is_code)
    };
    let content = &text[value.clone()];
    (!is_code && !is_reference(content) && !is_request(content)).then_some(value)
}

/// Returns the value that is assigned to the name around the anchor, if the name is that of a
/// secret, token, key or password and the value looks like one.
///
/// Code assigns expressions to such names all the time, so an unquoted value must not continue as a
/// call, an index or a template.
pub(super) fn secret(text: &[u8], anchor: Anchor) -> Option<Range<usize>> {
    let name = name_around(text, anchor)?;
    let secret = name::secret(&text[name.clone()])?;
    let mut cursor = Cursor::new(text, name.end);
    let quote = cursor.quote();
    cursor.one(|byte| byte == b']');
    let blanks = gap(&mut cursor);
    let flag = text[name.start] == b'-' && blanks;
    let element = preceded_by(text, name.start, |byte| byte == b'<');
    let mut sign = b' ';
    if !flag || cursor.peek() == Some(b'=') {
        sign = cursor.one(|byte| {
            matches!(byte, b':' | b'=')
                || (byte == b'>' && element)
                || (byte == b',' && quote.is_some())
        })?;
    }
    match (sign, cursor.peek()) {
        (b':', Some(b'=')) | (b'=', Some(b'>')) => cursor.at += 1,
        (b'=', Some(b'=')) => return None,
        (b',', _) => {
            let quote = quote?;
            let open = member::opening(text, name.end, quote)?;
            member::attribute(text, open.checked_sub(quote.length())?, quote, &mut cursor)?;
        }
        _ => {}
    }
    if let Some(value) = member_of_object(text, &name, quote, sign, cursor)
        && secret.is_kept_in(&text[value.clone()])
    {
        return Some(value);
    }
    let tight = !blanks && !gap(&mut cursor);
    gap(&mut cursor);
    let whole_name = &text[name.clone()];
    let in_shell = sign == b'=' && tight && !whole_name.iter().any(u8::is_ascii_lowercase);
    if let Some(value) = quoted(&mut cursor) {
        let content = &text[value.clone()];
        let written = if in_shell && !is_several_words(content) {
            Written::Shell
        } else {
            Written::Quoted
        };
        return secret.looks_real(content, written).then_some(value);
    }
    let value = bare(&mut cursor, sign == b'>')?;
    let ends_line = cursor
        .peek()
        .is_none_or(|byte| matches!(byte, b'\n' | b'\r'));
    let in_pairs = preceded_by(text, name.start, |byte| byte == b';')
        && whole_name.first().is_some_and(u8::is_ascii_uppercase);
    let written = if in_shell {
        Written::Shell
    } else if sign == b'=' && in_pairs {
        Written::Pair
    } else if tight || flag || (sign == b':' && ends_line) {
        Written::Bare
    } else {
        Written::Spaced
    };
    secret
        .looks_real(&text[value.clone()], written)
        .then_some(value)
}

/// Returns the string at the cursor, if it and its name are a member of a JSON object in the text.
///
/// In a text that is not JSON as a whole, a string with blanks is not a member: the labels of a
/// form look the same.
fn member_of_object(
    text: &[u8],
    name: &Range<usize>,
    quote: Option<Quote>,
    sign: u8,
    mut cursor: Cursor<'_>,
) -> Option<Range<usize>> {
    let quote = quote.filter(|quote| quote.mark == b'"')?;
    if sign == b':' {
        let before = &text[..name.start];
        let before = &before[..before.len().checked_sub(quote.length())?];
        let opens = member::without_breaks(before).last();
        if !quote.ends(&text[..name.start]) || !matches!(opens, Some(b'{' | b',')) {
            return None;
        }
    } else if sign != b',' {
        return None;
    }
    cursor.breaks();
    cursor.same_quote(quote)?;
    let start = cursor.at;
    let end = cursor.string(quote)?;
    let value = &text[start..end];
    let mut after = Cursor::new(text, end);
    after.same_quote(quote)?;
    after.breaks();
    let closes = matches!(after.peek(), Some(b',' | b'}'));
    let is_value = !value.iter().any(|byte| is_blank(*byte)) || is_json(text);
    (closes && is_value).then_some(start..end)
}

/// Returns whether a text looks like JSON as a whole. Only a few blanks around it are skipped,
/// because this is asked for each member.
fn is_json(text: &[u8]) -> bool {
    const BLANKS_MAX: usize = 64;
    let is_content = |byte: &&u8| !is_blank(**byte);
    let first = text.iter().take(BLANKS_MAX).find(is_content);
    let last = text.iter().rev().take(BLANKS_MAX).find(is_content);
    matches!(
        (first, last),
        (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']'))
    )
}

/// Returns the whole name around the anchor.
fn name_around(text: &[u8], anchor: Anchor) -> Option<Range<usize>> {
    let in_name = |byte: u8| is_word(byte) || matches!(byte, b'-' | b'.');
    let before = &text[anchor.start.saturating_sub(NAME_BYTES_MAX)..anchor.start];
    let head = before
        .iter()
        .rev()
        .take_while(|byte| in_name(**byte))
        .count();
    let mut start = anchor.start - head;
    if matches!(text[..start], [.., b'\\']) && matches!(text[start], b'n' | b't' | b'r') {
        start += 1;
    }
    let after = &text[anchor.end..text.len().min(anchor.end + NAME_BYTES_MAX)];
    let tail = after
        .iter()
        .take_while(|byte| is_word(**byte) || **byte == b'-')
        .count();
    (tail < NAME_BYTES_MAX && start < anchor.end).then_some(start..anchor.end + tail)
}

/// Skips blanks and tabs, and returns whether there were any.
fn gap(cursor: &mut Cursor<'_>) -> bool {
    cursor.run(|byte| matches!(byte, b' ' | b'\t')) > 0
}

/// Reads a value without quotes.
fn bare(cursor: &mut Cursor<'_>, in_element: bool) -> Option<Range<usize>> {
    let start = cursor.at;
    cursor.run(|byte| {
        (byte.is_ascii_graphic() || byte >= 0x80)
            && !matches!(
                byte,
                b'"' | b'\''
                    | b'`'
                    | b';'
                    | b','
                    | b'&'
                    | b'<'
                    | b'>'
                    | b'('
                    | b')'
                    | b'['
                    | b']'
                    | b'{'
                    | b'}'
                    | b'|'
                    | b'\\'
                    | b'$'
            )
    });
    let goes_on = cursor.goes_on() || cursor.peek() == Some(b'<');
    if (goes_on && !in_element) || cursor.at == start {
        return None;
    }
    let stops = cursor.text[start..cursor.at]
        .iter()
        .rev()
        .take_while(|byte| matches!(byte, b'.' | b':'));
    Some(start..cursor.at - stops.count())
}

/// Reads a quoted value that contains no quotes or blanks, and returns its content.
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
