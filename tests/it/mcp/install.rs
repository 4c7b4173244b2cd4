//! How an agent is set up: what `svc install mcp-AGENT` prints works, and so does what the guide
//! says.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use harness::process;
use harness::server::{Backend, RETRIEVAL_TOKEN, Server};
use serde_json::{Value, json};

use super::agent::start;
use super::deliver;
use crate::cli::{COMMAND_MAX, svc};

const GUIDE: &str = include_str!("../../../docs/agents.md");
const SESSION: &str = "session-of-the-guide";

/// Puts programs into a folder that record the arguments they are called with, one per line.
fn recorders(folder: &Path) {
    for name in ["claude", "codex", "code"] {
        let program = folder.join(name);
        let script = format!("#!/bin/sh\nprintf '%s\\n' {name} \"$@\"\n");
        fs::write(&program, script).expect("a program");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
    }
}

/// Runs a line as a person would, but with recorders in place of the agents' programs. `svc` is the
/// real one.
fn run(server: &Server, folder: &Path, line: &str) -> String {
    let shell = server.shell();
    let svc = Path::new(shell.get_program()).parent().expect("a folder");
    let path = format!("{}:{}:/usr/bin:/bin", folder.display(), svc.display());
    let mut command = Command::new("bash");
    command.args(["-eu", "-o", "pipefail", "-c", line]);
    for (name, value) in shell.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    command
        .env("PATH", path)
        .env("SVC_RETRIEVAL_TOKEN", RETRIEVAL_TOKEN)
        .env_remove("SVC_TOKEN")
        .current_dir(folder);
    let output = process::run(&mut command, b"", COMMAND_MAX).expect("the line ends");
    let stderr = output.stderr_text();
    assert!(output.status.success(), "{line}\n{stderr}");
    output.stdout_text()
}

/// Checks that an agent with this URL and header can connect.
fn connects(server: &Server, url: &str, authorization: &str) {
    assert_eq!(url, format!("{}/mcp", server.base_url()));
    let token = authorization.strip_prefix("Bearer ").expect("a token");
    let reply = server.send(&super::message(Some(token)));
    let reply: Value = serde_json::from_slice(&reply.body).expect("JSON");
    assert_eq!(reply["result"]["serverInfo"]["name"], "svc");
}

#[test]
fn one_command_sets_up_each_agent() {
    let server = start(Backend::Sqlite, &[SESSION]).expect("SQLite is never skipped");
    let folder = tempfile::tempdir().expect("a folder");
    recorders(folder.path());
    let printed = |source: &str| {
        let output = svc(&server, &["install", source]);
        assert!(output.status.success(), "{}", output.stderr_text());
        let text = output.stdout_text();
        assert!(text.contains("## Earlier work"), "{text}");
        assert!(!text.contains(RETRIEVAL_TOKEN), "{text}");
        text.lines().next().unwrap_or_default().to_owned()
    };
    let token = format!("Bearer {RETRIEVAL_TOKEN}");
    // Editors fill in the variable themselves.
    let connects_by = |given: &Value| {
        let header = given["headers"]["Authorization"]
            .as_str()
            .expect("a header");
        let header = header.replace("${env:SVC_RETRIEVAL_TOKEN}", RETRIEVAL_TOKEN);
        connects(&server, given["url"].as_str().expect("a URL"), &header);
    };

    let called = run(&server, folder.path(), &printed("mcp-claude-code"));
    let called: Vec<&str> = called.lines().collect();
    assert_eq!(
        called[..6],
        ["claude", "mcp", "add", "--transport", "http", "svc"]
    );
    assert_eq!(
        called[7..],
        ["--header", &format!("Authorization: {token}")]
    );
    connects(&server, called[6], &token);

    let called = run(&server, folder.path(), &printed("mcp-codex"));
    let called: Vec<&str> = called.lines().collect();
    assert_eq!(called[..5], ["codex", "mcp", "add", "svc", "--url"]);
    assert_eq!(
        called[6..],
        ["--bearer-token-env-var", "SVC_RETRIEVAL_TOKEN"]
    );
    connects(&server, called[5], &token);

    let called = run(&server, folder.path(), &printed("mcp-vscode"));
    let (program, given) = called.split_once("--add-mcp\n").expect("an option");
    assert_eq!(program, "code\n");
    connects_by(&serde_json::from_str(given).expect("JSON"));

    let given: Value = serde_json::from_str(&printed("mcp-cursor")).expect("JSON");
    connects_by(&given["mcpServers"]["svc"]);
}

#[test]
fn the_tool_calls_of_the_guide_work() {
    let server = start(Backend::Sqlite, &[SESSION]).expect("SQLite is never skipped");
    deliver(&server);
    let call = harness::delivery::Call::new(SESSION, "the-call").body();
    server.deliver("/ingest/gateway", call);
    let folder = tempfile::tempdir().expect("a folder");
    recorders(folder.path());
    let (_, section) = GUIDE.split_once("## Tools over MCP\n").expect("a section");
    let mut answers = Vec::new();
    for block in section.split("```sh\n").skip(1) {
        let block = block.split("```").next().expect("a block");
        let block = block.replace("https://svc.example", &server.base_url());
        answers.push(run(&server, folder.path(), &block));
    }
    assert_eq!(answers.len(), 5, "one per block of the section");
    // The last two use the protocol directly.
    let message = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let over_http = message(&answers[3]);
    assert_eq!(
        over_http["result"]["tools"][0]["name"],
        json!("search_evidence")
    );
    let over_stdio = message(answers[4].lines().last().expect("an answer"));
    let sessions = &over_stdio["result"]["structuredContent"]["sessions"];
    assert_eq!(sessions[0]["session"], SESSION);
}
