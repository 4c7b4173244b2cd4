//! `svc doctor`, which checks the setup.

use std::process::Command;

use harness::http::Request;
use harness::process;
use harness::programs;
use harness::server::{Configuration, OPERATOR_TOKEN, UNKNOWN_TOKEN};
use svc_model::json::Json;

use super::{COMMAND_MAX, at, done, json, start, svc_with};

#[test]
fn the_doctor_reports_each_failure_and_its_fix() {
    let server = start(&Configuration::default());
    let home = tempfile::tempdir().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let doctor = |token: &str, more: &[&str]| {
        let mut command = Command::new(programs::path(programs::SHELL));
        command
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", &path);
        command
            .env("SVC_URL", server.base_url())
            .env("SVC_TOKEN", token);
        command.current_dir(home.path()).arg("doctor").args(more);
        process::run(&mut command, b"", COMMAND_MAX).expect("the command ends")
    };
    let text = done(&doctor(OPERATOR_TOKEN, &[]));
    for line in [
        "clock             ok       within a minute of the service",
        "logs as protobuf  ok       received",
        "agents' events    warning  nothing stored yet",
        "fix: svc install claude-code --print",
        "store             -        none on this machine",
        "clone             -        this folder is not a git repository",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    // What `svc doctor` sends is not evidence.
    let again = done(&doctor(OPERATOR_TOKEN, &[]));
    assert!(again.contains("agents' events    warning"), "{again}");
    let checks = json(&doctor(OPERATOR_TOKEN, &["--json"]));
    assert_eq!(at(&checks, &["failed"]), &Json::from(0_u64));

    // The consequences of a store without tables are not a second failure.
    let empty = home.path().join("empty.db");
    std::fs::write(&empty, "").unwrap();
    let url = format!("sqlite://{}", empty.display());
    let text = doctor(OPERATOR_TOKEN, &["--database-url", &url]);
    assert_eq!(text.status.code(), Some(1));
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert_eq!(text.matches("FAILED").count(), 1, "{text}");
    assert!(text.contains("fix: svc db upgrade"), "{text}");
    assert!(text.contains("unknown: the store cannot be read"), "{text}");

    // Nothing that svc could do turns this file into a database.
    let letter = home.path().join("letter.db");
    std::fs::write(&letter, "Dear database! ".repeat(400)).unwrap();
    let url = format!("sqlite://{}", letter.display());
    let text = doctor(OPERATOR_TOKEN, &["--database-url", &url]);
    assert_eq!(text.status.code(), Some(1));
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    let mend = "fix: the database file is damaged, or no database";
    assert!(text.contains(mend), "{text}");

    let refused = doctor(UNKNOWN_TOKEN, &[]);
    assert_eq!(refused.status.code(), Some(1));
    let text = String::from_utf8_lossy(&refused.stdout).into_owned();
    // The environment's token takes precedence over a stored one.
    let mend = format!(
        "fix: set SVC_TOKEN to an operator token, or unset SVC_TOKEN and SVC_TOKEN_FILE and run: svc login {}",
        server.base_url()
    );
    assert!(text.contains(&mend), "{text}");

    // A forge that signs with a different secret.
    let body = b"{}".to_vec();
    let forged = Request::post("/ingest/forge/push", body).header("x-github-event", "push");
    let forged = forged.header("x-hub-signature-256", format!("sha256={}", "0".repeat(64)));
    assert_eq!(server.send(&forged).status, 401);
    let text = doctor(OPERATOR_TOKEN, &[]);
    assert_eq!(text.status.code(), Some(1));
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.contains(
            "webhooks          FAILED   signed with another secret since the service started: 1"
        ),
        "{text}"
    );
}

/// What earlier servers fetched says nothing about the one that runs.
#[test]
fn the_server_that_runs_says_whether_it_keeps_mirrors() {
    let mut off = Configuration::default();
    off.variables
        .insert("SVC_MIRROR_PATH".into(), String::new());
    for (configuration, expected) in [
        (Configuration::default(), "mirrors ok none yet"),
        (off, "mirrors warning the service keeps none"),
    ] {
        let server = start(&configuration);
        for more in [&[][..], &[("SVC_DATABASE_URL", "sqlite:///nowhere/svc.db")]] {
            let text = svc_with(&server, more, &["doctor"]).stdout_text();
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let is_shown = text.contains(expected);
            let is_there = more.is_empty() || expected.contains("warning");
            assert_eq!(is_shown, is_there, "{text}");
        }
    }
}

#[test]
fn nobody_is_advised_to_start_a_service_that_already_runs() {
    let server = start(&Configuration::default());
    let home = tempfile::tempdir().unwrap();
    let database = server.variable("SVC_DATABASE_URL").expect("a database");
    let svc = |command_name: &str| {
        let mut command = Command::new(programs::path(programs::SHELL));
        command
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("SVC_DATABASE_URL", database);
        command.current_dir(home.path()).arg(command_name);
        let ran = process::run(&mut command, b"", COMMAND_MAX).expect("the command ends");
        assert_eq!(ran.status.code(), Some(1));
        String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned()
    };
    for command_name in ["doctor", "me"] {
        let text = svc(command_name);
        let login = format!("svc login {}", server.base_url());
        assert!(text.contains(&login), "{text}");
        for start in ["fix: svc serve", "tokens: svc serve"] {
            assert!(!text.contains(start), "{text}");
        }
    }
}
