//! A JSON document inside a string, in one of the spellings that programs write.
//!
//! The arguments of a tool call travel as a string, and their canonical form is the document in
//! that string. If a common writer made the string, the string need not be stored with the
//! document.

use svc_model::json::{Json, Object, Text};

/// How a program writes a document: with or without a blank after commas and colons, and with
/// characters beyond ASCII escaped or as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spelling {
    blanks: bool,
    escaped: bool,
}

impl Spelling {
    /// All spellings. Their positions are stored.
    pub(crate) const ALL: [Self; 4] = [
        Self::new(false, true),
        Self::new(false, false),
        Self::new(true, true),
        Self::new(true, false),
    ];

    const fn new(blanks: bool, escaped: bool) -> Self {
        Self { blanks, escaped }
    }

    /// Returns the position of the spelling that turns a document into `text`.
    pub(crate) fn of(document: &Json, text: &[u8]) -> Option<usize> {
        Self::position(text, |spelling, sink| spelling.put(document, sink))
    }

    /// Returns the position of the spelling that turns an object into `text`.
    pub(crate) fn of_object(document: &Object, text: &[u8]) -> Option<usize> {
        Self::position(text, |spelling, sink| spelling.object(document, sink))
    }

    fn position(text: &[u8], put: impl Fn(Self, &mut ExpectedText<'_>) -> bool) -> Option<usize> {
        Self::ALL.into_iter().position(|spelling| {
            let mut expected = ExpectedText(text);
            put(spelling, &mut expected) && expected.0.is_empty()
        })
    }

    /// Appends a document.
    pub(crate) fn write(self, document: &Json, out: &mut Vec<u8>) {
        self.put(document, out);
    }

    /// Appends an object.
    pub(crate) fn write_object(self, document: &Object, out: &mut Vec<u8>) {
        self.object(document, out);
    }

    /// Puts the document into a sink and returns whether it took all of it.
    fn put(self, document: &Json, sink: &mut impl Sink) -> bool {
        match document {
            Json::Null => sink.take(b"null"),
            Json::Bool(true) => sink.take(b"true"),
            Json::Bool(false) => sink.take(b"false"),
            Json::Number(number) => sink.take(number.as_str().as_bytes()),
            Json::String(text) => self.string(text, sink),
            Json::Array(items) => {
                sink.take(b"[")
                    && items
                        .iter()
                        .enumerate()
                        .all(|(position, item)| self.comma(position, sink) && self.put(item, sink))
                    && sink.take(b"]")
            }
            Json::Object(members) => self.object(members, sink),
        }
    }

    fn object(self, members: &Object, sink: &mut impl Sink) -> bool {
        let colon: &[u8] = if self.blanks { b": " } else { b":" };
        sink.take(b"{")
            && members.iter().enumerate().all(|(position, (name, value))| {
                self.comma(position, sink)
                    && self.string(name, sink)
                    && sink.take(colon)
                    && self.put(value, sink)
            })
            && sink.take(b"}")
    }

    fn comma(self, position: usize, sink: &mut impl Sink) -> bool {
        match (position, self.blanks) {
            (0, _) => true,
            (_, true) => sink.take(b", "),
            (_, false) => sink.take(b","),
        }
    }

    fn string(self, text: &Text, sink: &mut impl Sink) -> bool {
        if self.escaped {
            let mut escaped = Vec::with_capacity(text.len() + 16);
            text.write_escaped(&mut escaped);
            return sink.take(&escaped);
        }
        let bytes = text.as_bytes();
        let mut start = 0;
        let mut all = sink.take(b"\"");
        for (place, byte) in bytes.iter().enumerate() {
            if !all {
                return false;
            }
            let short = match byte {
                b'"' | b'\\' => *byte,
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                0x08 => b'b',
                0x0c => b'f',
                0..0x20 => b'u',
                _ => continue,
            };
            all = sink.take(&bytes[start..place]) && sink.take(&[b'\\', short]);
            if short == b'u' {
                all = all && sink.take(format!("{byte:04x}").as_bytes());
            }
            start = place + 1;
        }
        all && sink.take(&bytes[start..]) && sink.take(b"\"")
    }
}

/// Receives a document, piece by piece.
trait Sink {
    /// Takes a piece and returns whether it wants more.
    fn take(&mut self, piece: &[u8]) -> bool;
}

impl Sink for Vec<u8> {
    fn take(&mut self, piece: &[u8]) -> bool {
        self.extend_from_slice(piece);
        true
    }
}

/// The rest of the expected text. A different text is noticed at its first piece.
struct ExpectedText<'t>(&'t [u8]);

impl Sink for ExpectedText<'_> {
    fn take(&mut self, piece: &[u8]) -> bool {
        self.0.strip_prefix(piece).is_some_and(|rest| {
            self.0 = rest;
            true
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_spelling_of_a_document_is_recognised_and_reproduced() {
        const SPELLINGS: [&str; 4] = [
            r#"{"a":[1.10,{"b":"\u00e9\n\u0001\"\\"}],"c":null,"d":{}}"#,
            r#"{"a":[1.10,{"b":"é\n\u0001\"\\"}],"c":null,"d":{}}"#,
            r#"{"a": [1.10, {"b": "\u00e9\n\u0001\"\\"}], "c": null, "d": {}}"#,
            r#"{"a": [1.10, {"b": "é\n\u0001\"\\"}], "c": null, "d": {}}"#,
        ];
        for (place, text) in SPELLINGS.iter().enumerate() {
            let document = Json::parse(text.as_bytes()).unwrap();
            assert_eq!(Spelling::of(&document, text.as_bytes()), Some(place));
            let mut written = Vec::new();
            Spelling::ALL[place].write(&document, &mut written);
            assert_eq!(written, text.as_bytes());
        }
    }

    #[test]
    fn an_unusual_spelling_is_not_recognised() {
        let document = Json::parse(br#"{"a":1}"#).unwrap();
        for text in [
            r#"{ "a":1}"#,
            r#"{"a" : 1}"#,
            r#"{"a":1} "#,
            r#"{"a":2}"#,
            "",
        ] {
            assert_eq!(Spelling::of(&document, text.as_bytes()), None, "{text}");
        }
    }
}
