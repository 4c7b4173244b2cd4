//! What GitHub really sends: its published examples of every webhook, each signed and sent to every
//! route, twice.
//!
//! The examples are the npm package `@octokit/webhooks-examples`, unpacked into the folder that
//! [`FOLDER_VARIABLE`] names, or into `target/webhooks-examples`. Without them, the test says so
//! and ends. If the variable names a folder, they must be there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::thread;

use harness::delivery::Webhook;
use harness::http::Reply;
use harness::pattern::dig;
use harness::server::{Backend, Configuration, Server};
use svc_model::endpoint::{self, Access};
use svc_model::json::{Json, Number};

/// The variable that names the folder of the package.
const FOLDER_VARIABLE: &str = "SVC_TEST_WEBHOOK_EXAMPLES";
/// The number of examples that are sent at once.
const SENDERS: usize = 4;

on_both_backends! {
    every_published_webhook_example_and_its_repetition_are_answered,
}

/// An example: the event, the payload, and an id as GitHub would assign it.
struct Example {
    event: String,
    payload: Vec<u8>,
    id: String,
}

/// Returns the folder of the package, or `None` if the examples are absent and need not be there.
fn folder() -> Option<PathBuf> {
    let given = std::env::var_os(FOLDER_VARIABLE).filter(|given| !given.is_empty());
    if let Some(given) = given {
        let folder = PathBuf::from(given);
        assert!(folder.is_dir(), "{} is not a folder", folder.display());
        return Some(folder);
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let folder = workspace
        .expect("the workspace")
        .join("target/webhooks-examples");
    folder.is_dir().then_some(folder)
}

/// Reads the examples of every version of GitHub, leaving out repetitions.
fn examples(folder: &Path) -> Vec<Example> {
    let mut examples = BTreeSet::new();
    for version in fs::read_dir(folder).expect("the folder of the package") {
        let index = version.expect("an entry").path().join("index.json");
        let Ok(text) = fs::read(&index) else { continue };
        let index = Json::parse(&text).expect("JSON");
        for event in index.as_array().expect("a list of events") {
            let name = dig(event, "name").and_then(Json::as_str).expect("a name");
            let payloads = dig(event, "examples").and_then(Json::as_array);
            for payload in payloads.expect("a list of examples") {
                examples.insert((name.to_owned(), payload.to_canonical()));
            }
        }
    }
    examples
        .into_iter()
        .enumerate()
        .map(|(number, (event, payload))| Example {
            event,
            payload,
            id: format!("72d3162e-cc78-11e3-81ab-{number:012x}"),
        })
        .collect()
}

fn every_published_webhook_example_and_its_repetition_are_answered(backend: Backend) {
    let Some(folder) = folder() else {
        return print_line("the published webhook examples are skipped: they are not there");
    };
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    let examples = examples(&folder);
    assert!(examples.len() > 300, "only {} examples", examples.len());
    let paths: Vec<&str> = endpoint::all()
        .iter()
        .filter(|route| route.access == Access::Signature)
        .map(|route| route.path)
        .collect();
    let answers: BTreeMap<String, usize> = thread::scope(|scope| {
        let senders: Vec<_> = examples
            .chunks(examples.len().div_ceil(SENDERS))
            .map(|chunk| scope.spawn(|| send_all(&server, &paths, chunk)))
            .collect();
        let mut all = BTreeMap::new();
        for sender in senders {
            for (answer, count) in sender.join().expect("a sender") {
                *all.entry(answer).or_default() += count;
            }
        }
        all
    });
    print_line(&format!(
        "{backend:?}: {} published examples sent to {} routes twice: {answers:?}",
        examples.len(),
        paths.len()
    ));
    let facts = server.read_json("/v1/facts");
    for table in ["pushes", "pull_request_revisions", "ci_outcomes"] {
        let total = dig(&facts, &format!("tables.{table}.total")).and_then(Json::as_number);
        assert!(
            total.and_then(Number::as_u64) > Some(0),
            "no example of {table} is stored"
        );
    }
}

/// Sends examples to routes, each twice, and counts the answers.
fn send_all(server: &Server, paths: &[&str], examples: &[Example]) -> BTreeMap<String, usize> {
    let mut answers = BTreeMap::new();
    for example in examples {
        for path in paths {
            let request = Webhook::unnamed(example.payload.as_slice())
                .header("X-GitHub-Event", &example.event)
                .header("X-GitHub-Delivery", &example.id)
                .to(path);
            let what = format!("{path} with {} {}", example.event, example.id);
            let first = server.send(&request);
            let second = server.send(&request);
            assert!(
                matches!(first.status, 200 | 409),
                "{what}: {} {}",
                first.status,
                first.text()
            );
            assert_eq!(second.status, first.status, "{what}: {}", second.text());
            assert_eq!(second.text(), repeated(&first), "{what}");
            *answers.entry(kind(&first)).or_default() += 1;
        }
    }
    answers
}

/// Returns the answer that a repeated delivery must get.
fn repeated(first: &Reply) -> String {
    first.text().replace("\"stored\":true", "\"stored\":false")
}

/// Returns what an answer says, without the id of a fact.
fn kind(reply: &Reply) -> String {
    let body = reply.json();
    let reason = dig(&body, "reason").or_else(|| dig(&body, "detail.code"));
    match reason.and_then(Json::as_str) {
        Some(reason) => reason.to_owned(),
        None if reply.text().contains("\"stored\":true") => "stored".to_owned(),
        None => "known".to_owned(),
    }
}

/// Prints directly to standard error, past the test runner, which hides what a passing test prints.
fn print_line(line: &str) {
    let _ignored = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}
