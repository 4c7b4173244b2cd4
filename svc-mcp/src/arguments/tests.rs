use serde_json::json;

use super::*;

fn caller(authority: Authority) -> ToolCaller {
    let now = Instant::parse("2026-11-27T10:00:00Z").unwrap();
    ToolCaller { authority, now }
}

fn asked_by(authority: Authority, tool: &str, arguments: Value) -> Result<Asked, ToolRefusal> {
    let Value::Object(arguments) = arguments else {
        panic!("an object");
    };
    read(Tool::named(tool).unwrap(), arguments, &caller(authority))
}

fn asked(tool: &str, arguments: Value) -> Result<Asked, ToolRefusal> {
    asked_by(Authority::Retrieval, tool, arguments)
}

/// Returns the request of a question as it is sent.
fn sent(asked: &Asked) -> String {
    let outgoing = match &asked.question {
        Question::Search(request) => request.write().unwrap().body.unwrap(),
        Question::Discovery(request) => request.write().unwrap().body.unwrap(),
        Question::GrantSessions(request) => format!("{request:?}").into_bytes(),
        Question::ModelOutcomesReport(request) => format!("{:?}", request.scope).into_bytes(),
        other => format!("{other:?}").into_bytes(),
    };
    String::from_utf8(outgoing).unwrap()
}

fn part() -> Value {
    json!({"inference_call_id": "c", "side": "input", "message_index": 0, "part_index": 0})
}

#[test]
fn arguments_and_authority_decide_which_route_opens_evidence() {
    for (tool, arguments, retrieval, operator) in [
        (
            "open_evidence",
            json!({"session_id": "s"}),
            "GrantInventory",
            "EvidenceInventory",
        ),
        (
            "open_evidence",
            json!({"session_id": "s", "inference_call_id": "c", "limit": 3}),
            "GrantManifest",
            "EvidenceManifest",
        ),
        (
            "open_evidence",
            json!({"session_id": "s", "references": [part()]}),
            "GrantRead",
            "EvidenceReading",
        ),
        (
            "open_evidence",
            json!({"session_id": "s", "references": [part()], "around": "2"}),
            "GrantManifest",
            "EvidenceManifest",
        ),
        (
            "search_evidence",
            json!({"session_id": "s"}),
            "GrantInventory",
            "EvidenceInventory",
        ),
    ] {
        for (authority, expected) in [
            (Authority::Retrieval, retrieval),
            (Authority::Operator, operator),
        ] {
            let asked = asked_by(authority, tool, arguments.clone()).unwrap();
            let question = format!("{:?}", asked.question);
            assert!(question.starts_with(expected), "{question}");
        }
    }
}

#[test]
fn a_search_is_sent_with_its_conditions_and_the_largest_budget() {
    let sha = "a".repeat(40);
    let arguments = json!({
        "query": "retry backoff", "session_id": "s", "repo": "Acme/Shop", "commit": sha,
        "file": "svc/pager.rs", "model": "m", "agent": "codex", "role": "user",
        "kind": "tool_call", "since": "7d", "until": "2026-11-27", "limit": "3", "user": null,
    });
    let expected = format!(
        r#"{{"schema_version":1,"query":"retry backoff","max_bytes":65536,"limit":3,"filters":{{"session_id":"s","repository":"acme/shop","commit":"{sha}","file":"svc/pager.rs","model":"m","agent":"codex","since":"2026-11-20T10:00:00Z","until":"2026-11-27T00:00:00Z","role":"user","kind":"tool_call"}}}}"#
    );
    assert_eq!(
        sent(&asked("search_evidence", arguments).unwrap()),
        expected
    );
    let asked = asked_by(
        Authority::Operator,
        "search_evidence",
        json!({"query": "retry", "user": "ann"}),
    );
    assert!(sent(&asked.unwrap()).contains(r#""user":"ann""#));
}

#[test]
fn a_search_without_words_lists_sessions() {
    for arguments in [
        json!({"file": "svc/pager.rs", "since": "24h"}),
        json!({"commit": "A".repeat(40), "limit": 5, "agent": "claude-code"}),
    ] {
        let asked = asked("search_evidence", arguments).unwrap();
        assert!(sent(&asked).starts_with("SessionsRequest"), "{asked:?}");
    }
    let Question::GrantSessions(request) = asked("list_sessions", json!({"since": "2026-11-20"}))
        .unwrap()
        .question
    else {
        panic!("a list");
    };
    let since = request.captured_after.unwrap().to_string();
    assert_eq!(since, "2026-11-20T00:00:00Z");
    assert!(request.titles);
}

#[test]
fn an_earlier_search_asks_with_the_largest_budget_unless_it_says_otherwise() {
    let plain = asked("find_evidence", json!({"query": "pager"})).unwrap();
    assert!(sent(&plain).contains(r#""max_bytes":65536"#));
    let small = json!({"query": "pager", "max_bytes": 4_096});
    let small = asked("find_evidence", small).unwrap();
    assert!(sent(&small).contains(r#""max_bytes":4096"#));
}

#[test]
fn a_report_covers_the_last_thirty_days_unless_it_says_otherwise() {
    for (arguments, start, end) in [
        (json!({}), "2026-10-28T10:00:00Z", "2026-11-27T10:00:00Z"),
        (
            json!({"since_days": 7}),
            "2026-11-20T10:00:00Z",
            "2026-11-27T10:00:00Z",
        ),
        (
            json!({"since_days": 2, "as_of": "2026-11-20T00:00:00Z"}),
            "2026-11-18T00:00:00Z",
            "2026-11-20T00:00:00Z",
        ),
        (
            json!({"cohort_start": "2026-01-01", "cohort_end": "2026-01-02"}),
            "2026-01-01T00:00:00Z",
            "2026-01-02T00:00:00Z",
        ),
    ] {
        let asked = asked("model_outcomes_report", arguments).unwrap();
        let Question::ModelOutcomesReport(request) = asked.question else {
            panic!("a report");
        };
        assert_eq!(request.scope.cohort_start.to_string(), start);
        assert_eq!(request.scope.cohort_end.to_string(), end);
    }
}

#[test]
fn a_wrong_argument_is_refused_by_name() {
    for (tool, arguments, expected) in [
        ("search_evidence", json!({}), "query is missing"),
        ("search_evidence", json!({"repo": "acme/shop"}), "query"),
        ("search_evidence", json!({"query": "the"}), "query must"),
        (
            "search_evidence",
            json!({"query": "x", "commit": "9b2f3a6"}),
            "git rev-parse",
        ),
        ("list_sessions", json!({"commit": "HEAD"}), "git rev-parse"),
        (
            "search_evidence",
            json!({"query": "x", "since": "yesterday"}),
            "since must be a date",
        ),
        (
            "search_evidence",
            json!({"query": "x", "limit": 21}),
            "limit must be from 1 to 20",
        ),
        (
            "search_evidence",
            json!({"query": "x", "kind": "tool"}),
            "kind must be one of: text",
        ),
        (
            "search_evidence",
            json!({"query": "x", "repo": "shop"}),
            "repo must be owner/name",
        ),
        (
            "search_evidence",
            json!({"query": "x", "user": "ann"}),
            "user can be given only",
        ),
        (
            "search_evidence",
            json!({"file": "a.rs", "kind": "text"}),
            "kind requires query",
        ),
        ("list_sessions", json!({"user": "ann"}), "user can be given"),
        (
            "list_sessions",
            json!({"agent": "zed"}),
            "agent must be one",
        ),
        ("find_evidence", json!({}), "query"),
        (
            "find_evidence",
            json!({"query": "a b", "max_bytes": 1}),
            "max_bytes",
        ),
        ("search_session", json!({"query": "pager"}), "session_id"),
        ("open_evidence", json!({}), "session_id"),
        (
            "open_evidence",
            json!({"session_id": "s", "limit": 0}),
            "limit",
        ),
        (
            "open_evidence",
            json!({"session_id": "s", "cursor": 1}),
            "cursor",
        ),
        (
            "open_evidence",
            json!({"session_id": "s", "around": 1}),
            "around requires references",
        ),
        (
            "open_evidence",
            json!({"session_id": "s", "references": []}),
            "references",
        ),
        (
            "open_evidence",
            json!({"session_id": "s", "references": [], "limit": 1}),
            "limit cannot be used with references",
        ),
        (
            "open_evidence",
            json!({"session_id": "s", "references": [part()], "around": 11}),
            "around must be from 1 to 10",
        ),
        (
            "open_evidence",
            json!({"session_id": "s", "references": [part()], "around": 1, "length": 5}),
            "length cannot be used with around",
        ),
        (
            "commit_dossier",
            json!({"commit_sha": "a"}),
            "sha is missing; ignored arguments: commit_sha; the tool has as_of, explain, repo, repository_host, repository_id, repository_provider, sha",
        ),
        ("session_dossier", json!({}), "session_id is missing"),
        (
            "session_dossier",
            json!({"session_id": ["s"]}),
            "must be a string",
        ),
        ("ci_run", json!({}), "run_id"),
        (
            "model_outcomes_report",
            json!({"since_days": 32}),
            "since_days must be from 1 to 31",
        ),
        (
            "model_outcomes_report",
            json!({"since_days": 3, "cohort_start": "2026-11-01"}),
            "since_days cannot be used with cohort_start",
        ),
    ] {
        let refusal = asked(tool, arguments.clone()).unwrap_err();
        assert_eq!(refusal.code, "invalid", "{arguments}");
        assert!(
            refusal.message.contains(expected),
            "{arguments}: {}",
            refusal.message
        );
    }
}

#[test]
fn only_one_part_has_neighbours_or_pieces() {
    let mut other = part();
    other["part_index"] = 1.into();
    for name in ["around", "offset", "length"] {
        let mut arguments = json!({"session_id": "s", "references": [part(), other]});
        arguments[name] = 1.into();
        let refusal = asked("open_evidence", arguments).unwrap_err();
        assert!(refusal.message.contains("exactly one reference"), "{name}");
    }
}

#[test]
fn an_argument_that_the_tool_does_not_have_is_ignored_and_named() {
    let known = "agent, commit, file, kind, limit, model, query, repo, role, session_id, since, \
                 until, user";
    for (arguments, expected) in [
        (json!({"query": "pager"}), None),
        (
            json!({"query": "pager", "wait_for_previous": true, "schema_version": 1}),
            Some(format!(
                "ignored arguments: schema_version, wait_for_previous; the tool has {known}"
            )),
        ),
        (
            json!({"query": "pager", "x y": 1}),
            Some(format!("ignored arguments: others; the tool has {known}")),
        ),
    ] {
        let asked = asked("search_evidence", arguments).unwrap();
        assert_eq!(asked.ignored, expected);
        assert!(asked.shown.arguments.len() == 1);
    }
}

#[test]
fn conflicting_arguments_have_their_own_code() {
    for (tool, arguments, code) in [
        (
            "model_outcomes_report",
            json!({
                "cohort_start": "2026-02-01T00:00:00Z",
                "cohort_end": "2026-01-01T00:00:00Z",
                "as_of": "2026-03-01T00:00:00Z",
            }),
            "cohort_reversed",
        ),
        ("commit_dossier", json!({"sha": "abc"}), "malformed_sha"),
        (
            "search_evidence",
            json!({"query": "x", "since": "1d", "until": "2d"}),
            "reversed_bounds",
        ),
    ] {
        assert_eq!(asked(tool, arguments).unwrap_err().code, code);
    }
}

#[test]
fn numbers_and_booleans_are_accepted_as_json_values() {
    let sha = "a".repeat(40);
    asked("commit_dossier", json!({"sha": sha, "explain": true})).unwrap();
    asked("ci_run", json!({"run_id": 7})).unwrap();
}
