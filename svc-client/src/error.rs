//! What can come back instead of a reply.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use svc_model::field::{FieldError, Step};
use svc_model::problem::{Code, Decline, RequiredAuthority, SessionBound};

/// Why a call has no reply: one of a closed set of [kinds](ErrorKind), and how it came to it.
///
/// Neither the text nor the `Debug` form holds a token or anything that was captured.
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

/// The kinds of [`Error`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request cannot be written: it holds a number that is not finite. The body of a gateway's
    /// logger may hold one; [`Client::ingest_gateway_body`](crate::Client::ingest_gateway_body)
    /// sends it as it is.
    Unwritable,
    /// A path parameter is `.` or `..`, which no URL can carry.
    Unaddressable,
    /// No connection could be made. The service has seen nothing.
    Connect,
    /// The timeout has passed. The service may have done the work.
    TimedOut,
    /// The connection broke. The service may have done the work.
    Transport,
    /// 400: the service could not read the body as JSON.
    Malformed,
    /// 400: the gateway has no adapter.
    UnsupportedProvider,
    /// 401: the token is missing or not known.
    Unauthorized,
    /// 403: the token is known and not enough.
    Forbidden(Denial),
    /// 404: the service has no such route.
    NotFound,
    /// 404: context retrieval is not configured, or not for this route.
    RetrievalDisabled,
    /// 409: a fact with the same identity says otherwise.
    Conflict(Code),
    /// 409: a bounded read is declined whole; there is no partial answer.
    Declined(Decline),
    /// 409: a Session has too many facts for this read.
    SessionBound(SessionBound),
    /// 413: the body is over the cap of its route. A body that is known to be is not even sent.
    TooLarge,
    /// 422: these fields are violated.
    Invalid(Vec<FieldError>),
    /// 503: all read slots of the service are in use.
    Busy,
    /// 503: the service stopped the work at its deadline.
    Deadline,
    /// 503: the fact store cannot be reached. Of a delivery, nothing was acknowledged.
    StoreUnavailable,
    /// 429, 502, 503 or 504 of something between this client and the service.
    Unavailable {
        /// The status.
        status: u16,
    },
    /// The answer is a success that does not hold the reply of the route.
    Unreadable,
    /// The reply is over the cap of this client.
    ReplyTooLarge {
        /// The most bytes that this client takes.
        bytes_max: usize,
    },
    /// A redirect, which this client never follows: it would carry the token elsewhere.
    Redirected {
        /// The status.
        status: u16,
    },
    /// An answer that this version does not know: a newer service, or no service of this kind.
    Unrecognised {
        /// The status.
        status: u16,
        /// The closed word that the service gave, when it gave one.
        word: Option<String>,
    },
}

/// Why a known token is not enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Denial {
    /// The route requires another authority.
    Authority(RequiredAuthority),
    /// The Session is not in the configured grant, whether or not it exists.
    OutsideGrant,
    /// Something between this client and the service denies it.
    Other,
}

impl ErrorKind {
    /// Returns the status of the answer; nothing when there was none, or when it was a success.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Unwritable
            | Self::Unaddressable
            | Self::Connect
            | Self::TimedOut
            | Self::Transport
            | Self::Unreadable
            | Self::ReplyTooLarge { .. } => None,
            Self::Malformed | Self::UnsupportedProvider => Some(400),
            Self::Unauthorized => Some(401),
            Self::Forbidden(_) => Some(403),
            Self::NotFound | Self::RetrievalDisabled => Some(404),
            Self::Conflict(_) | Self::Declined(_) | Self::SessionBound(_) => Some(409),
            Self::TooLarge => Some(413),
            Self::Invalid(_) => Some(422),
            Self::Busy | Self::Deadline | Self::StoreUnavailable => Some(503),
            Self::Unavailable { status }
            | Self::Redirected { status }
            | Self::Unrecognised { status, .. } => Some(*status),
        }
    }

    /// Returns whether the same request may succeed when it is sent again later.
    ///
    /// It says nothing about whether sending it again is harmless; for a delivery without a name
    /// only [`ErrorKind::never_arrived`] makes it so.
    #[expect(clippy::match_same_arms, reason = "each case has a reason of its own")]
    pub fn is_retryable(&self) -> bool {
        match self {
            // The same value would fail in the same way before it leaves.
            Self::Unwritable | Self::Unaddressable | Self::TooLarge => false,
            // The service may be starting, or the network recovering.
            Self::Connect | Self::Transport => true,
            // It took too long this time; the work is bounded, so another moment may do.
            Self::TimedOut | Self::Deadline => true,
            // A slot is free again as soon as another read ends.
            Self::Busy => true,
            // Nothing was acknowledged, and stores come back.
            Self::StoreUnavailable => true,
            // A proxy speaks for a service that it cannot reach, or asks for patience.
            Self::Unavailable { .. } => true,
            // The request is wrong, and stays wrong.
            Self::Malformed | Self::UnsupportedProvider | Self::Invalid(_) => false,
            // Tokens, authorities and grants change by configuration, not by waiting.
            Self::Unauthorized | Self::Forbidden(_) => false,
            Self::NotFound | Self::RetrievalDisabled => false,
            // Facts are immutable: the identity stays taken.
            Self::Conflict(_) => false,
            // The bound is on what is stored, and what is stored does not shrink by itself.
            Self::Declined(_) | Self::SessionBound(_) => false,
            // The next reply would have the same shape and size, from the same place.
            Self::Unreadable | Self::ReplyTooLarge { .. } | Self::Redirected { .. } => false,
            // What is not understood is not repeated.
            Self::Unrecognised { .. } => false,
        }
    }

    /// Returns whether it is certain that the service has not seen the request.
    pub fn never_arrived(&self) -> bool {
        matches!(self, Self::Unwritable | Self::Unaddressable | Self::Connect)
    }

    /// Returns the kind as one closed word, for logs and programs that read text.
    pub fn code(&self) -> &str {
        match self {
            Self::Unwritable => "unwritable",
            Self::Unaddressable => "unaddressable",
            Self::Connect => "unreachable",
            Self::TimedOut => "timed_out",
            Self::Transport => "transport",
            Self::Malformed => "malformed",
            Self::UnsupportedProvider => "unsupported_provider",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden(Denial::OutsideGrant) => "outside_grant",
            Self::Forbidden(_) => "forbidden",
            Self::NotFound => "not_found",
            Self::RetrievalDisabled => "retrieval_disabled",
            Self::Conflict(code) => code_word(*code),
            Self::Declined(decline) => decline_word(decline),
            Self::SessionBound(_) => "session_bound",
            Self::TooLarge => "too_large",
            Self::Invalid(_) => "invalid",
            Self::Busy => "busy",
            Self::Deadline => "deadline",
            Self::StoreUnavailable => "database_unavailable",
            Self::Unavailable { .. } => "unavailable",
            Self::Unreadable => "unreadable",
            Self::ReplyTooLarge { .. } => "reply_too_large",
            Self::Redirected { .. } => "redirected",
            Self::Unrecognised { word, .. } => word.as_deref().unwrap_or("unrecognised"),
        }
    }
}

fn code_word(code: Code) -> &'static str {
    match code {
        Code::InferenceCallIdentityConflict => "inference_call_identity_conflict",
        Code::RepositoryIdentityConflict => "repository_identity_conflict",
        Code::DatabaseUnavailable => "database_unavailable",
    }
}

fn decline_word(decline: &Decline) -> &'static str {
    match decline {
        Decline::EvidenceUnavailable { .. } => "evidence_unavailable",
        Decline::EvidencePartAbsent { .. } => "evidence_part_absent",
        Decline::EvidenceInventoryLimit { .. } => "evidence_inventory_limit",
        Decline::EvidenceSourceLimit { .. } => "evidence_source_limit",
        Decline::EvidenceResponseLimit { .. } => "evidence_response_limit",
        Decline::RetrievalPartLimit { .. } => "retrieval_part_limit",
        Decline::RetrievalStateLimit { .. } => "retrieval_state_limit",
        Decline::RepositorySelectorAmbiguous => "repository_selector_ambiguous",
        Decline::RepositoryEvidenceLimit => "repository_evidence_limit",
        Decline::NonFiniteNumber => "non_finite_number",
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unwritable => f.write_str("the request holds a number that is not finite"),
            Self::Unaddressable => f.write_str("a path parameter is '.' or '..'"),
            Self::Connect => f.write_str("the service cannot be reached"),
            Self::TimedOut => f.write_str("the time is over"),
            Self::Transport => f.write_str("the connection broke"),
            Self::Malformed => f.write_str("the service could not read the body as JSON"),
            Self::UnsupportedProvider => f.write_str("the gateway has no adapter"),
            Self::Unauthorized => f.write_str("the token is missing or not known"),
            Self::Forbidden(denial) => denial.fmt(f),
            Self::NotFound => f.write_str("the service has no such route"),
            Self::RetrievalDisabled => f.write_str("context retrieval is not configured for this"),
            Self::Conflict(code) => {
                write!(f, "a fact with the same identity says otherwise ({})", code_word(*code))
            }
            Self::Declined(decline) => write_decline(decline, f),
            Self::SessionBound(SessionBound::Reconciliation) => {
                f.write_str("the Session has too many calls to list")
            }
            Self::SessionBound(SessionBound::Compatibility) => {
                f.write_str("the Session has too many facts for the compatibility evidence")
            }
            Self::TooLarge => f.write_str("the body is over the cap of its route"),
            Self::Invalid(fields) => write_fields(fields, f),
            Self::Busy => f.write_str("all read slots of the service are in use"),
            Self::Deadline => f.write_str("the service stopped the work at its deadline"),
            Self::StoreUnavailable => f.write_str("the fact store cannot be reached"),
            Self::Unavailable { status } => {
                write!(f, "the service is not available (status {status})")
            }
            Self::Unreadable => f.write_str("the reply is not that of the route"),
            Self::ReplyTooLarge { bytes_max } => {
                write!(f, "the reply is over {bytes_max} bytes")
            }
            Self::Redirected { status } => {
                write!(f, "the answer is a redirect, which is not followed (status {status})")
            }
            Self::Unrecognised { status, word: Some(word) } => {
                write!(f, "the answer is not known (status {status}, {word})")
            }
            Self::Unrecognised { status, word: None } => {
                write!(f, "the answer is not known (status {status})")
            }
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Authority(RequiredAuthority::Ingest) => "ingest authority required",
            Self::Authority(RequiredAuthority::Operator) => "operator authority required",
            Self::Authority(RequiredAuthority::Retrieval) => "retrieval authority required",
            Self::OutsideGrant => "the Session is outside the configured grant",
            Self::Other => "the request is denied",
        })
    }
}

fn write_decline(decline: &Decline, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let word = decline_word(decline);
    match decline {
        Decline::EvidenceUnavailable { reference_index: None } => {
            write!(f, "the evidence is not available ({word})")
        }
        Decline::EvidenceUnavailable { reference_index: Some(index) } => {
            write!(f, "reference {index} is not available ({word})")
        }
        Decline::EvidencePartAbsent { reference_index } => {
            write!(f, "reference {reference_index} names no part of its call ({word})")
        }
        Decline::EvidenceInventoryLimit { count, limit }
        | Decline::RetrievalPartLimit { count, limit } => {
            write!(f, "{count} are over the limit of {limit} ({word})")
        }
        Decline::EvidenceSourceLimit { bytes, limit } => {
            write!(f, "{bytes} stored bytes are over the limit of {limit} ({word})")
        }
        Decline::EvidenceResponseLimit { limit } => {
            write!(f, "the reply would be over {limit} bytes ({word})")
        }
        Decline::RetrievalStateLimit { limit_bytes } => {
            write!(f, "the candidates take more than {limit_bytes} bytes ({word})")
        }
        Decline::RepositorySelectorAmbiguous => {
            write!(f, "the selector names several repositories ({word})")
        }
        Decline::RepositoryEvidenceLimit => write!(f, "too many repository claims ({word})"),
        Decline::NonFiniteNumber => {
            write!(f, "the reply would hold a number that is not finite ({word})")
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

impl Failure {
    pub(crate) fn new(kind: ErrorKind) -> Self {
        Self { kind, attempts: 0, request_id: None, retry_after: None, source: None }
    }

    pub(crate) fn caused_by(self, source: impl StdError + Send + Sync + 'static) -> Self {
        Self { source: Some(Box::new(source)), ..self }
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

    /// Returns the kind alone.
    pub fn into_kind(self) -> ErrorKind {
        self.0.kind
    }

    /// Returns how often the request was sent.
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// Returns the service's own name of the last request, by which its log knows it.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// Returns how long the service asked to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// See [`ErrorKind::status`].
    pub fn status(&self) -> Option<u16> {
        self.0.kind.status()
    }

    /// See [`ErrorKind::is_retryable`].
    pub fn is_retryable(&self) -> bool {
        self.0.kind.is_retryable()
    }

    /// Returns whether the token is missing, not known, or not enough.
    pub fn is_denied(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Unauthorized | ErrorKind::Forbidden(_))
    }

    /// Returns whether the route is absent or closed.
    pub fn is_not_found(&self) -> bool {
        matches!(self.0.kind, ErrorKind::NotFound | ErrorKind::RetrievalDisabled)
    }

    /// Returns whether the service answered 409: a conflict, or a bound.
    pub fn is_conflict(&self) -> bool {
        self.status() == Some(409)
    }

    /// Returns whether the service, or something on the way to it, is not available now.
    pub fn is_unavailable(&self) -> bool {
        matches!(
            self.0.kind,
            ErrorKind::Connect
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
        self.0.source.as_deref().map(|source| -> &(dyn StdError + 'static) { source })
    }
}
