use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use super::ErrorKind;

/// Why a call failed: one of a closed set of [kinds](ErrorKind), with details of the last attempt.
///
/// Neither the message nor the `Debug` form contains a token or captured content.
///
/// ```
/// use svc_client::{Error, ErrorKind};
///
/// /// Says what an agent can do about it.
/// fn advice(error: &Error) -> &'static str {
///     match error.kind() {
///         ErrorKind::RetrievalDisabled => "go on without earlier evidence",
///         ErrorKind::Declined(_) => "ask for less: another Session, fewer references",
///         _ if error.is_retryable() => "ask again later",
///         _ => "tell a person",
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Error(Box<Failure>);

/// What is known about one failed attempt.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    pub(crate) attempts: u32,
    pub(crate) request_id: Option<String>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Failure {
    pub(crate) fn new(kind: ErrorKind) -> Self {
        Self {
            kind,
            attempts: 0,
            request_id: None,
            retry_after: None,
            source: None,
        }
    }

    pub(crate) fn caused_by(self, source: impl StdError + Send + Sync + 'static) -> Self {
        Self {
            source: Some(Box::new(source)),
            ..self
        }
    }

    pub(crate) fn after(self, attempts: u32) -> Error {
        Error(Box::new(Self { attempts, ..self }))
    }
}

impl Error {
    /// Returns the kind.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Converts the error into its kind.
    pub fn into_kind(self) -> ErrorKind {
        self.0.kind
    }

    /// Returns how often the request was sent.
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// Returns the id that the service gave the last request, which is also in its log; nothing if
    /// there was no answer, or none with an id.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// Returns how long the service asked the client to wait (`Retry-After`).
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Returns the status of the answer; see [`ErrorKind::status`].
    pub fn status(&self) -> Option<u16> {
        self.0.kind.status()
    }

    /// Returns whether the same request may succeed later; see [`ErrorKind::is_retryable`].
    pub fn is_retryable(&self) -> bool {
        self.0.kind.is_retryable()
    }

    /// Returns whether the token is missing or unknown, or does not allow the request.
    pub fn is_denied(&self) -> bool {
        matches!(
            self.0.kind,
            ErrorKind::Unauthorized | ErrorKind::Forbidden(_)
        )
    }

    /// Returns whether the route does not exist or is disabled.
    pub fn is_not_found(&self) -> bool {
        matches!(
            self.0.kind,
            ErrorKind::NotFound | ErrorKind::RetrievalDisabled | ErrorKind::SearchDisabled
        )
    }

    /// Returns whether the service answered with 409: a conflict with a stored fact, or a bound.
    pub fn is_conflict(&self) -> bool {
        self.status() == Some(409)
    }

    /// Returns whether the service, or something on the way to it, is unavailable at the moment.
    pub fn is_unavailable(&self) -> bool {
        matches!(
            self.0.kind,
            ErrorKind::Connect
                | ErrorKind::Transport
                | ErrorKind::TimedOut
                | ErrorKind::BodyIncomplete
                | ErrorKind::Busy
                | ErrorKind::Deadline
                | ErrorKind::StoreUnavailable
                | ErrorKind::Unavailable { .. }
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.kind.fmt(f)?;
        if self.0.attempts > 1 {
            write!(f, " after {} attempts", self.0.attempts)?;
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|source| -> &(dyn StdError + 'static) { source })
    }
}
