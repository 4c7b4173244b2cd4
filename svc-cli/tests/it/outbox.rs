//! What the shell says about the deliveries that wait on this machine.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Output;

use svc_client::model::json;
use svc_client::testing::{Answer, FakeServer};
use svc_client::{Outbox, OutboxLimits};

use super::first_use::svc;

/// The URLs of two services, and the names of their outboxes.
const SERVICES: [(&str, &str); 2] = [
    ("https://a.example", "https%3A%2F%2Fa%2Eexample"),
    ("https://b.example", "https%3A%2F%2Fb%2Eexample"),
];

fn folder(home: &Path, index: usize) -> PathBuf {
    home.join(".local/share/svc/outbox").join(SERVICES[index].1)
}

/// Opens the outbox of each service, with a delivery in it.
fn fill(home: &Path) {
    let outcome = r#"{"provider":"other","run_id":"1","repo":"a/b","commit_sha":"0123456789012345678901234567890123456789","branch":"main","result":"passed"}"#;
    for index in 0..SERVICES.len() {
        let outbox = Outbox::open(folder(home, index), OutboxLimits::default()).expect("a disk");
        let outcome: svc_client::model::ingest::VendorCIRequest =
            json::from_slice(outcome.as_bytes()).expect("an outcome");
        outbox.put_blocking(outcome).expect("room");
    }
}

fn run(home: &Path, arguments: &[&str]) -> Output {
    svc(home).args(arguments).output().expect("svc runs")
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

#[test]
fn a_locked_outbox_is_reported_as_in_use_and_does_not_hide_others() {
    let home = tempfile::tempdir().expect("a folder");
    fill(home.path());
    let writers = File::open(folder(home.path(), 0).join("writers")).expect("the lock");
    writers.lock().expect("nobody else has it");

    let shown = run(home.path(), &["outbox", "status", "--json"]);
    let text = printed(&shown);
    assert_eq!(shown.status.code(), Some(0), "{text}");
    let shown: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for (place, (url, _)) in SERVICES.iter().enumerate() {
        assert_eq!(shown[place]["service"], *url);
        assert_eq!(shown[place]["waiting"], 1);
    }
    assert_eq!(shown[0]["in_use"][0]["work"], "adding");
    if cfg!(target_os = "linux") {
        assert_eq!(shown[0]["in_use"][0]["process"], std::process::id());
    }
    assert_eq!(shown[1]["in_use"], serde_json::json!([]));

    let shown = printed(&run(home.path(), &["outbox", "status"]));
    assert!(shown.contains(SERVICES[1].0), "{shown}");
    let line = "the outbox of https://a.example is in use: ";
    assert!(shown.contains(line), "{shown}");
}

#[test]
fn an_outbox_that_cannot_be_opened_does_not_keep_the_others_from_being_sent() {
    let home = tempfile::tempdir().expect("a folder");
    fill(home.path());
    // It is not a folder.
    let broken = folder(home.path(), 0);
    fs::remove_dir_all(&broken).expect("it was there");
    fs::write(&broken, "").expect("a file");

    let shown = run(home.path(), &["outbox", "status", "--json"]);
    assert_eq!(shown.status.code(), Some(1), "it is not the whole answer");
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(shown[0]["waiting"], serde_json::Value::Null);
    assert!(shown[0]["error"].is_string(), "{shown}");
    assert_eq!(shown[1]["waiting"], 1);

    let drained = run(home.path(), &["outbox", "drain", "--json"]);
    assert_eq!(drained.status.code(), Some(1));
    let drained: serde_json::Value = serde_json::from_slice(&drained.stdout).expect("JSON");
    assert!(drained[0]["error"].is_string(), "{drained}");
    assert_eq!(drained[1]["waiting"], 1, "there is no such service");
}

#[test]
fn an_empty_outbox_that_has_stopped_says_so() {
    let home = tempfile::tempdir().expect("a folder");
    drop(Outbox::open(folder(home.path(), 0), OutboxLimits::default()).expect("a disk"));
    let status = || printed(&run(home.path(), &["outbox", "status"]));
    assert_eq!(status(), "nothing is waiting to be delivered\n");
    let reason = r#"{"code":"unauthorized","status":401,"message":"the token is unknown","at":"2026-11-20T12:00:00Z"}"#;
    fs::write(folder(home.path(), 0).join("stopped"), reason).expect("a file");
    let shown = status();
    let line = "deliveries to https://a.example have stopped: the token is unknown\n";
    assert!(shown.contains(line), "{shown}");
}

#[test]
fn a_soft_report_is_kept_whatever_answers_instead_of_the_service() {
    let home = tempfile::tempdir().expect("a folder");
    let page = "<html>Sign in</html>";
    let answers = [
        Answer::text(200, page).header("content-type", "text/html"),
        Answer::text(200, ""),
        Answer::text(204, ""),
        Answer::text(302, "").header("location", "https://login.example"),
        Answer::text(307, "").header("location", "https://login.example"),
        Answer::text(401, r#"{"detail":"unauthorized"}"#),
        Answer::text(403, page),
        Answer::text(404, page),
        Answer::text(500, page),
        Answer::text(520, page),
    ];
    let count = answers.len();
    let server = FakeServer::start(answers);
    let report = |run: &str| {
        let report = [
            "ci",
            "report",
            "--soft-fail",
            "--json",
            "--system=jenkins",
            "--repo=a/b",
            "--commit=0123456789012345678901234567890123456789",
            "--branch=main",
            "--result=passed",
            "--run-id",
            run,
        ];
        let mut command = svc(home.path());
        command.env("SVC_URL", server.url());
        command.env("SVC_TOKEN", "0123456789abcdef0123456789abcdef");
        command.args(report).output().expect("svc runs")
    };
    for run in 1..=count {
        let output = report(&run.to_string());
        let text = printed(&output);
        assert_eq!(output.status.code(), Some(0), "{run}: {text}");
        let shown: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(shown["kept"], true, "{run}");
        assert_eq!(server.received().len(), run, "{text}");
    }
    // What the service itself refuses is refused every time.
    server.answer([Answer::text(422, r#"{"detail":[]}"#)]);
    assert_eq!(report("refused").status.code(), Some(1));

    let receipt = r#"{"fact_id":"00000000-0000-0000-0000-000000000001","stored":true}"#;
    let mut answers = vec![Answer::stored(); count + 1];
    answers[0] = Answer::text(200, receipt);
    server.answer(answers);
    let output = report("last");
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let status = printed(&run(home.path(), &["outbox", "status"]));
    assert_eq!(status, "nothing is waiting to be delivered\n");
    assert_eq!(server.received().len(), 2 * (count + 1));
}
