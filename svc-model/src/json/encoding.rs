//! Decodes the bytes of a document into text for the parser.
//!
//! The parser works on `&str`, which cannot contain a surrogate. So a surrogate that arrives
//! encoded (three bytes of UTF-8, a unit of UTF-16 or UTF-32) is replaced by the escape `\udxxx`
//! with the same meaning. That is right wherever a surrogate is allowed: inside a string, and not
//! behind a backslash.

use std::borrow::Cow;

use super::error::{ParseError, ParseErrorKind};
use super::text::{SURROGATE_LEN, leading_surrogate};

/// Decodes UTF-8, UTF-16 or UTF-32, by byte order mark or by the NULs among the first four bytes,
/// which are ASCII in every JSON document.
pub(super) fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, ParseError> {
    match *bytes {
        [0xef, 0xbb, 0xbf, ref rest @ ..] => utf8(rest),
        [0xff, 0xfe, 0, 0, ref rest @ ..] => utf32(rest, u32::from_le_bytes),
        [0, 0, 0xfe, 0xff, ref rest @ ..] => utf32(rest, u32::from_be_bytes),
        [0xff, 0xfe, ref rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, ref rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0, 0, _, _, ..] => utf32(bytes, u32::from_be_bytes),
        [_, 0, 0, 0, ..] => utf32(bytes, u32::from_le_bytes),
        [0, _, _, _, ..] | [0, _] => utf16(bytes, u16::from_be_bytes),
        [_, 0, _, _, ..] | [_, 0] => utf16(bytes, u16::from_le_bytes),
        _ => utf8(bytes),
    }
}

/// Returns one or several documents in UTF-8 if they are in another encoding; nothing if the bytes
/// are UTF-8 already, or are not text.
pub(crate) fn in_utf8(bytes: &[u8]) -> Option<String> {
    match decode(bytes) {
        Ok(Cow::Owned(text)) => Some(text),
        Ok(Cow::Borrowed(_)) | Err(_) => None,
    }
}

fn utf8(bytes: &[u8]) -> Result<Cow<'_, str>, ParseError> {
    let mut rest = bytes;
    let mut decoded = String::new();
    loop {
        match str::from_utf8(rest) {
            Ok(whole) if decoded.is_empty() => return Ok(Cow::Borrowed(whole)),
            Ok(whole) => {
                decoded.push_str(whole);
                return Ok(Cow::Owned(decoded));
            }
            Err(error) => {
                let (whole, broken) = rest.split_at(error.valid_up_to());
                decoded.push_str(str::from_utf8(whole).expect("it was valid up to here"));
                let unit = leading_surrogate(broken).ok_or_else(|| malformed(&decoded))?;
                push_escaped(unit.into(), &mut decoded)?;
                rest = &broken[SURROGATE_LEN..];
            }
        }
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<Cow<'_, str>, ParseError> {
    let (units, rest) = bytes.as_chunks();
    let mut decoded = String::with_capacity(bytes.len());
    for char in char::decode_utf16(units.iter().copied().map(unit)) {
        match char {
            Ok(char) => decoded.push(char),
            Err(lone) => push_escaped(lone.unpaired_surrogate().into(), &mut decoded)?,
        }
    }
    if rest.is_empty() {
        Ok(Cow::Owned(decoded))
    } else {
        Err(malformed(&decoded))
    }
}

fn utf32(bytes: &[u8], unit: fn([u8; 4]) -> u32) -> Result<Cow<'_, str>, ParseError> {
    let (units, rest) = bytes.as_chunks();
    let mut decoded = String::with_capacity(bytes.len() / 2);
    for unit in units.iter().copied().map(unit) {
        match char::from_u32(unit) {
            Some(char) => decoded.push(char),
            None => push_escaped(unit, &mut decoded)?,
        }
    }
    if rest.is_empty() {
        Ok(Cow::Owned(decoded))
    } else {
        Err(malformed(&decoded))
    }
}

fn push_escaped(unit: u32, decoded: &mut String) -> Result<(), ParseError> {
    let backslashes = decoded
        .bytes()
        .rev()
        .take_while(|&byte| byte == b'\\')
        .count();
    if !(0xd800..0xe000).contains(&unit) || backslashes % 2 == 1 {
        return Err(malformed(decoded));
    }
    // The surrogates are the code points whose hexadecimal form has four digits and begins with d8
    // to df.
    decoded.push_str("\\u");
    for shift in [12, 8, 4, 0] {
        decoded.extend(char::from_digit(unit >> shift & 0xf, 16));
    }
    Ok(())
}

fn malformed(decoded: &str) -> ParseError {
    ParseError {
        offset: decoded.len(),
        kind: ParseErrorKind::Encoding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16_bytes(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    fn utf32_bytes(text: &str, bytes: fn(u32) -> [u8; 4]) -> Vec<u8> {
        text.chars().map(u32::from).flat_map(bytes).collect()
    }

    #[test]
    fn every_encoding_is_recognised_with_and_without_its_mark() {
        for text in ["{\"a\":\"é🙂\"}", "[]", "\"é\"", "10", "7", "[1,2]"] {
            let encode = |text: &str| {
                vec![
                    utf16_bytes(text, u16::to_le_bytes),
                    utf16_bytes(text, u16::to_be_bytes),
                    utf32_bytes(text, u32::to_le_bytes),
                    utf32_bytes(text, u32::to_be_bytes),
                    text.as_bytes().to_vec(),
                ]
            };
            for bytes in encode(text)
                .into_iter()
                .chain(encode(&format!("\u{feff}{text}")))
            {
                assert_eq!(decode(&bytes).unwrap(), text, "{bytes:x?}");
            }
        }
        assert_eq!(decode(b"").unwrap(), "");
    }

    #[test]
    fn valid_utf8_is_not_copied() {
        assert!(matches!(
            decode("\u{feff}\"é\"".as_bytes()),
            Ok(Cow::Borrowed("\"é\""))
        ));
    }

    #[test]
    fn encoded_surrogates_become_escapes() {
        assert_eq!(decode(b"\"\xed\xa0\x80\"").unwrap(), r#""\ud800""#);
        assert_eq!(
            decode(b"\"a\xed\xa0\xbd\xed\xb8\x80\xc3\xa9\"").unwrap(),
            r#""a\ud83d\ude00é""#
        );
        assert_eq!(decode(b"\"\\\\\xed\xbf\xbf\"").unwrap(), r#""\\\udfff""#);
        assert_eq!(decode(b"\"\0\x3d\xd8\"\0").unwrap(), r#""\ud83d""#);
        assert_eq!(
            decode(b"\0\0\0\"\0\0\xd8\x3d\0\0\0\"").unwrap(),
            r#""\ud83d""#
        );
    }

    #[test]
    fn malformed_text_is_reported_with_its_offset() {
        let malformed = [
            (&b"\"\xff\""[..], 1),
            (b"\"ab\xc3\"", 3),
            (b"\"\xc0\x80\"", 1),
            (b"\"\xed\xa0", 1),
            (b"\"\\\xed\xa0\x80\"", 2),
            (b"[\0]\0\0", 2),
            (b"[\0\0\0]\0\0", 1),
            (b"[\0\0\0\0\0\x11\0", 1),
        ];
        for (bytes, offset) in malformed {
            let expected = ParseError {
                offset,
                kind: ParseErrorKind::Encoding,
            };
            assert_eq!(decode(bytes), Err(expected), "{bytes:x?}");
        }
    }
}
