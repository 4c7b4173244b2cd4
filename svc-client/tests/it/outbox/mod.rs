//! Tests the queue on disk against a scripted peer.
#![expect(
    clippy::unwrap_used,
    reason = "what these helpers cannot do fails their test"
)]

mod calls;
mod crashes;
mod keeping;
mod laws;
mod processes;
mod sending;
mod trust;

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use svc_client::model::facts::AgentHarness;
use svc_client::model::id::{ForeignId, SessionId};
use svc_client::model::ingest::event::{Event, ToolDecision};
use svc_client::model::ingest::{GatewayIngestRequest, GatewayProvider, VendorCIRequest};
use svc_client::model::json::{self, Json};
use svc_client::testing::{FakeServer, Received};
use svc_client::{Client, Outbox, OutboxLimits, RetryPolicy};
use tempfile::TempDir;

const TOKEN: &str = "correct-horse-battery-staple-0";

/// Returns a folder for one test, and the outbox in it.
fn outbox() -> (TempDir, Outbox) {
    let folder = tempfile::tempdir().unwrap();
    let outbox = open(&folder.path().join("outbox"));
    (folder, outbox)
}

fn open(folder: &Path) -> Outbox {
    Outbox::open(folder, OutboxLimits::default()).unwrap()
}

/// Returns a client that leaves all retrying to the outbox.
fn client(server: &FakeServer) -> Client {
    Client::builder(server.url())
        .token(TOKEN)
        .retry(RetryPolicy::none())
        .build()
        .unwrap()
}

/// Returns a model call that contains its number.
fn call(number: usize) -> GatewayIngestRequest {
    let payload = format!(r#"{{"number":{number}}}"#);
    GatewayIngestRequest {
        provider: GatewayProvider::GatewayA,
        session_id: None,
        user_id: None,
        payload: Json::parse(payload.as_bytes()).unwrap(),
        capture: None,
        compare: false,
    }
}

/// Returns the outcome of a run that contains its number.
fn run(number: usize) -> VendorCIRequest {
    let text = format!(
        r#"{{"provider":"other","run_id":"{number}","repo":"a/b","commit_sha":"0123456789012345678901234567890123456789","branch":"main","result":"passed"}}"#
    );
    json::from_slice(text.as_bytes()).unwrap()
}

/// Returns an event whose call contains its number.
fn event(number: usize) -> Event {
    Event {
        agent: AgentHarness::Pi,
        session_id: SessionId::new("s-1").unwrap(),
        user_id: None,
        occurred_at: SystemTime::now().try_into().unwrap(),
        kind: ToolDecision {
            call_id: ForeignId::new(&format!("call {number}")).unwrap(),
            file_path: None,
            accepted: true,
            explicit: true,
            tool_name: None,
        }
        .into(),
    }
}

/// Returns the number of a received delivery.
fn number(request: &Received) -> usize {
    let body = Json::parse(&request.body).unwrap().into_object().unwrap();
    if let Some(run) = body.get("run_id") {
        return run.as_str().unwrap().parse().unwrap();
    }
    if let Some(payload) = body.get("payload").and_then(Json::as_object) {
        let written = payload.get("number").unwrap().to_canonical();
        return String::from_utf8(written).unwrap().parse().unwrap();
    }
    let body = str::from_utf8(&request.body).unwrap();
    let (_, rest) = body.split_once("\"call ").unwrap();
    rest.split_once('"').unwrap().0.parse().unwrap()
}

fn numbers(server: &FakeServer) -> Vec<usize> {
    server.received().iter().map(number).collect()
}

/// Returns the names of the files in a folder, in order.
fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Returns the files with this ending, in order.
fn files_ending(folder: &Path, ending: &str) -> Vec<String> {
    let mut names = files(folder);
    names.retain(|name| name.ends_with(ending));
    names
}
