//! `svc demo`, which stores example evidence.

use std::process::Command;

use harness::delivery::Call;
use harness::process;
use harness::programs;
use harness::server::{
    Backend, Configuration, FORGE_SECRET, INGEST_TOKEN, OPERATOR_TOKEN, ORGANIZATION, Server, Store,
};
use svc_model::json::Json;

use super::{COMMAND_MAX, DEMO, LAST_CALL, at, done, json, refused, start, svc};

#[test]
fn the_demo_stores_once_finds_and_reads() {
    let server = start(&Configuration::granting(&[DEMO]));
    let url = server.base_url();
    let first = done(&svc(&server, &["demo", "--small"]));
    let expected = format!(
        "planted Session svc-demo at {url}: 4 calls (4 new), 1 decision, 1 CI outcome (1 new)

$ svc context discover 'half-open window'
matched: 1 of 1 known Sessions (1 authorized), 13 of 40 parts match
left out: 4 reasoning

session   score  parts  commit  preview
svc-demo      3     13  -       The window is closed on both ends: `first..=last` includes t…

$ svc evidence read svc-demo {LAST_CALL}:input:4:0 {LAST_CALL}:output:0:0
{LAST_CALL}:input:4:0  2026-01-15T09:31:04.500000Z
  assistant
    The window is closed on both ends: `first..=last` includes the first row of the next page. A half-open window shares no row.

{LAST_CALL}:output:0:0  2026-01-15T09:31:04.500000Z
  assistant, stop
    Fixed: `Pager::window` returned a closed range, so every page repeated its neighbour's first row; it is a half-open window now. Three tests pass, and `pages_do_not_overlap` is new.

next:
  svc evidence inventory svc-demo
  svc facts
  svc install mcp-claude-code
"
    );
    assert_eq!(first, expected);
    let again = json(&svc(&server, &["demo", "--small", "--json"]));
    assert_eq!(
        at(&again, &["planted", "calls"]),
        &Json::parse(br#"{"total":4,"stored":0}"#).unwrap()
    );
    assert_eq!(
        at(&again, &["planted", "ci_outcomes", "stored"]),
        &Json::from(0_u64)
    );
}

#[test]
fn the_demo_starts_its_own_service_if_there_is_none() {
    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(programs::path(programs::SHELL));
        command.env_clear().env("HOME", home.path()).args(arguments);
        process::run(&mut command, b"", COMMAND_MAX).expect("the command ends")
    };
    let first = json(&run(&["demo", "--small", "--json"]));
    assert_eq!(at(&first, &["embedded"]), &Json::from(true));
    assert_eq!(
        at(&first, &["planted", "calls", "stored"]),
        &Json::from(4_u64)
    );
    assert_eq!(at(&first, &["discovery", "status"]), &Json::from("matched"));
    let again = json(&run(&["demo", "--small", "--json"]));
    assert_eq!(
        at(&again, &["planted", "calls", "stored"]),
        &Json::from(0_u64)
    );
    // The store is not the one of another service, whose URL may hold a password.
    let elsewhere = "https://u:s3cr3t@127.0.0.1:1";
    let doctor = run(&["doctor", "--url", elsewhere]);
    let shown = doctor.stdout_text() + &doctor.stderr_text();
    assert!(
        shown.contains("(hidden)@127.0.0.1:1 has another one"),
        "{shown}"
    );
    assert!(!shown.contains("s3cr3t"), "{shown}");
}

#[test]
fn the_demo_plants_an_organization_with_a_repository_once() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("demo");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let svc = |arguments: &[&str]| {
        let mut command = Command::new(programs::path(programs::SHELL));
        command.env_clear().env("HOME", home.path());
        command.env("PATH", &path).args(arguments);
        process::run(&mut command, b"", COMMAND_MAX).expect("the command ends")
    };
    let demo = || {
        let planted = json(&svc(&[
            "demo",
            "--folder",
            folder.to_str().unwrap(),
            "--json",
        ]));
        let organization = at(&planted, &["organization"]).clone();
        assert_eq!(at(&organization, &["mirrored"]), &Json::from(true));
        assert_eq!(at(&organization, &["sessions"]), &Json::from(40_u64));
        let stored = ["calls", "webhooks", "ci_outcomes"];
        (
            stored.map(|kind| at(&organization, &[kind, "stored"]).clone()),
            planted,
        )
    };
    let (first, planted) = demo();
    assert_eq!(first, [71_u64, 43, 44].map(Json::from));
    let (again, _) = demo();
    assert_eq!(again, [0_u64; 3].map(Json::from));

    // The commands that it suggests work on what the folder contains.
    let url = at(&planted, &["own", "database_url"]).as_str().unwrap();
    let report = svc(&["report", "lifecycle", "--database-url", url]);
    let report = done(&report);
    for panel in [
        "attributed to a commit      72.7% (8 of 11; 43.4% to 90.3%)",
        "partially_modified   #.........  5.0% (1 of 20; 0.9% to 23.6%)",
        "in one merged pull request: 87.5% (14 of 16; 64.0% to 96.5%)",
        "retry_linkages             retry_linkage",
    ] {
        assert!(report.contains(panel), "{panel} is not in\n{report}");
    }
    let log = done(&svc(&["quarantine-log", "--database-url", url]));
    assert!(log.contains("1 rows"), "{log}");
}

#[test]
fn the_demo_does_not_touch_mirrors_of_another_service() {
    let store = Store::create(Backend::Sqlite).expect("SQLite is never skipped");
    let home = tempfile::tempdir().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let secrets = [
        ("SVC_ORG_ID", ORGANIZATION.to_owned()),
        ("SVC_OPERATOR_TOKEN", OPERATOR_TOKEN.to_owned()),
        (
            "SVC_INGEST_TOKENS",
            format!(r#"{{"sender":"{INGEST_TOKEN}"}}"#),
        ),
        ("SVC_FORGE_WEBHOOK_SECRET", FORGE_SECRET.to_owned()),
    ];
    let svc = |arguments: &[&str]| {
        let mut command = Command::new(programs::path(programs::SHELL));
        command.env_clear().env("HOME", home.path());
        command.env("PATH", &path).envs(secrets.clone());
        command.env("SVC_DATABASE_URL", store.url()).args(arguments);
        process::run(&mut command, b"", COMMAND_MAX).expect("the command ends")
    };
    let first = json(&svc(&["demo", "--json"]));
    assert_eq!(at(&first, &["organization", "mirrored"]), &Json::from(true));

    // A service that may not fetch from a folder continues with the store.
    let server = Server::start_on(&store, &Configuration::default());
    let mut again = server.shell();
    again.env("HOME", home.path()).envs(secrets.clone());
    again.args(["demo", "--json"]);
    let again = process::run(&mut again, b"", COMMAND_MAX).expect("the command ends");
    let again = json(&again);
    assert_eq!(at(&again, &["organization", "mirrored"]), &Json::from(true));
    let status = json(&svc(&["mirror", "status", "--json"]));
    let mirrors = at(&status, &["mirrors"]).as_array().unwrap();
    let mirror = mirrors[0].as_object().unwrap();
    assert_eq!(mirror.get("state"), Some(&Json::from("idle")));
    assert_eq!(mirror.get("waiting_pushes"), Some(&Json::from(0_u64)));
}

#[test]
fn the_demo_needs_no_secrets_on_postgresql() {
    let Some(store) = Store::create_empty(Backend::Postgres) else {
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let svc = |arguments: &[&str]| {
        let mut command = Command::new(programs::path(programs::SHELL));
        command.env_clear().env("HOME", home.path());
        command
            .env("PATH", &path)
            .env("SVC_DATABASE_URL", store.url());
        process::run(command.args(arguments), b"", COMMAND_MAX).expect("the command ends")
    };
    let first = json(&svc(&["demo", "--json"]));
    assert_eq!(at(&first, &["organization", "mirrored"]), &Json::from(true));
    let again = svc(&["demo"]);
    done(&again);
    let next = String::from_utf8_lossy(&again.stderr);
    for name in ["OPERATOR_TOKEN", "INGEST_TOKENS", "FORGE_WEBHOOK_SECRET"] {
        let line = format!("\n  export SVC_{name}=");
        assert!(next.contains(&line), "{next}");
    }
}

#[test]
fn the_demo_plants_no_organization_among_the_evidence_of_others() {
    let server = start(&Configuration::granting(&[DEMO]));
    for session in ["mine", "yours"] {
        let call = Call::new(session, session);
        assert_eq!(server.deliver("/ingest/gateway", call.body()).status, 200);
    }
    let text = done(&svc(&server, &["demo"]));
    assert!(text.contains("svc demo --folder ./svc-demo"), "{text}");
    assert!(!text.contains("acme/orders"), "{text}");
}

#[test]
fn the_demo_stays_on_this_machine() {
    let server = start(&Configuration::default());
    let error = refused(&svc(&server, &["demo", "--url", "https://svc.example"]), 1);
    assert!(error.contains("--force"), "{error}");
}

#[test]
fn without_a_grant_the_demo_says_how_to_grant_its_session() {
    let server = start(&Configuration::default());
    let text = done(&svc(&server, &["demo", "--small"]));
    assert!(
        text.contains("SVC_RETRIEVAL_SESSION_IDS='[\"svc-demo\"]'"),
        "{text}"
    );
    assert!(text.contains("it is a half-open window now"), "{text}");
}
