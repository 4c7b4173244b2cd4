//! An operator sees whether what a client sends arrives, and if not, why, without reading the log.

use harness::delivery::{Call, Webhook, ci_outcome, log_record, logs};
use harness::http::{self, Request};
use harness::pattern::{dig, matches};
use harness::server::{Backend, Configuration, INGEST_TOKEN, OPERATOR_TOKEN, Server, Store};
use serde_json::json;
use svc_model::json::Json;

fn counts(server: &Server) -> Json {
    let reply = server.send(&Request::get("/v1/capture").bearer(OPERATOR_TOKEN));
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

/// Asserts the value of a member of the counts.
fn is(counts: &Json, path: &[&str], wanted: &serde_json::Value) {
    let found = path
        .iter()
        .try_fold(counts, |value, name| dig(value, name))
        .unwrap_or_else(|| panic!("{path:?} is absent"));
    let wanted = Json::parse(wanted.to_string().as_bytes()).expect("JSON");
    matches(&wanted, found, &path.join(".")).unwrap_or_else(|reason| panic!("{reason}"));
}

#[test]
fn stored_repeated_skipped_and_refused_deliveries_are_counted_separately() {
    let server = Server::start(Backend::Sqlite, &Configuration::default()).expect("a server");
    let call = Call::new("s", "one");
    for _ in 0..3 {
        server.deliver("/ingest/gateway", call.body());
    }
    let mut refused = call.envelope();
    refused["payload"]["litellm_call_id"] = json!("a\u{0}");
    let refused = Request::post("/ingest/gateway", refused.to_string()).bearer(INGEST_TOKEN);
    assert_eq!(server.send(&refused).status, 422);
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
    is(&counts, &of("deliveries"), &json!(5));
    is(
        &counts,
        &of("facts"),
        &json!({"inference_calls": {"stored": 1, "duplicates": 3}}),
    );
    is(&counts, &of("skipped"), &json!({"no_session": 1}));
    is(
        &counts,
        &of("rejected"),
        &json!({"invalid_payload": 1, "not_an_object": 1}),
    );
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

on_both_backends! {
    the_totals_cover_all_servers_and_survive_them,
    what_could_not_be_read_is_counted_with_a_reason,
}

fn what_could_not_be_read_is_counted_with_a_reason(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    let mut empty = Call::new("s", "empty").envelope();
    empty["payload"]["messages"] = json!({"kept": "elsewhere"});
    empty["payload"]["response"] = json!({"kept": "elsewhere"});
    let reply = server.deliver("/ingest/gateway", empty.to_string().into_bytes());
    assert_eq!(reply.status, 200, "{}", reply.text());
    server.deliver("/ingest/gateway", Call::new("s", "full").body());
    let records = ["svc.tool_decison", "claude_code.unheard_of"]
        .map(|event| log_record(event, &json!({"session.id": "s"})));
    let reply = server.deliver("/v1/logs", logs(&records).to_string().into_bytes());
    assert_eq!(reply.status, 200, "{}", reply.text());

    let counts = counts(&server);
    is(
        &counts,
        &["sources", "gateway", "facts"],
        &json!({"inference_calls": {"stored": 2, "duplicates": 0}}),
    );
    is(
        &counts,
        &["sources", "gateway", "skipped"],
        &json!({"no_content": 1}),
    );
    // Events of agents are often not translated. One of our own names is a mistake of the sender.
    is(
        &counts,
        &["sources", "logs", "skipped", "unknown_event"],
        &json!(1),
    );
}

/// Returns the totals by source, without the times.
fn totals(server: &Server) -> Vec<(String, Json)> {
    let counts = counts(server);
    let sources = dig(&counts, "sources")
        .and_then(Json::as_object)
        .expect("the sources");
    let kept = ["deliveries", "facts", "conflicts", "skipped", "rejected"];
    let of = |source: &Json| {
        let members = kept
            .iter()
            .map(|name| (*name, dig(source, name).expect("a count").clone()));
        Json::from(members.collect::<svc_model::json::Object>())
    };
    sources
        .iter()
        .map(|(name, source)| (name.to_string_lossy().into_owned(), of(source)))
        .collect()
}

fn the_totals_cover_all_servers_and_survive_them(backend: Backend) {
    let Some(store) = Store::create(backend) else {
        return;
    };
    let configuration = Configuration::default();
    let mut one = Server::start_on(&store, &configuration);
    let mut other = Server::start_on(&store, &configuration);
    for (server, name) in [(&one, "a"), (&other, "b"), (&one, "b"), (&other, "c")] {
        server.deliver("/ingest/gateway", Call::new("s", name).body());
        // It stores nothing, but is counted.
        let skipped = json!([{"litellm_call_id": name}, 7]).to_string();
        server.deliver("/ingest/gateway/litellm", skipped.into_bytes());
        let ping = Webhook::new("ping", &json!({})).to("/ingest/forge");
        assert_eq!(server.send(&ping).status, 200);
    }
    // Each server writes its counts when it is asked, or within about a second.
    drop(counts(&other));
    let expected = json!({
        "deliveries": 8,
        "facts": {"inference_calls": {"stored": 3, "duplicates": 1}},
        "conflicts": 0,
        "skipped": {"no_session": 4},
        "rejected": {"not_an_object": 4},
    });
    let gateway = |server: &Server| {
        let totals = totals(server);
        let of = |name: &str| {
            totals
                .iter()
                .find(|total| total.0 == name)
                .expect("a source")
                .1
                .clone()
        };
        (of("gateway"), of("forge_other"))
    };
    let (found, pings) = gateway(&one);
    let wanted = Json::parse(expected.to_string().as_bytes()).expect("JSON");
    matches(&wanted, &found, "gateway").unwrap_or_else(|reason| panic!("{reason}"));
    assert_eq!(dig(&pings, "skipped.ping"), Some(&Json::from(4_i64)));
    assert_eq!(totals(&one), totals(&other));

    // What is stored is counted in the same commit, so a killed server loses nothing.
    one.deliver("/ingest/ci", ci_outcome("run").to_string().into_bytes());
    one.kill();
    // A server that is stopped writes the counts of what was not stored.
    other.deliver("/ingest/gateway", Call::new("s", "c").body());
    assert!(other.stop().success());
    let again = Server::start_on(&store, &configuration);
    let after = totals(&again);
    let of = |name: &str| {
        after
            .iter()
            .find(|total| total.0 == name)
            .expect("a source")
            .1
            .clone()
    };
    assert_eq!(
        dig(&of("gateway"), "facts.inference_calls.duplicates"),
        Some(&Json::from(2_i64))
    );
    assert_eq!(
        dig(&of("ci"), "facts.ci_outcomes.stored"),
        Some(&Json::from(1_i64))
    );
    assert_eq!(dig(&of("ci"), "deliveries"), Some(&Json::from(1_i64)));
}

#[test]
fn the_counts_are_served_for_prometheus_where_it_is_configured() {
    let mut configuration = Configuration::default();
    configuration
        .variables
        .insert("SVC_METRICS_LISTEN".into(), "127.0.0.1:0".into());
    let server = Server::start(Backend::Sqlite, &configuration).expect("a server");
    let address = server.metrics_address();
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
