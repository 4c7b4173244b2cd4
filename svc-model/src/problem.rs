//! Problems, the answers other than success: a closed set, and the body of each. A body never
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

/// The body of every unsuccessful answer.
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
    /// A bound that the answer would break (409).
    Declined(Decline),
    /// A closed code: a conflict (409) or an unavailable store (503).
    Code(CodeDetail),
}

/// A closed code and its fixed text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CodeDetail {
    /// The code.
    pub code: Code,
    /// A fixed text for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Cow<'static, str>>,
}

/// The closed codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub enum Code {
    /// The ids of a call belong to another call, or to two calls. None of their ids is disclosed.
    InferenceCallIdentityConflict,
    /// A fact with the same key is stored with another identity.
    RepositoryIdentityConflict,
    /// The fact store cannot be reached. Nothing was acknowledged.
    DatabaseUnavailable,
}

/// Why a bounded read is declined. There is no partial answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(tag = "reason", rename_all = "snake_case")]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub enum Decline {
    /// The fact is absent, foreign or quarantined; which one is not disclosed.
    EvidenceUnavailable {
        /// The index of the first reference that fails, in an evidence read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reference_index: Option<u64>,
    },
    /// The call is visible, but has no such message or part.
    EvidencePartAbsent {
        /// The index of the first reference that fails.
        reference_index: u64,
    },
    /// The call is visible, and what it said was erased by the operator of the service.
    ContentErased {
        /// The index of the first reference that fails.
        reference_index: u64,
    },
    /// The Session, or the whole grant, has too many visible calls.
    EvidenceInventoryLimit {
        /// How many there are.
        count: u64,
        /// The maximum.
        limit: u64,
    },
    /// The selected columns are too large.
    EvidenceSourceLimit {
        /// Their canonical bytes.
        bytes: u64,
        /// The maximum number of bytes.
        limit: u64,
    },
    /// The reply would be too large.
    EvidenceResponseLimit {
        /// The maximum size of a reply in bytes.
        limit: u64,
    },
    /// The scan has too many parts.
    RetrievalPartLimit {
        /// How many there are.
        count: u64,
        /// The maximum.
        limit: u64,
    },
    /// The candidates of the scan take too much memory.
    RetrievalStateLimit {
        /// The maximum candidate state in bytes.
        limit_bytes: u64,
    },
    /// The rules of the token's grants reach more Sessions than one discovery accepts, or examine
    /// too many. Each Session can still be opened by its id.
    RetrievalGrantLimit {
        /// The maximum number of Sessions.
        limit: u64,
    },
    /// The selector matches several repositories.
    RepositorySelectorAmbiguous,
    /// Too many distinct repository claims.
    RepositoryEvidenceLimit,
    /// The reply would contain a number that is not finite.
    NonFiniteNumber,
}

/// A bound of a Session read, answered with 409 and a fixed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub enum SessionBound {
    /// Too many visible calls to list.
    Reconciliation,
    /// Too many visible facts for the compatibility evidence.
    Compatibility,
    /// Too many visible events for a dossier.
    Dossier,
    /// Too many commits, pushes or CI outcomes for a dossier.
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
    /// Too many calls, or too many facts related to them.
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

/// Why a query with individually valid parameters cannot be answered: 422 with a fixed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub enum QueryFault {
    /// The commit in the path is not a full commit id.
    MalformedSha,
    /// The start of the capture range is not before its end.
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
}

impl QueryFault {
    /// Every fault.
    pub const ALL: [Self; 19] = [
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
        }
    }
}

/// Every answer other than success.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub enum Problem {
    /// There is no such path, or it belongs to disabled documentation.
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
    /// The body contains too many values for one request: log records, parts, or bytes in memory.
    TooManyValues,
    /// The body is incomplete. None of it was used.
    BodyIncomplete,
    /// The body took too long. None of it was used.
    BodyTimeout,
    /// There is no valid credential, or it is revoked.
    Unauthorized,
    /// The body is not signed with the webhook secret.
    InvalidSignature,
    /// The credential is valid but has the wrong authority.
    Forbidden(RequiredAuthority),
    /// The Session is outside the token's grant, whether or not it exists.
    OutsideGrant,
    /// Context retrieval is not configured, or not for this route.
    RetrievalDisabled,
    /// The body is not JSON.
    MalformedJson,
    /// The body of a webhook is a form instead of JSON. The answer is that of any malformed body;
    /// the log says what to change.
    FormBody,
    /// The body is JSON, but not an object.
    BodyNotObject,
    /// The body of an export of logs is JSON, but not an object.
    LogsNotObject,
    /// The body is not the route's protobuf message.
    MalformedProtobuf,
    /// The content encoding is not supported, or the body does not match it.
    MalformedEncoding,
    /// The gateway has no adapter. It is a word of a closed set, so naming it repeats nothing else.
    UnsupportedProvider(GatewayProvider),
    /// Fields are invalid.
    Invalid(Violations),
    /// The parameters of a query conflict with each other or with stored facts.
    Query(QueryFault),
    /// A stored fact with the same identity differs.
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
    /// The deadline has passed.
    DeadlineExceeded,
    /// The store cannot be reached, or the service failed; the log has the reason.
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
            Self::MalformedJson | Self::FormBody => text("Malformed JSON body"),
            Self::BodyNotObject => text("body must be a JSON object"),
            Self::LogsNotObject => text("OTLP body must be a JSON object"),
            Self::MalformedProtobuf => text("Malformed protobuf body"),
            Self::MalformedEncoding => text("body is not in a supported content encoding"),
            Self::UnsupportedProvider(provider) => {
                Detail::Text(format!("Unsupported provider: {provider}").into())
            }
            Self::Invalid(violations) => Detail::Fields(violations.clone().into_vec()),
            Self::Query(fault) => text(fault.message()),
            Self::Conflict(code) => Detail::Code(CodeDetail {
                code: *code,
                message: match code {
                    Code::RepositoryIdentityConflict => {
                        Some("a fact with this key is stored with another identity".into())
                    }
                    Code::InferenceCallIdentityConflict | Code::DatabaseUnavailable => None,
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
