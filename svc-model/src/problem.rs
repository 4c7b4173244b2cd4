//! Problems are the answers other than success: a closed set, and the body of each. A body never
//! repeats what the caller sent.

#[cfg(feature = "service")]
mod advice;
mod text;

use std::borrow::Cow;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::field::{FieldError, Violations};
use crate::ingest::GatewayProvider;

#[cfg(feature = "service")]
pub use self::advice::Advice;

/// The body of every answer other than success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ProblemBody {
    /// What went wrong.
    pub detail: Detail,
}

/// What went wrong, in one of four forms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged)]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub enum Detail {
    /// A fixed text.
    Text(Cow<'static, str>),
    /// The invalid fields (422).
    Fields(Vec<FieldError>),
    /// The bound that the answer would break, or why the evidence cannot be read (409).
    Declined(Decline),
    /// A closed code: a conflict (409) or an unavailable store (503).
    Code(CodeDetail),
}

/// A closed code, and a fixed text about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CodeDetail {
    /// The code.
    pub code: Code,
    /// A fixed text for people. Absent if the code says enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Cow<'static, str>>,
}

/// The closed codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub enum Code {
    /// The ids of the call belong to another stored call, or to two of them. Their ids are not
    /// disclosed.
    InferenceCallIdentityConflict,
    /// A fact with the same key is stored with another identity of its repository.
    RepositoryIdentityConflict,
    /// The fact store cannot be reached. Nothing was acknowledged.
    DatabaseUnavailable,
    /// The server keeps no index for searches.
    SearchDisabled,
    /// The index for searches cannot be read.
    SearchUnavailable,
    /// The file is neither LiteLLM's list of models nor the document of models.dev.
    UnknownPriceFormat,
    /// No model of the file has a price.
    NoModels,
    /// There are as many price tables as are kept.
    PriceTablesFull,
}

/// Why a read is declined as a whole. There is no partial answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(tag = "reason", rename_all = "snake_case")]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub enum Decline {
    /// The fact is absent, quarantined or of another organization or Session; which of these is not
    /// disclosed.
    EvidenceUnavailable {
        /// The index of the first reference that fails, from 0. Present only for an evidence read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reference_index: Option<u64>,
    },
    /// The call is visible, but has no such message or part.
    EvidencePartAbsent {
        /// The index of the first reference that fails, from 0.
        reference_index: u64,
    },
    /// The call is visible, but its content was erased by an operator.
    ContentErased {
        /// The index of the first reference that fails, from 0.
        reference_index: u64,
    },
    /// The Session, or the whole grant, has too many visible calls.
    EvidenceInventoryLimit {
        /// The number of visible calls.
        count: u64,
        /// The maximum number.
        limit: u64,
    },
    /// The stored evidence that the read needs is too large.
    EvidenceSourceLimit {
        /// Its canonical size in bytes.
        bytes: u64,
        /// The maximum in bytes.
        limit: u64,
    },
    /// The reply would be too large.
    EvidenceResponseLimit {
        /// The maximum size of a reply in bytes.
        limit: u64,
    },
    /// The scan has too many parts.
    RetrievalPartLimit {
        /// The number of parts.
        count: u64,
        /// The maximum number.
        limit: u64,
    },
    /// The candidates of the scan take too much memory.
    RetrievalStateLimit {
        /// The maximum in bytes.
        limit_bytes: u64,
    },
    /// The selector matches several repositories.
    RepositorySelectorAmbiguous,
    /// Too many facts or names of repositories are involved.
    RepositoryEvidenceLimit,
    /// The reply would contain a number that is not finite.
    NonFiniteNumber,
}

/// A bound of a read of one Session, answered with 409 and a fixed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub enum SessionBound {
    /// The Session has too many visible calls to list.
    Reconciliation,
    /// The Session has too many visible facts for the compatibility evidence.
    Compatibility,
    /// The Session has too many visible events for a dossier.
    Dossier,
    /// The Session has too many commits, pushes or CI outcomes for a dossier.
    Delivery,
}

impl SessionBound {
    /// Every bound.
    pub const ALL: [Self; 4] = [
        Self::Reconciliation,
        Self::Compatibility,
        Self::Dossier,
        Self::Delivery,
    ];

    /// Returns the fixed text.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Reconciliation => "Session exceeds the reconciliation limit",
            Self::Compatibility => "Session exceeds the compatibility limit",
            Self::Dossier => "Session exceeds the dossier limit",
            Self::Delivery => "Session exceeds the delivery summary limit",
        }
    }
}

/// A bound of a report, answered with 409 and a fixed text. There is no partial report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub enum ReportBound {
    /// The cohort has too many calls, or too many facts relate to it.
    Evidence,
    /// The reply would be too large.
    Reply,
}

impl ReportBound {
    /// Every bound.
    pub const ALL: [Self; 2] = [Self::Evidence, Self::Reply];

    /// Returns the fixed text.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Evidence => "report evidence exceeds the fixed limit",
            Self::Reply => "report response exceeds the fixed limit",
        }
    }
}

/// Why a query cannot be answered although each of its parameters is valid by itself: 422 with a
/// fixed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub enum QueryFault {
    /// The commit in the path is not a full commit id.
    MalformedSha,
    /// The capture range does not start before its end.
    ReversedBounds,
    /// Only one or two of the three components of an identity are given.
    IncompleteIdentity,
    /// No repository is selected, but one is required.
    MissingSelector,
    /// The selected repository never had the selected name.
    SelectorConflict,
    /// The cursor was not issued by this service.
    InvalidCursor,
    /// The cursor belongs to another query, or the quarantine log has changed since.
    CursorMismatch,
    /// The cursor of a Session list was not issued by this service.
    InvalidSessionCursor,
    /// The cursor belongs to another Session list, or the quarantine log has changed since.
    SessionCursorMismatch,
    /// The cohort of a report is longer than 31 days.
    CohortTooLong,
    /// The cohort of a report does not start before its end.
    CohortReversed,
    /// The cohort of a report ends after `as_of`.
    CohortAfterBoundary,
    /// No fact of the kind has this id.
    TargetAbsent,
    /// Several facts of the kind have this prefix of an id.
    TargetAmbiguous,
    /// No grant has this id.
    GrantAbsent,
    /// Several grants have this prefix of an id.
    GrantAmbiguous,
    /// The token already has the maximum number of grants.
    GrantsFull,
    /// No stored fact names this repository.
    RepositoryAbsent,
    /// The token is not revoked.
    TokenNotRevoked,
    /// The file has neither form of price tables.
    UnknownPriceFormat,
    /// No model of the file has a price.
    NoModels,
    /// There are as many price tables as are kept.
    PriceTablesFull,
}

impl QueryFault {
    /// Every fault.
    pub const ALL: [Self; 22] = [
        Self::MalformedSha,
        Self::ReversedBounds,
        Self::IncompleteIdentity,
        Self::MissingSelector,
        Self::SelectorConflict,
        Self::InvalidCursor,
        Self::CursorMismatch,
        Self::InvalidSessionCursor,
        Self::SessionCursorMismatch,
        Self::CohortTooLong,
        Self::CohortReversed,
        Self::CohortAfterBoundary,
        Self::TargetAbsent,
        Self::TargetAmbiguous,
        Self::GrantAbsent,
        Self::GrantAmbiguous,
        Self::GrantsFull,
        Self::RepositoryAbsent,
        Self::TokenNotRevoked,
        Self::UnknownPriceFormat,
        Self::NoModels,
        Self::PriceTablesFull,
    ];

    /// Returns the fixed text.
    pub const fn message(self) -> &'static str {
        match self {
            Self::MalformedSha => "must be a full-length commit sha (40 or 64 hex chars)",
            Self::ReversedBounds => "captured_after must precede captured_before",
            Self::IncompleteIdentity => "repository identity requires all three components",
            Self::MissingSelector => "CI summaries require a repository selector",
            Self::SelectorConflict => "repository selector conflicts with declared evidence",
            Self::InvalidCursor => "invalid CI outcome cursor",
            Self::CursorMismatch => "CI outcome cursor doesn't match filters",
            Self::InvalidSessionCursor => "invalid Session cursor",
            Self::SessionCursorMismatch => "Session cursor doesn't match filters",
            Self::CohortTooLong => "report cohort must not exceed 31 days",
            Self::CohortReversed => "cohort_start must precede cohort_end",
            Self::CohortAfterBoundary => "cohort_end must not follow as_of",
            Self::TargetAbsent => "no fact of this table has this id",
            Self::TargetAmbiguous => "several ids of this table have this prefix",
            Self::GrantAbsent => "no grant has this id",
            Self::GrantAmbiguous => "several grant ids have this prefix",
            Self::GrantsFull => "the token already has the maximum number of grants",
            Self::RepositoryAbsent => "no fact names this repository",
            Self::TokenNotRevoked => "the token is not revoked",
            Self::UnknownPriceFormat => "the file has neither form of price tables",
            Self::NoModels => "no model of the file has a price",
            Self::PriceTablesFull => "the maximum number of price tables is stored",
        }
    }

    /// Returns the code that the answer has besides the fixed text, if it has one.
    pub const fn code(self) -> Option<Code> {
        match self {
            Self::UnknownPriceFormat => Some(Code::UnknownPriceFormat),
            Self::NoModels => Some(Code::NoModels),
            Self::PriceTablesFull => Some(Code::PriceTablesFull),
            _ => None,
        }
    }
}

/// Every answer other than success.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub enum Problem {
    /// There is no such path, or the documentation that is there is disabled.
    NotFound,
    /// The path does not support the method.
    MethodNotAllowed {
        /// The supported methods.
        allow: &'static str,
    },
    /// The request is not valid HTTP, or repeats a header that must be unique.
    MalformedRequest,
    /// The head of the request is over its cap.
    HeadTooLarge,
    /// The body is over its cap.
    BodyTooLarge,
    /// The body contains too many values for one request: log records, spans, parts, or bytes in
    /// memory.
    TooManyValues,
    /// The body is incomplete. None of it was used.
    BodyIncomplete,
    /// The body took too long to arrive. None of it was used.
    BodyTimeout,
    /// There is no valid credential, or it was revoked.
    Unauthorized,
    /// The body is not signed with the webhook secret.
    InvalidSignature,
    /// The credential is valid but has the wrong authority.
    Forbidden(RequiredAuthority),
    /// The Session is outside the token's grant, whether or not it exists.
    OutsideGrant,
    /// Context retrieval is not configured, or not for this route.
    RetrievalDisabled,
    /// The server keeps no index for searches.
    SearchDisabled,
    /// The index for searches cannot be read. The log has the reason.
    SearchUnavailable,
    /// The body is not JSON.
    MalformedJson,
    /// The body of a webhook is a form instead of JSON. The answer is the same as for any malformed
    /// body; the log says what to change.
    FormBody,
    /// The body is JSON, but not an object.
    BodyNotObject,
    /// The body of an export of logs or traces is JSON, but not an object.
    LogsNotObject,
    /// The body is not the route's protobuf message.
    MalformedProtobuf,
    /// The body does not match its content encoding.
    MalformedEncoding,
    /// The content encoding is not supported.
    UnsupportedEncoding,
    /// The gateway has no adapter. The name in the answer is a word of a closed set, so no other
    /// input is repeated.
    UnsupportedProvider(GatewayProvider),
    /// Fields are invalid.
    Invalid(Violations),
    /// The parameters of a query conflict with each other or with stored facts.
    Query(QueryFault),
    /// A stored fact with the same identity is different.
    Conflict(Code),
    /// A bounded read is declined.
    Declined(Decline),
    /// A Session exceeds a bound.
    SessionBound(SessionBound),
    /// A report exceeds a bound.
    ReportBound(ReportBound),
    /// The reply would exceed the cap of its route.
    ReplyTooLarge,
    /// All read slots are in use.
    CapacityExceeded,
    /// The work took longer than its deadline.
    DeadlineExceeded,
    /// The store cannot be reached, or the service failed. The log has the reason.
    StoreUnavailable,
}

/// The authority that a route requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub enum RequiredAuthority {
    /// Ingest or operator.
    Ingest,
    /// Operator.
    Operator,
    /// Retrieval or operator.
    Retrieval,
}

impl Problem {
    /// Returns the value of `WWW-Authenticate` for a caller without a valid credential.
    pub const fn challenge(&self) -> Option<&'static str> {
        match self {
            Self::Unauthorized | Self::InvalidSignature => Some("Bearer"),
            _ => None,
        }
    }

    /// Returns the body of the answer.
    pub fn body(&self) -> ProblemBody {
        let detail = match self {
            Self::NotFound => text("Not Found"),
            Self::MethodNotAllowed { .. } => text("Method Not Allowed"),
            Self::MalformedRequest => text("Malformed request"),
            Self::HeadTooLarge => text("request head too large"),
            Self::BodyTooLarge => text("request body too large"),
            Self::TooManyValues => text("request body holds too many values"),
            Self::BodyIncomplete => text("request body is incomplete"),
            Self::BodyTimeout => text("request body took too long"),
            Self::Unauthorized => text("Invalid token"),
            Self::InvalidSignature => text("Invalid webhook signature"),
            Self::Forbidden(RequiredAuthority::Ingest) => text("Ingest authority required"),
            Self::Forbidden(RequiredAuthority::Operator) => text("Operator authority required"),
            Self::Forbidden(RequiredAuthority::Retrieval) => text("Retrieval authority required"),
            Self::OutsideGrant => text("Session is outside the context grant"),
            Self::RetrievalDisabled => text("Context retrieval is disabled"),
            Self::SearchDisabled => Detail::Code(CodeDetail {
                code: Code::SearchDisabled,
                message: Some("search is disabled".into()),
            }),
            Self::SearchUnavailable => Detail::Code(CodeDetail {
                code: Code::SearchUnavailable,
                message: Some("the search index cannot be read".into()),
            }),
            Self::MalformedJson | Self::FormBody => text("Malformed JSON body"),
            Self::BodyNotObject => text("body must be a JSON object"),
            Self::LogsNotObject => text("OTLP body must be a JSON object"),
            Self::MalformedProtobuf => text("Malformed protobuf body"),
            Self::MalformedEncoding => {
                text("body is not the complete gzip that Content-Encoding announces")
            }
            Self::UnsupportedEncoding => text("Content-Encoding must be gzip or identity"),
            Self::UnsupportedProvider(provider) => {
                Detail::Text(format!("Unsupported provider: {provider}").into())
            }
            Self::Invalid(violations) => Detail::Fields(violations.clone().into_vec()),
            Self::Query(fault) => match fault.code() {
                Some(code) => Detail::Code(CodeDetail {
                    code,
                    message: Some(fault.message().into()),
                }),
                None => text(fault.message()),
            },
            Self::Conflict(code) => Detail::Code(CodeDetail {
                code: *code,
                message: match code {
                    Code::RepositoryIdentityConflict => {
                        Some("a fact with this key is stored with another identity".into())
                    }
                    Code::InferenceCallIdentityConflict
                    | Code::DatabaseUnavailable
                    | Code::SearchDisabled
                    | Code::SearchUnavailable
                    | Code::UnknownPriceFormat
                    | Code::NoModels
                    | Code::PriceTablesFull => None,
                },
            }),
            Self::Declined(decline) => Detail::Declined(decline.clone()),
            Self::SessionBound(bound) => text(bound.message()),
            Self::ReportBound(bound) => text(bound.message()),
            Self::ReplyTooLarge => text("response exceeds the fixed limit"),
            Self::CapacityExceeded => text("work capacity exceeded"),
            Self::DeadlineExceeded => text("work budget exceeded"),
            Self::StoreUnavailable => Detail::Code(CodeDetail {
                code: Code::DatabaseUnavailable,
                message: Some("fact store unavailable".into()),
            }),
        };
        ProblemBody { detail }
    }
}

const fn text(text: &'static str) -> Detail {
    Detail::Text(Cow::Borrowed(text))
}
