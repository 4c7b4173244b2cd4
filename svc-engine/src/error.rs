//! Errors of the engine, without a transport.

use svc_engine_capture::gateway::GatewayError;
use svc_engine_capture::otlp::LogsError;
use svc_engine_derive::attribution::AttributionError;
use svc_engine_derive::price::PriceFileError;
use svc_engine_mirror::ReadError;
use svc_engine_store::{Obstacle, StoreError};
use svc_model::field::{Violation, Violations};
use svc_model::ingest::GatewayProvider;
use svc_model::problem::{Code, Decline, Problem, QueryFault, ReportBound, SessionBound};

/// Why the engine does not answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This kind of gateway has no adapter.
    #[error("payloads of this gateway cannot be read")]
    UnsupportedProvider(GatewayProvider),
    /// An identity in the payload cannot be stored.
    #[error("an identity in the payload cannot be stored")]
    InvalidPayload,
    /// The bytes of an export of logs or traces are not its message.
    #[error("the export is not valid protobuf")]
    MalformedProtobuf,
    /// A file of prices is not JSON.
    #[error("the file of prices is not valid JSON")]
    MalformedPrices,
    /// The file of a stored price table cannot be read.
    #[error("the file of a price table cannot be read")]
    UnreadablePrices(#[source] PriceFileError),
    /// The values of a delivery need more memory than one request may use.
    #[error("the delivery holds more values than one request may")]
    TooManyValues,
    /// A different fact with the same identity is stored.
    #[error("another fact with the same identity is stored")]
    Conflict(Code),
    /// A bounded read is declined whole.
    #[error("the read would exceed a bound")]
    Declined(Decline),
    /// A Session exceeds a bound.
    #[error("the Session has too many facts for this read")]
    SessionBound(SessionBound),
    /// A report exceeds a bound.
    #[error("the report would exceed a bound")]
    ReportBound(ReportBound),
    /// The parameters of a query conflict with stored facts.
    #[error("{}", .0.message())]
    Query(QueryFault),
    /// The Session is outside the caller's grants, whether or not it exists.
    #[error("the Session is outside the grant")]
    OutsideGrant,
    /// The caller's token is revoked.
    #[error("the token is revoked")]
    TokenRevoked,
    /// The reply would exceed the cap of its route.
    #[error("the reply would be too large")]
    ReplyTooLarge,
    /// All read slots are in use.
    #[error("all read slots are in use")]
    Busy,
    /// The deadline has passed.
    #[error("the deadline has passed")]
    Deadline,
    /// A member of the request is not allowed for this caller.
    #[error("the request has a member that only an operator may use")]
    Invalid(Violations),
    /// The server keeps no index for searches.
    #[error("search is disabled")]
    SearchDisabled,
    /// The index for searches cannot be read.
    #[error("the search index cannot be read")]
    SearchUnavailable,
    /// The mirrors cannot be read at all.
    #[error("cannot read the mirrors")]
    Mirrors(#[source] ReadError),
    /// The store did not say what became of a fact.
    #[error("the store did not say whether the fact is stored")]
    NoOutcome,
    /// The store did not answer.
    #[error("the fact store did not answer")]
    Store(#[source] StoreError),
}

impl From<GatewayError> for Error {
    fn from(error: GatewayError) -> Self {
        match error {
            GatewayError::UnsupportedProvider(provider) => Self::UnsupportedProvider(provider),
            GatewayError::InvalidPayload => Self::InvalidPayload,
            GatewayError::TooLarge => Self::TooManyValues,
        }
    }
}

impl From<LogsError> for Error {
    fn from(error: LogsError) -> Self {
        match error {
            LogsError::Malformed => Self::MalformedProtobuf,
            LogsError::TooLarge => Self::TooManyValues,
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Deadline => Self::Deadline,
            // Only reports limit the number of rows.
            StoreError::TooMany => Self::ReportBound(ReportBound::Evidence),
            other => Self::Store(other),
        }
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Passed(_) => Self::Deadline,
            other => Self::Mirrors(other),
        }
    }
}

impl From<AttributionError> for Error {
    fn from(error: AttributionError) -> Self {
        match error {
            AttributionError::TooMuch => Self::ReportBound(ReportBound::Evidence),
            AttributionError::Passed(_) => Self::Deadline,
        }
    }
}

impl From<Decline> for Error {
    fn from(decline: Decline) -> Self {
        Self::Declined(decline)
    }
}

impl From<QueryFault> for Error {
    fn from(fault: QueryFault) -> Self {
        Self::Query(fault)
    }
}

impl From<ReportBound> for Error {
    fn from(bound: ReportBound) -> Self {
        Self::ReportBound(bound)
    }
}

impl From<SessionBound> for Error {
    fn from(bound: SessionBound) -> Self {
        Self::SessionBound(bound)
    }
}

/// What is wrong with a payload of [`Error::InvalidPayload`].
const INVALID_IDENTITY: Violation = Violation::rule(
    "the identities of the payload must contain no NUL and no surrogate, and have at most 1024 bytes",
);

/// The problem that a caller sees. Details that a caller must not see are logged here, once.
impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::UnsupportedProvider(provider) => Self::UnsupportedProvider(provider),
            Error::InvalidPayload => Self::Invalid(Violations::one(
                INVALID_IDENTITY.at(vec!["body".into(), "payload".into()]),
            )),
            Error::MalformedProtobuf => Self::MalformedProtobuf,
            Error::MalformedPrices => Self::MalformedJson,
            Error::TooManyValues => Self::TooManyValues,
            Error::Conflict(code) => Self::Conflict(code),
            Error::Declined(decline) => Self::Declined(decline),
            Error::SessionBound(bound) => Self::SessionBound(bound),
            Error::ReportBound(bound) => Self::ReportBound(bound),
            Error::Query(fault) => Self::Query(fault),
            Error::OutsideGrant => Self::OutsideGrant,
            Error::TokenRevoked => Self::Unauthorized,
            Error::ReplyTooLarge => Self::ReplyTooLarge,
            Error::Invalid(violations) => Self::Invalid(violations),
            Error::SearchDisabled => Self::SearchDisabled,
            Error::SearchUnavailable => Self::SearchUnavailable,
            Error::Busy => Self::CapacityExceeded,
            Error::Deadline => Self::DeadlineExceeded,
            Error::Mirrors(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "mirrors.unavailable"
                );
                Self::StoreUnavailable
            }
            Error::UnreadablePrices(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "prices.unreadable"
                );
                Self::StoreUnavailable
            }
            Error::NoOutcome => {
                tracing::warn!("store.no_outcome");
                Self::StoreUnavailable
            }
            Error::Store(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    mend = error.obstacle().map(Obstacle::mend),
                    "store.unavailable"
                );
                Self::StoreUnavailable
            }
        }
    }
}
