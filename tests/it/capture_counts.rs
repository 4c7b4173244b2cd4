//! An operator sees whether what a client sends arrives, and why not, without reading the log.

use std::net::SocketAddr;

use harness::delivery::{Call, ci_outcome};
use harness::http::{self, Request};
use harness::pattern::{dig, matches};
use harness::server::{Backend, Configuration, INGEST_TOKEN, OPERATOR_TOKEN, Server};
use serde_json::json;
use svc_model::json::Json;

fn counts(server: &Server) -> Json {
    let reply = server.send(&Request::get("/v1/capture").bearer(OPERATOR_TOKEN));
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

/// Asserts that a member of the counts is this.
fn is(counts: &Json, path: &[&str], wanted: &serde_json::Value) {
    let found = path
        .iter()
        .try_fold(counts, |value, name| dig(value, name))
        .unwrap_or_else(|| panic!("{path:?} is absent"));
    let wanted = Json::parse(wanted.to_string().as_bytes()).expect("JSON");
    matches(&wanted, found, &path.join(".")).unwrap_or_else(|reason| panic!("{reason}"));
}

#[test]
fn stored_repeated_skipped_and_refused_deliveries_are_told_apart() {
    let server = Server::start(Backend::Sqlite, &Configuration::default()).expect("a server");
    let call = Call::new("s", "one");
    for _ in 0..3 {
        server.deliver("/ingest/gateway", call.body());
    }
    let batch = json!([call.bare(), {"litellm_call_id": "two"}, 7]);
    server.deliver("/ingest/gateway/litellm", batch.to_string().into_bytes());
    server.deliver("/ingest/ci", ci_outcome("run").to_string().into_bytes());
    let mut other = ci_outcome("run");
    other["commit_sha"] = json!("b".repeat(40));
    let other = Request::post("/ingest/ci", other.to_string()).bearer(INGEST_TOKEN);
    assert_eq!(server.send(&other).status, 409);
    let unknown = Request::post("/ingest/ci", "{}").bearer("nobody's token of some length");
    assert_eq!(server.send(&unknown).status, 401);

    let counts = counts(&server);
    let gateway = &["sources", "gateway"][..];
    let of = |member: &'static str| [gateway, &[member]].concat();
    is(&counts, &of("deliveries"), &json!(4));
    is(
        &counts,
        &of("facts"),
        &json!({"inference_calls": {"stored": 1, "duplicates": 3}}),
    );
    is(&counts, &of("skipped"), &json!({"no_session": 1}));
    is(&counts, &of("rejected"), &json!({"not_an_object": 1}));
    is(&counts, &["sources", "ci", "conflicts"], &json!(1));
    is(
        &counts,
        &["sources", "ci", "facts", "ci_outcomes"],
        &json!({"stored": 1, "duplicates": 0}),
    );
    is(
        &counts,
        &["answers", "/ingest/ci"],
        &json!({"200": 1, "401": 1, "409": 1}),
    );
    is(
        &counts,
        &["sources", "logs", "last_delivery_at"],
        &json!(null),
    );
}

#[test]
fn the_counts_are_served_for_prometheus_where_it_is_configured() {
    let mut configuration = Configuration::default();
    configuration
        .variables
        .insert("SVC_METRICS_LISTEN".into(), "127.0.0.1:0".into());
    let server = Server::start(Backend::Sqlite, &configuration).expect("a server");
    let log = server.log();
    let address: SocketAddr = log
        .lines()
        .find(|line| line.contains("metrics.started"))
        .and_then(|line| {
            line.split_once("address=")?
                .1
                .split(' ')
                .next()?
                .parse()
                .ok()
        })
        .unwrap_or_else(|| panic!("no address in the log:\n{log}"));
    server.deliver("/ingest/gateway", Call::new("s", "one").body());
    let reply = http::send(address, &Request::get("/metrics")).expect("an answer");
    assert_eq!(reply.status, 200);
    let line = "svc_facts_total{source=\"gateway\",table=\"inference_calls\",outcome=\"stored\"} 1";
    assert!(
        reply.text().lines().any(|found| found == line),
        "{}",
        reply.text()
    );
    let elsewhere = http::send(address, &Request::get("/v1/facts")).expect("an answer");
    assert_eq!(elsewhere.status, 404, "no other route is served there");
    assert_eq!(server.send(&Request::get("/metrics")).status, 404);
}
