//! Why a page is not there, in its closed word, and what to do next.

use maud::{Markup, html};
use svc_model::problem::{Decline, Problem, QueryFault};

use super::guard::ForeignForm;
use super::text::inert;
use crate::problem::{code, message};

/// Says a problem: its word, a sentence, and what to do next.
pub(super) fn problem(problem: &Problem) -> Markup {
    said(code(problem), &inert(&message(problem)), next(problem))
}

fn said(code: &str, message: &str, next: &str) -> Markup {
    html! {
        div.refusal role="alert" {
            p { strong { "Nothing is shown: " } (message) }
            p { "Reason: " code { (code) } }
            p { (next) }
        }
    }
}

/// Says what to do about a problem.
const fn next(problem: &Problem) -> &'static str {
    match problem {
        Problem::Invalid(_) | Problem::MalformedRequest | Problem::UnsupportedProvider => {
            "Correct what was entered and ask again."
        }
        Problem::Query(fault) => of_fault(*fault),
        Problem::Declined(decline) => of_decline(decline),
        Problem::CapacityExceeded => {
            "All reading places are taken. Wait a moment and reload; if it happens often, raise \
             SVC_READ_SLOTS."
        }
        Problem::DeadlineExceeded => {
            "It would take too long here. Ask for less: fewer days, or one repository. The shell has \
             more time: svc report."
        }
        Problem::StoreUnavailable => {
            "The database gives no answer, or the mirrors cannot be read. Look at both, and reload; \
             svc doctor names what is wrong."
        }
        Problem::SessionBound(_) => {
            "The Session is too large to be told whole, and nothing partial is shown. Its calls can be \
             opened one by one."
        }
        Problem::ReportBound(_) | Problem::ReplyTooLarge => {
            "There is too much for one answer, and nothing partial is shown. Ask for less: fewer days, \
             an earlier end, one repository. The shell reads more: svc report."
        }
        Problem::Unauthorized | Problem::Forbidden(_) | Problem::OutsideGrant => {
            "Sign in with the operator's token."
        }
        Problem::NotFound | Problem::MethodNotAllowed { .. } | Problem::RetrievalDisabled => {
            "Go on from the overview."
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
        QueryFault::ReversedBounds | QueryFault::CohortReversed => {
            "Choose a beginning before the end."
        }
        QueryFault::IncompleteIdentity
        | QueryFault::MissingSelector
        | QueryFault::SelectorConflict => "Name one repository: OWNER/NAME.",
        QueryFault::InvalidCursor
        | QueryFault::CursorMismatch
        | QueryFault::InvalidSessionCursor
        | QueryFault::SessionCursorMismatch => {
            "The page before belongs to another question. Begin with the first page."
        }
        QueryFault::CohortTooLong => "Choose 31 days at most.",
        QueryFault::CohortAfterBoundary => "Choose an end that is not in the future.",
        QueryFault::TargetAbsent | QueryFault::TargetAmbiguous => "Go on from the overview.",
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
            "It is absent or hidden, and which of them is not said. The quarantine log says what was \
             taken out of view: svc quarantine-log."
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
            "It is too much for one answer, and nothing partial is shown. Open a single call from the \
             timeline, or read it in the shell: svc evidence."
        }
        Decline::RepositorySelectorAmbiguous | Decline::RepositoryEvidenceLimit => {
            "Several repositories had this name. Name the one by its identity in the shell: --repo \
             PROVIDER/HOST/ID."
        }
        Decline::NonFiniteNumber => "A number in it cannot be written. Nothing can be done here.",
    }
}

/// Says that the host of a request is none of ours.
pub(super) fn host() -> Markup {
    said(
        "wrong_host",
        "the console is not called by this name",
        "Call it by a host that SVC_CONSOLE_HOSTS names, or add this one there and start the server \
         anew.",
    )
}

/// Says why a form is not looked at.
pub(super) fn foreign_form(foreign: ForeignForm) -> Markup {
    match foreign {
        ForeignForm::Origin => said(
            "foreign_form",
            "the form does not come from a page of this console",
            "Open the console itself and try again. Behind a proxy, let it pass on the headers Host and \
             Origin as they are.",
        ),
        ForeignForm::PlainHttp => said(
            "plain_http",
            "a token is taken over plain HTTP on the machine of the service only",
            "Put a proxy with TLS in front of the service. What was just sent was not encrypted: give \
             the operator a new token.",
        ),
    }
}

/// Says why a token does not open the console.
pub(super) fn token(problem: &Problem) -> Markup {
    let next = match problem {
        Problem::Forbidden(_) => {
            "This token has another authority. The console takes the one of SVC_OPERATOR_TOKEN."
        }
        _ => "Check that it is the one of SVC_OPERATOR_TOKEN, copied whole.",
    };
    said(code(problem), &message(problem), next)
}

/// Says that there were too many wrong tokens.
pub(super) fn too_often(seconds: u64) -> Markup {
    said(
        "too_many_attempts",
        "too many tokens were wrong, and this one was not looked at",
        &format!("Wait {seconds} s and try again."),
    )
}
