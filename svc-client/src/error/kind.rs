use svc_model::field::FieldError;
use svc_model::problem::{Code, Decline, QueryFault, RequiredAuthority, SessionBound};

/// The kinds of [`Error`](crate::Error).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request cannot be written: it holds a number that is not finite. The body of a gateway's
    /// logger may hold one; [`Client::ingest_gateway_body`](crate::Client::ingest_gateway_body)
    /// sends it as it is.
    Unwritable,
    /// A path parameter is `.` or `..`, which no URL can carry; or a link that asks what this version
    /// cannot ask.
    Unaddressable,
    /// No connection could be made. The service has seen nothing.
    Connect,
    /// The timeout has passed. The service may have done the work.
    TimedOut,
    /// The connection broke. The service may have done the work.
    Transport,
    /// 400: the service could not read the body as JSON, or as what it was said to be.
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
    /// 409: the cohort of a report, or what says something of it, has too many facts.
    ReportEvidence,
    /// 409: the reply would be over the cap of its route; there is no partial answer.
    Oversize,
    /// 413: the body is over the cap of its route. A body that is known to be is not even sent.
    TooLarge,
    /// 422: these fields are violated.
    Invalid(Vec<FieldError>),
    /// 422: the parameters of a query do not fit each other, or what is stored.
    Query(QueryFault),
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
            Self::Conflict(_)
            | Self::Declined(_)
            | Self::SessionBound(_)
            | Self::ReportEvidence
            | Self::Oversize => Some(409),
            Self::TooLarge => Some(413),
            Self::Invalid(_) | Self::Query(_) => Some(422),
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
            // A cursor that no longer fits never will: the pages have to be read from the first.
            Self::Query(_) => false,
            // Tokens, authorities and grants change by configuration, not by waiting.
            Self::Unauthorized | Self::Forbidden(_) => false,
            Self::NotFound | Self::RetrievalDisabled => false,
            // Facts are immutable: the identity stays taken.
            Self::Conflict(_) => false,
            // The bound is on what is stored, and what is stored does not shrink by itself.
            Self::Declined(_) | Self::SessionBound(_) | Self::ReportEvidence | Self::Oversize => {
                false
            }
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
            Self::Conflict(code) => code.as_str(),
            Self::Declined(decline) => decline.as_str(),
            Self::SessionBound(_) => "session_bound",
            Self::ReportEvidence => "report_evidence",
            Self::Oversize => "oversize",
            Self::TooLarge => "too_large",
            Self::Invalid(_) => "invalid",
            Self::Query(fault) => fault.as_str(),
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
