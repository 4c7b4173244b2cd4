//! External text, made visible.

use std::fmt::Write as _;

use svc_model::json::Text;

/// Returns whether a character of an external text is not shown as itself: it controls a terminal,
/// breaks a line, changes the direction of the text around it, or is invisible, so that it could say
/// something to a model that no person sees. Every surface for people and models escapes these.
///
/// The selectors of text and emoji style are shown: they follow many ordinary symbols.
pub const fn is_hidden(character: char) -> bool {
    matches!(character,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}'
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// The bytes of a lone surrogate in generalised UTF-8.
const SURROGATE_BYTES: usize = 3;

/// Returns a captured text, which may have several lines. Lone surrogates are escaped. Each other
/// character except line breaks and tabs is added by `push`, which escapes what its surface must
/// not show.
pub(crate) fn escaped(text: &Text, push: impl Fn(char, &mut String)) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text.as_bytes();
    loop {
        let whole = match str::from_utf8(rest) {
            Ok(whole) => whole,
            Err(error) => str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default(),
        };
        for character in whole.chars() {
            match character {
                '\n' | '\t' => escaped.push(character),
                other => push(other, &mut escaped),
            }
        }
        let Some(surrogate) = rest[whole.len()..].first_chunk::<SURROGATE_BYTES>() else {
            return escaped;
        };
        let [_, middle, last] = surrogate.map(u16::from);
        let unit = 0xd000 | (middle & 0x3f) << 6 | last & 0x3f;
        write!(escaped, "\\u{unit:04x}").expect("a string takes everything");
        rest = &rest[whole.len() + SURROGATE_BYTES..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_or_is_invisible_is_not_shown_as_itself() {
        for (first, last, what) in [
            (0x00, 0x1f, "control characters"),
            (0x7f, 0x9f, "control characters"),
            (0xad, 0xad, "the soft hyphen"),
            (0x61c, 0x61c, "the mark of Arabic letters"),
            (0x180b, 0x180f, "Mongolian selectors"),
            (
                0x200b,
                0x200f,
                "zero-width characters and marks of direction",
            ),
            (0x2028, 0x2029, "line separators"),
            (0x202a, 0x202e, "embeddings and overrides"),
            (0x2060, 0x2064, "invisible operators"),
            (0x2066, 0x2069, "isolates"),
            (0x3164, 0x3164, "a filler"),
            (0xfe00, 0xfe0d, "variation selectors"),
            (0xfeff, 0xfeff, "the byte order mark"),
            (0xfff9, 0xfffb, "annotations"),
            (0x1d173, 0x1d17a, "musical control characters"),
            (0xe0000, 0xe007f, "tag letters"),
            (0xe0100, 0xe01ef, "more variation selectors"),
        ] {
            for code in first..=last {
                let character = char::from_u32(code).unwrap();
                assert!(is_hidden(character), "{what}: {code:x}");
            }
        }
        for shown in "a é\u{a0}中ا🙂⚠\u{fe0f}\u{2010}\u{202f}\u{fffd}\u{10ffff}".chars() {
            assert!(!is_hidden(shown), "{:x}", u32::from(shown));
        }
    }
}
