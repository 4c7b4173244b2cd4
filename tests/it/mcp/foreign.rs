//! Clients that others wrote, on both transports. They are installed from their registries into a
//! folder that is kept. Where that is impossible, the test says so and ends.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use harness::foreign::{self, cases, install, left_out};
use harness::process;
use harness::programs;
use harness::server::{Backend, RETRIEVAL_TOKEN, Server};
use serde_json::{Value, json};

use super::agent::{TRANSPORTS, Transport, start};
use super::{ask, deliver};

const PYTHON_CLIENT: &str = "mcp==2.3.0";
const NODE_CLIENT: &str = "@modelcontextprotocol/sdk@1.32.2";

/// How long a client may take.
const CLIENT_MAX: Duration = Duration::from_mins(1);

/// A Session whose name needs no encoding in an address.
pub(super) const SESSION: &str = "plain-session";

/// Returns the folder of a client.
fn folder(client: &str) -> PathBuf {
    foreign::folder(Path::new(env!("CARGO_TARGET_TMPDIR")), client)
}

/// Installs npm packages, the first of which names the folder, and returns the folder.
pub(super) fn install_npm(packages: &[&str]) -> Result<PathBuf, String> {
    let folder = folder(packages[0]);
    let mut add = vec!["npm", "install", "--silent", "--no-audit", "--no-fund"];
    add.extend(packages);
    let steps: [&[&str]; 2] = [&["npm", "init", "--yes"], &add];
    install(packages[0], &folder, &steps).map(|()| folder)
}

/// Makes a client ask, and checks what it receives. Returns the revision that it used, if it says
/// so.
fn drive(server: &Server, mut client: Command, mode: &str, transport: Transport) -> Option<String> {
    let (word, target) = match transport {
        Transport::Http => ("http", format!("{}/mcp", server.base_url())),
        Transport::Stdio => (
            "stdio",
            programs::path(programs::SHELL).display().to_string(),
        ),
    };
    client
        .args([mode, word, &target, SESSION, RETRIEVAL_TOKEN])
        .env("SVC_URL", server.base_url());
    let output = process::run(&mut client, b"", CLIENT_MAX).expect("the client ends");
    let stderr = output.stderr_text();
    assert!(output.status.success(), "{mode} {transport:?}:\n{stderr}");
    let got: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let question = json!({"schema_version": 1, "query": "pager window"});
    let found = ask(
        server,
        RETRIEVAL_TOKEN,
        "/query/context/discover",
        &question,
    );
    assert_eq!(
        got["found"]["hits"][0]["reference"], found["items"][0]["preview"]["reference"],
        "{mode} {transport:?}"
    );
    assert_eq!(
        got["tools"],
        json!(["search_evidence", "open_evidence", "list_sessions"])
    );
    assert_eq!(got["templates"], 3);
    let text = |name: &str| got[name].as_str().unwrap_or_default().to_owned();
    assert!(text("text").contains(SESSION), "{got}");
    assert!(
        text("refused").starts_with("refused: outside_grant\n"),
        "{got}"
    );
    assert!(
        text("part").contains("fix the pager in src/pager.rs"),
        "{got}"
    );
    got["version"].as_str().map(str::to_owned)
}

pub(super) fn planted() -> Server {
    let server = start(Backend::Sqlite, &[SESSION]).expect("SQLite is never skipped");
    deliver(&server);
    let call = harness::delivery::Call::new(SESSION, "the-call").body();
    server.deliver("/ingest/gateway", call);
    server
}

#[test]
fn the_python_client_speaks_both_revisions_on_both_transports() {
    let folder = folder(PYTHON_CLIENT);
    let steps: [&[&str]; 2] = [
        &["python3", "-m", "venv", "venv"],
        &["venv/bin/pip", "install", "--quiet", PYTHON_CLIENT],
    ];
    if let Err(why) = install(PYTHON_CLIENT, &folder, &steps) {
        return left_out(&why);
    }
    let server = planted();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/mcp/foreign.py");
    let modes = [
        ("auto", "2026-07-28"),
        ("legacy", "2025-11-25"),
        ("2026-07-28", "2026-07-28"),
    ];
    let all = TRANSPORTS.map(|transport| modes.map(|mode| (transport, mode)));
    for (transport, (mode, version)) in cases(all.as_flattened()) {
        let mut client = Command::new(folder.join("venv/bin/python"));
        client.arg(&script).current_dir(&folder);
        let spoken = drive(&server, client, mode, *transport);
        assert_eq!(spoken.as_deref(), Some(*version), "{mode} {transport:?}");
    }
}

#[test]
fn the_node_client_asks_on_both_transports() {
    let folder = match install_npm(&[NODE_CLIENT]) {
        Ok(folder) => folder,
        Err(why) => return left_out(&why),
    };
    let server = planted();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/mcp/foreign.mjs");
    for transport in cases(&TRANSPORTS) {
        let mut client = Command::new("node");
        client.arg(&script).current_dir(&folder);
        drive(&server, client, "legacy", *transport);
    }
}
