use svc_model::field::FieldError;
use svc_model::problem::{Code, Decline, QueryFault, RequiredAuthority, SessionBound};

/// The kinds of [`Error`](crate::Error).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request contains something that JSON cannot express, usually a number that is not
    /// finite. It was not sent. The source of the error says what it is: leave it out, or replace
    /// it by a text. The body of a gateway's logger may contain such a number;
    /// [`Client::ingest_gateway_body`](crate::Client::ingest_gateway_body) sends it unchanged.
    Unwritable,
    /// The request has no valid URL: a path parameter is `.` or `..`, or a link has parameters that
    /// this version does not know. It was not sent.
    Unaddressable,
    /// No connection could be made. The service has not seen the request.
    Connect,
    /// The call took longer than its timeout. The service may have carried it out.
    TimedOut,
    /// The connection broke off. The service may have carried out the request.
    Transport,
    /// 400: the service could not read the request. It is not valid HTTP, its body is not what the
    /// route reads, or the body is not in its declared encoding.
    Malformed,
    /// 400: the body of the request was cut off on the way. The service used none of it.
    BodyIncomplete,
    /// 400: the service cannot read payloads of this gateway.
    UnsupportedProvider,
    /// 401: the token is missing or unknown.
    Unauthorized,
    /// 403: the token is known, but does not allow the request.
    Forbidden(Denial),
    /// 404: the service has no such route.
    NotFound,
    /// 404: context retrieval is not configured, or not for this route.
    RetrievalDisabled,
    /// 404: the server keeps no index for searches.
    SearchDisabled,
    /// 409: a stored fact with the same identity is different.
    Conflict(Code),
    /// 409: a bounded read is declined; there is no partial answer.
    Declined(Decline),
    /// 409: a Session has too many facts for this read.
    SessionBound(SessionBound),
    /// 409: the cohort of a report has too many calls, or too many facts relate to it.
    ReportEvidence,
    /// 409: the reply would exceed the cap of its route; there is no partial answer.
    Oversize,
    /// 413: the body exceeds the cap of its route in bytes, or contains too many values for one
    /// request. A body over the cap that this client knows is not even sent.
    TooLarge,
    /// 422: these fields are invalid.
    Invalid(Vec<FieldError>),
    /// 422: the parameters of a query conflict with each other or with stored facts.
    Query(QueryFault),
    /// 503: the service has too much to do. All its read slots are in use, or all its memory for
    /// bodies and large replies.
    Busy,
    /// 503: the service stopped the work at its deadline.
    Deadline,
    /// 503: the fact store cannot be reached. Nothing was acknowledged.
    StoreUnavailable,
    /// 503: the index for searches cannot be read.
    SearchUnavailable,
    /// 408, 429, 502, 503 or 504: the body took too long to arrive, or something between this
    /// client and the service limits the rate or cannot reach the service.
    Unavailable {
        /// The status.
        status: u16,
    },
    /// The answer is a success, but not a valid reply of the route.
    Unreadable,
    /// The answer is a success, but it does not account for exactly the parts that were requested,
    /// or the payloads that were sent. No part is returned. Of the payloads, some may not be
    /// stored.
    Incomplete {
        /// The number of parts that were requested, or of payloads that were sent.
        requested: usize,
        /// The number of parts in the reply, or of payloads that the receipt counts.
        returned: usize,
    },
    /// The answer is a success, but the service does not have the calls that some of these calls
    /// continue. They are to be sent again with their whole input. Only an
    /// [`Outbox`](crate::Outbox) fails with this; see
    /// [`CallsReceipt::lacks_earlier_calls`](svc_model::ingest::CallsReceipt::lacks_earlier_calls).
    EarlierCallsMissing,
    /// The answer is a success, but its cursor leads back to a page that was read before. Following
    /// it would never end.
    CursorRepeated,
    /// The reply exceeds the limit of this client.
    ReplyTooLarge {
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// The answer is a redirect. This client never follows one, because that would send the token
    /// elsewhere.
    Redirected {
        /// The status.
        status: u16,
    },
    /// The answer is unknown. It comes from a newer service, or from something else.
    Unrecognised {
        /// The status.
        status: u16,
        /// The closed word in the answer, if there is one.
        word: Option<String>,
    },
}

/// Why a known token does not allow a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Denial {
    /// The route requires another authority.
    Authority(RequiredAuthority),
    /// The Session is outside the token's grant, whether or not it exists.
    OutsideGrant,
    /// Something between this client and the service denies the request.
    Other,
}

impl ErrorKind {
    /// Returns the status of the answer; nothing if there was no answer, or if it was a success.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Unwritable
            | Self::Unaddressable
            | Self::Connect
            | Self::TimedOut
            | Self::Transport
            | Self::Unreadable
            | Self::Incomplete { .. }
            | Self::EarlierCallsMissing
            | Self::CursorRepeated
            | Self::ReplyTooLarge { .. } => None,
            Self::Malformed | Self::BodyIncomplete | Self::UnsupportedProvider => Some(400),
            Self::Unauthorized => Some(401),
            Self::Forbidden(_) => Some(403),
            Self::NotFound | Self::RetrievalDisabled | Self::SearchDisabled => Some(404),
            Self::Conflict(_)
            | Self::Declined(_)
            | Self::SessionBound(_)
            | Self::ReportEvidence
            | Self::Oversize => Some(409),
            Self::TooLarge => Some(413),
            Self::Invalid(_) | Self::Query(_) => Some(422),
            Self::Busy | Self::Deadline | Self::StoreUnavailable | Self::SearchUnavailable => {
                Some(503)
            }
            Self::Unavailable { status }
            | Self::Redirected { status }
            | Self::Unrecognised { status, .. } => Some(*status),
        }
    }

    /// Returns whether the same request may succeed if it is sent again later.
    ///
    /// This does not mean that sending it again is harmless. For a delivery without a name, only
    /// [`ErrorKind::never_arrived`] ensures that.
    #[expect(clippy::match_same_arms, reason = "each case has a reason of its own")]
    pub fn is_retryable(&self) -> bool {
        match self {
            // The same value would fail again before it is sent.
            Self::Unwritable | Self::Unaddressable | Self::TooLarge => false,
            // The service may be starting, or the network recovering.
            Self::Connect | Self::Transport => true,
            // The request was cut off on the way; its content may be valid.
            Self::BodyIncomplete => true,
            // It took too long this time; the work is bounded, so a retry may succeed.
            Self::TimedOut | Self::Deadline => true,
            // There is room again as soon as other requests have ended.
            Self::Busy => true,
            // Nothing was acknowledged, and the store may become available again.
            Self::StoreUnavailable | Self::SearchUnavailable => true,
            // The network was slow; or a proxy cannot reach the service, or limits the rate.
            Self::Unavailable { .. } => true,
            // The request is invalid and stays invalid.
            Self::Malformed | Self::UnsupportedProvider | Self::Invalid(_) => false,
            // An invalid cursor stays invalid; the pages have to be read again from the first.
            Self::Query(_) => false,
            // Waiting does not change tokens, authorities or grants.
            Self::Unauthorized | Self::Forbidden(_) => false,
            Self::NotFound | Self::RetrievalDisabled | Self::SearchDisabled => false,
            // Facts are immutable, so the identity stays taken.
            Self::Conflict(_) => false,
            // The bound is about stored facts, which do not become fewer.
            Self::Declined(_) | Self::SessionBound(_) | Self::ReportEvidence | Self::Oversize => {
                false
            }
            // The earlier calls may be on their way, but this request does not bring them.
            Self::EarlierCallsMissing => false,
            // The next reply would be the same.
            Self::Unreadable
            | Self::Incomplete { .. }
            | Self::CursorRepeated
            | Self::ReplyTooLarge { .. }
            | Self::Redirected { .. } => false,
            // An unknown answer is not retried.
            Self::Unrecognised { .. } => false,
        }
    }

    /// Returns whether it is certain that the service used nothing of the request, because it was
    /// not sent or did not arrive as a whole.
    pub fn never_arrived(&self) -> bool {
        matches!(
            self,
            Self::Unwritable | Self::Unaddressable | Self::Connect | Self::BodyIncomplete
        )
    }

    /// Returns the kind as a closed word, for logs and programs.
    pub fn code(&self) -> &str {
        match self {
            Self::Unwritable => "unwritable",
            Self::Unaddressable => "unaddressable",
            Self::Connect => "unreachable",
            Self::TimedOut => "timed_out",
            Self::Transport => "transport",
            Self::Malformed => "malformed",
            Self::BodyIncomplete => "body_incomplete",
            Self::UnsupportedProvider => "unsupported_provider",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden(Denial::OutsideGrant) => "outside_grant",
            Self::Forbidden(_) => "forbidden",
            Self::NotFound => "not_found",
            Self::RetrievalDisabled => "retrieval_disabled",
            Self::SearchDisabled => "search_disabled",
            Self::SearchUnavailable => "search_unavailable",
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
            Self::Incomplete { .. } => "incomplete",
            Self::EarlierCallsMissing => "after_unknown",
            Self::CursorRepeated => "cursor_repeated",
            Self::ReplyTooLarge { .. } => "reply_too_large",
            Self::Redirected { .. } => "redirected",
            Self::Unrecognised { word, .. } => word.as_deref().unwrap_or("unrecognised"),
        }
    }
}
