//! What the shell prints when a command fails.

use std::fs;
use std::path::Path;
use std::process::Command;

use harness::server::{Configuration, FORGE_SECRET, INGEST_TOKEN, OPERATOR_TOKEN, UNKNOWN_TOKEN};
use harness::{process, programs};
use serde_json::json;
use svc_model::json::Json;

use super::{COMMAND_MAX, at, refused, start, svc, svc_with};

#[test]
fn an_unknown_command_is_a_usage_error_on_stderr() {
    let server = start(&Configuration::default());
    let error = refused(&svc(&server, &["no-such-command"]), 2);
    assert!(error.contains("no-such-command"), "{error}");
    let error = refused(&svc(&server, &["no-such-command", "--json"]), 2);
    assert_eq!(
        at(&Json::parse(error.as_bytes()).unwrap(), &["error", "code"]),
        &Json::from("usage")
    );
}

#[test]
fn a_generated_token_without_sessions_is_named_as_the_reason() {
    let server = start(&Configuration::default());
    let url = server.variable("SVC_DATABASE_URL").expect("a database");
    let database = Path::new(url.strip_prefix("sqlite://").expect("SQLite"));
    let ingest = json!({"local": INGEST_TOKEN});
    let secrets = format!(
        "SVC_OPERATOR_TOKEN='{OPERATOR_TOKEN}'\nSVC_INGEST_TOKENS='{ingest}'\n\
         SVC_FORGE_WEBHOOK_SECRET='{FORGE_SECRET}'\nSVC_RETRIEVAL_TOKEN='{UNKNOWN_TOKEN}'\n"
    );
    fs::write(database.with_extension("secrets.env"), secrets).expect("a file");
    let me = svc_with(&server, &[("SVC_TOKEN", UNKNOWN_TOKEN)], &["me"]);
    let error = refused(&me, 1);
    assert!(
        error.contains("valid once Sessions are granted to it"),
        "{error}"
    );
}

#[test]
fn every_refusal_says_what_to_do_next() {
    let server = start(&Configuration::default());
    let remote = ("SVC_DATABASE_URL", "");
    for (variables, arguments, code, hint) in [
        (
            &[remote, ("SVC_TOKEN", UNKNOWN_TOKEN)][..],
            &["facts"][..],
            "unauthorized",
            "SVC_TOKEN",
        ),
        (
            &[remote, ("SVC_TOKEN", INGEST_TOKEN)],
            &["facts"],
            "forbidden",
            "svc me",
        ),
        (
            &[remote, ("SVC_TOKEN", "")],
            &["facts"],
            "no_token",
            "SVC_TOKEN",
        ),
        (
            &[remote, ("SVC_URL", "http://127.0.0.1:1")],
            &["facts"],
            "unreachable",
            "svc serve",
        ),
        (
            &[remote, ("SVC_URL", "http://svc.example")],
            &["facts"],
            "configuration",
            "SVC_ALLOW_PLAIN_HTTP",
        ),
        (
            &[remote],
            &["evidence", "manifest", "s", "c"],
            "evidence_unavailable",
            "inventory",
        ),
        (
            &[],
            &["context", "discover", "pager"],
            "retrieval_disabled",
            "SVC_RETRIEVAL_TOKEN",
        ),
        (&[], &["context", "discover", "the"], "invalid_argument", ""),
        (
            &[],
            &["evidence", "read", "s", "nonsense"],
            "invalid_argument",
            "manifest",
        ),
        (
            &[],
            &["quarantine-log", "--tail", "0"],
            "invalid_argument",
            "",
        ),
        (
            &[("SVC_DATABASE_URL", "mysql://a")],
            &["db", "status"],
            "configuration",
            "",
        ),
    ] {
        let error = refused(&svc_with(&server, variables, arguments), 1);
        assert!(error.starts_with("error: "), "{error}");
        assert!(
            hint.is_empty()
                || error
                    .lines()
                    .any(|line| line.starts_with("hint: ") && line.contains(hint)),
            "{error}"
        );
        let arguments = [arguments, &["--json"]].concat();
        let error = refused(&svc_with(&server, variables, &arguments), 1);
        let error = Json::parse(error.as_bytes()).expect("JSON");
        assert_eq!(at(&error, &["error", "code"]), &Json::from(code));
        assert!(at(&error, &["error", "message"]).as_str().is_some());
    }
}

#[test]
fn the_notes_commands_report_a_missing_repository() {
    let home = tempfile::tempdir().unwrap();
    for arguments in [
        &["note", "show"][..],
        &["note", "stamp", "--tool", "t", "s"],
    ] {
        let mut command = Command::new(programs::path(programs::SHELL));
        command.env("HOME", home.path()).current_dir(home.path());
        let output = process::run(command.args(arguments), b"", COMMAND_MAX).unwrap();
        let error = refused(&output, 1);
        assert!(error.contains("not a git repository"), "{error}");
    }
}
