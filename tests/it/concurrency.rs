//! Concurrent deliveries and reads.

use std::sync::Barrier;
use std::thread;

use harness::delivery::{Call, Receipt, ci_outcome};
use harness::http::{Reply, Request};
use harness::pattern::dig;
use harness::random::Random;
use harness::server::{Backend, Configuration, INGEST_TOKEN, OPERATOR_TOKEN, Server, Store};
use serde_json::json;
use svc_model::json::Json;

/// The number of clients that send at the same moment.
const CLIENTS: usize = 12;
/// How often they send.
const ROUNDS: usize = 8;

on_both_backends! {
    exactly_one_of_several_equal_concurrent_deliveries_is_stored,
    a_read_that_does_not_wait_for_a_slot_is_503_and_the_slot_comes_back,
}

fn exactly_one_of_several_equal_concurrent_deliveries_is_stored(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    check_equal_deliveries(&[&server]);
}

#[test]
fn exactly_one_of_several_equal_deliveries_to_two_servers_is_stored() {
    let Some(store) = Store::create_empty(Backend::Postgres) else {
        return;
    };
    let first = Server::start_on(&store, &Configuration::default());
    let second = Server::start_on(&store, &Configuration::default());
    check_equal_deliveries(&[&first, &second]);
}

fn check_equal_deliveries(servers: &[&Server]) {
    let mut random = Random::new(11);
    for round in 0..ROUNDS {
        let name = format!("call-{round}");
        let call = Call::new("together", &name);
        let named = call
            .clone()
            .captured(&random.uuid(), "2026-01-02T03:04:05Z");
        for (path, body) in [
            ("/ingest/gateway", named.body()),
            // Without an envelope, only the gateway's id of the call shows that they are the same.
            (
                "/ingest/gateway",
                Call::new("together", &format!("bare-{round}")).body(),
            ),
            ("/ingest/ci", ci_outcome(&name).to_string().into_bytes()),
        ] {
            let request = Request::post(path, body).bearer(INGEST_TOKEN);
            let replies = at_once(servers, &request);
            let receipts: Vec<Receipt> = replies.iter().map(Receipt::of).collect();
            let stored = receipts.iter().filter(|receipt| receipt.stored).count();
            assert_eq!(stored, 1, "{path}: {receipts:?}");
            let same = receipts
                .iter()
                .all(|receipt| receipt.fact == receipts[0].fact);
            assert!(same, "{path}: {receipts:?}");
        }
    }
    let inventory = servers[0].read_json("/query/evidence?session_id=together");
    let calls = dig(&inventory, "calls").and_then(Json::as_array);
    assert_eq!(calls.map(<[Json]>::len), Some(2 * ROUNDS));
}

/// Sends one request from many clients at the same moment, to the servers in turn.
fn at_once(servers: &[&Server], request: &Request) -> Vec<Reply> {
    let barrier = Barrier::new(CLIENTS);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (barrier, server) = (&barrier, servers[client % servers.len()]);
                scope.spawn(move || {
                    barrier.wait();
                    server.send(request)
                })
            })
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().expect("a client"))
            .collect()
    })
}

fn a_read_that_does_not_wait_for_a_slot_is_503_and_the_slot_comes_back(backend: Backend) {
    let mut configuration = Configuration::granting(&["long"]);
    configuration
        .variables
        .insert("SVC_READ_SLOTS".into(), "1".into());
    // Every read must fetch and decode everything again, so that reads really overlap.
    configuration
        .variables
        .insert("SVC_CACHE_BYTES".into(), "0".into());
    let Some(server) = Server::start(backend, &configuration) else {
        return;
    };
    let mut random = Random::new(3);
    for number in 0..30 {
        let words: Vec<String> = (0..6_000).map(|_| format!("{:x}", random.bits())).collect();
        let call = Call::new("long", &format!("call-{number}"))
            .messages(vec![json!({"role": "user", "content": words.join(" ")})]);
        assert_eq!(server.deliver("/ingest/gateway", call.body()).status, 200);
    }
    let query = json!({"schema_version": 1, "session_id": "long", "query": "window pager"});
    let request =
        Request::post("/query/context/selected", query.to_string()).bearer(OPERATOR_TOKEN);
    let request = request.header("prefer", "wait=0");
    let replies = at_once(&[&server], &request);
    let answered = replies.iter().filter(|reply| reply.status == 200).count();
    let refused: Vec<&Reply> = replies.iter().filter(|reply| reply.status == 503).collect();
    assert_eq!(answered + refused.len(), CLIENTS, "{replies:?}");
    assert!(answered >= 1, "no read got the slot");
    assert!(
        !refused.is_empty(),
        "{CLIENTS} reads shared one slot without a refusal"
    );
    for reply in refused {
        assert_eq!(reply.text(), r#"{"detail":"work capacity exceeded"}"#);
    }
    assert_eq!(server.send(&request).status, 200, "the slot is not freed");
}
