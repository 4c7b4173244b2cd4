//! Converts an unsuccessful answer to the kind of its error.
//!
//! The body is read leniently: for an unknown word of a newer service, or for the page of a proxy,
//! the status alone decides the kind. The fixed texts are those of [`Problem`].

use std::borrow::Cow;

use svc_model::field::{FieldError, FieldKind, Step};
use svc_model::ingest::GatewayProvider;
use svc_model::json::{self, Json};
use svc_model::problem::{
    Code, Decline, Detail, Problem, QueryFault, ReportBound, RequiredAuthority, SessionBound,
};

use crate::error::{Denial, ErrorKind};

/// The maximum length of a closed word in an answer.
const WORD_BYTES_MAX: usize = 64;

/// Returns the kind of an answer. Parts of the body that cannot be read count as absent.
pub(crate) fn kind(status: u16, body: &[u8]) -> ErrorKind {
    let detail = detail(body);
    let detail = detail.as_ref();
    match status {
        300..=399 => ErrorKind::Redirected { status },
        400 if names_provider(detail) => ErrorKind::UnsupportedProvider,
        400 if is(detail, &Problem::BodyIncomplete) => ErrorKind::BodyIncomplete,
        400 => ErrorKind::Malformed,
        401 => ErrorKind::Unauthorized,
        403 => ErrorKind::Forbidden(denial(detail)),
        404 if is(detail, &Problem::RetrievalDisabled) => ErrorKind::RetrievalDisabled,
        404 if code(detail) == Some(Code::SearchDisabled) => ErrorKind::SearchDisabled,
        404 => ErrorKind::NotFound,
        409 => conflict(detail),
        413 => ErrorKind::TooLarge,
        422 => unprocessable(detail),
        503 if is(detail, &Problem::CapacityExceeded) => ErrorKind::Busy,
        503 if is(detail, &Problem::DeadlineExceeded) => ErrorKind::Deadline,
        503 if code(detail) == Some(Code::DatabaseUnavailable) => ErrorKind::StoreUnavailable,
        503 if code(detail) == Some(Code::SearchUnavailable) => ErrorKind::SearchUnavailable,
        408 | 429 | 502 | 503 | 504 => ErrorKind::Unavailable { status },
        _ => ErrorKind::Unrecognised {
            status,
            word: word(detail),
        },
    }
}

fn detail(body: &[u8]) -> Option<Json> {
    Json::parse(body).ok()?.into_object()?.remove("detail")
}

/// Returns whether the answer has the fixed text of this problem.
fn is(detail: Option<&Json>, problem: &Problem) -> bool {
    let Detail::Text(text) = problem.body().detail else {
        return false;
    };
    detail.and_then(Json::as_str) == Some(&text)
}

/// Returns whether the answer says that the service cannot read payloads of a gateway, whichever it
/// is.
fn names_provider(detail: Option<&Json>) -> bool {
    GatewayProvider::ALL
        .iter()
        .any(|provider| is(detail, &Problem::UnsupportedProvider(*provider)))
}

fn denial(detail: Option<&Json>) -> Denial {
    use RequiredAuthority::{Ingest, Operator, Retrieval};
    if is(detail, &Problem::OutsideGrant) {
        return Denial::OutsideGrant;
    }
    [Ingest, Operator, Retrieval]
        .into_iter()
        .find(|authority| is(detail, &Problem::Forbidden(*authority)))
        .map_or(Denial::Other, Denial::Authority)
}

fn conflict(detail: Option<&Json>) -> ErrorKind {
    if let Some(code) = code(detail) {
        return ErrorKind::Conflict(code);
    }
    if let Some(decline) =
        detail.and_then(|detail| json::from_value::<Decline>(detail.clone()).ok())
    {
        return ErrorKind::Declined(decline);
    }
    if is(detail, &Problem::ReplyTooLarge) || is(detail, &Problem::ReportBound(ReportBound::Reply))
    {
        return ErrorKind::Oversize;
    }
    if is(detail, &Problem::ReportBound(ReportBound::Evidence)) {
        return ErrorKind::ReportEvidence;
    }
    SessionBound::ALL
        .into_iter()
        .find(|bound| is(detail, &Problem::SessionBound(*bound)))
        .map_or_else(
            || ErrorKind::Unrecognised {
                status: 409,
                word: word(detail),
            },
            ErrorKind::SessionBound,
        )
}

fn unprocessable(detail: Option<&Json>) -> ErrorKind {
    let is_named = |fault: &QueryFault| fault.code().is_some() && fault.code() == code(detail);
    QueryFault::ALL
        .into_iter()
        .find(|fault| is(detail, &Problem::Query(*fault)) || is_named(fault))
        .map_or_else(|| ErrorKind::Invalid(fields(detail)), ErrorKind::Query)
}

fn code(detail: Option<&Json>) -> Option<Code> {
    let code = detail?.as_object()?.get("code")?;
    json::from_value(code.clone()).ok()
}

/// Returns the closed word of an object, if it looks like one.
fn word(detail: Option<&Json>) -> Option<String> {
    let object = detail?.as_object()?;
    let word = object
        .get("code")
        .or_else(|| object.get("reason"))?
        .as_str()?;
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let closed = (1..=WORD_BYTES_MAX).contains(&word.len()) && word.bytes().all(plain);
    closed.then(|| word.to_owned())
}

/// Returns the invalid fields. A plain text counts as one violation without a path.
fn fields(detail: Option<&Json>) -> Vec<FieldError> {
    match detail {
        Some(Json::Array(items)) => items.iter().map(field).collect(),
        Some(Json::String(text)) => {
            let text = text.to_string_lossy().into_owned();
            vec![FieldError::new(
                FieldKind::ValueError,
                Vec::new(),
                Cow::Owned(text),
            )]
        }
        _ => Vec::new(),
    }
}

/// Returns one invalid field. An unknown kind counts as a value error.
fn field(item: &Json) -> FieldError {
    json::from_value(item.clone()).unwrap_or_else(|_| {
        let member = |name| item.as_object().and_then(|object| object.get(name));
        let loc = member("loc").and_then(|loc| json::from_value::<Vec<Step>>(loc.clone()).ok());
        let msg = member("msg").and_then(Json::as_str).unwrap_or_default();
        FieldError::new(
            FieldKind::ValueError,
            loc.unwrap_or_default(),
            Cow::Owned(msg.to_owned()),
        )
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use svc_model::field::{Violation, Violations};

    use super::*;

    fn violations() -> Violations {
        let mut violations = Violations::default();
        violations.push(
            Violation::new(FieldKind::Missing, "field required")
                .at(vec!["body".into(), "a".into()]),
        );
        violations
            .push(Violation::rule("must be distinct").at(vec!["body".into(), 3_usize.into()]));
        violations
    }

    /// Every problem, with the status that the service gives it and the kind that a caller gets.
    fn table() -> Vec<(u16, Problem, ErrorKind)> {
        use RequiredAuthority::{Ingest, Operator, Retrieval};
        let mut table = vec![
            (404, Problem::NotFound, ErrorKind::NotFound),
            (
                405,
                Problem::MethodNotAllowed { allow: "GET" },
                ErrorKind::Unrecognised {
                    status: 405,
                    word: None,
                },
            ),
            (400, Problem::MalformedRequest, ErrorKind::Malformed),
            (
                431,
                Problem::HeadTooLarge,
                ErrorKind::Unrecognised {
                    status: 431,
                    word: None,
                },
            ),
            (413, Problem::BodyTooLarge, ErrorKind::TooLarge),
            (413, Problem::TooManyValues, ErrorKind::TooLarge),
            (400, Problem::BodyIncomplete, ErrorKind::BodyIncomplete),
            (
                408,
                Problem::BodyTimeout,
                ErrorKind::Unavailable { status: 408 },
            ),
            (401, Problem::Unauthorized, ErrorKind::Unauthorized),
            (401, Problem::InvalidSignature, ErrorKind::Unauthorized),
            (
                403,
                Problem::OutsideGrant,
                ErrorKind::Forbidden(Denial::OutsideGrant),
            ),
            (
                404,
                Problem::RetrievalDisabled,
                ErrorKind::RetrievalDisabled,
            ),
            (400, Problem::MalformedJson, ErrorKind::Malformed),
            (400, Problem::BodyNotObject, ErrorKind::Malformed),
            (400, Problem::LogsNotObject, ErrorKind::Malformed),
            (400, Problem::MalformedProtobuf, ErrorKind::Malformed),
            (400, Problem::MalformedEncoding, ErrorKind::Malformed),
            (
                415,
                Problem::UnsupportedEncoding,
                ErrorKind::Unrecognised {
                    status: 415,
                    word: None,
                },
            ),
            (
                422,
                Problem::Invalid(violations()),
                ErrorKind::Invalid(violations().into_vec()),
            ),
            (503, Problem::CapacityExceeded, ErrorKind::Busy),
            (503, Problem::DeadlineExceeded, ErrorKind::Deadline),
            (503, Problem::StoreUnavailable, ErrorKind::StoreUnavailable),
            (404, Problem::SearchDisabled, ErrorKind::SearchDisabled),
            (
                503,
                Problem::SearchUnavailable,
                ErrorKind::SearchUnavailable,
            ),
        ];
        for authority in [Ingest, Operator, Retrieval] {
            table.push((
                403,
                Problem::Forbidden(authority),
                ErrorKind::Forbidden(Denial::Authority(authority)),
            ));
        }
        for code in [
            Code::InferenceCallIdentityConflict,
            Code::RepositoryIdentityConflict,
        ] {
            table.push((409, Problem::Conflict(code), ErrorKind::Conflict(code)));
        }
        for provider in GatewayProvider::ALL {
            table.push((
                400,
                Problem::UnsupportedProvider(*provider),
                ErrorKind::UnsupportedProvider,
            ));
        }
        table.push((409, Problem::ReplyTooLarge, ErrorKind::Oversize));
        for (bound, kind) in [
            (ReportBound::Evidence, ErrorKind::ReportEvidence),
            (ReportBound::Reply, ErrorKind::Oversize),
        ] {
            table.push((409, Problem::ReportBound(bound), kind));
        }
        for fault in QueryFault::ALL {
            table.push((422, Problem::Query(fault), ErrorKind::Query(fault)));
        }
        for bound in SessionBound::ALL {
            table.push((
                409,
                Problem::SessionBound(bound),
                ErrorKind::SessionBound(bound),
            ));
        }
        for decline in [
            Decline::EvidenceUnavailable {
                reference_index: None,
            },
            Decline::EvidenceUnavailable {
                reference_index: Some(3),
            },
            Decline::EvidencePartAbsent { reference_index: 0 },
            Decline::ContentErased { reference_index: 7 },
            Decline::EvidenceInventoryLimit {
                count: 1_001,
                limit: 1_000,
            },
            Decline::EvidenceSourceLimit {
                bytes: u64::MAX,
                limit: 8,
            },
            Decline::EvidenceResponseLimit { limit: 1_048_576 },
            Decline::RetrievalPartLimit {
                count: 16_385,
                limit: 16_384,
            },
            Decline::RetrievalStateLimit {
                limit_bytes: 33_554_432,
            },
            Decline::RepositorySelectorAmbiguous,
            Decline::RepositoryEvidenceLimit,
            Decline::NonFiniteNumber,
        ] {
            table.push((
                409,
                Problem::Declined(decline.clone()),
                ErrorKind::Declined(decline),
            ));
        }
        table
    }

    #[test]
    fn every_problem_has_its_kind() {
        for (status, problem, expected) in table() {
            let body = json::to_vec(&problem.body(), 1 << 20).unwrap();
            let found = kind(status, &body);
            assert_eq!(found, expected, "{problem:?}");
            assert_eq!(found.status(), Some(status), "{problem:?}");
        }
    }

    #[test]
    fn the_table_has_every_published_reason() {
        let document = svc_model::openapi::openapi_json();
        let document: serde_json::Value = serde_json::from_str(&document).unwrap();
        let reasons = &document["components"]["schemas"]["Decline"]["discriminator"]["mapping"];
        let reasons: BTreeSet<String> = reasons.as_object().unwrap().keys().cloned().collect();
        let in_table = table().into_iter().filter_map(|(_, _, kind)| match kind {
            ErrorKind::Declined(decline) => Some(decline.as_str().to_owned()),
            _ => None,
        });
        assert_eq!(in_table.collect::<BTreeSet<_>>(), reasons);
    }

    #[test]
    fn the_kind_of_a_problem_is_known_from_its_status_alone() {
        for body in [
            "",
            "<html>",
            "[]",
            "{}",
            "{\"detail\":7}",
            "{\"detail\":{\"code\":\"A <b>\"}}",
        ] {
            let kind = |status| kind(status, body.as_bytes());
            assert_eq!(kind(302), ErrorKind::Redirected { status: 302 });
            assert_eq!(kind(400), ErrorKind::Malformed);
            assert_eq!(kind(401), ErrorKind::Unauthorized);
            assert_eq!(kind(403), ErrorKind::Forbidden(Denial::Other));
            assert_eq!(kind(404), ErrorKind::NotFound);
            assert_eq!(kind(413), ErrorKind::TooLarge);
            assert_eq!(kind(422), ErrorKind::Invalid(Vec::new()));
            for status in [429, 502, 503, 504] {
                assert_eq!(kind(status), ErrorKind::Unavailable { status });
            }
            for status in [201, 405, 409, 418, 500] {
                assert_eq!(kind(status), ErrorKind::Unrecognised { status, word: None });
            }
        }
    }

    #[test]
    fn unknown_words_of_a_newer_service_are_kept() {
        let body = br#"{"detail":{"reason":"retention_limit","limit":3}}"#;
        let expected = ErrorKind::Unrecognised {
            status: 409,
            word: Some("retention_limit".to_owned()),
        };
        assert_eq!(kind(409, body), expected);
        assert_eq!(expected.code(), "retention_limit");
    }

    #[test]
    fn a_violation_of_a_newer_kind_keeps_its_place_and_text() {
        let body = br#"{"detail":[{"type":"novel","loc":["body",2,"a"],"msg":"must be new"}]}"#;
        let ErrorKind::Invalid(fields) = kind(422, body) else {
            panic!("no violations");
        };
        assert_eq!(fields[0].kind, FieldKind::ValueError);
        assert_eq!(
            fields[0].loc,
            [Step::from("body"), Step::from(2_usize), Step::from("a")]
        );
        assert_eq!(fields[0].msg, "must be new");
    }

    #[test]
    fn a_violation_that_is_a_text_has_no_place() {
        let ErrorKind::Invalid(fields) = kind(422, br#"{"detail":"start must precede end"}"#)
        else {
            panic!("no violations");
        };
        assert!(fields[0].loc.is_empty());
        assert_eq!(fields[0].msg, "start must precede end");
    }
}
