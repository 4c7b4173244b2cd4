//! A machine that sends evidence, but has no home to keep anything in.

use harness::process;
use harness::server::{Backend, Configuration, INGEST_TOKEN, OPERATOR_TOKEN, Server};
use serde_json::{Value, json};

use crate::cli::{COMMAND_MAX, done, svc_with};

/// No folder can be created in it.
const NOWHERE: &str = "/dev/null";

fn variables<'a>(url: &'a str, token: &'a str) -> [(&'a str, &'a str); 6] {
    [
        ("HOME", NOWHERE),
        ("XDG_CONFIG_HOME", ""),
        ("XDG_DATA_HOME", ""),
        ("SVC_OUTBOX", ""),
        ("SVC_URL", url),
        ("SVC_TOKEN", token),
    ]
}

#[test]
fn a_token_from_the_environment_needs_no_home_folder() {
    let server = Server::start(Backend::Sqlite, &Configuration::default());
    let server = server.expect("SQLite is never skipped");
    let url = server.base_url();
    let operator = variables(&url, OPERATOR_TOKEN);
    let printed = done(&svc_with(&server, &operator, &["me"]));
    assert!(printed.contains("operator"), "{printed}");
    let printed = done(&svc_with(&server, &operator, &["outbox", "status"]));
    assert!(
        printed.contains("nothing is waiting to be delivered"),
        "{printed}"
    );
}

#[test]
fn without_a_home_folder_edits_are_sent_and_losses_are_reported() {
    let server = Server::start(Backend::Sqlite, &Configuration::default());
    let server = server.expect("SQLite is never skipped");
    let write = json!({
        "hook_event_name": "postToolUse", "tool_name": "Write", "conversation_id": "s",
        "tool_use_id": "t", "tool_input": {"file_path": "/a.rs"},
    });
    let hook = |url: &str| {
        let mut hook = server.shell();
        hook.args(["hook", "cursor"])
            .envs(variables(url, INGEST_TOKEN));
        let output = process::run(&mut hook, write.to_string().as_bytes(), COMMAND_MAX);
        let output = output.expect("the hook ends");
        // An editor must not fail because of evidence.
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(output.stdout_text(), "{}\n");
        output.stderr_text()
    };
    assert_eq!(hook(&server.base_url()), "");
    let facts = server.read_json("/v1/facts").to_canonical();
    let facts: Value = serde_json::from_slice(&facts).expect("JSON");
    assert_eq!(facts["tables"]["developer_decisions"]["total"], 1);
    let stderr = hook("http://127.0.0.1:1");
    assert!(stderr.contains("/dev/null/"), "{stderr}");
    assert!(
        stderr.contains("so it is lost: the service cannot be reached"),
        "{stderr}"
    );
}
