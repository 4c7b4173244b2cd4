//! A sender with an outbox and a service that is killed: each delivery becomes exactly one fact.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use harness::pattern::dig;
use harness::random::Random;
use harness::server::{Backend, Configuration, INGEST_TOKEN, Server, Store};
use svc_client::outbox::Ending;
use svc_client::{Client, Outbox, OutboxLimits, RetryPolicy};
use svc_model::facts::AgentHarness;
use svc_model::id::{ForeignId, SessionId};
use svc_model::ingest::event::{Event, FilePath, RetriedTool, RetryLinkage, ToolDecision};
use svc_model::ingest::{GatewayIngestRequest, GatewayProvider, VendorCIRequest};
use svc_model::json::{self, Json};

/// The number of deliveries of each kind.
const DELIVERIES: usize = 60;
/// The number of servers that are killed, one after another, on one store.
const ROUNDS: u64 = 4;

on_both_backends! {
    every_delivery_becomes_one_fact_even_if_the_service_dies,
}

/// A call that only the outbox names.
fn call(number: usize) -> GatewayIngestRequest {
    let payload = format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":"say {number}"}}],"response":{{"choices":[]}}}}"#
    );
    GatewayIngestRequest {
        provider: GatewayProvider::GatewayA,
        session_id: SessionId::new("s-1").ok(),
        user_id: None,
        payload: Json::parse(payload.as_bytes()).expect("a payload"),
        capture: None,
        compare: false,
    }
}

fn outcome(number: usize) -> VendorCIRequest {
    let outcome = harness::delivery::ci_outcome(&format!("run-{number}"));
    json::from_slice(outcome.to_string().as_bytes()).expect("an outcome")
}

/// A decision, and its linkage to the earlier refusal.
fn events(number: usize) -> [Event; 2] {
    let id = |text: &str| ForeignId::new(&format!("{text}-{number}")).expect("an id");
    let path = FilePath::new("src/pager.rs").expect("a path");
    let linkage = RetryLinkage::new(RetriedTool::Edit, &path, id("refused"), id("call"));
    let event = |kind| Event {
        agent: AgentHarness::Pi,
        session_id: SessionId::new("s-1").expect("an id"),
        user_id: None,
        occurred_at: SystemTime::now().try_into().expect("the present"),
        kind,
    };
    let decision = ToolDecision {
        call_id: id("call"),
        file_path: Some(path),
        accepted: true,
        explicit: true,
        tool_name: Some("Edit".to_owned()),
    };
    let linkage = linkage.expect("two calls");
    [event(decision.into()), event(linkage.into())]
}

fn client(server: &Server) -> Client {
    Client::builder(server.base_url())
        .token(INGEST_TOKEN)
        .timeout(Duration::from_secs(10))
        .retry(RetryPolicy::none())
        .build()
        .expect("a client")
}

/// The waiting files, with their contents.
fn waiting(outbox: &Outbox) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(outbox.folder()).expect("a folder");
    entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "delivery"))
        .map(|path| (path.clone(), fs::read(path).expect("a file")))
        .collect()
}

/// The number of facts of each kind, without zeros.
fn facts(server: &Server) -> BTreeMap<String, String> {
    let counts = server.read_json("/v1/facts");
    let tables = dig(&counts, "tables").and_then(Json::as_object);
    let total = |counts: &Json| {
        let total = dig(counts, "total").expect("a number").to_canonical();
        String::from_utf8(total).expect("ASCII")
    };
    tables
        .expect("the tables")
        .iter()
        .map(|(name, counts)| (name.as_str().expect("ASCII").to_owned(), total(counts)))
        .filter(|(_, total)| total != "0")
        .collect()
}

fn every_delivery_becomes_one_fact_even_if_the_service_dies(backend: Backend) {
    let Some(store) = Store::create(backend) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let outbox = Outbox::open(folder.path().join("outbox"), OutboxLimits::default())
        .expect("an outbox")
        .pauses(Duration::from_millis(1), Duration::from_millis(5));
    for number in 0..DELIVERIES {
        outbox.put_blocking(call(number)).expect("room");
        outbox.put_blocking(outcome(number)).expect("room");
        outbox.put_blocking(&events(number)[..]).expect("room");
    }
    let before = waiting(&outbox);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let configuration = Configuration::default();
    for round in 0..ROUNDS {
        let mut server = Server::start_on(&store, &configuration);
        let client = client(&server);
        let lifetime = u64::try_from(Random::new(round).below(120)).expect("small");
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(lifetime));
            server.kill();
        });
        // The sender outlives the service by a moment, and ends in the middle of its work.
        let end = async { tokio::time::sleep(Duration::from_millis(lifetime + 30)).await };
        runtime
            .block_on(outbox.run(&client, end))
            .expect("only failures that pass");
        killer.join().expect("the server is killed");
    }

    let server = Server::start_on(&store, &configuration);
    let drain = || {
        let drained = runtime.block_on(outbox.drain(&client(&server)));
        let drained = drained.expect("a disk");
        assert!(matches!(drained.ending, Ending::Done), "{drained:?}");
        let status = outbox.status().expect("a disk");
        assert_eq!((status.waiting, status.refused), (0, 0));
        drained.acknowledged
    };
    drain();
    // As after a power cut that undid all removals.
    for (path, content) in &before {
        fs::write(path, content).expect("the file again");
    }
    assert_eq!(drain(), before.len() as u64);
    let each = DELIVERIES.to_string();
    let expected = [
        "ci_outcomes",
        "developer_decisions",
        "inference_calls",
        "retry_linkages",
    ];
    let expected = expected.map(|kind| (kind.to_owned(), each.clone()));
    assert_eq!(facts(&server), BTreeMap::from(expected));
}
