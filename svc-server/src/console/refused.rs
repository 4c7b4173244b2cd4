//! Refusals: the closed word, a sentence, and what to do next.

use maud::{Markup, html};
use svc_model::problem::{Decline, Problem, QueryFault};

use super::guard::ForeignForm;
use super::text::inert;
use crate::problem::{code, message};

/// Shows a problem: its word, a sentence, and what to do next.
pub(super) fn problem(problem: &Problem) -> Markup {
    refusal(code(problem), &inert(&message(problem)), next(problem))
}

fn refusal(code: &str, message: &str, next: &str) -> Markup {
    html! {
        div.refusal role="alert" {
            p { strong { "Nothing is shown: " } (message) }
            p { "Reason: " code { (code) } }
            p { (next) }
        }
    }
}

/// Returns what to do about a problem.
const fn next(problem: &Problem) -> &'static str {
    match problem {
        Problem::Invalid(_) | Problem::MalformedRequest | Problem::UnsupportedProvider => {
            "Correct the input and try again."
        }
        Problem::Query(fault) => of_fault(*fault),
        Problem::Declined(decline) => of_decline(decline),
        Problem::CapacityExceeded => {
            "All read slots are in use. Wait a moment and reload; if it happens often, raise \
             SVC_READ_SLOTS."
        }
        Problem::DeadlineExceeded => {
            "It would take too long here. Ask for less: fewer days, or one repository. The shell \
             has more time: svc report."
        }
        Problem::StoreUnavailable => {
            "The database does not answer, or the mirrors cannot be read. Check both and reload; \
             svc doctor finds the cause."
        }
        Problem::SessionBound(_) => {
            "The Session is too large to show, and partial answers are never shown. Its calls can \
             be opened one by one."
        }
        Problem::ReportBound(_) | Problem::ReplyTooLarge => {
            "The answer would be too large, and partial answers are never shown. Ask for less: \
             fewer days, an earlier end, one repository. The shell reads more: svc report."
        }
        Problem::Unauthorized | Problem::Forbidden(_) | Problem::OutsideGrant => {
            "Sign in with the operator's token."
        }
        Problem::NotFound | Problem::MethodNotAllowed { .. } | Problem::RetrievalDisabled => {
            "Go back to the overview."
        }
        Problem::BodyTooLarge
        | Problem::BodyIncomplete
        | Problem::BodyTimeout
        | Problem::HeadTooLarge
        | Problem::TooManyValues
        | Problem::MalformedJson
        | Problem::FormBody
        | Problem::BodyNotObject
        | Problem::MalformedProtobuf
        | Problem::MalformedEncoding
        | Problem::InvalidSignature
        | Problem::Conflict(_) => "Go back and try again.",
    }
}

const fn of_fault(fault: QueryFault) -> &'static str {
    match fault {
        QueryFault::MalformedSha => {
            "Enter the full commit id, 40 or 64 hexadecimal digits: git rev-parse COMMIT."
        }
        QueryFault::ReversedBounds | QueryFault::CohortReversed => "Choose a start before the end.",
        QueryFault::IncompleteIdentity
        | QueryFault::MissingSelector
        | QueryFault::SelectorConflict => "Name one repository: OWNER/NAME.",
        QueryFault::InvalidCursor
        | QueryFault::CursorMismatch
        | QueryFault::InvalidSessionCursor
        | QueryFault::SessionCursorMismatch => {
            "The previous page belongs to another query. Start again from the first page."
        }
        QueryFault::CohortTooLong => "Choose at most 31 days.",
        QueryFault::CohortAfterBoundary => "Choose an end that is not in the future.",
        QueryFault::TargetAbsent | QueryFault::TargetAmbiguous => "Go back to the overview.",
        QueryFault::GrantAbsent
        | QueryFault::GrantAmbiguous
        | QueryFault::GrantsFull
        | QueryFault::RepositoryAbsent
        | QueryFault::TokenNotRevoked => "Grants are changed in the shell: svc grant.",
    }
}

const fn of_decline(decline: &Decline) -> &'static str {
    match decline {
        Decline::EvidenceUnavailable { .. } => {
            "It is absent or hidden; which one is not disclosed. The quarantine log lists what was \
             hidden: svc quarantine-log."
        }
        Decline::EvidencePartAbsent { .. } => "Go back to the call: it lists its parts.",
        Decline::ContentErased { .. } => {
            "What it said was erased, and nothing brings it back. The log says who did it and why: svc \
             erase log."
        }
        Decline::EvidenceInventoryLimit { .. }
        | Decline::EvidenceSourceLimit { .. }
        | Decline::EvidenceResponseLimit { .. }
        | Decline::RetrievalPartLimit { .. }
        | Decline::RetrievalGrantLimit { .. }
        | Decline::RetrievalStateLimit { .. } => {
            "The answer would be too large, and partial answers are never shown. Open a single \
             call from the timeline, or read it in the shell: svc evidence."
        }
        Decline::RepositorySelectorAmbiguous | Decline::RepositoryEvidenceLimit => {
            "Several repositories have had this name. Select one by its identity in the shell: \
             --repo PROVIDER/HOST/ID."
        }
        Decline::NonFiniteNumber => {
            "It contains a number that JSON cannot express, so it cannot be shown here."
        }
    }
}

/// Shows that the host of a request is not one of the console's.
pub(super) fn host() -> Markup {
    refusal(
        "wrong_host",
        "this host name is not configured for the console",
        "Use a host name listed in SVC_CONSOLE_HOSTS, or add this one and restart the server.",
    )
}

/// Shows why a form is refused.
pub(super) fn foreign_form(foreign: ForeignForm) -> Markup {
    match foreign {
        ForeignForm::Origin => refusal(
            "foreign_form",
            "the form was not sent from a page of this console",
            "Open the console and try again. A proxy must pass on the headers Host and Origin \
             unchanged.",
        ),
        ForeignForm::PlainHttp => refusal(
            "plain_http",
            "over plain HTTP, tokens are accepted only on the machine of the service",
            "Put a proxy with TLS in front of the service. The token was just sent unencrypted: \
             replace it with a new one.",
        ),
    }
}

/// Shows why a token is not accepted.
pub(super) fn token(problem: &Problem) -> Markup {
    let next = match problem {
        Problem::Forbidden(_) => {
            "This token has another authority. The console accepts the token of SVC_OPERATOR_TOKEN."
        }
        _ => "Check that it is the token of SVC_OPERATOR_TOKEN, copied completely.",
    };
    refusal(code(problem), &message(problem), next)
}

/// Shows that there were too many wrong tokens.
pub(super) fn too_often(seconds: u64) -> Markup {
    refusal(
        "too_many_attempts",
        "too many wrong tokens; this one was not checked",
        &format!("Wait {seconds} s and try again."),
    )
}
