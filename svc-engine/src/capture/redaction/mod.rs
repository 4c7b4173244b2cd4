//! Credentials are replaced by a marker before a fact is stored.
//!
//! What a credential looks like, in text and in structured values, is fixed and small: a header, a
//! member or an assignment whose name says so, a login, or a token whose prefix says so; and the
//! [`Secrets`] of the service itself are known by their value. Everything else is evidence and stays
//! as it is. What has the form of a credential is one, whatever it is made of; only plain words and
//! code are excused. Names like `token` and `password` lean towards leaving text alone: ordinary code
//! speaks of them all the time, so what only such a name gives away has to look like a credential as
//! well, and variables, placeholders and words do not.
//!
//! Every byte that is captured passes through here, and nearly all of it is clean. So a text is
//! first searched for a few short sequences and long runs without one of which nothing can match;
//! only around those is it looked at closely, and only a text that really holds a credential is
//! copied; and a long text that was clean once is not searched again. There is no regular
//! expression: nothing goes back, and the time is in proportion to the text. Replacing is
//! idempotent: what was redacted once is not changed again.

mod anchor;
mod assignment;
mod clean;
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
pub use counts::Counts;
pub use redactor::Redactor;

/// What stands in place of a credential.
pub const MARKER: &str = "[REDACTED_CREDENTIAL]";

/// Redacts one text.
pub fn redact_text(text: &mut Text) -> Counts {
    let mut redactor = Redactor::default();
    redactor.text(text);
    redactor.counts()
}

/// Redacts a structured value: what stands under the name of a credential, and every other string,
/// the names of members included, as a text.
pub fn redact_json(value: &mut Json) -> Counts {
    let mut redactor = Redactor::default();
    redactor.json(value);
    redactor.counts()
}
