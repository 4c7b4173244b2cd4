//! The tables of docs/reference/errors.md: the requests that are not harmless to repeat, and the
//! published description of each problem with what to do about it.

use std::fmt::Write as _;

use serde_json::Value;
use svc_model::endpoint::{self, Endpoint as _, IngestGatewayBatch, Repeat};
use svc_model::field::Violations;
use svc_model::ingest::GatewayProvider;
use svc_model::problem::{
    Code, Decline, Detail, Problem, QueryFault, ReportBound, RequiredAuthority, SessionBound,
};

use super::status;

/// Returns one problem of every kind, in the order of the documentation.
fn all() -> Vec<Problem> {
    use Problem as P;
    let mut all = vec![
        P::MalformedRequest,
        P::MalformedJson,
        P::FormBody,
        P::BodyNotObject,
        P::LogsNotObject,
        P::MalformedProtobuf,
        P::MalformedEncoding,
        P::BodyIncomplete,
        P::UnsupportedProvider(GatewayProvider::GatewayB),
        P::UnsupportedProvider(GatewayProvider::GatewayC),
        P::UnsupportedProvider(GatewayProvider::Unknown),
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
        P::SearchDisabled,
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
    all.extend([
        P::ReplyTooLarge,
        P::BodyTooLarge,
        P::TooManyValues,
        P::UnsupportedEncoding,
    ]);
    all.push(P::Invalid(Violations::default()));
    all.extend(QueryFault::ALL.map(P::Query));
    all.extend([
        P::HeadTooLarge,
        P::CapacityExceeded,
        P::DeadlineExceeded,
        P::StoreUnavailable,
        P::SearchUnavailable,
    ]);
    all
}

fn declines() -> [Decline; 11] {
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

/// Returns the value of `detail`, with its published description if there is one.
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

/// Returns the routes whose requests must not simply be sent again.
fn repetitions() -> String {
    let mut table = String::from("| Request | Sent again |\n|---|---|\n");
    for route in endpoint::all() {
        let what = match route.repeat {
            Repeat::Safe => continue,
            Repeat::WhenNamed => {
                // A batch has no place for the id of a single delivery.
                let id = if route.path == IngestGatewayBatch::PATH {
                    "`litellm_call_id` of the payload"
                } else {
                    "`payload.litellm_call_id` or `capture.id`"
                };
                format!(
                    "A call with an id is stored once; one without may be stored again. The id is {id}."
                )
            }
            Repeat::Never => "It is recorded again. See first whether it is in the log: `svc \
                              quarantine-log`."
                .to_owned(),
        };
        let method = route.method.as_str();
        // Writing to a string never fails.
        let _ = writeln!(table, "| `{method} {}` | {what} |", route.path);
    }
    table
}

fn problems() -> String {
    let mut table =
        String::from("| Status | `detail` | What it means, and what to do |\n|---|---|---|\n");
    for problem in all() {
        let (detail, sentence) = detail_and_meaning(&problem);
        let status = status(&problem).as_u16();
        let what = [sentence.as_str(), problem.advice().client()].join(" ");
        // Writing to a string never fails.
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
    for table in [repetitions(), problems(), violations()] {
        assert!(
            documentation.contains(&table),
            "put this into docs/reference/errors.md:\n{table}"
        );
    }
}

#[test]
fn every_published_word_is_documented() {
    let problems = problems();
    let document: Value = serde_json::from_str(crate::OPENAPI).expect("JSON");
    let mapping = &document["components"]["schemas"]["Decline"]["discriminator"]["mapping"];
    let reasons = mapping.as_object().expect("reasons").keys().cloned();
    let codes = words("Code").into_iter().map(|(word, _)| word);
    for word in reasons.chain(codes) {
        assert!(problems.contains(&format!("\"{word}\"")), "{word}");
    }
}

#[test]
fn every_problem_has_advice_in_complete_sentences() {
    for problem in all() {
        let advice = problem.advice();
        let sentences = [
            advice.client().to_owned(),
            advice.console(),
            advice.agent(),
            format!("{}.", advice.shell().unwrap_or_default()),
        ];
        for sentence in sentences {
            assert!(sentence.ends_with('.'), "{problem:?}: {sentence}");
        }
    }
}
