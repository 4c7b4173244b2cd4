//! Refusals: the closed word, a sentence, and what to do next.

use maud::{Markup, html};
use svc_model::problem::Problem;

use super::guard::ForeignForm;
use super::text::inert;
use crate::problem::{code, message};

/// Shows a problem: its word, a sentence, and what to do next.
pub(super) fn problem(problem: &Problem) -> Markup {
    refusal(
        code(problem),
        &inert(&message(problem)),
        &problem.advice().console(),
    )
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
        "this token is wrong, and so were too many before it",
        &format!("The right token opens the console at once. Another wrong one: wait {seconds} s."),
    )
}
