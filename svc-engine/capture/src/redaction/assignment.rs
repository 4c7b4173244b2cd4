//! Assignments to a name that says what the value is: `API_KEY=...`, `password: "..."`.

use std::ops::Range;

use super::anchor::Anchor;
use super::cursor::{Cursor, Quote, is_blank, is_word, preceded_by, starts_word};
use super::looks::{
    is_code, is_random, is_reference, is_request, is_several_words, is_stand_in, is_worded,
};
use super::member;
use super::name::{self, Secret, ValueNotation};

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
    let is_quoted = cursor.quote().is_some();
    cursor.blanks();
    let sign = cursor.one(|byte| matches!(byte, b':' | b'=') || (byte == b',' && is_quoted))?;
    cursor.blanks();
    if sign == b',' {
        // The arguments of a call, or the names in a list.
        let value = quoted(&mut cursor)?;
        return is_random(&text[value.clone()]).then_some(value);
    }
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
    // The names of members are searched too, and a name alone has no value.
    if name.end == text.len() {
        return None;
    }
    match name::secret(&text[name.clone()]) {
        Some(secret) => assigned(text, &name, secret).or_else(|| stated(text, &name, secret)),
        None => of_openssl(text, &name),
    }
}

/// Returns the value that a sign assigns to a name.
fn assigned(text: &[u8], name: &Range<usize>, secret: Secret) -> Option<Range<usize>> {
    let mut cursor = Cursor::new(text, name.end);
    let quote = cursor.quote();
    cursor.one(|byte| byte == b']');
    let blanks = gap(&mut cursor);
    let flag = text[name.start] == b'-' && blanks;
    let element = preceded_by(text, name.start, |byte| byte == b'<');
    // `{:password, "value"}`
    let is_atom =
        quote.is_none() && matches!(text[..name.start], [.., b'{' | b'[' | b'(' | b' ', b':']);
    let mut sign = b' ';
    let mut is_argument = false;
    if !flag || cursor.peek() == Some(b'=') {
        sign = cursor.one(|byte| {
            matches!(byte, b':' | b'=')
                || (byte == b'>' && element)
                || (byte == b',' && (quote.is_some() || is_atom))
        })?;
    }
    match (sign, cursor.peek()) {
        (b':', Some(b'=')) | (b'=', Some(b'>')) => cursor.at += 1,
        (b'=', Some(b'=')) => return None,
        (b',', _) if is_atom => is_argument = true,
        (b',', _) => {
            let quote = quote?;
            let open = member::opening(text, name.end, quote)?;
            let before = open.checked_sub(quote.length())?;
            // The arguments of a call look like an attribute that lacks its names.
            let is_flag = text[name.start] == b'-';
            is_argument = is_flag || text[..before].trim_ascii_end().ends_with(b"(");
            if !is_argument {
                member::attribute(text, before, quote, &mut cursor)?;
            }
        }
        _ => {}
    }
    if !is_argument
        && let Some(value) = member_of_object(text, name, quote, sign, cursor)
        && secret.is_kept_in(&text[value.clone()])
    {
        return Some(value);
    }
    let tight = !blanks && !gap(&mut cursor);
    gap(&mut cursor);
    let whole_name = &text[name.clone()];
    let in_shell = sign == b'=' && tight && !whole_name.iter().any(u8::is_ascii_lowercase);
    let is_variable = sign == b'=' && !whole_name.iter().any(u8::is_ascii_lowercase);
    if is_variable && let Some(phrase) = phrase(cursor) {
        if secret.is_phrase(&text[phrase.clone()]) {
            return Some(phrase);
        }
        // A scheme may stand before the value: `FlyV1`.
        let length = text[phrase.clone()]
            .iter()
            .rev()
            .position(|byte| *byte == b' ')?;
        let last = phrase.end - length..phrase.end;
        return is_random(&text[last.clone()]).then_some(last);
    }
    if let Some(value) = quoted(&mut cursor) {
        let content = &text[value.clone()];
        let written = if in_shell && !is_several_words(content) {
            ValueNotation::Shell
        } else {
            ValueNotation::Quoted
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
        ValueNotation::Shell
    } else if sign == b'=' && in_pairs {
        ValueNotation::Pair
    } else if tight || flag || (sign == b':' && ends_line) {
        ValueNotation::Bare
    } else {
        ValueNotation::Spaced
    };
    secret
        .looks_real(&text[value.clone()], written)
        .then_some(value)
}

/// Names that a line of a configuration file begins with, before their value.
const DIRECTIVES: [&[u8]; 3] = [b"requirepass", b"masterauth", b"bindpw"];

/// Returns the value that stands beside a name without a sign: in prose, after a command that sets
/// the name, in an attribute of XML, or as the default of a variable of Terraform.
fn stated(text: &[u8], name: &Range<usize>, secret: Secret) -> Option<Range<usize>> {
    const COPULAS: [&[u8]; 4] = [b"is", b"was", b"is:", b"to"];
    let mut cursor = Cursor::new(text, name.end);
    if let Some(quote) = cursor.quote() {
        let open = name.start.checked_sub(quote.length())?;
        let set = set_by(&text[..open]).map(|_| {
            let mut cursor = cursor;
            gap(&mut cursor).then(|| quoted(&mut cursor)).flatten()
        });
        let value = set
            .flatten()
            .or_else(|| of_list(text, open, cursor))
            .or_else(|| of_attribute(text, open, cursor));
        return value
            .filter(|value| secret.looks_real(&text[value.clone()], ValueNotation::Quoted));
    }
    if let Some(value) = of_list(text, name.start, cursor) {
        return secret
            .looks_real(&text[value.clone()], ValueNotation::Bare)
            .then_some(value);
    }
    cursor.run(|byte| matches!(byte, b'*' | b'_'));
    if !gap(&mut cursor) {
        return None;
    }
    let is_directive = DIRECTIVES.contains(&&text[name.clone()]);
    let setter = set_by(&text[..name.start]).or(is_directive.then_some(Setter::Command));
    let start = cursor.at;
    cursor.run(|byte| byte.is_ascii_alphabetic() || byte == b':');
    let word = &text[start..cursor.at];
    let mut is_prose = COPULAS
        .iter()
        .any(|copula| word.eq_ignore_ascii_case(copula));
    if word == b"for" || word == b"of" {
        // `the password for ann: value`
        let whom = &text[cursor.at..text.len().min(cursor.at + NAME_BYTES_MAX)];
        let in_name = |byte: &&u8| is_word(**byte) || matches!(**byte, b' ' | b'-' | b'.' | b'@');
        let length = whom.iter().take_while(in_name).count();
        if whom.get(length) == Some(&b':') {
            is_prose = true;
            cursor.at += length + 1;
        }
    }
    is_prose = is_prose && gap(&mut cursor);
    if !is_prose {
        cursor.at = start;
    }
    let is_marked = cursor.run(|byte| matches!(byte, b'`' | b'*')) > 0;
    let is_quoted = is_marked || matches!(cursor.peek(), Some(b'"' | b'\''));
    let value = quoted(&mut cursor).or_else(|| bare(&mut cursor, false))?;
    let content = &text[value.clone()];
    let is_one = match setter {
        Some(Setter::Shell) => secret.looks_real(content, ValueNotation::Shell),
        Some(Setter::Command) => secret.looks_real(content, ValueNotation::Bare),
        None if is_prose || is_quoted => secret.is_said(content),
        None => secret.is_beside(content),
    };
    is_one.then_some(value)
}

/// Returns the value of an entry of a list in YAML, on the line after its name:
/// `- name: DB_PASSWORD`, `value: hunter2`.
fn of_list(text: &[u8], name: usize, mut cursor: Cursor<'_>) -> Option<Range<usize>> {
    let before = text[..name].trim_ascii_end();
    if !before.ends_with(b"name:") && !before.ends_with(b"key:") {
        return None;
    }
    cursor.one(|byte| byte == b',');
    cursor.breaks();
    cursor.word(b"value:")?;
    gap(&mut cursor);
    quoted(&mut cursor).or_else(|| bare(&mut cursor, false))
}

/// Returns the value of an attribute of XML whose name, a quoted string, ends at the cursor, or of
/// the element, or the default of the variable.
fn of_attribute(text: &[u8], open: usize, mut cursor: Cursor<'_>) -> Option<Range<usize>> {
    const BLOCK_BYTES_MAX: usize = 400;
    if cursor.one(|byte| byte == b'>').is_some() {
        return bare(&mut cursor, true);
    }
    cursor.blanks();
    if cursor.word(b"value").is_some() {
        gap(&mut cursor);
        cursor.one(|byte| byte == b'=')?;
        gap(&mut cursor);
        return quoted(&mut cursor);
    }
    let is_variable = text[..open].trim_ascii_end().ends_with(b"variable");
    if !is_variable || cursor.one(|byte| byte == b'{').is_none() {
        return None;
    }
    let block = &text[cursor.at..text.len().min(cursor.at + BLOCK_BYTES_MAX)];
    let block = &block[..block
        .iter()
        .position(|byte| *byte == b'}')
        .unwrap_or(block.len())];
    let word = b"default";
    let place = block
        .windows(word.len())
        .position(|window| window == word)?;
    let mut cursor = Cursor::new(text, cursor.at + place + word.len());
    gap(&mut cursor);
    cursor.one(|byte| byte == b'=')?;
    gap(&mut cursor);
    quoted(&mut cursor)
}

/// Returns the value of a name that is just `pass`: in an argument of `openssl`, `-passin pass:value`, or
/// if it can hardly be anything else.
fn of_openssl(text: &[u8], name: &Range<usize>) -> Option<Range<usize>> {
    if &text[name.clone()] != b"pass" {
        return None;
    }
    let before = &text[name.start.saturating_sub(NAME_BYTES_MAX)..name.start];
    let option = last_word(before).1;
    let mut cursor = Cursor::new(text, name.end);
    gap(&mut cursor);
    let sign = cursor.one(|byte| matches!(byte, b':' | b'='))?;
    let is_option = option.starts_with(b"-pass") || option.starts_with(b"--pass");
    let is_option = is_option && sign == b':';
    gap(&mut cursor);
    let value = quoted(&mut cursor).or_else(|| bare(&mut cursor, false))?;
    let content = &text[value.clone()];
    let is_password = is_option && content.len() >= 3 && !is_stand_in(content);
    let is_quoted = matches!(text.get(value.end), Some(b'"' | b'\'' | b'\\'));
    let is_written = is_quoted && name::PASSWORD.is_mixed(content);
    (is_password || is_written || name::PASSWORD.is_beside(content)).then_some(value)
}

/// Returns the value around the long run at `start`, if it is assigned to a name that no other
/// anchor finds, or that says too little for a shorter value.
pub(super) fn of_run(text: &[u8], start: usize) -> Option<Range<usize>> {
    let in_value =
        |byte: u8| is_word(byte) || matches!(byte, b'-' | b'.' | b'%' | b'+' | b'/' | b'~');
    let before = &text[start.saturating_sub(3 * NAME_BYTES_MAX)..start];
    let head = before
        .iter()
        .rev()
        .take(NAME_BYTES_MAX)
        .take_while(|byte| in_value(**byte))
        .count();
    let before = without_quote(&before[..before.len() - head]).trim_ascii_end();
    let (sign, before) = before.split_last()?;
    if !matches!(sign, b'=' | b':') {
        return None;
    }
    let before = without_quote(before.trim_ascii_end());
    let in_name = |byte: &&u8| is_word(**byte) || matches!(**byte, b'-' | b'.');
    let length = before.iter().rev().take_while(in_name).count();
    let (rest, name) = before.split_at(before.len() - length);
    let in_query = *sign == b'=' && matches!(rest.last(), Some(b'?' | b'&'));
    if !name::holds_random(name, *sign == b'=', in_query) {
        return None;
    }
    let mut cursor = Cursor::new(text, start);
    cursor.run(|byte| in_value(byte) || byte == b'=');
    let value = start - head..cursor.at;
    let is_one = is_random(&text[value.clone()]) && !cursor.goes_on();
    is_one.then_some(value)
}

/// Returns a text without the quote at its end.
fn without_quote(text: &[u8]) -> &[u8] {
    let Some(text) = text.strip_suffix(b"\"").or_else(|| text.strip_suffix(b"'")) else {
        return text;
    };
    let backslashes = text.iter().rev().take_while(|byte| **byte == b'\\').count();
    &text[..text.len() - backslashes]
}

/// What sets the name that follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Setter {
    /// A command such as `npm config set`.
    Command,
    /// A command that sets a variable of a program's environment, or a line of `.netrc`: any word is
    /// a value.
    Shell,
}

/// Returns what sets the name that follows, if a command or a line of `.netrc` does.
fn set_by(before: &[u8]) -> Option<Setter> {
    const COMMANDS: [&[u8]; 7] = [
        b"set",
        b"put",
        b"add",
        b"config",
        b"--global",
        b"-g",
        b"ngrok",
    ];
    const SHELL: [&[u8]; 5] = [b"setx", b"setenv", b"env", b"ENV", b"ARG"];
    const WORDS_BYTES_MAX: usize = 128;
    let before = &before[before.len().saturating_sub(WORDS_BYTES_MAX)..];
    // The name may begin before, as in `//registry.example/:_authToken`.
    let joined = before
        .iter()
        .rev()
        .take_while(|byte| !is_blank(**byte))
        .count();
    let (rest, word) = last_word(&before[..before.len() - joined]);
    let opens = |byte: &&u8| matches!(**byte, b'"' | b'\'' | b'`' | b'(' | b'\\');
    let bare = &word[word.iter().take_while(opens).count()..];
    // The word between `login` and `password` is the user.
    let is_login = joined == 0 && !word.starts_with(b"-") && last_word(rest).1 == b"login";
    if is_login || SHELL.contains(&bare) {
        return Some(Setter::Shell);
    }
    COMMANDS.contains(&bare).then_some(Setter::Command)
}

/// Returns the string with blanks at the cursor. It ends on its line.
fn phrase(mut cursor: Cursor<'_>) -> Option<Range<usize>> {
    let open = cursor.quote()?;
    let start = cursor.at;
    let end = cursor.string(open)?;
    let has_blank = cursor.text[start..end].contains(&b' ');
    has_blank.then_some(start..end)
}

/// Splits the last word off a text.
fn last_word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = member::without_breaks(text);
    let length = text
        .iter()
        .rev()
        .take_while(|byte| !is_blank(**byte))
        .count();
    text.split_at(text.len() - length)
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
    let in_value = |byte: u8| {
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
    };
    cursor.run(in_value);
    while cursor.peek() == Some(b'$') && !begins_variable(cursor, start) {
        cursor.at += 1;
        cursor.run(in_value);
    }
    let rest = &cursor.text[cursor.at..];
    let goes_on = cursor.goes_on() || (rest.starts_with(b"<") && !rest.starts_with(b"</"));
    if (goes_on && !in_element) || cursor.at == start {
        return None;
    }
    let stops = cursor.text[start..cursor.at]
        .iter()
        .rev()
        .take_while(|byte| matches!(byte, b'.' | b':'));
    Some(start..cursor.at - stops.count())
}

/// Returns whether the `$` at the cursor begins a variable or a template, and is no sign of a
/// password whose beginning stands between `start` and the cursor.
fn begins_variable(cursor: &Cursor<'_>, start: usize) -> bool {
    let before = &cursor.text[start..cursor.at];
    let holds = |test: fn(&u8) -> bool| before.iter().any(test);
    let is_mixed = holds(u8::is_ascii_digit) && holds(u8::is_ascii_alphabetic)
        || holds(u8::is_ascii_lowercase) && holds(u8::is_ascii_uppercase) && !is_worded(before);
    match cursor.text.get(cursor.at + 1) {
        Some(b'{' | b'(') => true,
        Some(next) if next.is_ascii_alphabetic() || *next == b'_' => !is_mixed,
        _ => before.is_empty(),
    }
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
