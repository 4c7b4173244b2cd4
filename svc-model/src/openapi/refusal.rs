//! The answers of a route other than success, by status.

use serde_json::{Map, Value, json};

use super::catalogue::Catalogue;
use super::route::Route;
use crate::endpoint::{Access, Explanation, Grant, Place};
use crate::field::{FieldKind, Step, Violation, Violations};
use crate::ingest::{EVENT_HEADERS, UNNAMED_EVENT};
use crate::problem::{Problem, RequiredAuthority};

/// One documented status: its description, and the problems that it is used for.
#[derive(Debug)]
pub(super) struct DocumentedStatus {
    /// When the status is returned.
    pub(super) description: &'static str,
    /// Its bodies, by name.
    problems: Vec<(&'static str, Problem)>,
}

impl DocumentedStatus {
    /// Describes one status of a route; nothing for a status that a route must not document.
    pub(super) fn of(catalogue: &Catalogue, route: &Route, status: u16) -> Option<Self> {
        let endpoint = &route.endpoint;
        let access = endpoint.access;
        let (description, mut problems) = match status {
            400 => described(endpoint.unreadable),
            401 if access == Access::Signature => (
                "The body is not signed with the webhook secret.",
                vec![("signature", Problem::InvalidSignature)],
            ),
            401 => (
                "There is no credential, or it is not configured, or the token is revoked.",
                vec![("credential", Problem::Unauthorized)],
            ),
            403 => forbidden(access)?,
            404 => (
                not_found(access)?,
                vec![("disabled", Problem::RetrievalDisabled)],
            ),
            409 => described(endpoint.conflict?),
            413 if matches!(access, Access::Ingest | Access::Signature) => (
                "The body is over its cap, which is checked before the credential; or it contains \
                 too many values for one request. Nothing was stored.",
                vec![
                    ("body", Problem::BodyTooLarge),
                    ("values", Problem::TooManyValues),
                ],
            ),
            413 => (
                "The body is over its cap. This is checked before the credential.",
                vec![("body", Problem::BodyTooLarge)],
            ),
            415 => (
                "The content encoding is neither gzip nor identity. Nothing was stored.",
                vec![("encoding", Problem::UnsupportedEncoding)],
            ),
            422 if !endpoint.faults.is_empty() => {
                let mut problems = violation(catalogue, route);
                let faults = endpoint.faults.iter();
                problems.extend(faults.map(|(name, fault)| (*name, Problem::Query(*fault))));
                (
                    "Parameters are invalid, each listed with its path; or they conflict with each \
                     other, which one fixed text explains. The input is not repeated.",
                    problems,
                )
            }
            422 if access == Access::Signature => (
                "No header names the event.",
                vec![("event", unnamed_event())],
            ),
            422 => (
                "Fields of the request are invalid. Every violation is listed with its path; the \
                 input is not repeated.",
                violation(catalogue, route),
            ),
            503 if matches!(access, Access::Ingest | Access::Signature) => (
                "The fact store cannot be reached, or the memory for large requests is in use. \
                 Nothing was acknowledged. Send the same bytes again.",
                vec![
                    ("store", Problem::StoreUnavailable),
                    ("capacity", Problem::CapacityExceeded),
                ],
            ),
            503 => (
                "All read slots are in use, the deadline has passed, or the fact store cannot be \
                 reached. Ask again later.",
                vec![
                    ("capacity", Problem::CapacityExceeded),
                    ("deadline", Problem::DeadlineExceeded),
                    ("store", Problem::StoreUnavailable),
                ],
            ),
            _ => return None,
        };
        if status == 400 && !route.endpoint.content_encodings.is_empty() {
            problems.push(("encoding", Problem::MalformedEncoding));
        }
        Some(Self {
            description,
            problems,
        })
    }

    /// Returns the value of `WWW-Authenticate` for a refused caller.
    pub(super) fn challenge(&self) -> Option<&'static str> {
        self.problems
            .iter()
            .find_map(|(_, problem)| problem.challenge())
    }

    /// Returns the bodies as OpenAPI examples.
    pub(super) fn examples(&self) -> Map<String, Value> {
        self.problems
            .iter()
            .map(|(name, problem)| ((*name).to_owned(), json!({ "value": problem.body() })))
            .collect()
    }
}

type DescribedRefusal = (&'static str, Vec<(&'static str, Problem)>);

fn forbidden(access: Access) -> Option<DescribedRefusal> {
    let (description, authority) = match access {
        Access::Open | Access::Any | Access::Signature => return None,
        Access::Ingest => (
            "The token has neither ingest nor operator authority.",
            RequiredAuthority::Ingest,
        ),
        Access::Operator => (
            "The token does not have operator authority.",
            RequiredAuthority::Operator,
        ),
        Access::Context(_) | Access::Search => (
            "The token has neither retrieval nor operator authority, or the Session is outside its \
             grant, whether or not the Session exists.",
            RequiredAuthority::Retrieval,
        ),
    };
    let mut problems = vec![("authority", Problem::Forbidden(authority))];
    if matches!(access, Access::Context(_) | Access::Search) {
        problems.push(("grant", Problem::OutsideGrant));
    }
    Some((description, problems))
}

fn not_found(access: Access) -> Option<&'static str> {
    match access {
        Access::Open | Access::Any | Access::Ingest | Access::Signature | Access::Operator => None,
        Access::Context(Grant::Single) => Some(
            "Context retrieval is not configured; or it is configured for several Sessions, or the \
             token is a named one, and the request must name the Session.",
        ),
        Access::Context(Grant::Configured) | Access::Search => {
            Some("Context retrieval is not configured.")
        }
    }
}

fn described(explanation: Explanation) -> DescribedRefusal {
    (explanation.description, explanation.problems.to_vec())
}

fn unnamed_event() -> Problem {
    let [name, ..] = EVENT_HEADERS;
    Problem::Invalid(Violations::one(
        UNNAMED_EVENT.at(vec!["header".into(), name.into()]),
    ))
}

/// Returns a violation for the first required member or parameter of the route; nothing if it has
/// neither.
fn violation(catalogue: &Catalogue, route: &Route) -> Vec<(&'static str, Problem)> {
    let member = catalogue
        .required_member(route)
        .map(|name| ("body", name.to_owned()));
    let parameter = route
        .endpoint
        .parameters
        .iter()
        .find(|parameter| parameter.required && parameter.place != Place::Path)
        .map(|parameter| {
            let part = if parameter.place == Place::Header {
                "header"
            } else {
                "query"
            };
            (part, parameter.name.to_owned())
        });
    let Some((part, name)) = member.or(parameter) else {
        return Vec::new();
    };
    let missing = Violation::new(FieldKind::Missing, "field required")
        .at(vec![part.into(), Step::Name(name.into())]);
    vec![("missing", Problem::Invalid(Violations::one(missing)))]
}
