//! Snippets for sources, and the hook of an editor.

use std::fs;

use harness::process;
use harness::programs;
use harness::server::{Configuration, UNKNOWN_TOKEN};
use svc_model::json::Json;

use super::Job;
use crate::cli::{COMMAND_MAX, at, json, refused, start};

#[test]
fn a_snippet_names_the_selected_service_and_printing_changes_nothing() {
    let job = Job::new(&[]);
    let run = |arguments: &[&str]| job.svc(&[&["install"], arguments].concat());
    let plain = run(&["claude-code"]);
    assert_eq!(plain.status.code(), Some(0), "{}", plain.stderr_text());
    assert!(plain.stderr_text().contains("~/.claude/settings.json"));
    let asked = run(&["claude-code", "--print"]);
    assert_eq!(plain.stdout_text(), asked.stdout_text());
    refused(&run(&["nobody", "--print"]), 2);
    refused(
        &run(&["claude-code", "--print", "--url", "http://svc.example"]),
        1,
    );

    let output = run(&[
        "claude-code",
        "--print",
        "--url",
        "https://evidence.acme.dev/",
    ]);
    assert_eq!(output.status.code(), Some(0));
    let settings = Json::parse(&output.stdout).expect("nothing but the snippet is on stdout");
    assert_eq!(
        at(&settings, &["env", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"]),
        &Json::from("https://evidence.acme.dev/v1/logs")
    );
    assert!(
        output
            .stderr_text()
            .contains("note: put it into ~/.claude/settings.json")
    );
    let here = json(&run(&["codex", "--print", "--json"]));
    let snippet = at(&here, &["snippet"]).as_str().unwrap();
    assert!(
        snippet.contains("http://127.0.0.1:8000/v1/logs"),
        "{snippet}"
    );
    assert_eq!(fs::read_dir(job.home.path()).unwrap().count(), 0);
}

/// What Cursor sends to its hook after a file was written.
const WRITTEN: &str = r#"{"conversation_id":"c-1","generation_id":"g","hook_event_name":"postToolUse",
    "cursor_version":"3.1.0","workspace_roots":["/w"],"tool_name":"Write","tool_use_id":"tool_1",
    "tool_input":{"file_path":"/w/a.rs","content":"fn main() {}"},"tool_output":"{}","duration":12}"#;

#[test]
fn a_cursor_write_becomes_a_decision_and_never_fails_the_editor() {
    let server = start(&Configuration::default());
    let hook = |job: &Job, input: &str| {
        let mut command = job.command(programs::path(programs::SHELL));
        command.args(["hook", "cursor"]);
        let output = process::run(&mut command, input.as_bytes(), COMMAND_MAX);
        let output = output.expect("the hook ends");
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(output.stdout_text(), "{}\n", "what Cursor reads");
        output.stderr_text()
    };
    let job = Job::new(&[]).of(&server);
    // Reported twice, at two times, it is one decision.
    assert_eq!(hook(&job, WRITTEN), "");
    assert_eq!(hook(&job, WRITTEN), "");
    assert_eq!(hook(&job, &WRITTEN.replace("Write", "Read")), "");
    let evidence = server.read_json("/v1/facts/session/c-1/compatibility-evidence");
    assert_eq!(
        at(&evidence, &["developer_decisions"]),
        &Json::parse(
            br#"[{"agent_harness":"cursor","accepted":true,"explicit":false,"interaction_mode":"agent","call_id":"tool_1"}]"#
        )
        .unwrap()
    );

    for (job, input, expected) in [
        (&job, "no JSON", "not a JSON object"),
        (&job, &*WRITTEN.replace("c-1", " "), "conversation_id"),
        (&Job::new(&[]), WRITTEN, "no token"),
        (
            &Job::new(&[("SVC_URL", "http://127.0.0.1:1"), ("SVC_TOKEN", "t")]),
            WRITTEN,
            "reached",
        ),
        (
            &Job::new(&[
                ("SVC_URL", &server.base_url()),
                ("SVC_TOKEN", UNKNOWN_TOKEN),
            ]),
            WRITTEN,
            "token",
        ),
    ] {
        let complaint = hook(job, input);
        assert!(
            complaint.starts_with("error: ") && complaint.contains(expected),
            "{complaint}"
        );
        assert!(!complaint.contains(UNKNOWN_TOKEN), "{complaint}");
    }
}
