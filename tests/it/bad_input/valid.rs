//! A valid body for each route.

use harness::delivery::{
    Call, allowed_edit, ci_outcome, first_two_calls, log_record, logs, pull_request, push,
    renaming, sent_calls, traced_call, traces, workflow_run,
};
use serde_json::json;
use svc_model::json::Json;

use super::target::{SESSION, Target};

/// Returns a valid body for the route with this path.
pub(super) fn body(target: &Target, path: &str) -> Json {
    let rich = Call::new(SESSION, "rich")
        .captured(
            "531f97ae-8872-41e7-8b99-d5840ab3cd2f",
            "2026-01-02T05:04:05.678901+02:00",
        )
        .messages(vec![
            json!({"role": "system", "content": "careful"}),
            json!({"role": "user", "content": [{"type": "text", "text": "fix the pager"}]}),
            json!({
                "role": "assistant",
                "thinking_blocks": [{"type": "thinking", "thinking": "the window"}],
                "tool_calls": [
                    {"id": "t-1", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}},
                ],
            }),
            json!({"role": "tool", "tool_call_id": "t-1", "content": "{\"lines\":[1,2]}"}),
        ]);
    let reference = json!({"inference_call_id": target.call, "side": "output", "message_index": 0, "part_index": 0});
    let body = match path {
        "/ingest/gateway" => rich.envelope(),
        "/ingest/gateway/{provider}" => json!([rich.bare(), Call::new(SESSION, "next").bare()]),
        "/ingest/calls" => sent_calls(SESSION, &first_two_calls()),
        "/ingest/ci" => ci_outcome("run-1"),
        "/v1/logs" => {
            let [decision, result] = allowed_edit(SESSION, "edit-1");
            let own = json!({
                "agent": "pi",
                "session.id": SESSION,
                "tool_use_id": "edit-2",
                "file_path": "a.py",
                "applied_text": "A",
                "observed_file_text": "F",
                "external_lines_added": 3,
            });
            logs(&[decision, result, log_record("svc.edit_observation", &own)])
        }
        "/v1/traces" => traces(&[traced_call(SESSION, "chatcmpl-7")]),
        "/ingest/forge" => pull_request("opened", 14),
        "/ingest/forge/push" => push('a', 'b'),
        "/ingest/forge/repository" => renaming("Old", "Pager"),
        "/ingest/forge/ci" => workflow_run(5_001, "success"),
        "/ingest/forge/pull-request" => pull_request("closed", 15),
        "/query/evidence/read" | "/query/context/evidence/read" => {
            json!({"schema_version": 1, "session_id": SESSION, "references": [reference]})
        }
        "/query/context" => json!({"schema_version": 1, "query": "pager", "max_bytes": 4096}),
        "/query/context/discover" => json!({
            "schema_version": 1,
            "query": "pager",
            "commit": {
                "repository_provider": "github",
                "repository_host": "github.com",
                "repository_id": "77",
                "commit_sha": "a".repeat(40),
            },
        }),
        "/query/context/selected" => {
            json!({"schema_version": 1, "query": "pager", "session_id": SESSION})
        }
        "/query/search" => json!({
            "schema_version": 1,
            "query": "pager",
            "max_bytes": 4096,
            "limit": 3,
            "filters": {
                "session_id": SESSION,
                "repository": {
                    "repository_provider": "github",
                    "repository_host": "github.com",
                    "repository_id": "77",
                },
                "commit": "a".repeat(40),
                "file": "src/pager.rs",
                "user": "ann",
                "model": "m",
                "agent": "pi",
                "since": "2026-01-01T00:00:00Z",
                "until": "2026-02-01T00:00:00+02:00",
                "role": "user",
                "kind": "text",
            },
        }),
        // Not about a stored fact, so that it hides nothing else.
        "/v1/quarantine" | "/v1/release" => json!({
            "table": "pushes", "fact_id": "none", "reason": "a try", "force": true,
        }),
        "/v1/prices" => json!({
            "m": {
                "mode": "chat", "litellm_provider": "x",
                "input_cost_per_token": 0.000_001, "output_cost_per_token": 0,
            },
            "n": {"input_cost_per_token": 0, "output_cost_per_token": 0},
        }),
        "/v1/grants/add" => json!({
            "token": "review", "session_id": SESSION, "reason": "a try",
        }),
        "/v1/grants/remove" => json!({"grant_id": target.grant, "reason": "a try"}),
        // A token that was never revoked cannot be restored.
        "/v1/grants/revoke" | "/v1/grants/restore" => {
            json!({"token": "revoked", "reason": "a try"})
        }
        other => panic!("no valid body for {other}: give one"),
    };
    Json::parse(body.to_string().as_bytes()).expect("JSON")
}
