//! Problems as agents are told them: the words are those of the client.

use std::time::Duration;

use svc_mcp::Refusal;
use svc_model::problem::{Detail, Problem};

use crate::problem::status;

/// Says a problem to an agent.
pub(super) fn refusal(problem: &Problem) -> Refusal {
    Refusal {
        code: code(problem).to_owned(),
        status: Some(status(problem).as_u16()),
        message: message(problem),
        retry_after: matches!(problem, Problem::CapacityExceeded).then(|| Duration::from_secs(1)),
    }
}

const fn code(problem: &Problem) -> &'static str {
    match problem {
        Problem::NotFound => "not_found",
        Problem::MethodNotAllowed { .. } => "method_not_allowed",
        Problem::HeadTooLarge | Problem::BodyTooLarge | Problem::TooManyValues => "too_large",
        Problem::MalformedRequest
        | Problem::BodyIncomplete
        | Problem::MalformedJson
        | Problem::FormBody
        | Problem::BodyNotObject
        | Problem::MalformedProtobuf
        | Problem::MalformedEncoding => "malformed",
        Problem::BodyTimeout => "timed_out",
        Problem::Unauthorized | Problem::InvalidSignature => "unauthorized",
        Problem::Forbidden(_) => "forbidden",
        Problem::OutsideGrant => "outside_grant",
        Problem::RetrievalDisabled => "retrieval_disabled",
        Problem::UnsupportedProvider => "unsupported_provider",
        Problem::Invalid(_) => "invalid",
        Problem::Query(fault) => fault.as_str(),
        Problem::Conflict(code) => code.as_str(),
        Problem::Declined(decline) => decline.as_str(),
        Problem::SessionBound(_) => "session_bound",
        Problem::ReportBound(svc_model::problem::ReportBound::Evidence) => "report_evidence",
        Problem::ReportBound(svc_model::problem::ReportBound::Reply) | Problem::ReplyTooLarge => {
            "oversize"
        }
        Problem::CapacityExceeded => "busy",
        Problem::DeadlineExceeded => "deadline",
        Problem::StoreUnavailable => "database_unavailable",
    }
}

fn message(problem: &Problem) -> String {
    match problem.body().detail {
        Detail::Text(text) => text.into_owned(),
        Detail::Declined(decline) => decline.to_string(),
        Detail::Code(detail) => detail.message.unwrap_or_default().into_owned(),
        Detail::Fields(fields) => {
            let messages: Vec<&str> = fields.iter().map(|field| field.msg.as_ref()).collect();
            messages.join("; ")
        }
    }
}
