//! What was acknowledged is stored, however the server ended.
//!
//! Several clients post gateway calls and CI outcomes as fast as they can, until the server is
//! killed at a random moment. A new server on the same store must then know every fact that the old
//! one acknowledged: sending it again is a redelivery with the same id, and the inventory lists it.
//! What was sent but not acknowledged may or may not be stored, but never in part.
//!
//! For PostgreSQL, the service is killed. The database is its operator's concern.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use harness::delivery::{Call, Receipt, ci_outcome};
use harness::http::{self, Request};
use harness::pattern::dig;
use harness::random::Random;
use harness::server::{Backend, Configuration, INGEST_TOKEN, Server, Store};
use serde_json::json;
use svc_model::json::Json;

/// The number of clients that post at the same time.
const CLIENTS: u64 = 6;
/// The number of servers that are killed, one after another, on one store.
const ROUNDS: u64 = 3;
/// The minimum number of acknowledged facts before a server is killed.
const ACKNOWLEDGED_MIN: u64 = 20;
/// How long that may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);
/// The calls that one client puts into one Session, which are fewer than an inventory may list.
const CALLS_OF_A_SESSION: usize = 150;

on_both_backends! {
    every_acknowledged_fact_survives_a_kill,
    a_stopped_server_keeps_what_it_acknowledged,
}

/// A delivery, and the id of its fact once it was acknowledged.
struct Delivery {
    path: &'static str,
    /// The Session of a call. A CI outcome has none.
    session: Option<String>,
    body: Vec<u8>,
    fact: Option<String>,
}

fn every_acknowledged_fact_survives_a_kill(backend: Backend) {
    let Some(store) = Store::create(backend) else {
        return;
    };
    let configuration = Configuration::default();
    let mut facts = Facts::default();
    for round in 0..ROUNDS {
        let mut server = Server::start_on(&store, &configuration);
        let lifetime = Random::new(round).below(600);
        let lifetime = Duration::from_millis(150 + u64::try_from(lifetime).expect("small"));
        let sent = post_while(server.address(), round, || {
            thread::sleep(lifetime);
            server.kill();
        });
        drop(server);
        let server = Server::start_on(&store, &configuration);
        facts.redeliver(&server, sent);
        facts.check(&server);
    }
}

fn a_stopped_server_keeps_what_it_acknowledged(backend: Backend) {
    let Some(store) = Store::create(backend) else {
        return;
    };
    let configuration = Configuration::default();
    let mut server = Server::start_on(&store, &configuration);
    let sent = post_while(server.address(), 0, || {
        thread::sleep(Duration::from_millis(300));
        let status = server.stop();
        assert!(status.success(), "{status}: {}", server.log());
    });
    let server = Server::start_on(&store, &configuration);
    let mut facts = Facts::default();
    facts.redeliver(&server, sent);
    facts.check(&server);
}

/// Posts from several clients until `meanwhile` has ended the server, and returns what was sent.
fn post_while(address: SocketAddr, round: u64, meanwhile: impl FnOnce()) -> Vec<Delivery> {
    let ended = AtomicBool::new(false);
    let acknowledged = AtomicU64::new(0);
    thread::scope(|scope| {
        let (ended, acknowledged) = (&ended, &acknowledged);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| scope.spawn(move || post(address, round, client, ended, acknowledged)))
            .collect();
        let started = Instant::now();
        while acknowledged.load(Ordering::Relaxed) < ACKNOWLEDGED_MIN {
            assert!(started.elapsed() < PATIENCE, "there is no load");
            thread::sleep(Duration::from_millis(5));
        }
        meanwhile();
        ended.store(true, Ordering::Relaxed);
        let sent = clients
            .into_iter()
            .map(|client| client.join().expect("a client"));
        sent.flatten().collect()
    })
}

/// Posts as one client until the server is gone.
fn post(
    address: SocketAddr,
    round: u64,
    client: u64,
    ended: &AtomicBool,
    acknowledged: &AtomicU64,
) -> Vec<Delivery> {
    let mut random = Random::new(round * CLIENTS + client + 1_000);
    let mut sent: Vec<Delivery> = Vec::new();
    let mut history = Vec::new();
    while !ended.load(Ordering::Relaxed) {
        let number = sent.len();
        let name = format!("{round}-{client}-{number}");
        let mut delivery = if number % 4 == 3 {
            let body = ci_outcome(&name).to_string().into_bytes();
            Delivery {
                path: "/ingest/ci",
                session: None,
                body,
                fact: None,
            }
        } else {
            let session = format!("crash-{round}-{client}-{}", number / CALLS_OF_A_SESSION);
            // A history that grows and starts again, as an agent's does.
            if history.len() > 20 {
                history.clear();
            }
            let text = format!("{name} ").repeat(1 + random.below(400));
            history.push(json!({"role": "user", "content": text}));
            let call = Call::new(&session, &name)
                .captured(&random.uuid(), "2026-01-02T03:04:05Z")
                .messages(history.clone());
            Delivery {
                path: "/ingest/gateway",
                session: Some(session),
                body: call.body(),
                fact: None,
            }
        };
        let request = Request::post(delivery.path, delivery.body.clone()).bearer(INGEST_TOKEN);
        let answer = http::send(address, &request);
        let gone = answer.is_err();
        delivery.fact = answer.ok().map(|reply| Receipt::of(&reply).fact);
        acknowledged.fetch_add(u64::from(delivery.fact.is_some()), Ordering::Relaxed);
        sent.push(delivery);
        if gone {
            break;
        }
    }
    sent
}

/// What the store must contain.
#[derive(Default)]
struct Facts {
    calls: BTreeMap<String, BTreeSet<String>>,
    outcomes: BTreeSet<String>,
}

impl Facts {
    /// Delivers everything once more. Then all of it must be stored.
    fn redeliver(&mut self, server: &Server, sent: Vec<Delivery>) {
        for delivery in sent {
            let Receipt { fact, stored } =
                Receipt::of(&server.deliver(delivery.path, delivery.body));
            if let Some(acknowledged) = delivery.fact {
                assert!(!stored, "{acknowledged} was acknowledged and is lost");
                assert_eq!(
                    fact, acknowledged,
                    "a redelivery has the id of the retained fact"
                );
            }
            let facts = match delivery.session {
                Some(session) => self.calls.entry(session).or_default(),
                None => &mut self.outcomes,
            };
            assert!(facts.insert(fact), "two deliveries have one id");
        }
    }

    /// Checks that the store contains exactly these facts, and each of them completely.
    fn check(&self, server: &Server) {
        for (session, wanted) in &self.calls {
            let inventory = server.read_json(&format!("/query/evidence?session_id={session}"));
            let calls = dig(&inventory, "calls")
                .and_then(Json::as_array)
                .expect("a list of calls");
            let calls: BTreeSet<String> = calls
                .iter()
                .filter_map(|call| dig(call, "inference_call_id")?.as_str().map(str::to_owned))
                .collect();
            assert_eq!(calls, *wanted, "the inventory of {session}");
            for call in wanted.iter().take(5) {
                let manifest = server.read_json(&format!(
                    "/query/evidence/manifest?session_id={session}&inference_call_id={call}"
                ));
                let messages = dig(&manifest, "messages").and_then(Json::as_array);
                let messages = messages.expect("a list of messages");
                assert!(
                    messages.len() >= 2,
                    "{call} of {session} has lost its messages"
                );
            }
        }
        let counts = server.read_json("/v1/facts");
        let total = |table: &str| {
            let total = dig(&counts, &format!("tables.{table}.total"))?;
            total.as_number()?.as_str().parse::<usize>().ok()
        };
        let calls: usize = self.calls.values().map(BTreeSet::len).sum();
        assert_eq!(total("inference_calls"), Some(calls));
        assert_eq!(total("ci_outcomes"), Some(self.outcomes.len()));
    }
}
