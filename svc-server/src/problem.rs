//! The only place that knows status codes.
//!
//! There is no 500: a panic is caught, logged and answered with 503.

#[cfg(test)]
mod reference;

use axum::http::StatusCode;
use axum::response::Response;
use svc_model::field::{FieldError, Step};
use svc_model::json;
use svc_model::problem::{Decline, Detail, Problem, ReportBound};

use crate::reply::respond;

/// Returns the status of a problem.
pub(crate) const fn status(problem: &Problem) -> StatusCode {
    match problem {
        Problem::NotFound | Problem::RetrievalDisabled | Problem::SearchDisabled => {
            StatusCode::NOT_FOUND
        }
        Problem::MethodNotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
        Problem::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        Problem::BodyTooLarge | Problem::TooManyValues => StatusCode::PAYLOAD_TOO_LARGE,
        Problem::UnsupportedEncoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Problem::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
        Problem::Unauthorized | Problem::InvalidSignature => StatusCode::UNAUTHORIZED,
        Problem::Forbidden(_) | Problem::OutsideGrant => StatusCode::FORBIDDEN,
        Problem::MalformedRequest
        | Problem::BodyIncomplete
        | Problem::MalformedJson
        | Problem::FormBody
        | Problem::BodyNotObject
        | Problem::LogsNotObject
        | Problem::MalformedProtobuf
        | Problem::MalformedEncoding
        | Problem::UnsupportedProvider(_) => StatusCode::BAD_REQUEST,
        Problem::Invalid(_) | Problem::Query(_) => StatusCode::UNPROCESSABLE_ENTITY,
        Problem::Conflict(_)
        | Problem::Declined(_)
        | Problem::SessionBound(_)
        | Problem::ReportBound(_)
        | Problem::ReplyTooLarge => StatusCode::CONFLICT,
        Problem::CapacityExceeded
        | Problem::DeadlineExceeded
        | Problem::StoreUnavailable
        | Problem::SearchUnavailable => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Returns the closed word of a problem, which is the same as the client's.
pub(crate) const fn code(problem: &Problem) -> &'static str {
    match problem {
        Problem::NotFound => "not_found",
        Problem::MethodNotAllowed { .. } => "method_not_allowed",
        Problem::HeadTooLarge | Problem::BodyTooLarge | Problem::TooManyValues => "too_large",
        Problem::MalformedRequest
        | Problem::BodyIncomplete
        | Problem::MalformedJson
        | Problem::FormBody
        | Problem::BodyNotObject
        | Problem::LogsNotObject
        | Problem::MalformedProtobuf
        | Problem::MalformedEncoding => "malformed",
        Problem::UnsupportedEncoding => "unsupported_encoding",
        Problem::BodyTimeout => "timed_out",
        Problem::Unauthorized | Problem::InvalidSignature => "unauthorized",
        Problem::Forbidden(_) => "forbidden",
        Problem::OutsideGrant => "outside_grant",
        Problem::RetrievalDisabled => "retrieval_disabled",
        Problem::SearchDisabled => "search_disabled",
        Problem::SearchUnavailable => "search_unavailable",
        Problem::UnsupportedProvider(_) => "unsupported_provider",
        Problem::Invalid(_) => "invalid",
        Problem::Query(fault) => fault.as_str(),
        Problem::Conflict(code) => code.as_str(),
        Problem::Declined(decline) => decline.as_str(),
        Problem::SessionBound(_) => "session_bound",
        Problem::ReportBound(ReportBound::Evidence) => "report_evidence",
        Problem::ReportBound(ReportBound::Reply) | Problem::ReplyTooLarge => "oversize",
        Problem::CapacityExceeded => "busy",
        Problem::DeadlineExceeded => "deadline",
        Problem::StoreUnavailable => "database_unavailable",
    }
}

/// Returns a problem as a sentence, which repeats nothing from the request.
pub(crate) fn message(problem: &Problem) -> String {
    match problem.body().detail {
        Detail::Text(text) => text.into_owned(),
        Detail::Declined(decline) => decline.to_string(),
        Detail::Code(detail) => detail.message.unwrap_or_default().into_owned(),
        Detail::Fields(fields) => {
            let messages: Vec<String> = fields.iter().map(named).collect();
            messages.join("; ")
        }
    }
}

/// Returns what is wrong with a field, after the field's name within its part of the request.
fn named(field: &FieldError) -> String {
    let steps = field.loc.iter().skip(1).map(|step| match step {
        Step::Index(index) => index.to_string(),
        Step::Name(name) => name.to_string(),
    });
    let name = steps.collect::<Vec<_>>().join(".");
    if name.is_empty() {
        field.msg.to_string()
    } else {
        format!("{name}: {}", field.msg)
    }
}

/// Returns the answer of a problem.
pub(crate) fn answer(problem: &Problem) -> Response {
    let status = status(problem);
    let mut response = match json::to_vec(&problem.body(), usize::MAX) {
        Ok(body) => respond(status, body),
        Err(error) => {
            tracing::error!(%error, "problem.unwritable");
            respond(status, b"{\"detail\":\"unavailable\"}".to_vec())
        }
    };
    let headers = response.headers_mut();
    if let Some(challenge) = problem.challenge() {
        insert(headers, "www-authenticate", challenge);
    }
    match problem {
        Problem::MethodNotAllowed { allow } => insert(headers, "allow", allow),
        Problem::CapacityExceeded => insert(headers, "retry-after", "1"),
        _ => {}
    }
    if matches!(problem, Problem::StoreUnavailable) {
        response.extensions_mut().insert(CauseLogged);
    }
    response
}

/// Marks an answer whose cause is in the log already, with the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CauseLogged;

fn insert(headers: &mut axum::http::HeaderMap, name: &'static str, value: &'static str) {
    headers.insert(name, axum::http::HeaderValue::from_static(value));
}

/// Returns the problem for a reply that cannot be written, which is `oversize` if it is too large.
pub(crate) fn of_write(error: json::WriteError, oversize: Problem) -> Problem {
    match error {
        json::WriteError::NonFinite => Problem::Declined(Decline::NonFiniteNumber),
        json::WriteError::Budget => oversize,
        other => {
            tracing::error!(error = %other, "reply.unwritable");
            Problem::StoreUnavailable
        }
    }
}
