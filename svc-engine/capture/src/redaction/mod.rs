//! Replaces credentials by a marker before a fact is stored.
//!
//! What looks like a credential, in text and in structured values, is fixed and small: a header, a
//! member or an assignment whose name says so, a login, or a token whose prefix says so. In
//! addition, the [`Secrets`] of the service itself are recognised by value. Everything else is
//! evidence and stays as it is. Whatever has the form of a credential counts as one, except plain
//! words and code. Names like `token` and `password` are treated more cautiously, because ordinary
//! code uses them all the time: a value that only such a name gives away must also look like a
//! credential, which variables, placeholders and words do not.
//!
//! All captured bytes pass through here, and nearly all of them are clean. So a text is first
//! searched for a few short sequences and long runs, without which nothing can match. Only the text
//! around those is examined closely, only a text that contains a credential is copied, and a long
//! text that was clean once is not searched again. There are no regular expressions and no
//! backtracking, so the time is proportional to the length of the text. Redaction is idempotent:
//! redacting again changes nothing.
//!
//! Identities (Sessions, calls, models, roles, file paths) are not changed: redaction must not turn
//! one into another. Whoever adds a sign adds rows to both tables of `samples`.

mod anchor;
mod assignment;
mod clean;
mod command;
mod configured;
mod counts;
mod cursor;
mod family;
mod header;
mod known;
#[cfg(test)]
mod laws;
mod login;
mod looks;
mod member;
mod name;
mod private_key;
mod redactor;
mod rewrite;
#[cfg(test)]
mod samples;

use svc_model::json::{Json, Text};

pub use configured::Secrets;
pub use counts::RedactionCounts;
pub use redactor::Redactor;

/// The text that replaces a credential.
pub const MARKER: &str = "[REDACTED_CREDENTIAL]";

/// Redacts one text.
pub fn redact_text(text: &mut Text) -> RedactionCounts {
    let mut redactor = Redactor::default();
    redactor.text(text);
    redactor.counts()
}

/// Redacts a structured value: strings under the name of a credential are replaced, and all other
/// strings, including the names of members, are redacted as text.
pub fn redact_json(value: &mut Json) -> RedactionCounts {
    let mut redactor = Redactor::default();
    redactor.json(value);
    redactor.counts()
}
