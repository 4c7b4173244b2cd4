//! A hot standby: what it has can be read, what should be stored is refused with the cause, and
//! once it is promoted, the servers that use it can write.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use harness::delivery::{Call, Receipt};
use harness::http::{self, Request};
use harness::network::Network;
use harness::own_cluster::OwnCluster;
use harness::pattern::dig;
use harness::server::{Configuration, OPERATOR_TOKEN, Server, Store};
use svc_model::json::{Json, Number};

use crate::cli::{done, svc};
use crate::full_store::{all_is_there, deliver, nothing_is_written, reads_go_on};

const STANDBY: &str = "the database is a standby: promote it, or name the primary";
/// A question that is read over two connections if two are free.
const REPORT: &str = "/v1/reports/model-outcomes?cohort_start=2026-01-01T00:00:00Z\
    &cohort_end=2026-01-02T00:00:00Z&as_of=2026-01-03T00:00:00Z";
/// How long a server may take to notice what happened to its database.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn measured() -> Configuration {
    let mut configuration = Configuration::default();
    let listen = ("SVC_METRICS_LISTEN".to_owned(), "127.0.0.1:0".to_owned());
    configuration.variables.extend([listen]);
    configuration
}

/// Returns what prevents a server from writing, according to its metrics.
pub(crate) fn obstacles(server: &Server) -> Vec<String> {
    let address = server.metrics_address();
    let metrics = http::send(address, &Request::get("/metrics")).expect("an answer");
    let metrics = metrics.text();
    let found = metrics.lines().filter_map(|line| {
        let rest = line.strip_prefix("svc_store_obstacle{cause=\"")?;
        let (cause, value) = rest.split_once("\"} ")?;
        (value == "1").then(|| cause.to_owned())
    });
    found.collect()
}

#[test]
fn a_server_on_a_standby_only_reads_until_the_standby_is_promoted() {
    let Some(mut primary) = OwnCluster::create() else {
        return;
    };
    let standby = primary.standby();
    let of_primary = Store::at(primary.url());
    let of_standby = Store::at(standby.url());
    let refused = Server::try_start_on(&of_standby, &Configuration::default());
    let refused = refused.expect_err("there are no tables, and none can be created");
    assert!(refused.contains(STANDBY), "{refused}");

    let writing = Server::start_on(&of_primary, &Configuration::default());
    let mut calls = vec![Call::new("s", "before")];
    assert!(deliver(&writing, &calls[0]));
    standby.catch_up(&primary);
    let reading = Server::start_on(&of_standby, &measured());
    assert!(reading.log().contains(STANDBY), "{}", reading.log());
    assert_eq!(obstacles(&reading), ["standby"]);
    nothing_is_written(&reading, STANDBY);
    assert_eq!(obstacles(&reading), ["standby"]);
    let doctor = svc(&reading, &["doctor"]).stdout_text();
    assert!(doctor.contains(STANDBY), "{doctor}");

    // It answers with the state that it has.
    standby.pause_replay();
    let later = Call::new("s", "later");
    assert!(deliver(&writing, &later));
    calls.push(later);
    reads_go_on(&writing, 2);
    reads_go_on(&reading, 1);
    standby.resume_replay();
    standby.catch_up(&primary);
    reads_go_on(&reading, 2);

    primary.kill();
    reads_go_on(&reading, 2);
    standby.promote();
    let after = Call::new("s", "after");
    assert!(deliver(&reading, &after), "{}", reading.log());
    calls.push(after);
    assert_eq!(obstacles(&reading), [""; 0]);
    all_is_there(&reading, &calls);
}

/// A server whose database has a name that leads to the primary and can be changed to lead to its
/// standby.
struct Failover {
    server: Server,
    network: Network,
    standby: OwnCluster,
    primary: OwnCluster,
}

impl Failover {
    /// Starts them, or returns `None` if PostgreSQL is skipped in this run.
    fn prepare() -> Option<Self> {
        let primary = OwnCluster::create()?;
        let standby = primary.standby();
        let network = Network::before(primary.address()).expect("a port to listen on");
        let url = format!("postgres://postgres@{}/postgres", network.address());
        let server = Server::start_on(&Store::at(url), &Configuration::default());
        Some(Self {
            server,
            network,
            standby,
            primary,
        })
    }
}

/// The number of clients that send while their database fails over.
const SENDERS: usize = 3;

#[test]
fn a_failover_to_a_synchronous_standby_keeps_every_acknowledged_fact_once() {
    let Some(Failover {
        server,
        network,
        standby,
        mut primary,
    }) = Failover::prepare()
    else {
        return;
    };
    primary.wait_for_standby();

    let ended = AtomicBool::new(false);
    let stored: Vec<Call> = thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let (server, ended) = (&server, &ended);
                scope.spawn(move || {
                    let mut stored = Vec::new();
                    // Senders repeat what was not acknowledged.
                    for number in 0.. {
                        let call = Call::new("s", &format!("call-{sender}-{number}"));
                        let start = Instant::now();
                        while !deliver(server, &call) {
                            assert!(start.elapsed() < PATIENCE, "{}", server.log());
                            thread::sleep(Duration::from_millis(5));
                        }
                        stored.push(call);
                        if ended.load(Ordering::SeqCst) {
                            break;
                        }
                    }
                    stored
                })
            })
            .collect();
        wait_until(&server, || {
            let counted = server.read_json("/v1/facts");
            let total = dig(&counted, "tables.inference_calls.total").and_then(Json::as_number);
            total.and_then(Number::as_i64) > Some(20)
        });
        primary.kill();
        network.lead_to(standby.address());
        // What can be read is read before there is a primary.
        wait_until(&server, || {
            let request = Request::get("/query/evidence?session_id=s").bearer(OPERATOR_TOKEN);
            server.send(&request).status == 200 && server.log().contains(STANDBY)
        });
        standby.promote();
        ended.store(true, Ordering::SeqCst);
        let stored = senders.into_iter().map(std::thread::ScopedJoinHandle::join);
        stored
            .flat_map(|stored| stored.expect("a sender"))
            .collect()
    });
    reads_go_on(&server, stored.len());
    all_is_there(&server, &stored);
}

/// What only the lost primary had is lost, and the server does not mistake its memory of it for
/// stored facts.
#[test]
fn after_failover_to_a_lagging_standby_missing_facts_are_stored_again() {
    let Some(Failover {
        server,
        network,
        standby,
        mut primary,
    }) = Failover::prepare()
    else {
        return;
    };
    let again = "what is said again";
    let call = |name: &str, text: &str| {
        let message = serde_json::json!({"role": "user", "content": text});
        Call::new("s", name).messages(vec![message])
    };
    let before = call("before", "what the standby has");
    assert!(deliver(&server, &before));
    standby.catch_up(&primary);
    standby.cut_off();
    let lost = [call("lost", again), call("lost too", again)];
    for call in &lost {
        assert!(deliver(&server, call));
    }
    reads_go_on(&server, 3);

    // One of its connections leads to the primary, and the next one to the standby.
    primary.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'svc'",
    );
    reads_go_on(&server, 3);
    network.lead_to(standby.address());
    let report = Request::get(REPORT).bearer(OPERATOR_TOKEN);
    assert_eq!(server.send(&report).status, 200, "{}", server.log());
    primary.kill();
    wait_until(&server, || server.read("/v1/facts").status == 200);
    reads_go_on(&server, 1);
    assert!(!deliver(&server, &call("refused", again)));
    assert!(server.log().contains(STANDBY), "{}", server.log());
    standby.promote();

    // As far as the server remembers, it has stored this text before: the sender sends it again.
    let after = call("after", again);
    assert!(!deliver(&server, &after) && deliver(&server, &after));
    assert!(server.log().contains("store.set_back"), "{}", server.log());
    for call in &lost {
        let receipt = Receipt::of(&server.deliver("/ingest/gateway", call.body()));
        assert!(receipt.stored, "the new primary lacks it");
    }
    let [one, other] = lost;
    all_is_there(&server, &[before, after, one, other]);
    let transcript = done(&svc(&server, &["transcript", "s"]));
    assert_eq!(transcript.matches(again).count(), 1, "{transcript}");
    assert_eq!(transcript.matches("1 messages as above").count(), 2);
}

fn wait_until(server: &Server, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{}", server.log());
        thread::sleep(Duration::from_millis(20));
    }
}
