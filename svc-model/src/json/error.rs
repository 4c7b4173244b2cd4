//! Why a document cannot be read.

/// Why a document cannot be read. It does not repeat anything from the document.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct ParseError {
    /// Where reading stopped, in bytes of the document as UTF-8 without a byte order mark.
    pub offset: usize,
    /// What is wrong there.
    pub kind: ParseErrorKind,
}

/// What can be wrong with a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseErrorKind {
    /// The bytes are not text in UTF-8, UTF-16 or UTF-32.
    #[error("malformed text encoding")]
    Encoding,
    /// The document ends too early.
    #[error("unexpected end of document")]
    UnexpectedEnd,
    /// No value begins here.
    #[error("expected a value")]
    ExpectedValue,
    /// No member name begins here.
    #[error("expected a member name")]
    ExpectedName,
    /// A member name is not followed by a colon.
    #[error("expected a colon")]
    ExpectedColon,
    /// A value in an array or object is followed neither by a comma nor by the closing bracket.
    #[error("expected a comma or the end of the array or object")]
    ExpectedComma,
    /// A number is not spelled as JSON requires.
    #[error("malformed number")]
    MalformedNumber,
    /// An integer has more than [`INTEGER_DIGITS_MAX`](super::INTEGER_DIGITS_MAX) digits.
    #[error("integer of too many digits")]
    IntegerTooLong,
    /// A backslash does not begin a valid escape.
    #[error("malformed escape")]
    MalformedEscape,
    /// A string contains an unescaped control character.
    #[error("unescaped control character")]
    ControlCharacter,
    /// Arrays and objects are nested more than [`DEPTH_MAX`](super::DEPTH_MAX) deep.
    #[error("nesting too deep")]
    TooDeep,
    /// The values take more memory than the budget allows.
    #[error("values over their budget of memory")]
    OverBudget,
    /// Something follows the document's value.
    #[error("unexpected data after the value")]
    TrailingData,
}
