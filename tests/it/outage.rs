//! The service outlives its database: what cannot be stored is not acknowledged, what needs no
//! store is answered, and when the database is back so is the service.

use std::thread;
use std::time::{Duration, Instant};

use harness::delivery::{Call, Receipt};
use harness::http::Request;
use harness::pattern::dig;
use harness::server::{Backend, Configuration, OPERATOR_TOKEN, Server, Store};
use svc_model::json::Json;

#[test]
fn an_outage_is_503_and_ends_when_the_database_is_back() {
    let Some(store) = Store::create(Backend::Postgres) else {
        return;
    };
    let server = Server::start_on(&store, &Configuration::default());
    let database = store.database().expect("a database of the cluster");
    let deliver = |name: &str| server.deliver("/ingest/gateway", Call::new("s", name).body());
    assert!(Receipt::of(&deliver("before")).stored);

    database.refuse_connections();
    let refused = deliver("during");
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert_eq!(
        dig(&refused.json(), "detail.code").and_then(Json::as_str),
        Some("database_unavailable")
    );
    let read = |path: &str| {
        server
            .send(&Request::get(path).bearer(OPERATOR_TOKEN))
            .status
    };
    assert_eq!(read("/v1/facts"), 503);
    assert_eq!(read("/query/evidence?session_id=s"), 503);
    assert_eq!(read("/v1/me"), 200);
    assert_eq!(read("/health"), 200);

    database.accept_connections();
    let started = Instant::now();
    while deliver("during").status != 200 {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "{}",
            server.log()
        );
        thread::sleep(Duration::from_millis(50));
    }
    let facts = server.read_json("/v1/facts");
    let total = dig(&facts, "tables.inference_calls.total").cloned();
    assert_eq!(total, Some(Json::from(2_i64)), "each delivery once");
}

/// A store that is cut off in the middle of a load acknowledges nothing that it does not keep.
#[test]
fn what_was_acknowledged_around_an_outage_is_there() {
    let Some(store) = Store::create(Backend::Postgres) else {
        return;
    };
    let server = Server::start_on(&store, &Configuration::default());
    let database = store.database().expect("a database of the cluster");
    let acknowledged: Vec<String> = thread::scope(|scope| {
        let senders: Vec<_> = (0..4)
            .map(|sender| {
                let server = &server;
                scope.spawn(move || {
                    (0..60)
                        .map(|number| format!("call-{sender}-{number}"))
                        .filter(|name| {
                            let reply =
                                server.deliver("/ingest/gateway", Call::new("s", name).body());
                            assert!([200, 503].contains(&reply.status), "{}", reply.text());
                            reply.status == 200
                        })
                        .collect::<Vec<String>>()
                })
            })
            .collect();
        for _ in 0..3 {
            thread::sleep(Duration::from_millis(60));
            database.refuse_connections();
            database.accept_connections();
        }
        senders
            .into_iter()
            .flat_map(|it| it.join().expect("a sender"))
            .collect()
    });
    assert!(!acknowledged.is_empty());
    for name in acknowledged {
        let again = Receipt::of(&server.deliver("/ingest/gateway", Call::new("s", &name).body()));
        assert!(!again.stored, "{name} was acknowledged and is lost");
    }
}
