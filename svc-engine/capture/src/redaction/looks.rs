//! What a value looks like: a credential, words, a placeholder, or code that refers to a
//! credential.

use super::cursor::{is_word, starts_word};

/// The maximum length of a word; `authentication-scheme` is two words.
const WORD_BYTES_MAX: usize = 15;

/// Words for a value that is not set, or that somebody has to set.
const STAND_INS: [&[u8]; 34] = [
    b"none",
    b"null",
    b"nil",
    b"true",
    b"false",
    b"undefined",
    b"required",
    b"optional",
    b"string",
    b"changeme",
    b"change-me",
    b"change_me",
    b"changeit",
    b"replaceme",
    b"replace-me",
    b"replace_me",
    b"placeholder",
    b"redacted",
    b"removed",
    b"hidden",
    b"masked",
    b"example",
    b"dummy",
    b"unset",
    b"empty",
    b"missing",
    b"password",
    b"passwd",
    b"pass",
    b"pwd",
    b"secret",
    b"token",
    b"test",
    b"disabled",
];

/// Returns whether a value stands for another: a variable, a template or a placeholder.
pub(super) fn is_stand_in(value: &[u8]) -> bool {
    is_reference(value) || is_filler(value) || is_stand_in_word(value) || is_request(value)
}

/// Returns whether a value only marks the place of another: a variable, a template, a word for
/// none, or a mask. Unlike for [`is_stand_in`], one repeated letter or digit does not count, nor
/// does a request that does not say for what.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    const ASKED: [&[u8]; 6] = [b"pass", b"token", b"key", b"secret", b"cookie", b"here"];
    let is_mask = |byte: &u8| matches!(byte, b'*' | b'.' | b'#' | b'_' | b'-' | b'x' | b'X');
    is_reference(value)
        || is_stand_in_word(value)
        || (is_request(value) && ASKED.iter().any(|word| contains(value, word)))
        || value.iter().all(is_mask)
        || contains(value, b"***")
}

fn is_stand_in_word(value: &[u8]) -> bool {
    STAND_INS
        .iter()
        .any(|word| value.eq_ignore_ascii_case(word))
}

/// Returns whether a value asks its reader for another: `YOUR_TOKEN`, `your-api-key-goes-here`.
pub(super) fn is_request(value: &[u8]) -> bool {
    contains(value, b"your") && value.iter().any(|byte| matches!(byte, b'-' | b'_' | b' '))
}

/// Returns whether a value comes from elsewhere: `$NAME`, `${...}`, `<name>`, `{{ name }}`,
/// `process.env.NAME`.
pub(super) fn is_reference(value: &[u8]) -> bool {
    const TEMPLATES: [&[u8]; 3] = [b"${", b"{{", b"$("];
    const SOURCES: [&[u8]; 6] = [
        b"process.env",
        b"os.environ",
        b"os.getenv",
        b"import.meta.env",
        b"env::var",
        b"secrets.",
    ];
    let is_name = |name: &[u8]| {
        let inner = |byte: &u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b':' | b' ')
        };
        name.first().is_some_and(u8::is_ascii_alphabetic) && name.iter().all(inner)
    };
    match value {
        [b'{', name @ .., b'}']
        | [b'<', name @ .., b'>']
        | [b'[', name @ .., b']']
        | [b'%', name @ .., b'%']
        | [b'$' | b'%' | b'@', name @ ..]
            if is_name(name) =>
        {
            true
        }
        _ => {
            TEMPLATES.iter().any(|template| contains(value, template))
                || SOURCES.iter().any(|source| contains_word(value, source))
        }
    }
}

/// Returns whether a value is code that yields a key or token: `settings.api_key`, or a name that
/// continues as a call, an index or a template.
///
/// Only a name made of words is code: `abcdefghijklmnop(` is a key before a parenthesis.
pub(super) fn is_code(value: &[u8], goes_on: bool) -> bool {
    let is_name = |name: &[u8]| {
        name.first()
            .is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
            && name.iter().all(|byte| is_word(*byte))
    };
    let value = without_stops(value);
    (goes_on || value.contains(&b'.'))
        && value.split(|byte| *byte == b'.').all(is_name)
        && is_worded(value)
        && !has_typed_row(value)
}

/// Returns a value without the full stop of the sentence that it ends.
pub(super) fn without_stops(value: &[u8]) -> &[u8] {
    let end = value.iter().rposition(|byte| *byte != b'.');
    &value[..end.map_or(0, |last| last + 1)]
}

/// Returns whether a value is filler: a short row of one character, or anything that contains such
/// a row, dots or asterisks: `xxxxxxxx`, `sk-...`.
fn is_filler(value: &[u8]) -> bool {
    const ROW: usize = 6;
    let row = value
        .windows(ROW)
        .any(|row| row.iter().all(|byte| byte.eq_ignore_ascii_case(&row[0])));
    let dots = contains(value, b"...") || contains(value, b"***");
    let short_row = value.len() >= 3 && value.iter().all(|byte| *byte == value[0]);
    row || dots || short_row
}

/// Returns whether a value consists of words and names as people and programs write them, joined by
/// single signs or by capitals, with an occasional number.
pub(super) fn is_worded(value: &[u8]) -> bool {
    words(value).is_some()
}

/// Returns whether a value under a name that says little is a credential: long, and with a random part.
pub(super) fn is_random(value: &[u8]) -> bool {
    const BYTES_MIN: usize = 20;
    value.len() >= BYTES_MIN && has_random_part(value) && !is_stand_in(value)
}

/// Returns whether a part of a value between signs is random: long, or with small letters, capitals and
/// digits.
pub(super) fn has_random_part(value: &[u8]) -> bool {
    const LONG_BYTES_MIN: usize = 16;
    const MIXED_BYTES_MIN: usize = 8;
    value
        .split(|byte| !byte.is_ascii_alphanumeric())
        .any(|part| {
            let holds = |test: fn(&u8) -> bool| part.iter().any(test);
            let is_mixed = holds(u8::is_ascii_lowercase) && holds(u8::is_ascii_uppercase);
            let is_long =
                part.len() >= LONG_BYTES_MIN || (is_mixed && part.len() >= MIXED_BYTES_MIN);
            is_long && holds(u8::is_ascii_digit) && !is_worded(part)
        })
}

/// Returns whether a value consists only of plain words, as in prose, class names and placeholders:
/// `authentication-scheme`, `folding-cube-container`.
///
/// Such a value is excused although it has the form of a credential, so this is stricter than
/// [`is_worded`]. Numbers, initials, capitals in random places and what people type when any value
/// will do are not words here.
pub(super) fn is_plain_words(value: &[u8]) -> bool {
    const WORD_BYTES_MEAN_MIN: usize = 3;
    let letters = value
        .iter()
        .filter(|byte| byte.is_ascii_alphabetic())
        .count();
    !value.iter().any(u8::is_ascii_digit)
        && words(value).is_some_and(|words| words * WORD_BYTES_MEAN_MIN <= letters)
        && value
            .split(|byte| !byte.is_ascii_alphabetic())
            .all(is_of_plain_case)
        && !has_typed_row(value)
}

/// Returns whether a piece is in one case, or consists of words that each begin with a capital.
fn is_of_plain_case(piece: &[u8]) -> bool {
    const WORD_BYTES_MIN: usize = 3;
    if !piece.iter().any(u8::is_ascii_lowercase) || !piece.iter().any(u8::is_ascii_uppercase) {
        return true;
    }
    let mut words = piece.chunk_by(|_, next| next.is_ascii_lowercase());
    words.all(|word| word.len() >= WORD_BYTES_MIN && word.iter().copied().any(is_vowel))
}

/// Returns whether a value contains what people type when any value will do: one letter four times,
/// four letters in alphabetical order, or four neighbouring keys.
fn has_typed_row(value: &[u8]) -> bool {
    const ROW: usize = 4;
    const KEYS: [&[u8]; 3] = [b"qwertyuiop", b"asdfghjkl", b"zxcvbnm"];
    value.windows(ROW).any(|row| {
        let next_to = |step: u8| {
            row.windows(2)
                .all(|pair| (pair[0] | 0x20).wrapping_add(step) == pair[1] | 0x20)
        };
        let letters = row.iter().all(u8::is_ascii_alphabetic);
        letters && (next_to(0) || next_to(1) || KEYS.iter().any(|keys| contains(keys, row)))
    })
}

/// Returns whether a value consists of two or more words, whose capitals are where words have them.
pub(super) fn is_several_words(value: &[u8]) -> bool {
    words(value).is_some_and(|words| words >= 2)
        && value
            .split(|byte| !byte.is_ascii_alphabetic())
            .all(is_of_plain_case)
}

/// Returns whether a value consists of words and names, whose capitals are where names have them. This
/// is stricter than [`is_worded`], for which a row of short words is enough.
pub(super) fn is_named(value: &[u8]) -> bool {
    is_worded(value)
        && value
            .split(|byte| !byte.is_ascii_alphabetic())
            .all(is_camel)
}

/// Returns whether a piece is in one case, or consists of words that each begin with a capital and have
/// a vowel, and at most one abbreviation: `parseJSONBody`.
fn is_camel(piece: &[u8]) -> bool {
    const WORD_BYTES_MIN: usize = 3;
    let mut odd = 0;
    let mut rest = piece;
    while !rest.is_empty() {
        let capitals = rest
            .iter()
            .take_while(|byte| byte.is_ascii_uppercase())
            .count();
        let small = rest[capitals..]
            .iter()
            .take_while(|byte| byte.is_ascii_lowercase())
            .count();
        // The last capital belongs to the word after it.
        let initials = if small > 0 {
            capitals.saturating_sub(1)
        } else {
            capitals
        };
        odd += usize::from(initials > 0);
        let word = &rest[initials..capitals + small];
        let is_word = word.len() >= WORD_BYTES_MIN && word.iter().copied().any(is_vowel);
        odd += usize::from(!word.is_empty() && !is_word);
        rest = &rest[capitals + small..];
    }
    odd <= 1
}

/// Counts the words in a value. `None` if it contains anything else.
fn words(value: &[u8]) -> Option<usize> {
    let mut words = 0;
    let mut gap = 0;
    for piece in value.split(|byte| matches!(byte, b'-' | b'_' | b'.' | b'/' | b':' | b' ' | b'\\'))
    {
        if piece.is_empty() {
            // `a::b` and `__a__` are allowed, but not longer rows of signs.
            gap += 1;
            if gap > 2 {
                return None;
            }
            continue;
        }
        gap = 0;
        words += words_of(piece)?;
    }
    Some(words)
}

/// Counts the words in a piece without signs: `apiKey` has two.
fn words_of(piece: &[u8]) -> Option<usize> {
    const CONSONANTS_MAX: usize = 6;
    let digits = piece
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let letters = &piece[..piece.len() - digits];
    if letters.is_empty() {
        return (digits <= 4).then_some(1);
    }
    if digits > 3 {
        return None;
    }
    let inner = letters.iter().filter(|byte| byte.is_ascii_digit()).count();
    if inner > 0 {
        // `k8s`, `i18n`, `2fa`.
        let one_case = !letters.iter().any(u8::is_ascii_uppercase)
            || !letters.iter().any(u8::is_ascii_lowercase);
        return (one_case && letters.len() <= 4 && digits == 0).then_some(1);
    }
    if !letters.iter().all(u8::is_ascii_alphabetic) {
        return None;
    }
    let mut humps = 1;
    let mut hump = 0;
    let mut consonants = 0;
    let mut before = b'A';
    for byte in letters {
        if before.is_ascii_lowercase() && byte.is_ascii_uppercase() {
            humps += 1;
            hump = 0;
            consonants = 0;
        }
        hump += 1;
        consonants = if is_vowel(*byte) { 0 } else { consonants + 1 };
        if hump > WORD_BYTES_MAX || consonants > CONSONANTS_MAX {
            return None;
        }
        before = *byte;
    }
    // Capitals in random places make many short words.
    (humps == 1 || humps * 4 <= letters.len()).then_some(humps)
}

fn is_vowel(byte: u8) -> bool {
    matches!(byte | 0x20, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

/// Returns whether a text contains `word`, which is in lower case, in any case and not as the end
/// of another word.
fn contains_word(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len())
        .enumerate()
        .any(|(place, window)| window.eq_ignore_ascii_case(word) && starts_word(text, place))
}

/// Returns whether a text contains `word`, which is in lower case, in any case.
pub(super) fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len())
        .any(|window| window.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_words_look_like_words() {
        for value in [
            "authentication-scheme",
            "folding-cube-container",
            "process.env.OPENAI_API_KEY",
            "self.settings.token_v2",
            "std::env::var",
            "circleFadeDelay",
            "parseJSONBody",
            "src/capture/redaction",
            "gpt-4o-mini",
            "sha256",
            "i18n-k8s-2fa",
            "2026-11-22",
            "__init__",
            "",
        ] {
            assert!(is_worded(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn random_text_does_not_look_like_words() {
        for value in [
            "abcdefghijklmnop",
            "abc-._~+/defghijk",
            "mF_9.B5f-4.1JqM",
            "dXNlcjpwYXNz",
            "a1b2c3d4e5f6",
            "12345678",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCY",
            "P@ssword",
            "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
            "hQkWzTnVbXcRtPlMsDfG",
        ] {
            assert!(!is_worded(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn plain_words_exclude_numbers_and_sequences_of_letters() {
        for value in [
            "authentication-scheme",
            "folding-cube-container",
            "chasing-dots-animation-wrapper",
            "circleFadeDelay",
            "your-bot-token-here",
            "configuration_value_reader",
            "understood",
        ] {
            assert!(is_plain_words(value.as_bytes()), "{value}");
        }
        for value in [
            "secret-key-value-123",
            "abcd_efgh-ijkl_mnop",
            "a_b-c_d-e_f-g_h-i_j",
            "aaaaaaaa-aaaaaaaa",
            "qwerty-asdfgh",
            "ABCDEFGH",
            "mF_9.B5f-4.1JqM",
            "hQkWzTnVbXcRtPlMsDfG",
            "SmFgooqjpbgmLKEuT",
            "aABNoaxkNXVfEZBLsaMJ",
            "CLPDSSATntjeXldg",
            "OvjVnuyUPegcQSQdbycO",
        ] {
            assert!(!is_plain_words(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn random_letters_are_hardly_ever_plain_words() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut letter = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let place = usize::try_from(state >> 33).unwrap() % 52;
            b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[place]
        };
        let mut kept = 0;
        for length in (16..=48).cycle().take(33_000) {
            let value: Vec<u8> = (0..length).map(|_| letter()).collect();
            kept += usize::from(is_plain_words(&value));
        }
        assert!(kept <= 33, "{kept} of 33,000");
    }

    #[test]
    fn a_name_that_is_accessed_or_called_looks_like_code() {
        for (value, goes_on) in [
            ("settings.openai_api_key", false),
            ("self.session.token_v2", false),
            ("settings.openai_api_key.", false),
            ("load_token_v2", true),
            ("loadToken", true),
        ] {
            assert!(is_code(value.as_bytes(), goes_on), "{value}");
        }
        for (value, goes_on) in [
            ("load_token", false),
            ("load_token.", false),
            ("my-secret-key", true),
            ("abcdefghijklmnop", true),
            ("abcd.efgh.ijkl.mnop", false),
            ("mF_9.B5f-4.1JqM", false),
            ("a..b", false),
            ("", true),
        ] {
            assert!(!is_code(value.as_bytes(), goes_on), "{value}");
        }
    }

    #[test]
    fn variables_templates_and_fillers_are_placeholders() {
        for value in [
            "$TOKEN",
            "${TOKEN}",
            "${{ secrets.TOKEN }}",
            "$(pass show x)",
            "{{ token }}",
            "{token}",
            "<your token>",
            "[TOKEN]",
            "%TOKEN%",
            "%s",
            "process.env.TOKEN",
            "your-api-key",
            "YOUR_TOKEN_1234567",
            "xxxxxxxx",
            "sk-XXXXXXXXXXXX",
            "abc...",
            "****",
            "changeme",
            "undefined",
        ] {
            assert!(is_stand_in(value.as_bytes()), "{value}");
        }
        for value in [
            "hunter2",
            "$ecr3t!",
            "abcdefgh",
            "x",
            "P@ssw0rd",
            "yourselves",
        ] {
            assert!(!is_stand_in(value.as_bytes()), "{value}");
        }
    }
}
