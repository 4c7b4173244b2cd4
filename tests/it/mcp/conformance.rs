//! The protocol's own conformance suite and its inspector, where they can be installed.
//!
//! Most scenarios of the suite call a server that was written for it, with tools such as
//! `test_simple_text`, prompts, and a resource to subscribe to. This service cannot fail at what it
//! does not offer, so each such scenario is in a list, with the reason. All others must pass.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use harness::foreign::{cases, left_out};
use harness::process;
use harness::programs;
use harness::server::{OPERATOR_TOKEN, Server};
use serde_json::Value;

use super::foreign::{SESSION, install_npm, planted};

const SUITE: &str = "@modelcontextprotocol/conformance@0.2.0-alpha.12";
const INSPECTOR: &str = "@modelcontextprotocol/inspector@2.12.0";
/// Both need a later version than distributions have.
const NODE: &str = "node@22.23.3";

/// How long the suite may take for one revision.
const SUITE_MAX: Duration = Duration::from_mins(2);
/// How long the inspector may take.
const INSPECTOR_MAX: Duration = Duration::from_mins(1);

/// Scenarios that say nothing about this service, by how their names begin, and why.
const NOT_OURS: [(&str, &str); 13] = [
    ("tools-call-", "calls a tool of the suite's own server"),
    ("input-required-result-", "no tool asks back"),
    ("elicitation-", "no tool asks back"),
    (
        "json-schema-2020-12",
        "calls a tool of the suite's own server",
    ),
    (
        "http-custom-header-server-validation",
        "no tool takes a header",
    ),
    ("prompts-", "there are no prompts"),
    ("completion-complete", "nothing is completed"),
    ("logging-set-level", "nothing is logged to a client"),
    (
        "resources-read-",
        "reads a resource of the suite's own server",
    ),
    (
        "resources-templates-read",
        "reads a resource of the suite's own server",
    ),
    ("resources-subscribe", "what is stored never changes"),
    ("resources-unsubscribe", "what is stored never changes"),
    ("tasks-", "an extension that this service does not speak"),
];

/// Single checks in the other scenarios that say nothing about this service, and why.
const CHECKS_NOT_OURS: [(&str, &str); 5] = [
    (
        "sep-2549-prompts-list-caching-hints",
        "there are no prompts",
    ),
    (
        "sep-2575-server-rejects-undeclared-capability",
        "no tool needs one of a client",
    ),
    (
        "sep-2575-missing-capability-http-400",
        "no tool needs one of a client",
    ),
    (
        "sep-2575-http-server-no-independent-requests-on-stream",
        "there is no stream",
    ),
    (
        "sep-2575-server-no-log-without-loglevel",
        "nothing is logged to a client",
    ),
];

/// Scenarios that apply to this service, by revision.
const OURS: [(&str, &[&str]); 2] = [
    (
        "2025-11-25",
        &[
            "server-initialize",
            "ping",
            "tools-list",
            "resources-list",
            "dns-rebinding-protection",
        ],
    ),
    (
        "2026-07-28",
        &[
            "server-stateless",
            "tools-list",
            "resources-list",
            "sep-2164-resource-not-found",
            "dns-rebinding-protection",
            "caching",
            "http-header-validation",
        ],
    ),
];

/// The checks of each scenario: names, results and reasons.
type Found = BTreeMap<String, Vec<(String, String, String)>>;

fn run_suite(server: &Server, folder: &Path, revision: &str) -> Found {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/mcp/conformance.mjs");
    let mut suite = Command::new(folder.join("node_modules/.bin/node"));
    suite
        .arg(script)
        .args([&server.base_url(), OPERATOR_TOKEN, revision])
        .arg(folder.join(format!("found-{revision}-{}", std::process::id())))
        .current_dir(folder);
    let output = process::run(&mut suite, b"", SUITE_MAX).expect("the suite ends");
    let stderr = output.stderr_text();
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn the_conformance_suite_finds_no_fault_in_the_offered_features() {
    let folder = match install_npm(&[SUITE, NODE]) {
        Ok(folder) => folder,
        Err(why) => return left_out(&why),
    };
    let server = planted();
    let mut wrong = Vec::new();
    for (revision, ours) in cases(&OURS) {
        let found = run_suite(&server, &folder, revision);
        for scenario in *ours {
            let checks = found.get(*scenario);
            let passed = checks.is_some_and(|all| all.iter().any(|(_, how, _)| how == "SUCCESS"));
            assert!(passed, "{revision}: {scenario} was not run: {found:?}");
        }
        for (scenario, checks) in &found {
            if NOT_OURS
                .iter()
                .any(|(begin, _)| scenario.starts_with(begin))
            {
                continue;
            }
            for (check, how, why) in checks {
                // Two scenarios of the older revision warn that no session is kept, which is
                // allowed.
                let is_wrong = how == "FAILURE" || how == "WARNING" && !check.ends_with("-session");
                let is_ours = CHECKS_NOT_OURS.iter().all(|(known, _)| check != known);
                if is_wrong && is_ours {
                    wrong.push(format!("{revision} {scenario} {check}: {why}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_inspector_reads_on_both_transports() {
    let folder = match install_npm(&[INSPECTOR, NODE]) {
        Ok(folder) => folder,
        Err(why) => return left_out(&why),
    };
    let server = planted();
    let service = server.base_url();
    let http = [
        format!("{service}/mcp"),
        "--transport".to_owned(),
        "http".to_owned(),
        "--header".to_owned(),
        format!("Authorization: Bearer {OPERATOR_TOKEN}"),
    ];
    let stdio = [
        "-e".to_owned(),
        format!("SVC_URL={service}"),
        "-e".to_owned(),
        format!("SVC_TOKEN={OPERATOR_TOKEN}"),
        programs::path(programs::SHELL).display().to_string(),
        "mcp".to_owned(),
    ];
    for transport in cases(&[&http[..], &stdio[..]]) {
        let ask = |arguments: &[&str]| -> Value {
            let mut inspector = Command::new(folder.join("node_modules/.bin/node"));
            inspector
                .arg("node_modules/.bin/mcp-inspector")
                .arg("--cli")
                .args(*transport)
                .args(arguments)
                .env("HOME", &folder)
                .current_dir(&folder);
            let output = process::run(&mut inspector, b"", INSPECTOR_MAX).expect("it ends");
            let stderr = output.stderr_text();
            assert!(output.status.success(), "{arguments:?}: {stderr}");
            serde_json::from_slice(&output.stdout).expect("JSON")
        };
        let tools = ask(&["--method", "tools/list"]);
        assert_eq!(tools["tools"].as_array().map(Vec::len), Some(10), "{tools}");
        let templates = ask(&["--method", "resources/templates/list"]);
        let templates = &templates["resourceTemplates"];
        assert_eq!(templates.as_array().map(Vec::len), Some(3), "{templates}");
        let session = format!("session_id={SESSION}");
        let called = ["--method", "tools/call", "--tool-name", "open_evidence"];
        let called = ask(&[&called[..], &["--tool-arg", &session]].concat());
        let calls = &called["structuredContent"]["calls"];
        assert_eq!(calls.as_array().map(Vec::len), Some(1), "{called}");
        let uri = format!("svc://session/{SESSION}");
        let read = ask(&["--method", "resources/read", "--uri", &uri]);
        assert_eq!(read["contents"][0]["uri"], uri.as_str(), "{read}");
    }
}
