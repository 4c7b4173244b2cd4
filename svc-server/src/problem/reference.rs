//! The tables of docs/reference/errors.md: the published description of each problem, and what to
//! do about it.

use std::fmt::Write as _;

use serde_json::Value;
use svc_model::field::Violations;
use svc_model::problem::{
    Code, Decline, Detail, Problem, QueryFault, ReportBound, RequiredAuthority, SessionBound,
};

use super::status;

/// Returns what to do about a problem. A problem without a sentence does not compile.
fn remedy(problem: &Problem) -> &'static str {
    match problem {
        Problem::NotFound => {
            "Check the path and the URL of the service. The documentation is served only with `SVC_ENABLE_DOCS`."
        }
        Problem::MethodNotAllowed { .. } => "Use a method that `Allow` lists.",
        Problem::MalformedRequest => {
            "Send valid HTTP/1.1, with one `Host` and one `Authorization`."
        }
        Problem::HeadTooLarge => "Send a shorter URL or fewer headers.",
        Problem::BodyTooLarge => {
            "Send less in one request. `openapi.json` has the cap of each route as `x-body-bytes-max`."
        }
        Problem::TooManyValues => "Split the request. None of it was stored.",
        Problem::BodyIncomplete | Problem::BodyTimeout => {
            "Send the request again. None of it was used."
        }
        Problem::Unauthorized => {
            "Send a configured token as `Authorization: Bearer TOKEN`; `svc me` shows the client and authority of a token."
        }
        Problem::InvalidSignature => {
            "Set the forge's webhook secret to `SVC_FORGE_WEBHOOK_SECRET`, and send the body exactly as it was signed."
        }
        Problem::Forbidden(RequiredAuthority::Ingest) => "Use an ingest token, or the operator's.",
        Problem::Forbidden(RequiredAuthority::Operator) => "Use the operator's token.",
        Problem::Forbidden(RequiredAuthority::Retrieval) => {
            "Use the retrieval token, or the operator's."
        }
        Problem::OutsideGrant => "Ask for a granted Session; `svc me` lists them.",
        Problem::RetrievalDisabled => {
            "Set `SVC_RETRIEVAL_TOKEN` and the granted Sessions; if several are granted, name one."
        }
        Problem::MalformedJson => "Send JSON.",
        Problem::FormBody => {
            "Set the content type of the webhook to `application/json` at the forge, and redeliver."
        }
        Problem::BodyNotObject => "Send one JSON object.",
        Problem::MalformedProtobuf => {
            "Send the OTLP message of the route, or JSON. Sending the same bytes again does not help."
        }
        Problem::MalformedEncoding => {
            "Send the body uncompressed or as gzip, and name the encoding in `Content-Encoding`."
        }
        Problem::UnsupportedProvider => {
            "Send the payload of a supported gateway, or your own calls as `gateway_a`."
        }
        Problem::Invalid(_) => {
            "Correct every listed field: `loc` is its path, `type` the kind of violation."
        }
        Problem::Query(fault) => of_query(*fault),
        Problem::Conflict(code) => of_code(*code),
        Problem::Declined(decline) => of_decline(decline),
        Problem::SessionBound(_) => {
            "The Session is too large for this read; there is no partial answer. Ask for its inventory or its calls instead."
        }
        Problem::ReportBound(_) => "Use fewer days or an earlier end. There is no partial report.",
        Problem::ReplyTooLarge => "Ask for less: fewer rows, or a narrower query.",
        Problem::CapacityExceeded => "Send the request again after `Retry-After` seconds.",
        Problem::DeadlineExceeded => "Ask again, or ask for less.",
        Problem::StoreUnavailable => {
            "Send the same request again later. If the problem persists, check the server's log and the database."
        }
    }
}

fn of_code(code: Code) -> &'static str {
    match code {
        Code::InferenceCallIdentityConflict => {
            "Give each call unique ids; a call that is sent again keeps all of its ids."
        }
        Code::RepositoryIdentityConflict => "Use another run id or key for another repository.",
        Code::DatabaseUnavailable => "Send the same request again later.",
    }
}

fn of_decline(decline: &Decline) -> &'static str {
    match decline {
        Decline::EvidenceUnavailable { .. } => {
            "To see what is visible: `svc evidence inventory SESSION`."
        }
        Decline::EvidencePartAbsent { .. } => {
            "To see the parts of the call: `svc evidence manifest SESSION CALL`."
        }
        Decline::ContentErased { .. } => {
            "Nothing brings it back; ask an operator why: `svc erase log`."
        }
        Decline::EvidenceInventoryLimit { .. } => "Select one Session, or one with fewer calls.",
        Decline::EvidenceSourceLimit { .. } | Decline::EvidenceResponseLimit { .. } => {
            "Ask for fewer references in one request."
        }
        Decline::RetrievalPartLimit { .. } | Decline::RetrievalStateLimit { .. } => {
            "Select one Session; an operator can raise the limits of a scan."
        }
        Decline::RetrievalGrantLimit { .. } => {
            "Open a Session by its id, or ask an operator to grant fewer: `svc grant list`."
        }
        Decline::RepositorySelectorAmbiguous => "Name the repository by provider, host and id.",
        Decline::RepositoryEvidenceLimit => {
            "Name the repository by provider, host and id, or ask for less."
        }
        Decline::NonFiniteNumber => {
            "Leave out this part: it contains a number that JSON cannot express."
        }
    }
}

fn of_query(fault: QueryFault) -> &'static str {
    match fault {
        QueryFault::MalformedSha => "Give the full id of the commit.",
        QueryFault::ReversedBounds => "Set `captured_after` to a time before `captured_before`.",
        QueryFault::IncompleteIdentity => "Give provider, host and id together.",
        QueryFault::MissingSelector => "Name a repository.",
        QueryFault::SelectorConflict => {
            "Omit the name or the identity: the repository never had that name."
        }
        QueryFault::InvalidCursor | QueryFault::InvalidSessionCursor => {
            "Pass `next_cursor` on unchanged."
        }
        QueryFault::CursorMismatch | QueryFault::SessionCursorMismatch => {
            "Start again without a cursor: the query has changed, or facts were quarantined or released since."
        }
        QueryFault::CohortTooLong => "Use at most 31 days.",
        QueryFault::CohortReversed => "Set `cohort_start` to a time before `cohort_end`.",
        QueryFault::CohortAfterBoundary => "Set `cohort_end` to `as_of` or earlier.",
        QueryFault::TargetAbsent => "Check the table and the id.",
        QueryFault::TargetAmbiguous | QueryFault::GrantAmbiguous => "Give more digits of the id.",
        QueryFault::GrantAbsent => "To see the ids of grants: `svc grant list`.",
        QueryFault::GrantsFull => "Remove a grant that is no longer needed: `svc grant remove ID`.",
        QueryFault::RepositoryAbsent => {
            "Check the name: a rule needs a repository that a push or a note has named."
        }
        QueryFault::TokenNotRevoked => "Nothing to do: the token works.",
    }
}

/// Returns one problem of every kind, in the order of the documentation.
fn all() -> Vec<Problem> {
    use Problem as P;
    let mut all = vec![
        P::MalformedRequest,
        P::MalformedJson,
        P::FormBody,
        P::BodyNotObject,
        P::MalformedProtobuf,
        P::MalformedEncoding,
        P::BodyIncomplete,
        P::UnsupportedProvider,
        P::Unauthorized,
        P::InvalidSignature,
    ];
    let authorities = [
        RequiredAuthority::Ingest,
        RequiredAuthority::Operator,
        RequiredAuthority::Retrieval,
    ];
    all.extend(authorities.map(P::Forbidden));
    all.extend([
        P::OutsideGrant,
        P::NotFound,
        P::RetrievalDisabled,
        P::MethodNotAllowed { allow: "GET" },
        P::BodyTimeout,
    ]);
    let codes = [
        Code::InferenceCallIdentityConflict,
        Code::RepositoryIdentityConflict,
    ];
    all.extend(codes.map(P::Conflict));
    all.extend(declines().map(P::Declined));
    all.extend(SessionBound::ALL.map(P::SessionBound));
    all.extend(ReportBound::ALL.map(P::ReportBound));
    all.extend([P::ReplyTooLarge, P::BodyTooLarge, P::TooManyValues]);
    all.push(P::Invalid(Violations::default()));
    all.extend(QueryFault::ALL.map(P::Query));
    all.extend([
        P::HeadTooLarge,
        P::CapacityExceeded,
        P::DeadlineExceeded,
        P::StoreUnavailable,
    ]);
    all
}

fn declines() -> [Decline; 12] {
    [
        Decline::EvidenceUnavailable {
            reference_index: None,
        },
        Decline::EvidencePartAbsent { reference_index: 0 },
        Decline::ContentErased { reference_index: 0 },
        Decline::EvidenceInventoryLimit { count: 0, limit: 0 },
        Decline::EvidenceSourceLimit { bytes: 0, limit: 0 },
        Decline::EvidenceResponseLimit { limit: 0 },
        Decline::RetrievalPartLimit { count: 0, limit: 0 },
        Decline::RetrievalStateLimit { limit_bytes: 0 },
        Decline::RetrievalGrantLimit { limit: 0 },
        Decline::RepositorySelectorAmbiguous,
        Decline::RepositoryEvidenceLimit,
        Decline::NonFiniteNumber,
    ]
}

fn published() -> Value {
    let schema = include_str!("../../../schemas/ProblemBody.json");
    serde_json::from_str(schema).expect("JSON")
}

/// Returns the words of a published set, each with its description.
fn words(set: &str) -> Vec<(String, String)> {
    let schema = published();
    let values = schema["$defs"][set]["oneOf"].as_array().expect("a set");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    values
        .iter()
        .map(|value| (text(&value["const"]), text(&value["description"])))
        .collect()
}

/// Returns the published description of the reason for a decline.
fn sentence(reason: &str) -> Option<String> {
    let schema = published();
    let definitions = schema["$defs"].as_object().expect("definitions");
    let found = definitions
        .values()
        .find(|schema| schema["properties"]["reason"]["const"] == reason);
    Some(found?["description"].as_str()?.to_owned())
}

/// Returns the value of `detail`, and its published description if there is one.
fn detail_and_meaning(problem: &Problem) -> (String, String) {
    match problem.body().detail {
        Detail::Text(text) => (format!("`\"{text}\"`"), String::new()),
        Detail::Fields(_) => (
            "a list of violations".to_owned(),
            "Fields of the request are invalid; see below.".to_owned(),
        ),
        Detail::Declined(decline) => {
            let reason = decline.as_str();
            let sentence = sentence(reason).expect("every reason is published");
            (format!("`{{\"reason\": \"{reason}\"}}`"), sentence)
        }
        Detail::Code(detail) => {
            let code = detail.code.as_str();
            let words = words("Code");
            let sentence = words.into_iter().find(|(word, _)| word == code);
            let sentence = sentence.expect("every code is published").1;
            (format!("`{{\"code\": \"{code}\"}}`"), sentence)
        }
    }
}

fn problems() -> String {
    let mut table =
        String::from("| Status | `detail` | What it means, and what to do |\n|---|---|---|\n");
    for problem in all() {
        let (detail, sentence) = detail_and_meaning(&problem);
        let status = status(&problem).as_u16();
        let what = [sentence.as_str(), remedy(&problem)].join(" ");
        // Writing to a text never fails.
        let _ = writeln!(table, "| {status} | {detail} | {} |", what.trim());
    }
    table
}

fn violations() -> String {
    let mut table = String::from("| `type` | What is wrong |\n|---|---|\n");
    for (word, sentence) in words("FieldKind") {
        let _ = writeln!(table, "| `{word}` | {sentence} |");
    }
    table
}

#[test]
fn the_documentation_has_these_tables() {
    let documentation = include_str!("../../../docs/reference/errors.md");
    for table in [problems(), violations()] {
        assert!(
            documentation.contains(&table),
            "put this into docs/reference/errors.md:\n{table}"
        );
    }
}

#[test]
fn every_published_word_is_documented() {
    let problems = problems();
    let schema = published();
    let mapping = &schema["$defs"]["Decline"]["discriminator"]["mapping"];
    let reasons = mapping.as_object().expect("reasons").keys().cloned();
    let codes = words("Code").into_iter().map(|(word, _)| word);
    for word in reasons.chain(codes) {
        assert!(problems.contains(&format!("\"{word}\"")), "{word}");
    }
}

#[test]
fn every_sentence_says_what_to_do() {
    for problem in all() {
        let remedy = remedy(&problem);
        assert!(remedy.ends_with('.'), "{problem:?}: {remedy}");
    }
}
