//! External text for a terminal.
//!
//! Captured text may contain escape sequences that recolour, overwrite or hijack a terminal, marks
//! that reorder text, and invisible characters. They are printed in escaped form.

use svc_model::json::Text;
use svc_view::SHELL;

/// Returns the text with its control characters escaped, line breaks included.
pub(crate) fn escape(text: &str) -> String {
    SHELL.escape(text)
}

/// Returns a captured text with its control characters and lone surrogates escaped, except line
/// breaks and tabs.
pub(crate) fn escape_text(text: &Text) -> String {
    SHELL.escape_text(text)
}

/// Returns the beginning of a captured text as one line of at most this many characters.
pub(crate) fn one_line(text: &Text, characters_max: usize) -> String {
    SHELL.line(text, characters_max)
}
