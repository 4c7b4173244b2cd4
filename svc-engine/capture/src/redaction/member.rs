//! Members of JSON or code that is written inside a text: `"api_key": "..."`.

use std::ops::Range;

use super::anchor::{Anchor, Kind};
use super::cursor::{Cursor, Quote, is_blank, preceded_by};
use super::looks::is_reference;
use super::{header, name};

/// The longest name of a member that is considered.
const NAME_BYTES_MAX: usize = 128;

/// Returns the value of the member whose quoted name ends with the anchor, if the name is that of a
/// credential. A reference to a variable is not a credential, nor is a scheme that code appends one
/// to.
///
/// Quotes may be escaped, as in JSON within JSON. An attribute counts too. There the name is itself
/// a value: `"key": "api_key", "value": "..."`.
pub(super) fn value(text: &[u8], anchor: Anchor) -> Option<Range<usize>> {
    let mut cursor = Cursor::new(text, anchor.end);
    let quote = cursor.quote()?;
    let open = opening(text, anchor.start, quote)?;
    if !name::is_credential(&text[open..anchor.end]) {
        return None;
    }
    cursor.blanks();
    match cursor.one(|byte| matches!(byte, b':' | b','))? {
        b':' => {}
        // The arguments of a call. Those of an `Authorization` header have a scheme.
        _ if anchor.kind == Kind::ApiKey
            && preceded_by(text, open - quote.length(), |byte| byte == b'(') => {}
        _ => attribute(text, open - quote.length(), quote, &mut cursor)?,
    }
    cursor.blanks();
    let quote = cursor.quote()?;
    let start = cursor.at;
    let end = cursor.string(quote)?;
    let value = &text[start..end];
    let is_beginning = header::is_scheme(value) && is_appended_to(cursor);
    let is_elsewhere = is_beginning || is_reference(header::without_bearer(value));
    (!is_elsewhere).then_some(start..end)
}

/// Returns whether code appends to the string before the cursor, or formats it.
fn is_appended_to(mut cursor: Cursor<'_>) -> bool {
    cursor.blanks();
    cursor
        .peek()
        .is_some_and(|byte| matches!(byte, b'+' | b'.' | b'&' | b'|' | b'%'))
}

/// Returns the start of the name that ends at `anchor`.
pub(super) fn opening(text: &[u8], anchor: usize, quote: Quote) -> Option<usize> {
    let line = &text[anchor.saturating_sub(NAME_BYTES_MAX)..anchor];
    let back = line
        .iter()
        .rev()
        .position(|byte| matches!(byte, b'"' | b'\'' | b'\n' | b'\r'))?;
    let open = anchor - back;
    quote.ends(&text[..open]).then_some(open)
}

/// Reads the name and colon before an attribute's value. The attribute's name, whose quote opens at
/// `before`, must be the value of a member `key` or `name`.
pub(super) fn attribute(
    text: &[u8],
    before: usize,
    quote: Quote,
    cursor: &mut Cursor<'_>,
) -> Option<()> {
    let name = without_blanks(&text[..before]).strip_suffix(b":")?;
    let name = without_blanks(name);
    if !quote.ends(name) {
        return None;
    }
    let name = &name[..name.len() - quote.length()];
    let word = &name[name.len().checked_sub(4)?..];
    let word = word.strip_suffix(b"key").map_or(word, |_| &word[1..]);
    if !word.eq_ignore_ascii_case(b"key") && !word.eq_ignore_ascii_case(b"name") {
        return None;
    }
    member(cursor, b"value", quote)?;
    cursor.blanks();
    if cursor.one(|byte| byte == b'{').is_some() {
        member(cursor, b"stringValue", quote)?;
    }
    Some(())
}

/// Reads the name of a member and its colon.
fn member(cursor: &mut Cursor<'_>, name: &[u8], quote: Quote) -> Option<()> {
    cursor.blanks();
    cursor.same_quote(quote)?;
    cursor.word(name)?;
    cursor.same_quote(quote)?;
    cursor.blanks();
    cursor.one(|byte| byte == b':').map(|_| ())
}

/// Returns a text without the blanks at its end, including those that JSON within JSON writes as
/// escapes.
pub(super) fn without_breaks(text: &[u8]) -> &[u8] {
    let mut text = without_blanks(text);
    while let [before @ .., b'\\', b'n' | b'r' | b't'] = text {
        let backslashes = before
            .iter()
            .rev()
            .take_while(|byte| **byte == b'\\')
            .count();
        text = without_blanks(&before[..before.len() - backslashes]);
    }
    text
}

fn without_blanks(text: &[u8]) -> &[u8] {
    let end = text
        .iter()
        .rposition(|byte| !is_blank(*byte))
        .map_or(0, |last| last + 1);
    &text[..end]
}
