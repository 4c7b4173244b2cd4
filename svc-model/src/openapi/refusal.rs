//! The answers of a route other than success, by status.

use serde_json::{Map, Value, json};

use super::catalogue::{Catalogue, Route};
use crate::endpoint::{
    AcceptedWorkLifecycleReport, Access, CiFailuresQuery, CiOutcomeQuery, CiRunsQuery, CommitQuery,
    Compatibility, Endpoint as _, Grant, GrantAdd, GrantExplain, GrantRemove, Grants, IngestCi,
    IngestGateway, IngestGatewayBatch, Logs, ModelOutcomesReport, Place, Quarantine,
    QuarantineLogPage, Release, SessionCalls, SessionQuery, SessionsQuery, TokenRestore,
};
use crate::field::{FieldKind, Step, Violation, Violations};
use crate::ingest::{EVENT_HEADERS, GatewayProvider, UNNAMED_EVENT};
use crate::problem::{
    Code, Decline, Problem, QueryFault, ReportBound, RequiredAuthority, SessionBound,
};

/// One documented status: its description, and the problems that it is used for.
#[derive(Debug)]
pub(super) struct Refusal {
    /// When the status is returned.
    pub(super) description: &'static str,
    /// Its bodies, by name.
    problems: Vec<(&'static str, Problem)>,
}

impl Refusal {
    /// Describes one status of a route; nothing for a status that a route must not document.
    pub(super) fn of(catalogue: &Catalogue, route: &Route, status: u16) -> Option<Self> {
        let access = route.endpoint.access;
        let name = route.endpoint.name;
        let (description, mut problems) = match status {
            400 if matches!(name, IngestGateway::NAME | IngestGatewayBatch::NAME) => (
                "The body is not JSON, or does not match its `Content-Encoding`, or the gateway has no \
                 adapter. Nothing was stored.",
                vec![
                    ("malformed", Problem::MalformedJson),
                    (
                        "provider",
                        Problem::UnsupportedProvider(GatewayProvider::GatewayB),
                    ),
                ],
            ),
            400 if access == Access::Signature => (
                "The body is not a JSON object, or does not match its `Content-Encoding`.",
                vec![
                    ("malformed", Problem::MalformedJson),
                    ("value", Problem::BodyNotObject),
                ],
            ),
            400 if name == Logs::NAME => (
                "The body is not a JSON object, or not the protobuf message, or does not match its \
                 `Content-Encoding`. Nothing was stored, and sending it again does not help.",
                vec![
                    ("malformed", Problem::MalformedJson),
                    ("object", Problem::LogsNotObject),
                    ("protobuf", Problem::MalformedProtobuf),
                ],
            ),
            400 if name == IngestCi::NAME => (
                "The body does not match its `Content-Encoding`. Nothing was stored.",
                Vec::new(),
            ),
            400 => (
                "The body is not JSON.",
                vec![("malformed", Problem::MalformedJson)],
            ),
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
            409 => conflict(route),
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
            422 if !faults(name).is_empty() => {
                let mut problems = violation(catalogue, route);
                problems.extend(
                    faults(name)
                        .iter()
                        .map(|(name, fault)| (*name, Problem::Query(*fault))),
                );
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

type Described = (&'static str, Vec<(&'static str, Problem)>);

fn forbidden(access: Access) -> Option<Described> {
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
        Access::Context(_) => (
            "The token has neither retrieval nor operator authority, or the Session is outside its \
             grant, whether or not the Session exists.",
            RequiredAuthority::Retrieval,
        ),
    };
    let mut problems = vec![("authority", Problem::Forbidden(authority))];
    if matches!(access, Access::Context(_)) {
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
        Access::Context(Grant::Configured) => Some("Context retrieval is not configured."),
    }
}

fn conflict(route: &Route) -> Described {
    match (route.endpoint.access, route.endpoint.name) {
        (Access::Signature, _) | (Access::Ingest, IngestCi::NAME) => (
            "A fact with the same key is stored with another repository identity.",
            vec![(
                "identity",
                Problem::Conflict(Code::RepositoryIdentityConflict),
            )],
        ),
        (Access::Ingest, _) => (
            "The ids of the delivery belong to another fact. No id of that fact is disclosed.",
            vec![(
                "identity",
                Problem::Conflict(Code::InferenceCallIdentityConflict),
            )],
        ),
        (_, SessionCalls::NAME) => bound(SessionBound::Reconciliation),
        (_, Compatibility::NAME) => bound(SessionBound::Compatibility),
        (_, SessionQuery::NAME) => {
            let (description, mut problems) = bound(SessionBound::Dossier);
            problems.push(("deliveries", Problem::SessionBound(SessionBound::Delivery)));
            problems.push((
                "repositories",
                Problem::Declined(Decline::RepositoryEvidenceLimit),
            ));
            (description, problems)
        }
        (_, ModelOutcomesReport::NAME | AcceptedWorkLifecycleReport::NAME) => (
            "The cohort, the facts related to it, or the reply is too large for a report. There is \
             no partial report.",
            vec![
                ("evidence", Problem::ReportBound(ReportBound::Evidence)),
                ("size", Problem::ReportBound(ReportBound::Reply)),
            ],
        ),
        (_, GrantAdd::NAME) => (
            "Several repositories have the name: give the identity of one.",
            vec![(
                "ambiguous",
                Problem::Declined(Decline::RepositorySelectorAmbiguous),
            )],
        ),
        (_, QuarantineLogPage::NAME | Grants::NAME | GrantExplain::NAME) => (
            "The reply would be too large: ask for fewer rows.",
            vec![("size", Problem::ReplyTooLarge)],
        ),
        (
            _,
            CiOutcomeQuery::NAME
            | CiRunsQuery::NAME
            | CiFailuresQuery::NAME
            | SessionsQuery::NAME
            | CommitQuery::NAME,
        ) => (
            "The selector matches several repositories, and one must be selected; or a bound would \
             be exceeded. There is no partial answer.",
            vec![
                (
                    "ambiguous",
                    Problem::Declined(Decline::RepositorySelectorAmbiguous),
                ),
                (
                    "repositories",
                    Problem::Declined(Decline::RepositoryEvidenceLimit),
                ),
                ("size", Problem::ReplyTooLarge),
            ],
        ),
        _ => (
            "The whole read is declined with a reason: an unavailable fact, a bound that would be \
             exceeded, or a number that is not finite. There is no partial answer.",
            vec![(
                "declined",
                Problem::Declined(Decline::EvidenceResponseLimit {
                    limit: route.endpoint.reply_bytes_max as u64,
                }),
            )],
        ),
    }
}

fn unnamed_event() -> Problem {
    let [name, ..] = EVENT_HEADERS;
    Problem::Invalid(Violations::one(
        UNNAMED_EVENT.at(vec!["header".into(), name.into()]),
    ))
}

fn bound(bound: SessionBound) -> Described {
    (
        "The Session has too many visible facts for this read. There is no partial answer.",
        vec![
            ("bound", Problem::SessionBound(bound)),
            ("size", Problem::ReplyTooLarge),
        ],
    )
}

/// Returns the conflicts between the query parameters of a route, by name.
fn faults(endpoint: &str) -> &'static [(&'static str, QueryFault)] {
    const IDENTITY: (&str, QueryFault) = ("identity", QueryFault::IncompleteIdentity);
    const SELECTOR: (&str, QueryFault) = ("selector", QueryFault::SelectorConflict);
    match endpoint {
        CiOutcomeQuery::NAME | CiRunsQuery::NAME => &[IDENTITY, SELECTOR],
        CiFailuresQuery::NAME => &[
            ("bounds", QueryFault::ReversedBounds),
            IDENTITY,
            ("repository", QueryFault::MissingSelector),
            SELECTOR,
            ("cursor", QueryFault::InvalidCursor),
            ("filters", QueryFault::CursorMismatch),
        ],
        SessionsQuery::NAME => &[
            ("bounds", QueryFault::ReversedBounds),
            IDENTITY,
            SELECTOR,
            ("cursor", QueryFault::InvalidSessionCursor),
            ("filters", QueryFault::SessionCursorMismatch),
        ],
        CommitQuery::NAME => &[("sha", QueryFault::MalformedSha), IDENTITY, SELECTOR],
        ModelOutcomesReport::NAME | AcceptedWorkLifecycleReport::NAME => &[
            ("length", QueryFault::CohortTooLong),
            ("cohort", QueryFault::CohortReversed),
            ("boundary", QueryFault::CohortAfterBoundary),
        ],
        Quarantine::NAME | Release::NAME => &[
            ("absent", QueryFault::TargetAbsent),
            ("ambiguous", QueryFault::TargetAmbiguous),
        ],
        GrantAdd::NAME => &[
            ("full", QueryFault::GrantsFull),
            ("repository", QueryFault::RepositoryAbsent),
            SELECTOR,
        ],
        GrantRemove::NAME => &[
            ("absent", QueryFault::GrantAbsent),
            ("ambiguous", QueryFault::GrantAmbiguous),
        ],
        TokenRestore::NAME => &[("state", QueryFault::TokenNotRevoked)],
        _ => &[],
    }
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
