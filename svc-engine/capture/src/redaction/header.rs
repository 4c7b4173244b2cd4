//! Tokens in an `Authorization` header, tokens after `Bearer`, and cookies.

use std::ops::Range;

use base64::Engine as _;

use super::anchor::Anchor;
use super::cursor::{Cursor, is_token, starts_word};
use super::looks::{
    contains, is_code, is_plain_words, is_reference, is_request, is_stand_in, is_worded,
};

/// The minimum length of a bearer token.
const BEARER_BYTES_MIN: usize = 16;
/// The minimum length of any other token in the header.
const TOKEN_BYTES_MIN: usize = 8;

/// The schemes of the header other than `Bearer`.
const SCHEMES: [&[u8]; 12] = [
    b"basic",
    b"token",
    b"apikey",
    b"api-key",
    b"api_key",
    b"apitoken",
    b"api-token",
    b"key",
    b"bot",
    b"ssws",
    b"geniekey",
    b"splunk",
];

/// Returns the token of the `Authorization` header at the anchor.
pub(super) fn authorization(text: &[u8], anchor: Anchor) -> Option<Range<usize>> {
    if !starts_word(text, anchor.start) {
        return None;
    }
    let mut cursor = Cursor::new(text, anchor.end);
    cursor.quote();
    cursor.one(|byte| byte == b']');
    cursor.blanks();
    // `proxy_set_header Authorization "Basic …"`
    let opens = matches!(cursor.peek(), Some(b'"' | b'\'')).then_some(b' ');
    let sign = cursor
        .one(|byte| matches!(byte, b':' | b'=' | b','))
        .or(opens)?;
    cursor.run(|byte| matches!(byte, b'=' | b'>'));
    cursor.blanks();
    let open = cursor.quote();
    if sign == b',' && open.is_none() {
        return None;
    }
    let value = cursor;
    if cursor.word(b"bearer").is_some() {
        let mut glued = cursor;
        if cursor.gap().is_some() {
            // After the name of the header, words count as a token too: nobody writes prose like
            // that.
            return bearer_token(cursor, |token, goes_on| goes_on && is_code(token, true));
        }
        let token = token(&mut glued);
        if let Some(token) = token.filter(|token| is_long(&text[token.clone()])) {
            return Some(token);
        }
    }
    for scheme in SCHEMES {
        let mut cursor = value;
        if cursor.word(scheme).is_some() && cursor.gap().is_some() {
            let token = token(&mut cursor)?;
            let content = &text[token.clone()];
            let long = content.len() >= TOKEN_BYTES_MIN && !is_worded(content);
            return ((long || is_pair(content)) && !is_stand_in(content)).then_some(token);
        }
    }
    let mut cursor = value;
    token(&mut cursor).filter(|token| is_long(&text[token.clone()]))
}

/// Returns whether a token counts that does not follow a scheme and a blank.
fn is_long(token: &[u8]) -> bool {
    token.len() >= BEARER_BYTES_MIN && !is_worded(token) && !is_stand_in(token)
}

/// Returns the bearer token after the anchor.
pub(super) fn bearer(text: &[u8], anchor: Anchor) -> Option<Range<usize>> {
    let mut cursor = Cursor::new(text, anchor.end);
    cursor.gap()?;
    if starts_word(text, anchor.start) || follows_escape(text, anchor.start) {
        return bearer_token(cursor, |token, goes_on| {
            is_plain_words(token) || is_code(token, goes_on)
        });
    }
    // Class names end like that too, so more counts as words here.
    is_glued(text, anchor)
        .then(|| bearer_token(cursor, |token, _| is_worded(token)))
        .flatten()
}

/// Returns whether an escape sequence of a URL, such as `%3A` or `%20`, ends right before `start`.
fn follows_escape(text: &[u8], start: usize) -> bool {
    matches!(&text[..start], [.., b'%', high, low]
        if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

/// Returns whether `Bearer` is joined to the name of its key, as in a table of headers that lost
/// what separated its columns: `authorizationBearer`, `tokenBearer`, `x_bearer`.
fn is_glued(text: &[u8], anchor: Anchor) -> bool {
    const NAMES: [&[u8]; 2] = [b"authorization", b"token"];
    let (before, own) = (&text[..anchor.start], &text[anchor.start..anchor.end]);
    let is_named = |name: &&[u8]| {
        let start = before.len().checked_sub(name.len());
        start.is_some_and(|start| before[start..].eq_ignore_ascii_case(name))
    };
    let is_hump = own.starts_with(b"Be")
        && before
            .last()
            .is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    before.ends_with(b"_") || is_hump || NAMES.iter().any(is_named)
}

/// Returns the token of a value that consists only of `Bearer` and a token.
pub(super) fn whole_bearer(value: &[u8]) -> Option<Range<usize>> {
    let mut cursor = Cursor::new(value, 0);
    cursor.word(b"bearer")?;
    cursor.gap()?;
    let token = token(&mut cursor)?;
    (token.len() >= BEARER_BYTES_MIN && token.end == value.len()).then_some(token)
}

/// Returns a value without a leading `Bearer` and the blanks after it.
pub(super) fn without_bearer(value: &[u8]) -> &[u8] {
    let mut cursor = Cursor::new(value, 0);
    match cursor.word(b"bearer").and_then(|()| cursor.gap()) {
        Some(()) => &value[cursor.at..],
        None => value,
    }
}

/// Returns whether a value is a scheme and a blank, which a token should follow.
pub(super) fn is_scheme(value: &[u8]) -> bool {
    value.strip_suffix(b" ").is_some_and(|scheme| {
        SCHEMES
            .iter()
            .chain(&[&b"bearer"[..]])
            .any(|known| scheme.eq_ignore_ascii_case(known))
    })
}

/// Returns the token at the cursor, unless it is a reference, a request for a token, or excused.
/// `excuse` gets the token, and whether it continues as code.
///
/// Alphabet and length alone define a token: one repeated letter is a token too.
fn bearer_token(
    mut cursor: Cursor<'_>,
    excuse: impl Fn(&[u8], bool) -> bool,
) -> Option<Range<usize>> {
    let start = cursor.at;
    cursor.token(BEARER_BYTES_MIN)?;
    let content = &cursor.text[start..cursor.at];
    let excused = is_reference(content) || is_request(content) || excuse(content, cursor.goes_on());
    (!excused).then_some(start..cursor.at)
}

fn token(cursor: &mut Cursor<'_>) -> Option<Range<usize>> {
    let start = cursor.at;
    cursor.token(1)?;
    (!cursor.goes_on()).then_some(start..cursor.at)
}

/// Returns the secret cookies of the header, option or assignment whose name is the anchor, from the
/// first one to the last.
pub(super) fn cookies(text: &[u8], anchor: Anchor) -> Option<Range<usize>> {
    const HEADER_BYTES_MAX: usize = 1024;
    if !text[anchor.start..anchor.end].eq_ignore_ascii_case(b"cookie")
        || !starts_word(text, anchor.start)
    {
        return None;
    }
    let option = text[..anchor.start].ends_with(b"--");
    let mut cursor = Cursor::new(text, anchor.end);
    let named = cursor.quote();
    let blanks = cursor.run(|byte| matches!(byte, b' ' | b'\t')) > 0;
    let sign = cursor.one(|byte| matches!(byte, b':' | b'=' | b','));
    if sign.is_none() && !(option && blanks) || sign == Some(b',') && named.is_none() {
        return None;
    }
    cursor.run(|byte| matches!(byte, b'=' | b'>' | b' ' | b'\t'));
    cursor.quote();
    let start = cursor.at;
    let rest = &text[start..text.len().min(start + HEADER_BYTES_MAX)];
    let ends = |byte: &u8| {
        matches!(
            byte,
            b'\n' | b'\r' | b'"' | b'\'' | b'`' | b'\\' | b'<' | b'['
        )
    };
    let end = rest.iter().position(ends).unwrap_or(rest.len());
    let mut place = pairs(text, start..start + end)?;
    if place.end == start + HEADER_BYTES_MAX {
        // The rest of the last value.
        let mut cursor = Cursor::new(text, place.end);
        cursor.run(|byte| is_token(byte) || matches!(byte, b'%' | b'='));
        place.end = cursor.at;
    }
    Some(place)
}

/// Returns the values of secret cookies in a list of cookies, from the first one to the last.
pub(super) fn pairs(text: &[u8], list: Range<usize>) -> Option<Range<usize>> {
    const NAMES: [&[u8]; 10] = [
        b"sess",
        b"sid",
        b"auth",
        b"token",
        b"jwt",
        b"csrf",
        b"xsrf",
        b"login",
        b"remember",
        b"key",
    ];
    const ATTRIBUTES: [&[u8]; 6] = [
        b"path",
        b"domain",
        b"expires",
        b"max-age",
        b"samesite",
        b"priority",
    ];
    let mut found: Option<Range<usize>> = None;
    let mut at = list.start;
    for pair in text[list].split(|byte| *byte == b';') {
        let start = at;
        at += pair.len() + 1;
        let Some(sign) = pair.iter().position(|byte| *byte == b'=') else {
            continue;
        };
        let (name, value) = (pair[..sign].trim_ascii(), pair[sign + 1..].trim_ascii());
        let value_start = start + pair.len() - pair[sign + 1..].trim_ascii_start().len();
        let is_attribute = ATTRIBUTES
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known));
        let is_named = NAMES.iter().any(|known| contains(name, known));
        let is_cookie = !name.is_empty()
            && name
                .iter()
                .all(|byte| is_token(*byte) || matches!(byte, b':' | b'%'))
            && value.iter().all(u8::is_ascii_graphic)
            && !value.contains(&b'(');
        let shortest = if is_named { 6 } else { 12 };
        let is_random = value.len() >= shortest && !is_worded(value) && !is_stand_in(value);
        if is_cookie && !is_attribute && is_random {
            let place = value_start..value_start + value.len();
            found = Some(found.map_or(place.start, |found| found.start)..place.end);
        }
    }
    found
}

/// Returns whether a token is a user name and a password in Base64.
pub(super) fn is_pair(token: &[u8]) -> bool {
    const PAIR_BYTES_MAX: usize = 1024;
    token.len() <= PAIR_BYTES_MAX
        && base64::engine::general_purpose::STANDARD
            .decode(token)
            .is_ok_and(|pair| pair.contains(&b':'))
}
