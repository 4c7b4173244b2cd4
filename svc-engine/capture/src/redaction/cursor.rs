//! Reads a text forwards, byte by byte.

/// A place in a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'t> {
    pub(super) text: &'t [u8],
    pub(super) at: usize,
}

/// A quote that opens or closes a string, with the backslashes that JSON within JSON puts before
/// it: none, one, three or seven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quote {
    pub(super) mark: u8,
    pub(super) backslashes: usize,
}

/// Returns whether a byte may stand in a token of a header.
pub(super) const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/')
}

/// Returns whether a byte is a blank.
pub(super) const fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

/// Returns whether a byte may stand in a word.
pub(super) const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns whether the byte before `start`, if there is one, satisfies `test`.
pub(super) fn preceded_by(text: &[u8], start: usize, test: impl Fn(u8) -> bool) -> bool {
    start > 0 && test(text[start - 1])
}

/// Returns whether a word starts at `start`. The letter of an escape sequence before it is not part
/// of the word: in JSON within a text, a line break is written `\n`.
pub(super) fn starts_word(text: &[u8], start: usize) -> bool {
    match &text[..start] {
        [.., b'\\', b'n' | b't' | b'r' | b'b' | b'f'] => true,
        before => !before.last().is_some_and(|byte| is_word(*byte)),
    }
}

impl<'t> Cursor<'t> {
    pub(super) const fn new(text: &'t [u8], at: usize) -> Self {
        Self { text, at }
    }

    /// Returns the next byte.
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Skips the bytes that satisfy `test`, and returns how many there were.
    pub(super) fn run(&mut self, test: impl Fn(u8) -> bool) -> usize {
        let rest = &self.text[self.at..];
        let length = rest
            .iter()
            .position(|byte| !test(*byte))
            .unwrap_or(rest.len());
        self.at += length;
        length
    }

    /// Skips blanks, if there are any.
    pub(super) fn blanks(&mut self) {
        self.run(is_blank);
    }

    /// Skips blanks, including those that JSON within JSON writes as escapes.
    pub(super) fn breaks(&mut self) {
        loop {
            self.blanks();
            let mut ahead = *self;
            if ahead.run(|byte| byte == b'\\') == 0
                || ahead
                    .one(|byte| matches!(byte, b'n' | b'r' | b't'))
                    .is_none()
            {
                return;
            }
            *self = ahead;
        }
    }

    /// Skips at least one blank or tab. In a URL, and in a variable with a list of headers, a blank
    /// is `%20`.
    pub(super) fn gap(&mut self) -> Option<()> {
        let start = self.at;
        while self.one(|byte| matches!(byte, b' ' | b'\t')).is_some() || self.word(b"%20").is_some()
        {
        }
        (self.at > start).then_some(())
    }

    /// Reads one byte, which must satisfy `test`.
    pub(super) fn one(&mut self, test: impl Fn(u8) -> bool) -> Option<u8> {
        let byte = self.peek().filter(|byte| test(*byte))?;
        self.at += 1;
        Some(byte)
    }

    /// Reads a word, ignoring case.
    pub(super) fn word(&mut self, word: &[u8]) -> Option<()> {
        let found = self.text.get(self.at..self.at + word.len())?;
        found
            .eq_ignore_ascii_case(word)
            .then(|| self.at += word.len())
    }

    /// Reads a token of at least `shortest` bytes and the padding after it.
    pub(super) fn token(&mut self, shortest: usize) -> Option<()> {
        (self.run(is_token) >= shortest).then(|| {
            self.run(|byte| byte == b'=');
        })
    }

    /// Returns whether what was read continues as a call, an index or a template.
    pub(super) fn goes_on(&self) -> bool {
        self.peek()
            .is_some_and(|byte| matches!(byte, b'(' | b'[' | b'{' | b'$'))
    }

    /// Reads a quote.
    pub(super) fn quote(&mut self) -> Option<Quote> {
        let mut ahead = *self;
        let backslashes = ahead.run(|byte| byte == b'\\');
        let mark = ahead.one(|byte| matches!(byte, b'"' | b'\''))?;
        (backslashes + 1).is_power_of_two().then(|| {
            *self = ahead;
            Quote { mark, backslashes }
        })
    }

    /// Reads the quote that closes what `open` opened.
    pub(super) fn same_quote(&mut self, open: Quote) -> Option<()> {
        (self.quote()? == open).then_some(())
    }

    /// Reads a string and its closing quote, and returns where its content ends. An unclosed string
    /// ends with the text; a string cannot contain a line break.
    pub(super) fn string(&mut self, open: Quote) -> Option<usize> {
        loop {
            self.run(|byte| byte != open.mark && !matches!(byte, b'\n' | b'\r' | b'\\'));
            let backslashes = self.run(|byte| byte == b'\\');
            match self.peek() {
                None => return Some(self.at),
                Some(b'\n' | b'\r') => return None,
                Some(byte) if byte == open.mark => {
                    self.at += 1;
                    if let Some(belonging) = open.closed_after(backslashes) {
                        return Some(self.at - 1 - belonging);
                    }
                }
                Some(_) => {}
            }
        }
    }
}

impl Quote {
    /// Returns the length of the quote in bytes.
    pub(super) const fn length(self) -> usize {
        self.backslashes + 1
    }

    /// Returns whether a text ends with exactly this quote.
    pub(super) fn ends(self, text: &[u8]) -> bool {
        text.split_last().is_some_and(|(mark, before)| {
            let backslashes = before
                .iter()
                .rev()
                .take_while(|byte| **byte == b'\\')
                .count();
            *mark == self.mark && backslashes == self.backslashes
        })
    }

    /// Returns whether a quotation mark after this many backslashes closes the string or one around
    /// it. If so, returns how many of the backslashes belong to the mark.
    fn closed_after(self, backslashes: usize) -> Option<usize> {
        let mut left = backslashes;
        let mut belonging = 0;
        // Each round undoes the escapes of one surrounding string.
        while left % 2 == 1 {
            if belonging == self.backslashes {
                return None;
            }
            left /= 2;
            belonging = belonging * 2 + 1;
        }
        Some(belonging)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str) -> Option<&str> {
        let mut cursor = Cursor::new(text.as_bytes(), 0);
        let open = cursor.quote()?;
        let start = cursor.at;
        cursor.string(open).map(|end| &text[start..end])
    }

    #[test]
    fn a_string_ends_at_its_matching_quote() {
        for (text, expected) in [
            (r#""abc" d"#, Some("abc")),
            (r#"'a"c' d"#, Some(r#"a"c"#)),
            (r#""a\"c" d"#, Some(r#"a\"c"#)),
            (r#""a\\" d"#, Some(r"a\\")),
            (r#""""#, Some("")),
            (r#""open"#, Some("open")),
            (r#""open\"#, Some(r"open\")),
            ("\"line\nbreak\"", None),
            ("\"line\\\nbreak\"", None),
            (r#"\"abc\" d"#, Some("abc")),
            (r#"\"a\\\"c\" d"#, Some(r#"a\\\"c"#)),
            (r#"\"a\\\\\" d"#, Some(r"a\\\\")),
            (r#"\"abc" d"#, Some("abc")),
            (r#"\\\"abc\\\" d"#, Some("abc")),
            (r#"\\\"a\" d"#, Some("a")),
            (r#"\\"abc""#, None),
        ] {
            assert_eq!(content(text), expected, "{text}");
        }
    }
}
