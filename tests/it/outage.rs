//! The service survives the loss of its database: what cannot be stored is not acknowledged, what
//! needs no store is answered, and when the database is back, so is the service.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use harness::delivery::{Call, Receipt, allowed_edit, log_record, logs};
use harness::http::Request;
use harness::pattern::dig;
use harness::server::{Backend, Configuration, INGEST_TOKEN, OPERATOR_TOKEN, Server, Store};
use svc_engine::testing::otlp;
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
    let lines = [
        "store.unavailable",
        "store.append_failed",
        "request.answered",
    ];
    let lines = lines.map(|line| server.log().matches(line).count());
    assert_eq!(lines, [1, 0, 0], "one line a delivery: {}", server.log());
    let edit = logs(&allowed_edit("s", "edit"));
    let log = |export: &serde_json::Value| server.deliver("/v1/logs", export.to_string()).status;
    assert_eq!(log(&edit), 503);
    let chatter = logs(&[log_record(
        "claude_code.user_prompt",
        &serde_json::json!({}),
    )]);
    assert_eq!(log(&chatter), 200, "there is nothing to store");
    let packed = Request {
        method: "POST".into(),
        path: "/v1/logs".into(),
        body: Some(otlp::protobuf(
            &Json::parse(edit.to_string().as_bytes()).expect("JSON"),
        )),
        ..Request::default()
    };
    let packed = packed
        .header("content-type", "application/x-protobuf")
        .bearer(INGEST_TOKEN);
    let refused = server.send(&packed);
    assert_eq!(refused.status, 503);
    assert_eq!(refused.body, b"\x12\x16fact store unavailable");
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
    for _ in 0..2 {
        assert_eq!(log(&edit), 200);
        assert_eq!(server.send(&packed).status, 200);
    }
    let facts = server.read_json("/v1/facts");
    let total = dig(&facts, "tables.developer_decisions.total").cloned();
    assert_eq!(total, Some(Json::from(1_i64)), "for every encoding");
}

/// A server waits no longer than this for its database to answer, and then gets time to report it.
const ANSWERED: Duration = Duration::from_secs(33);

#[test]
fn a_database_that_does_not_answer_causes_only_503() {
    let Some((store, network)) = Store::behind_network() else {
        return;
    };
    let mut server = Server::start_on(&store, &Configuration::default());
    let deliver = |server: &Server, name: &str| {
        let call = Call::new("s", name).body();
        server.deliver("/ingest/gateway", call).status
    };
    let read = |server: &Server, path: &str| {
        let request = Request::get(path).bearer(OPERATOR_TOKEN);
        server.send(&request).status
    };
    assert_eq!(deliver(&server, "before"), 200);
    assert_eq!(read(&server, "/v1/facts"), 200);

    network.fall_silent();
    let started = Instant::now();
    thread::scope(|scope| {
        let asked = [
            scope.spawn(|| deliver(&server, "during")),
            scope.spawn(|| deliver(&server, "during too")),
            scope.spawn(|| read(&server, "/v1/facts")),
            scope.spawn(|| read(&server, "/query/evidence?session_id=s")),
        ];
        assert_eq!(read(&server, "/v1/me"), 200, "it needs no database");
        for asked in asked {
            assert_eq!(asked.join().expect("it does not panic"), 503);
        }
    });
    assert!(started.elapsed() < ANSWERED, "{}", server.log());

    network.speak();
    let started = Instant::now();
    while deliver(&server, "during") != 200 || read(&server, "/v1/facts") != 200 {
        assert!(started.elapsed() < ANSWERED, "{}", server.log());
        thread::sleep(Duration::from_millis(50));
    }

    // A server whose writer waits for an answer can still be stopped.
    network.fall_silent();
    let call = Call::new("s", "at the end").body();
    let mut waiting = TcpStream::connect(server.address()).expect("it listens");
    let head = format!(
        "POST /ingest/gateway HTTP/1.1\r\nHost: svc\r\nAuthorization: Bearer {INGEST_TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        call.len()
    );
    waiting.write_all(head.as_bytes()).expect("it reads");
    waiting.write_all(&call).expect("it reads");
    thread::sleep(Duration::from_millis(300));
    assert!(server.stop().success(), "{}", server.log());
}

/// Only looking it up shows whether a commit whose answer is lost was carried out.
#[test]
fn a_commit_with_a_lost_answer_is_carried_out_once() {
    let Some((store, network)) = Store::behind_network() else {
        return;
    };
    let server = Server::start_on(&store, &Configuration::default());
    let deliver = |session: &str, name: &str| {
        let call = Call::new(session, name).body();
        Receipt::of(&server.deliver("/ingest/gateway", call))
    };
    assert!(deliver("s", "before").stored);
    network.lose_answer_to_commit_of("unlucky-session");
    let unlucky = deliver("unlucky-session", "lost");
    assert!(!network.is_to_lose_answer(), "the answer was lost");
    let again = deliver("unlucky-session", "lost");
    assert_eq!(again.fact, unlucky.fact, "{}", server.log());
    assert!(!again.stored);
    assert!(deliver("unlucky-session", "after").stored);
    let facts = server.read_json("/v1/facts");
    let total = dig(&facts, "tables.inference_calls.total").cloned();
    assert_eq!(total, Some(Json::from(3_i64)), "each once");
}

/// The number of clients that send while the store is repeatedly cut off.
const SENDERS: usize = 4;
const OUTAGES: u64 = 3;
/// How long the next answer of a kind may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// A store that is cut off under load acknowledges nothing that it does not keep.
#[test]
fn deliveries_acknowledged_around_an_outage_are_stored() {
    let Some(store) = Store::create(Backend::Postgres) else {
        return;
    };
    let server = Server::start_on(&store, &Configuration::default());
    let database = store.database().expect("a database of the cluster");
    let (acknowledged, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    let ended = AtomicBool::new(false);
    let names: Vec<String> = thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let (server, ended) = (&server, &ended);
                let (acknowledged, refused) = (&acknowledged, &refused);
                scope.spawn(move || {
                    let mut names = Vec::new();
                    for number in 0.. {
                        if ended.load(Ordering::Relaxed) {
                            break;
                        }
                        let name = format!("call-{sender}-{number}");
                        let reply = server.deliver("/ingest/gateway", Call::new("s", &name).body());
                        match reply.status {
                            200 => {
                                acknowledged.fetch_add(1, Ordering::Relaxed);
                                names.push(name);
                            }
                            503 => {
                                refused.fetch_add(1, Ordering::Relaxed);
                            }
                            other => panic!("{other}: {}", reply.text()),
                        }
                    }
                    names
                })
            })
            .collect();
        // The load runs before each outage, meets it, and continues after it.
        let passed = (0..OUTAGES).all(|_| {
            let before = more_of(&acknowledged);
            database.refuse_connections();
            let during = more_of(&refused);
            database.accept_connections();
            before && during
        });
        let after = passed && more_of(&acknowledged);
        ended.store(true, Ordering::Relaxed);
        let names = senders
            .into_iter()
            .flat_map(|sender| sender.join().expect("a sender"))
            .collect();
        assert!(
            after,
            "the load met no outage, or did not outlive it: {}",
            server.log()
        );
        names
    });
    for name in names {
        let again = Receipt::of(&server.deliver("/ingest/gateway", Call::new("s", &name).body()));
        assert!(!again.stored, "{name} was acknowledged and is lost");
    }
}

/// Waits until several more answers of a kind are counted, and returns whether they were.
fn more_of(count: &AtomicU64) -> bool {
    let wanted = count.load(Ordering::Relaxed) + SENDERS as u64;
    let started = Instant::now();
    while count.load(Ordering::Relaxed) < wanted {
        if started.elapsed() > PATIENCE {
            return false;
        }
        thread::sleep(Duration::from_millis(2));
    }
    true
}
