//! Text that looks like a coding agent's work: prose, source code, test output.
//!
//! Storage compresses text and retrieval tokenises it, so it has to behave like the real thing:
//! words of uneven frequency, identifiers made of them, indentation, line breaks, quotes, and a
//! little of other scripts. It compresses about as well as source code. Every few hundred bytes
//! there is a marker of the session (see [`crate::template`]), and at least one in each text, which
//! makes every message of every session distinct.

use std::fmt::{self, Write as _};

use crate::template::{MarkerShape, Source, marker, mix};

/// The bytes between two markers in a text.
const MARKER_EVERY: usize = 300;

/// The bytes between two topic words in a text.
const TOPIC_EVERY: u64 = 400;

#[rustfmt::skip]
const VERBS: &[&str] = &[
    "read", "write", "parse", "render", "load", "store", "merge", "split", "resolve", "collect",
    "append", "flush", "open", "close", "count", "scan", "filter", "group", "order", "compare",
    "encode", "decode", "verify", "apply", "insert", "remove", "update", "select", "commit",
    "revert", "measure", "report", "retry", "cancel", "drain", "build",
];

#[rustfmt::skip]
const NOUNS: &[&str] = &[
    "page", "window", "batch", "record", "buffer", "column", "index", "writer", "reader",
    "session", "request", "reply", "header", "field", "value", "number", "string", "object",
    "member", "array", "table", "query", "filter", "limit", "deadline", "error", "result",
    "status", "client", "server", "handler", "route", "module", "function", "test", "fixture",
    "snapshot", "revision", "branch", "change", "file", "folder", "path", "line", "offset",
    "length", "digest", "message", "part", "history", "model", "option", "default", "version",
    "state", "queue",
];

#[rustfmt::skip]
const PROSE: &[&str] = &[
    "the", "a", "is", "to", "of", "and", "in", "that", "it", "we", "this", "so", "not", "but",
    "when", "then", "there", "with", "for", "by", "first", "second", "last", "next", "same",
    "other", "only", "still", "before", "after", "because", "should", "must", "will", "can",
    "has", "does", "reads", "returns", "fails", "passes", "expects", "holds", "keeps", "drops",
    "starts", "ends", "looks", "seems", "wrong", "right", "empty", "missing", "old", "new",
    "small", "large", "whole", "exact", "half-open", "each", "every", "no", "one", "two", "three",
    "again", "now", "here", "let", "me", "check",
];

/// Words that appear here and there, but never in ordinary text: what an agent would search for.
#[rustfmt::skip]
pub(crate) const TOPICS: &[&str] = &[
    "pager", "cursor", "boundary", "overlap", "quorum", "backpressure", "tombstone", "checkpoint",
    "watermark", "sharding", "leapsecond", "endianness", "mutex", "semaphore", "rebase", "bisect",
    "flamegraph", "allocator", "arena", "vtable", "coroutine", "heartbeat", "failover",
    "idempotent", "debounce", "throttle", "histogram", "percentile", "hydration", "tokenizer",
    "lexer", "bytecode", "linker", "prefetch", "pipelining", "keepalive", "handshake",
    "certificate", "timezone", "locale",
];

#[rustfmt::skip]
const ASIDES: &[&str] = &[
    "naïve", "café", "→", "“exact”", "≤", "文件已保存", "✓", "🚀",
];

#[rustfmt::skip]
const EXTENSIONS: &[&str] = &[
    "rs", "py", "ts", "go", "sql",
];

/// Appends what `format_args!` describes.
pub(crate) fn put(text: &mut String, arguments: fmt::Arguments<'_>) {
    text.write_fmt(arguments)
        .expect("writing to a string does not fail");
}

/// A small, seeded source of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.bits() % limit
    }

    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low)
    }

    /// Returns any word of a list, all with the same probability.
    fn any(&mut self, words: &'static [&'static str]) -> &'static str {
        words[self.below(words.len() as u64) as usize]
    }

    /// Returns a word of a list. The first ones are more frequent than the last, as in any
    /// language.
    fn pick(&mut self, words: &'static [&'static str]) -> &'static str {
        let count = words.len() as u64;
        let index = self.below(count).min(self.below(count));
        words[index as usize]
    }
}

/// Writes texts. No two of its texts contain the same marker.
#[derive(Clone, Debug)]
pub(crate) struct Author {
    pub(crate) random: Random,
    salt: u32,
    until_marker: usize,
}

impl Author {
    /// Creates an author whose markers are numbered from `first_word`.
    pub(crate) fn new(seed: u64, first_word: u32) -> Self {
        Self {
            random: Random::new(seed),
            salt: first_word,
            until_marker: 0,
        }
    }

    /// Returns a marker that no other text of this author has.
    pub(crate) fn word(&mut self) -> String {
        self.salt += 1;
        marker(Source::Session, MarkerShape::Word, self.salt)
    }

    /// Returns `call_` and a word, which is how tool calls are named.
    pub(crate) fn tool_call_id(&mut self) -> String {
        format!("call_{}", self.word())
    }

    pub(crate) fn path(&mut self) -> String {
        format!(
            "src/{}/{}_{}.{}",
            self.random.pick(NOUNS),
            self.random.pick(VERBS),
            self.random.pick(NOUNS),
            self.random.pick(EXTENSIONS)
        )
    }

    /// Returns sentences of about this many bytes.
    pub(crate) fn prose(&mut self, bytes: usize) -> String {
        self.text(bytes, |author, text| {
            let words = author.random.between(5, 16);
            for index in 0..words {
                if index > 0 {
                    text.push(' ');
                }
                match author.random.below(12) {
                    0 => author.identifier(text),
                    1 => text.push_str(author.random.pick(VERBS)),
                    2 | 3 => text.push_str(author.random.pick(NOUNS)),
                    _ => text.push_str(author.random.pick(PROSE)),
                }
            }
            text.push_str(if author.random.below(6) == 0 {
                ".\n\n"
            } else {
                ". "
            });
        })
    }

    /// Returns source code of about this many bytes.
    pub(crate) fn code(&mut self, bytes: usize) -> String {
        let mut depth = 0;
        self.text(bytes, |author, text| author.code_line(text, &mut depth))
    }

    /// Returns a test run's output of about this many bytes.
    pub(crate) fn output(&mut self, bytes: usize) -> String {
        self.text(bytes, |author, text| {
            match author.random.below(5) {
                0 => {
                    text.push_str("   at ");
                    text.push_str(&author.path());
                    put(
                        text,
                        format_args!(":{}:{}", author.random.below(900), author.random.below(80)),
                    );
                }
                1 => {
                    text.push_str("error[E");
                    put(
                        text,
                        format_args!("{:04}]: expected `", author.random.below(800)),
                    );
                    author.identifier(text);
                    text.push_str("`, found `");
                    author.identifier(text);
                    text.push('`');
                }
                _ => {
                    text.push_str("test ");
                    text.push_str(author.random.pick(NOUNS));
                    text.push_str("::");
                    author.identifier(text);
                    text.push_str(if author.random.below(9) == 0 {
                        " ... FAILED"
                    } else {
                        " ... ok"
                    });
                    put(
                        text,
                        format_args!(
                            " ({}.{:03}s)",
                            author.random.below(3),
                            author.random.below(1_000)
                        ),
                    );
                }
            }
            text.push('\n');
        })
    }

    fn text(&mut self, bytes: usize, mut line: impl FnMut(&mut Self, &mut String)) -> String {
        // Every text has random numbers of its own, so a longer text continues a shorter one.
        let own = Random::new(self.random.bits());
        let outer = std::mem::replace(&mut self.random, own);
        let mut text = String::with_capacity(bytes + 200);
        self.until_marker = 0;
        let mut until_topic = self.random.below(TOPIC_EVERY * 2);
        while text.len() < bytes || text.is_empty() {
            let before = text.len();
            if self.until_marker == 0 {
                self.until_marker = MARKER_EVERY;
                let word = self.word();
                put(&mut text, format_args!("# revision {word} "));
            }
            line(self, &mut text);
            let grown = text.len() - before;
            self.until_marker = self.until_marker.saturating_sub(grown);
            if let Some(rest) = until_topic.checked_sub(grown as u64) {
                until_topic = rest;
            } else {
                until_topic = self.random.below(TOPIC_EVERY * 2);
                text.push_str(self.random.any(TOPICS));
                text.push(' ');
            }
            if self.random.below(40) == 0 {
                text.push_str(self.random.pick(ASIDES));
                text.push(' ');
            }
        }
        self.random = outer;
        text
    }

    fn identifier(&mut self, text: &mut String) {
        text.push_str(self.random.pick(VERBS));
        text.push('_');
        text.push_str(self.random.pick(NOUNS));
        if self.random.below(4) == 0 {
            text.push('_');
            text.push_str(self.random.pick(NOUNS));
        }
    }

    fn type_name(&mut self, text: &mut String) {
        for _ in 0..self.random.between(1, 3) {
            let noun = self.random.pick(NOUNS);
            text.push(char::from(noun.as_bytes()[0].to_ascii_uppercase()));
            text.push_str(&noun[1..]);
        }
    }

    fn code_line(&mut self, text: &mut String, depth: &mut usize) {
        let kind = self.random.below(10);
        if kind == 0 && *depth > 0 {
            *depth -= 1;
        }
        text.extend(std::iter::repeat_n("    ", *depth));
        match kind {
            0 => text.push('}'),
            1 => {
                text.push_str("pub fn ");
                self.identifier(text);
                text.push('(');
                text.push_str(self.random.pick(NOUNS));
                text.push_str(": &");
                self.type_name(text);
                text.push_str(") -> Result<");
                self.type_name(text);
                text.push_str(", Error> {");
                *depth = (*depth + 1).min(5);
            }
            2 => {
                text.push_str("if ");
                text.push_str(self.random.pick(NOUNS));
                text.push('.');
                self.identifier(text);
                put(text, format_args!("() > {} {{", self.random.below(4_096)));
                *depth = (*depth + 1).min(5);
            }
            3 => {
                text.push_str("// ");
                for _ in 0..self.random.between(4, 12) {
                    text.push_str(self.random.pick(PROSE));
                    text.push(' ');
                }
            }
            4 => {
                text.push_str("return Err(Error::");
                self.type_name(text);
                text.push_str("(\"");
                text.push_str(self.random.pick(NOUNS));
                text.push_str(" is \\\"");
                text.push_str(self.random.pick(NOUNS));
                text.push_str("\\\"\"));");
            }
            5 => {
                text.push_str("assert_eq!(");
                self.identifier(text);
                put(
                    text,
                    format_args!(
                        "(&{}), {});",
                        self.random.pick(NOUNS),
                        self.random.below(100_000)
                    ),
                );
            }
            _ => {
                text.push_str("let ");
                self.identifier(text);
                text.push_str(" = self.");
                text.push_str(self.random.pick(NOUNS));
                text.push('.');
                text.push_str(self.random.pick(VERBS));
                text.push('(');
                text.push_str(self.random.pick(NOUNS));
                text.push_str(", ");
                self.identifier(text);
                text.push_str(")?;");
            }
        }
        text.push('\n');
    }
}
