//! Parses bytes into a value, in one pass with an explicit stack.

use std::mem;

use super::encoding;
use super::error::{ParseError, ParseErrorKind};
use super::memory::{self, NodeBudget, OverBudget};
use super::number::{self, LexemeError, Number};
use super::object::{self, Object};
use super::text::{Text, TextBuilder};
use super::value::Json;
use super::word::Word;

/// The maximum nesting depth of arrays and objects.
pub const DEPTH_MAX: usize = 512;

impl Json {
    /// Reads a whole document: one value with nothing but white space around it.
    ///
    /// Beyond the standard, it accepts `NaN`, `Infinity` and `-Infinity`, lone surrogates, a byte
    /// order mark, UTF-16 and UTF-32. If a member is repeated, the last value counts, at the first
    /// position.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        parsed(bytes, DEPTH_MAX, &NodeBudget::unlimited())
    }

    /// Reads a whole document, as [`Json::parse`] does, within a budget of memory. The memory of
    /// its values is taken from the budget. A document that is refused takes nothing.
    pub fn parse_within(bytes: &[u8], budget: &NodeBudget) -> Result<Self, ParseError> {
        let left = budget.left();
        parsed(bytes, DEPTH_MAX, budget).inspect_err(|_| budget.give_back(left - budget.left()))
    }

    /// Reads a document that contains another one, so it may be nested `depth_max` deep.
    pub(super) fn parse_nested(
        bytes: &[u8],
        depth_max: usize,
        budget: &NodeBudget,
    ) -> Result<Self, ParseError> {
        parsed(bytes, depth_max, budget)
    }
}

fn parsed(bytes: &[u8], depth_max: usize, budget: &NodeBudget) -> Result<Json, ParseError> {
    let input = &*encoding::decode(bytes)?;
    let parser = Parser {
        input,
        depth_max,
        budget,
        at: 0,
        open: Vec::new(),
        items: Vec::new(),
        members: Vec::new(),
        escaped: TextBuilder::default(),
    };
    parser.document()
}

struct Parser<'a> {
    input: &'a str,
    depth_max: usize,
    budget: &'a NodeBudget,
    /// Always at the boundary of a character.
    at: usize,
    /// The arrays and objects that are open, outermost first.
    open: Vec<Container>,
    /// The elements so far of all open arrays.
    items: Vec<Json>,
    /// The members so far of all open objects. The last member of each is `null` until its value
    /// has been read.
    members: Vec<(Text, Json)>,
    escaped: TextBuilder,
}

/// An open container, and where its content begins in the lists of all open ones.
#[derive(Clone, Copy)]
enum Container {
    Array(usize),
    Object(usize),
}

impl<'a> Parser<'a> {
    fn document(mut self) -> Result<Json, ParseError> {
        loop {
            if let Some(value) = self.value()?
                && let Some(document) = self.place(value)?
            {
                self.skip_white_space();
                return if self.at == self.input.len() {
                    self.budget
                        .give_back(room(&self.items) + room(&self.members));
                    Ok(document)
                } else {
                    Err(self.error(ParseErrorKind::TrailingData))
                };
            }
        }
    }

    /// Reads a scalar or an empty container; `None` if a container was opened instead.
    fn value(&mut self) -> Result<Option<Json>, ParseError> {
        self.skip_white_space();
        Ok(Some(match self.peek()? {
            b'"' => Json::String(self.string()?),
            b'{' => return self.open_object(),
            b'[' => return self.open_array(),
            b'-' | b'0'..=b'9' | b'N' | b'I' => Json::Number(self.number()?),
            b't' => self.literal("true", Json::Bool(true))?,
            b'f' => self.literal("false", Json::Bool(false))?,
            b'n' => self.literal("null", Json::Null)?,
            _ => return Err(self.error(ParseErrorKind::ExpectedValue)),
        }))
    }

    /// Adds a finished value to the innermost container, and closes every container that ends after
    /// it. Returns the value of the document once no container is open.
    fn place(&mut self, mut value: Json) -> Result<Option<Json>, ParseError> {
        while let Some(&container) = self.open.last() {
            match container {
                Container::Array(_) => {
                    make_room(&mut self.items, self.budget).map_err(|_| self.over_budget())?;
                    self.items.push(value);
                }
                Container::Object(_) => {
                    self.members
                        .last_mut()
                        .expect("an open object has a member")
                        .1 = value;
                }
            }
            self.skip_white_space();
            match (self.peek()?, container) {
                (b',', Container::Array(_)) => {
                    self.at += 1;
                    return Ok(None);
                }
                (b',', Container::Object(_)) => {
                    self.at += 1;
                    self.name()?;
                    return Ok(None);
                }
                (b']', Container::Array(start)) => {
                    let items = take_from(&mut self.items, start, self.budget);
                    value = Json::Array(items.map_err(|_| self.over_budget())?);
                }
                (b'}', Container::Object(start)) => {
                    let count = self.members.len() - start;
                    let members = take_from(&mut self.members, start, self.budget)
                        .and_then(|members| {
                            self.budget.take(object::index_bytes(count))?;
                            Ok(members)
                        })
                        .map_err(|_| self.over_budget())?;
                    value = Json::Object(Object::from_members(members));
                }
                _ => return Err(self.error(ParseErrorKind::ExpectedComma)),
            }
            self.at += 1;
            self.open.pop();
        }
        Ok(Some(value))
    }

    fn open_array(&mut self) -> Result<Option<Json>, ParseError> {
        self.open_container()?;
        if self.peek()? == b']' {
            self.at += 1;
            return Ok(Some(Json::Array(Vec::new())));
        }
        self.open.push(Container::Array(self.items.len()));
        Ok(None)
    }

    fn open_object(&mut self) -> Result<Option<Json>, ParseError> {
        self.open_container()?;
        if self.peek()? == b'}' {
            self.at += 1;
            return Ok(Some(Json::Object(Object::new())));
        }
        self.open.push(Container::Object(self.members.len()));
        self.name()?;
        Ok(None)
    }

    fn open_container(&mut self) -> Result<(), ParseError> {
        if self.open.len() == self.depth_max {
            return Err(self.error(ParseErrorKind::TooDeep));
        }
        self.at += 1;
        self.skip_white_space();
        Ok(())
    }

    /// Reads a member name and the colon after it.
    fn name(&mut self) -> Result<(), ParseError> {
        self.skip_white_space();
        if self.peek()? != b'"' {
            return Err(self.error(ParseErrorKind::ExpectedName));
        }
        let name = self.string()?;
        make_room(&mut self.members, self.budget).map_err(|_| self.over_budget())?;
        self.members.push((name, Json::Null));
        self.skip_white_space();
        if self.peek()? != b':' {
            return Err(self.error(ParseErrorKind::ExpectedColon));
        }
        self.at += 1;
        Ok(())
    }

    fn number(&mut self) -> Result<Number, ParseError> {
        let rest = &self.input[self.at..];
        let end = number::lexeme(rest.as_bytes()).map_err(|error| {
            self.error(match error {
                LexemeError::Malformed => ParseErrorKind::MalformedNumber,
                LexemeError::TooLong => ParseErrorKind::IntegerTooLong,
            })
        })?;
        self.budget.text(end).map_err(|_| self.over_budget())?;
        self.at += end;
        Ok(Number::from_lexeme(&rest[..end]))
    }

    fn literal(&mut self, literal: &str, value: Json) -> Result<Json, ParseError> {
        if !self.rest().starts_with(literal.as_bytes()) {
            return Err(self.error(ParseErrorKind::ExpectedValue));
        }
        self.at += literal.len();
        Ok(value)
    }

    fn string(&mut self) -> Result<Text, ParseError> {
        self.at += 1;
        let run = &self.input[self.at..][..unescaped(self.rest())];
        self.at += run.len();
        if self.peek()? == b'"' {
            self.budget
                .text(run.len())
                .map_err(|_| self.over_budget())?;
            self.at += 1;
            return Ok(run.into());
        }
        self.escaped.make_room(run.len() + self.rest().len());
        self.escaped.push_str(run);
        loop {
            match self.peek()? {
                b'"' => {
                    let length = self.escaped.len();
                    self.budget.text(length).map_err(|_| self.over_budget())?;
                    self.at += 1;
                    return Ok(self.escaped.finish());
                }
                b'\\' => self.escape()?,
                _ => return Err(self.error(ParseErrorKind::ControlCharacter)),
            }
            self.at += self.escaped.push_run(self.rest());
        }
    }

    fn escape(&mut self) -> Result<(), ParseError> {
        let malformed = self.error(ParseErrorKind::MalformedEscape);
        self.at += 1;
        let byte = match self.peek()? {
            byte @ (b'"' | b'\\' | b'/') => byte,
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 0x08,
            b'f' => 0x0c,
            b'u' => {
                self.at -= 1;
                return self.unicode_escape().ok_or(malformed);
            }
            _ => return Err(malformed),
        };
        self.at += 1;
        self.escaped.push_ascii(byte);
        Ok(())
    }

    /// Reads `\uXXXX`, and the next one too if the two form a pair.
    fn unicode_escape(&mut self) -> Option<()> {
        let unit = self.unit()?;
        if let Some(char) = char::from_u32(unit.into()) {
            self.escaped.push_char(char);
            return Some(());
        }
        let after = self.at;
        if let Some(second) = self.unit()
            && let Some(Ok(char)) = char::decode_utf16([unit, second]).next()
        {
            self.escaped.push_char(char);
        } else {
            self.at = after;
            self.escaped.push_surrogate(unit);
        }
        Some(())
    }

    fn unit(&mut self) -> Option<u16> {
        let [b'\\', b'u', digits @ ..] = self.rest().first_chunk::<6>()? else {
            return None;
        };
        let mut unit = 0;
        for &digit in digits {
            let digit = char::from(digit).to_digit(16)?;
            unit = unit << 4 | u16::try_from(digit).ok()?;
        }
        self.at += 6;
        Some(unit)
    }

    fn skip_white_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.rest().first() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Result<u8, ParseError> {
        self.rest()
            .first()
            .copied()
            .ok_or_else(|| self.error(ParseErrorKind::UnexpectedEnd))
    }

    fn rest(&self) -> &'a [u8] {
        &self.input.as_bytes()[self.at..]
    }

    fn over_budget(&self) -> ParseError {
        self.error(ParseErrorKind::OverBudget)
    }

    fn error(&self, kind: ParseErrorKind) -> ParseError {
        ParseError {
            offset: self.at,
            kind,
        }
    }
}

/// Returns the length of the leading run without a quote, a backslash or a control character.
fn unescaped(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Some((word, after)) = Word::split_off(rest) {
        let run = word.unescaped();
        if run < word.len() {
            return bytes.len() - rest.len() + run as usize;
        }
        rest = after;
    }
    bytes.len()
}

/// A list of at least this length may keep the memory of the stack. What lies below it is then
/// copied to a new stack.
const LONG: usize = 1024;

/// The number of values for which a stack makes room at first. Later, it grows by half.
const ROOM_MIN: usize = 4;

/// Returns the bytes of memory that a stack has taken.
fn room<T>(stack: &Vec<T>) -> usize {
    memory::list::<T>(stack.capacity())
}

/// Ensures that one more value fits on the stack.
fn make_room<T>(stack: &mut Vec<T>, budget: &NodeBudget) -> Result<(), OverBudget> {
    if stack.len() < stack.capacity() {
        return Ok(());
    }
    let before = room(stack);
    let capacity = (stack.len() + stack.len() / 2).max(ROOM_MIN);
    budget.take(memory::list::<T>(capacity) - before)?;
    stack.reserve_exact(capacity - stack.len());
    Ok(())
}

/// Takes the values on the stack from `start` on, as a vector without spare room. A single long
/// list that fills the stack is not copied, because the largest documents would then be in memory
/// twice.
fn take_from<T>(
    stack: &mut Vec<T>,
    start: usize,
    budget: &NodeBudget,
) -> Result<Vec<T>, OverBudget> {
    let length = stack.len() - start;
    if length < start.max(LONG) {
        budget.take(memory::list::<T>(length))?;
        return Ok(stack.drain(start..).collect());
    }
    budget.take(memory::list::<T>(start))?;
    let below = stack.drain(..start).collect();
    let mut taken = mem::replace(stack, below);
    budget.give_back(room(&taken) - memory::list::<T>(length));
    taken.shrink_to_fit();
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(document: &str) -> Result<Json, ParseError> {
        Json::parse(document.as_bytes())
    }

    /// Returns the canonical form of the value in a document.
    fn canonical(document: &str) -> String {
        String::from_utf8(parse(document).unwrap().to_canonical()).unwrap()
    }

    #[test]
    fn values_are_read_as_they_are_spelled() {
        let table = [
            (" null ", "null"),
            ("\t\r\n true", "true"),
            ("false", "false"),
            ("[]", "[]"),
            ("{ }", "{}"),
            ("[ 1 , [ ] , { } ]", "[1,[],{}]"),
            (r#" { "a" : [ { "b" : null } ] } "#, r#"{"a":[{"b":null}]}"#),
            ("[1.10,1E5,-0,1e400]", "[1.10,1E5,-0,1e400]"),
            ("[NaN,Infinity,-Infinity]", "[NaN,Infinity,-Infinity]"),
            (r#""\"\\\/\b\f\n\r\t""#, r#""\"\\/\b\f\n\r\t""#),
            (
                r#""\u0000\u001F\u007f\u00E9\u2028""#,
                r#""\u0000\u001f\u007f\u00e9\u2028""#,
            ),
            ("\"\u{7f}é🙂\"", r#""\u007f\u00e9\ud83d\ude42""#),
            (r#""\ud83d\ude42""#, r#""\ud83d\ude42""#),
            (r#""\ud83d \ude42 \ud83d""#, r#""\ud83d \ude42 \ud83d""#),
            (
                r#""\ud800\ud83d\ude42\udc00""#,
                r#""\ud800\ud83d\ude42\udc00""#,
            ),
            (r#"{"\ud800":1,"\u0000":2}"#, r#"{"\ud800":1,"\u0000":2}"#),
            (r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#),
            (r#"{"a":1,"\u0061":2}"#, r#"{"a":2}"#),
        ];
        for (document, expected) in table {
            assert_eq!(canonical(document), expected, "{document}");
        }
    }

    #[test]
    fn pairs_join_into_one_character() {
        assert_eq!(parse(r#""\ud83d\ude42""#).unwrap().as_str(), Some("🙂"));
        assert_eq!(
            Json::parse(b"\"\xed\xa0\xbd\xed\xb9\x82\"")
                .unwrap()
                .as_str(),
            Some("🙂")
        );
        assert_eq!(
            Json::parse(b"\"\xed\xa0\xbd\\ude42\"").unwrap().as_str(),
            Some("🙂")
        );
        assert_eq!(parse(r#""\ud83d\\ude42""#).unwrap().as_str(), None);
    }

    #[test]
    fn errors_name_the_cause_and_the_place() {
        use ParseErrorKind as Kind;
        let long = "1".repeat(number::INTEGER_DIGITS_MAX + 1);
        let table = [
            ("", 0, Kind::UnexpectedEnd),
            (" ", 1, Kind::UnexpectedEnd),
            ("[", 1, Kind::UnexpectedEnd),
            ("[1", 2, Kind::UnexpectedEnd),
            ("[1,", 3, Kind::UnexpectedEnd),
            ("{\"a\"", 4, Kind::UnexpectedEnd),
            ("{\"a\":", 5, Kind::UnexpectedEnd),
            ("\"a", 2, Kind::UnexpectedEnd),
            ("\"\\", 2, Kind::UnexpectedEnd),
            ("]", 0, Kind::ExpectedValue),
            ("[1,]", 3, Kind::ExpectedValue),
            ("[,1]", 1, Kind::ExpectedValue),
            ("nul", 0, Kind::ExpectedValue),
            ("True", 0, Kind::ExpectedValue),
            ("'a'", 0, Kind::ExpectedValue),
            ("é", 0, Kind::ExpectedValue),
            ("+1", 0, Kind::ExpectedValue),
            (".5", 0, Kind::ExpectedValue),
            ("{1:2}", 1, Kind::ExpectedName),
            ("{\"a\":1,}", 7, Kind::ExpectedName),
            ("{\"a\" 1}", 5, Kind::ExpectedColon),
            ("[1 2]", 3, Kind::ExpectedComma),
            ("[1}", 2, Kind::ExpectedComma),
            ("{\"a\":1]", 6, Kind::ExpectedComma),
            ("[1.5.5]", 4, Kind::ExpectedComma),
            ("01", 0, Kind::MalformedNumber),
            ("[-]", 1, Kind::MalformedNumber),
            ("1.", 0, Kind::MalformedNumber),
            ("1e+", 0, Kind::MalformedNumber),
            ("Inf", 0, Kind::MalformedNumber),
            ("-NaN", 0, Kind::MalformedNumber),
            (&long, 0, Kind::IntegerTooLong),
            (r#""\x""#, 1, Kind::MalformedEscape),
            (r#""\u12g4""#, 1, Kind::MalformedEscape),
            (r#""\u+123""#, 1, Kind::MalformedEscape),
            (r#""\u12"#, 1, Kind::MalformedEscape),
            (r#""ab\ud800\x""#, 9, Kind::MalformedEscape),
            ("\"a\nb\"", 2, Kind::ControlCharacter),
            ("\"\0\"", 1, Kind::ControlCharacter),
            ("\"\\n\u{1f}\"", 3, Kind::ControlCharacter),
            ("1 2", 2, Kind::TrailingData),
            ("{}}", 2, Kind::TrailingData),
            ("null\u{a0}", 4, Kind::TrailingData),
        ];
        for (document, offset, kind) in table {
            assert_eq!(
                parse(document),
                Err(ParseError { offset, kind }),
                "{document}"
            );
        }
    }

    #[test]
    fn messages_do_not_repeat_the_input() {
        let error = parse("[secret]").unwrap_err();
        assert_eq!(error.to_string(), "expected a value at byte 1");
    }

    #[test]
    fn nesting_is_read_to_the_limit_and_no_deeper() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let nested = |depth| {
                format!(
                    "{}{}{}",
                    open.repeat(depth - 1),
                    ["[]", "{}"][depth % 2],
                    close.repeat(depth - 1)
                )
            };
            let deepest = nested(DEPTH_MAX);
            assert_eq!(canonical(&deepest), deepest);
            let error = parse(&nested(DEPTH_MAX + 1)).unwrap_err();
            assert_eq!(
                (error.kind, error.offset),
                (ParseErrorKind::TooDeep, open.len() * DEPTH_MAX)
            );
        }
    }

    #[test]
    fn hostile_documents_are_parsed_like_large_ones() {
        let size = 1 << 20;
        for open in ["[", "{\"a\":", "[{\"a\":"] {
            let error = parse(&open.repeat(size / open.len())).unwrap_err();
            assert_eq!(error.kind, ParseErrorKind::TooDeep);
        }
        let duplicates = format!("{{{}\"a\":0}}", "\"a\":1,".repeat(size / 6));
        assert_eq!(canonical(&duplicates), r#"{"a":0}"#);
        let distinct: Vec<String> = (0..size / 16).map(|n| format!("\"{n}\":{n}")).collect();
        let distinct = format!("{{{}}}", distinct.join(","));
        assert_eq!(canonical(&distinct), distinct);
        let flat = format!("[0,[{}0]]", "1,".repeat(size / 2));
        assert_eq!(canonical(&flat), flat);
        let lone = format!("\"{}\"", "\\ud800".repeat(size / 6));
        assert_eq!(canonical(&lone), lone);
        let encoded = [b"\"", &*b"\xed\xa0\x80".repeat(size / 3), b"\""].concat();
        assert_eq!(
            Json::parse(&encoded).unwrap().canonical_len(),
            2 + 6 * (size / 3)
        );
        let backslashes = format!("\"{}", "\\".repeat(size));
        assert_eq!(
            parse(&backslashes).unwrap_err().kind,
            ParseErrorKind::UnexpectedEnd
        );
    }

    #[test]
    fn a_value_is_no_larger_than_four_words() {
        assert_eq!(size_of::<Json>(), 32);
        assert_eq!(size_of::<Text>(), 24);
    }
}
