//! Writes strings in their canonical spelling: ASCII, escaped, in quotes.

use super::word::Word;

/// Appends generalised UTF-8 as an escaped string in quotes.
pub(super) fn string(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut rest = bytes;
    while let Some((word, after)) = Word::split_off(rest) {
        let written = write_word(word, out);
        let done = written == word.len();
        rest = if done {
            after
        } else {
            escape_units(&rest[written as usize..], out)
        };
    }
    out.push(b'"');
}

/// Appends a word up to the first byte that has no short escape, and returns the place of that
/// byte.
fn write_word(word: Word, out: &mut Vec<u8>) -> u32 {
    if let Some(bytes) = word.verbatim() {
        out.extend_from_slice(&bytes);
        return word.len();
    }
    let mut start = 0;
    for at in word.escaped_places() {
        word.push(start..at, out);
        let letter = SHORT_ESCAPE[usize::from(word.byte(at))];
        if letter == 0 {
            return at;
        }
        out.extend_from_slice(&[b'\\', letter]);
        start = at + 1;
    }
    word.push(start..word.len(), out);
    word.len()
}

/// Returns the length of what [`string`] appends.
pub(super) fn string_len(bytes: &[u8]) -> usize {
    2 + bytes
        .iter()
        .map(|&byte| usize::from(WRITTEN_LEN[usize::from(byte)]))
        .sum::<usize>()
}

/// What each byte adds to the length of a string. The first byte of a character adds the whole
/// escape.
static WRITTEN_LEN: [u8; 256] = {
    let mut lens = [1; 256];
    let mut byte = 0;
    while byte < 256 {
        lens[byte] = match byte {
            _ if SHORT_ESCAPE[byte] != 0 => 2,
            0x20..=0x7e => 1,
            0x80..=0xbf => 0,
            0xf0.. => 12,
            _ => 6,
        };
        byte += 1;
    }
    lens
};

/// The letter that represents a byte after a backslash, or 0.
static SHORT_ESCAPE: [u8; 256] = {
    let mut letters = [0; 256];
    letters[0x08] = b'b';
    letters[0x09] = b't';
    letters[0x0a] = b'n';
    letters[0x0c] = b'f';
    letters[0x0d] = b'r';
    letters[0x22] = b'"';
    letters[0x5c] = b'\\';
    letters
};

/// Appends the first character, and those after it that are not ASCII, as `\uXXXX`. Returns the
/// rest.
fn escape_units<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    loop {
        let (code_point, used) = code_point(rest);
        if let Ok(unit) = u16::try_from(code_point) {
            escape_unit(unit, out);
        } else {
            let above = code_point - 0x1_0000;
            escape_unit(0xd800 | low_bits(above >> 10), out);
            escape_unit(0xdc00 | low_bits(above), out);
        }
        rest = &rest[used..];
        if rest.first().is_none_or(u8::is_ascii) {
            return rest;
        }
    }
}

fn low_bits(bits: u32) -> u16 {
    u16::try_from(bits & 0x3ff).expect("ten bits fit")
}

fn escape_unit(unit: u16, out: &mut Vec<u8>) {
    let digit = |shift: u16| b"0123456789abcdef"[usize::from(unit >> shift & 0xf)];
    out.extend_from_slice(&[b'\\', b'u', digit(12), digit(8), digit(4), digit(0)]);
}

/// Returns the first code point, and the number of bytes that it takes. The bytes are well-formed.
fn code_point(bytes: &[u8]) -> (u32, usize) {
    let low = |byte: u8| u32::from(byte & 0x3f);
    match *bytes {
        [a @ 0xc0..0xe0, b, ..] => (u32::from(a & 0x1f) << 6 | low(b), 2),
        [a @ 0xe0..0xf0, b, c, ..] => (u32::from(a & 0xf) << 12 | low(b) << 6 | low(c), 3),
        [a @ 0xf0..=0xff, b, c, d, ..] => (
            u32::from(a & 7) << 18 | low(b) << 12 | low(c) << 6 | low(d),
            4,
        ),
        [a, ..] => (a.into(), 1),
        [] => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        string(text.as_bytes(), &mut out);
        assert_eq!(out.len(), string_len(text.as_bytes()), "{text:?}");
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_character_has_one_spelling() {
        // All code points with a short form, and a sample of the others.
        let code_points = (0..0x3000).chain((0x3000..0x11_0000).step_by(97));
        for char in code_points.filter_map(char::from_u32) {
            let expected = match char {
                '"' => "\\\"".to_owned(),
                '\\' => "\\\\".to_owned(),
                '\u{8}' => "\\b".to_owned(),
                '\u{c}' => "\\f".to_owned(),
                '\n' => "\\n".to_owned(),
                '\r' => "\\r".to_owned(),
                '\t' => "\\t".to_owned(),
                ' '..='~' => char.to_string(),
                _ => char
                    .encode_utf16(&mut [0; 2])
                    .iter()
                    .map(|unit| format!("\\u{unit:04x}"))
                    .collect::<Vec<_>>()
                    .concat(),
            };
            assert_eq!(written(&char.to_string()), format!("\"{expected}\""));
            let padded = format!("{char}ab{char}{char}cdefgh{char}ijklmnopqrst{char}");
            let padded_expected = padded.replace(char, "\u{0}").replace('\u{0}', &expected);
            assert_eq!(written(&padded), format!("\"{padded_expected}\""));
        }
    }
}
