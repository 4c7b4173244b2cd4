//! The messages of the kinds of errors.

use std::fmt;

use svc_model::field::{FieldError, Step};

use super::{Denial, ErrorKind};

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unwritable => f.write_str(
                "the request was not sent: it contains something that JSON cannot express, such \
                     as a number that is not finite",
            ),
            Self::Unaddressable => f.write_str("this version cannot express the request"),
            Self::Connect => f.write_str("the service cannot be reached"),
            Self::TimedOut => f.write_str("the request timed out"),
            Self::Transport => f.write_str("the connection broke"),
            Self::Malformed => f.write_str("the service could not read the request"),
            Self::BodyIncomplete => f.write_str("the request was cut off on the way"),
            Self::UnsupportedProvider => f.write_str("the gateway has no adapter"),
            Self::Unauthorized => f.write_str("the token is missing or unknown"),
            Self::Forbidden(denial) => denial.fmt(f),
            Self::NotFound => f.write_str("the service has no such route"),
            Self::RetrievalDisabled => {
                f.write_str("the token has no Session to search, or must name one")
            }
            Self::SearchDisabled => f.write_str("the server keeps no search index"),
            Self::SearchUnavailable => f.write_str("the search index cannot be read"),
            Self::Conflict(code) => {
                write!(
                    f,
                    "a different fact is stored under the same identity ({code})"
                )
            }
            Self::Declined(decline) => decline.fmt(f),
            Self::SessionBound(bound) => bound.fmt(f),
            Self::ReportEvidence => f.write_str("the cohort of the report has too many facts"),
            Self::Oversize => f.write_str("the reply would be too large for its route"),
            Self::TooLarge => f.write_str("the body is too large for its route"),
            Self::Invalid(fields) => write_fields(fields, f),
            Self::Query(fault) => fault.fmt(f),
            Self::Busy => f.write_str("the service has too much to do at the moment"),
            Self::Deadline => f.write_str("the service stopped the work at its deadline"),
            Self::StoreUnavailable => f.write_str("the fact store cannot be reached"),
            Self::Unavailable { status } => {
                write!(f, "the service is not available (status {status})")
            }
            Self::Unreadable => f.write_str("the reply is not valid for this route"),
            Self::Incomplete {
                requested,
                returned,
            } => write!(
                f,
                "the reply accounts for {returned} items, but the request has {requested}"
            ),
            Self::EarlierCallsMissing => {
                f.write_str("the service does not have the calls that these calls continue")
            }
            Self::CursorRepeated => {
                f.write_str("the list has no end: its cursor leads back to a page that was read")
            }
            Self::ReplyTooLarge { bytes_max } => {
                write!(f, "the reply exceeds {bytes_max} bytes")
            }
            Self::Redirected { status } => {
                write!(
                    f,
                    "the answer is a redirect, which is not followed (status {status})"
                )
            }
            Self::Unrecognised {
                status,
                word: Some(word),
            } => {
                write!(
                    f,
                    "the service gave an unknown answer (status {status}, {word})"
                )
            }
            Self::Unrecognised { status, word: None } => {
                write!(f, "the service gave an unknown answer (status {status})")
            }
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Authority(authority) => authority.fmt(f),
            Self::OutsideGrant => f.write_str("Session is outside the context grant"),
            Self::Other => f.write_str("the request is denied"),
        }
    }
}

fn write_fields(fields: &[FieldError], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("the request is not valid")?;
    for (index, field) in fields.iter().enumerate() {
        f.write_str(if index == 0 { ": " } else { "; " })?;
        for (depth, step) in field.loc.iter().enumerate() {
            if depth > 0 {
                f.write_str(".")?;
            }
            match step {
                Step::Index(index) => write!(f, "{index}")?,
                Step::Name(name) => write!(f, "{}", name.escape_debug())?,
            }
        }
        if !field.loc.is_empty() {
            f.write_str(" ")?;
        }
        write!(f, "{}", field.msg.escape_debug())?;
    }
    Ok(())
}
