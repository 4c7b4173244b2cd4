//! What the agents did, and what CI reported.

use harness::delivery::{Call, ci_outcome, log_record, logs};
use harness::server::Server;
use serde_json::json;

use super::history::Commits;
use super::{LEXER, NET, PAGER, PARSER};

/// Stores what the agents did.
pub(super) fn deliver(server: &Server) {
    for (name, session, model, wrote) in [
        ("one", "s1", "m1", PAGER),
        ("two", "s2", "m2", PARSER),
        ("three", "s2", "m2", LEXER),
        ("four", "s3", "m1", NET),
        ("five", "s4", "m3", "nothing of this was kept"),
    ] {
        // A tool call without a text, so that a decision can name it.
        let function = json!({"name": "Write", "arguments": "{}"});
        let tool = json!({"id": format!("tool-{name}"), "type": "function", "function": function});
        let answer = json!({"role": "assistant", "content": wrote, "tool_calls": [tool]});
        let call = Call::new(session, name).model(model).answer(answer);
        assert_eq!(server.deliver("/ingest/gateway", call.body()).status, 200);
    }
    let decided = |session: &str, name: &str, decision: &str| {
        let attributes = json!({
            "agent": "claude-code", "session.id": session, "tool_use_id": format!("tool-{name}"),
            "decision": decision, "explicit": true, "file_path": "a.py",
        });
        log_record("svc.tool_decision", &attributes)
    };
    let kept = json!({
        "agent": "claude-code", "session.id": "s1", "tool_use_id": "tool-one",
        "file_path": "pager.py", "applied_text": PAGER, "observed_file_text": PAGER,
        "external_lines_added": 2, "external_lines_removed": 0,
    });
    let gone = json!({
        "agent": "claude-code", "session.id": "s2", "tool_use_id": "tool-two",
        "file_path": "parser.py", "applied_text": PARSER, "observed_file_text": "",
    });
    let retried = json!({
        "agent": "claude-code", "session.id": "s2", "file_path": "parser.py",
        "tool_name": "Write", "rejected_call_id": "tool-zero", "accepted_call_id": "tool-two",
    });
    let records = [
        decided("s1", "one", "accept"),
        decided("s2", "two", "accept"),
        decided("s3", "four", "accept"),
        decided("s4", "five", "reject"),
        log_record("svc.edit_observation", &kept),
        log_record("svc.edit_observation", &gone),
        log_record("svc.retry_linkage", &retried),
    ];
    let records = logs(&records).to_string().into_bytes();
    assert_eq!(server.deliver("/v1/logs", records).status, 200);
}

/// Reports the CI runs: `F` passed, `Q` failed, and nobody checked the others.
pub(super) fn check(server: &Server, commits: &Commits) {
    for (run, commit, result) in [
        ("run-1", &commits.feature, "passed"),
        ("run-2", &commits.forced, "failed"),
    ] {
        let mut outcome = ci_outcome(run);
        for (name, value) in [
            ("provider", "ci_a"),
            ("repo", "own/app"),
            ("repository_provider", "github"),
            ("repository_host", "github.com"),
            ("repository_id", "7"),
            ("commit_sha", commit),
            ("branch", "topic"),
            ("workflow_name", "Build"),
            ("result", result),
        ] {
            outcome[name] = json!(value);
        }
        let outcome = outcome.to_string().into_bytes();
        assert_eq!(server.deliver("/ingest/ci", outcome).status, 200);
    }
}
