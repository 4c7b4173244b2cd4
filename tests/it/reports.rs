//! What the reports have in common on the wire: the order of their checks, and fixed texts.

use harness::http::{Reply, Request};
use harness::server::{Backend, Configuration, OPERATOR_TOKEN, Server};
use serde_json::{Value, json};

const REPORTS: [&str; 3] = ["model-outcomes", "accepted-work-lifecycle", "spend"];

fn ask(server: &Server, report: &str, query: &str) -> Reply {
    let request = Request::get(format!("/v1/reports/{report}?{query}"));
    server
        .try_send(&request.bearer(OPERATOR_TOKEN))
        .expect("an answer")
}

fn body(reply: &Reply) -> Value {
    serde_json::from_str(&reply.text()).expect("JSON")
}

fn scope(start: &str, end: &str, as_of: &str) -> String {
    format!("cohort_start={start}&cohort_end={end}&as_of={as_of}")
}

#[test]
fn an_invalid_scope_is_refused_with_one_fixed_text() {
    let server = Server::start(Backend::Sqlite, &Configuration::default()).expect("a server");
    let (first, second, later) = (
        "2001-01-01T00:00:00Z",
        "2001-01-02T00:00:00Z",
        "2001-02-02T00:00:00Z",
    );
    for report in REPORTS {
        for (query, text) in [
            (
                scope(first, later, first),
                "report cohort must not exceed 31 days",
            ),
            (
                scope(second, first, first),
                "cohort_start must precede cohort_end",
            ),
            (
                scope(first, first, first),
                "cohort_start must precede cohort_end",
            ),
            (
                scope(first, second, first),
                "cohort_end must not follow as_of",
            ),
        ] {
            let reply = ask(&server, report, &query);
            assert_eq!(reply.status, 422, "{query}");
            assert_eq!(body(&reply), json!({ "detail": text }), "{query}");
        }
    }
}

#[test]
fn every_absent_bound_is_listed_in_order() {
    let server = Server::start(Backend::Sqlite, &Configuration::default()).expect("a server");
    let missing =
        |name: &str| json!({"type": "missing", "loc": ["query", name], "msg": "field required"});
    for report in REPORTS {
        let reply = ask(&server, report, "as_of=");
        assert_eq!(reply.status, 422);
        let detail = &body(&reply)["detail"];
        assert_eq!(detail[0], missing("cohort_start"));
        assert_eq!(detail[1], missing("cohort_end"));
        assert_eq!(detail[2]["loc"], json!(["query", "as_of"]));
        let reply = ask(&server, report, "");
        let expected = ["cohort_start", "cohort_end", "as_of"].map(missing);
        assert_eq!(body(&reply), json!({ "detail": expected }));
    }
}

#[test]
fn a_report_must_not_be_cached_and_its_path_has_one_method() {
    let server = Server::start(Backend::Sqlite, &Configuration::default()).expect("a server");
    let (first, second) = ("2001-01-01T00:00:00Z", "2001-01-02T02:00:00%2B02:00");
    for report in REPORTS {
        // If a parameter is repeated, the last counts.
        let query = format!("as_of=x&{}", scope(first, second, "2261-12-31T00:00:00Z"));
        let reply = ask(&server, report, &format!("{query}&as_off=x"));
        assert_eq!(reply.status, 422, "{}", reply.text());
        assert_eq!(body(&reply)["detail"][0]["loc"], json!(["query", "as_off"]));
        let reply = ask(&server, report, &query);
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(reply.header("cache-control"), Some("no-store"));
        let scope = &body(&reply)["scope"];
        assert_eq!(scope["cohort_end"], "2001-01-02T00:00:00Z");
        assert_eq!(scope["max_inference_calls"], 50_000);
        let posted = Request::post(format!("/v1/reports/{report}"), "{}");
        let reply = server
            .try_send(&posted.bearer(OPERATOR_TOKEN))
            .expect("an answer");
        assert_eq!(reply.status, 405);
        assert_eq!(body(&reply), json!({"detail": "Method Not Allowed"}));
    }
}
