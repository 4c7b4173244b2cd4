//! Who may call what: every endpoint with every credential, compared with a table.
//!
//! The table is the specification once more, written by hand. It is compared with the list of
//! endpoints that the server, the client and the published document are made from: an endpoint
//! without a row fails, and so does a row without an endpoint.

use std::collections::BTreeSet;

use harness::case::Credential;
use harness::delivery::{
    Call, Receipt, allowed_edit, ci_outcome, first_two_calls, logs, push, sent_calls, traced_call,
    traces,
};
use harness::http::{Reply, Request};
use harness::player::credential;
use harness::server::{Backend, Configuration, Server};
use serde_json::{Value, json};
use svc_model::endpoint;

/// The Session that retrieval is configured for.
const SESSION: &str = "granted";

/// One endpoint, and the status that a valid request with each credential gets.
struct Row {
    /// Method and path, as in the list of endpoints.
    endpoint: &'static str,
    /// For nobody, for the bearer of an unknown token, and for a signature with a different secret.
    anybody: u16,
    /// For the forge, which signs the body.
    forge: u16,
    /// For a client that may ingest.
    ingest: u16,
    /// For the operator.
    operator: u16,
    /// For an agent that retrieves.
    retrieval: u16,
    /// For the operator of a deployment without retrieval.
    operator_without_grant: u16,
}

const fn open(endpoint: &'static str) -> Row {
    row(endpoint, [200, 200, 200, 200, 200])
}

const fn any_bearer(endpoint: &'static str) -> Row {
    row(endpoint, [401, 200, 200, 200, 200])
}

const fn ingest(endpoint: &'static str) -> Row {
    row(endpoint, [401, 200, 200, 403, 200])
}

const fn signature(endpoint: &'static str) -> Row {
    let mut row = row(endpoint, [401; 5]);
    row.forge = 200;
    row
}

const fn operator(endpoint: &'static str) -> Row {
    row(endpoint, [401, 403, 200, 403, 200])
}

const fn context(endpoint: &'static str) -> Row {
    row(endpoint, [401, 403, 200, 200, 404])
}

/// An operator needs no grant.
const fn search(endpoint: &'static str) -> Row {
    row(endpoint, [401, 403, 200, 200, 200])
}

/// The tools that need a grant say whether there is one.
const fn tools(endpoint: &'static str) -> Row {
    row(endpoint, [401, 403, 200, 200, 200])
}

const fn row(endpoint: &'static str, statuses: [u16; 5]) -> Row {
    let [anybody, ingest, operator, retrieval, operator_without_grant] = statuses;
    Row {
        endpoint,
        anybody,
        forge: anybody,
        ingest,
        operator,
        retrieval,
        operator_without_grant,
    }
}

const TABLE: &[Row] = &[
    open("GET /health"),
    any_bearer("GET /v1/me"),
    ingest("POST /ingest/gateway"),
    ingest("POST /ingest/gateway/{provider}"),
    ingest("POST /ingest/calls"),
    ingest("POST /ingest/ci"),
    ingest("POST /v1/logs"),
    ingest("POST /v1/traces"),
    signature("POST /ingest/forge"),
    signature("POST /ingest/forge/push"),
    signature("POST /ingest/forge/repository"),
    signature("POST /ingest/forge/ci"),
    signature("POST /ingest/forge/pull-request"),
    operator("GET /v1/capture"),
    operator("POST /v1/quarantine"),
    operator("POST /v1/release"),
    operator("GET /v1/quarantine-log"),
    operator("GET /v1/grants"),
    operator("GET /v1/grants/explain"),
    operator("POST /v1/grants/add"),
    operator("POST /v1/grants/remove"),
    operator("POST /v1/grants/revoke"),
    operator("POST /v1/grants/restore"),
    operator("POST /v1/prices"),
    operator("GET /v1/prices"),
    operator("GET /v1/prices/rates"),
    operator("GET /v1/facts"),
    operator("GET /v1/facts/session/{session_id}"),
    operator("GET /v1/facts/session/{session_id}/inference-calls"),
    operator("GET /v1/facts/session/{session_id}/compatibility-evidence"),
    operator("GET /query/evidence"),
    operator("GET /query/evidence/manifest"),
    operator("POST /query/evidence/read"),
    operator("GET /query/ci/outcome"),
    operator("GET /query/ci/runs"),
    operator("GET /query/ci/failures"),
    operator("GET /v1/sessions"),
    operator("GET /query/session/{session_id}"),
    operator("GET /query/commit/{sha}"),
    operator("GET /v1/reports/model-outcomes"),
    operator("GET /v1/reports/accepted-work-lifecycle"),
    operator("GET /v1/reports/spend"),
    operator("GET /v1/overview"),
    context("POST /query/context"),
    context("POST /query/context/discover"),
    context("POST /query/context/selected"),
    context("GET /query/context/evidence"),
    context("GET /query/context/evidence/manifest"),
    context("POST /query/context/evidence/read"),
    search("GET /query/context/sessions"),
    search("POST /query/search"),
    tools(MCP),
];

/// The only route that is a protocol rather than an endpoint. What it is asked for are the
/// endpoints.
const MCP: &str = "POST /mcp";

/// Returns a path with its parameters filled in.
fn filled(path: &str) -> String {
    path.replace("{session_id}", SESSION)
        .replace("{provider}", "gateway_a")
        .replace("{sha}", &"a".repeat(40))
}

/// Returns a valid request to an endpoint, without a credential.
fn valid(endpoint: &str, stored: &Stored) -> Request {
    let Stored { call, grant } = stored;
    let (method, path) = endpoint.split_once(' ').expect("a method and a path");
    let mut path = filled(path);
    if path.contains("/evidence") && method == "GET" && !path.starts_with("/v1") {
        path = format!("{path}?session_id={SESSION}");
        if path.contains("/manifest") {
            path = format!("{path}&inference_call_id={call}");
        }
    }
    if path == "/v1/grants/explain" {
        path = format!("{path}?token=review&session_id={SESSION}");
    }
    if path == "/v1/prices/rates" {
        path.push_str("?model=m");
    }
    if path == "/query/ci/outcome" {
        path.push_str("?provider=other&run_id=run-1");
    }
    if path == "/query/ci/runs" {
        path.push_str("?run_id=run-1");
    }
    if path == "/query/ci/failures" {
        path.push_str(
            "?repo=a/b&captured_after=2026-01-01T00:00:00Z&captured_before=2026-02-01T00:00:00Z",
        );
    }
    if path.starts_with("/v1/reports/") {
        path.push_str(
            "?cohort_start=2026-01-01T00:00:00Z&cohort_end=2026-01-02T00:00:00Z&as_of=2026-01-02T00:00:00Z",
        );
    }
    let body = match endpoint {
        "POST /ingest/gateway" => Call::new(SESSION, "again").envelope(),
        "POST /ingest/gateway/{provider}" => json!([Call::new(SESSION, "again").bare()]),
        "POST /ingest/calls" => sent_calls(SESSION, &first_two_calls()),
        "POST /ingest/ci" => ci_outcome("run-1"),
        "POST /v1/logs" => logs(&allowed_edit(SESSION, "edit-1")),
        "POST /v1/traces" => traces(&[traced_call(SESSION, "chatcmpl-7")]),
        MCP => {
            let message = json!({
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "find_evidence", "arguments": {"query": "pager"}},
            });
            return Request::post(path, message.to_string())
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream");
        }
        _ if endpoint.starts_with("POST /ingest/forge") => {
            return Request::post(path, push('a', 'b').to_string()).header("x-forge-event", "push");
        }
        // Possible any number of times, because every row of the table is played on one store.
        "POST /v1/quarantine" | "POST /v1/release" => json!({
            "table": "pushes", "fact_id": call, "reason": "a try", "force": true,
        }),
        "POST /v1/grants/add" => json!({
            "token": "review", "session_id": SESSION, "reason": "a try",
        }),
        "POST /v1/grants/remove" => json!({"grant_id": grant, "reason": "a try"}),
        "POST /v1/grants/revoke" | "POST /v1/grants/restore" => {
            json!({"token": "review", "reason": "a try"})
        }
        "POST /v1/prices" => {
            json!({"m": {"input_cost_per_token": 0, "output_cost_per_token": 0}})
        }
        "POST /query/evidence/read" | "POST /query/context/evidence/read" => json!({
            "schema_version": 1,
            "session_id": SESSION,
            "references": [
                {"inference_call_id": call, "side": "output", "message_index": 0, "part_index": 0},
            ],
        }),
        "POST /query/context" | "POST /query/context/discover" | "POST /query/search" => {
            json!({"schema_version": 1, "query": "pager"})
        }
        "POST /query/context/selected" => {
            json!({"schema_version": 1, "query": "pager", "session_id": SESSION})
        }
        _ => return Request::get(path),
    };
    Request::post(path, body.to_string())
}

fn present(request: &Request, who: Credential) -> Request {
    match credential(who, request.body.as_deref()) {
        Some((name, value)) => request.clone().header(name, value),
        None => request.clone(),
    }
}

/// The ids of what a server stores.
struct Stored {
    call: String,
    grant: String,
}

/// Starts a server with one call and one grant, and returns their ids.
fn with_a_call(configuration: &Configuration) -> (Server, Stored) {
    let mut configuration = configuration.clone();
    let variables = &mut configuration.variables;
    variables.insert("SVC_ENABLE_MCP".into(), "true".into());
    let server = Server::start(Backend::Sqlite, &configuration).expect("SQLite is never skipped");
    let stored = server.deliver("/ingest/gateway", Call::new(SESSION, "first").body());
    let call = Receipt::of(&stored).fact;
    let granted = json!({"token": "review", "session_id": "another", "reason": "a try"});
    let granted = server.ask("/v1/grants/add", granted.to_string());
    let granted: Value = serde_json::from_slice(&granted.body).expect("JSON");
    let grant = granted["entry"]["grant_id"].as_str().expect("an id");
    let grant = grant.to_owned();
    (server, Stored { call, grant })
}

#[test]
fn every_endpoint_has_a_row_and_every_row_an_endpoint() {
    let rows: Vec<&str> = TABLE.iter().map(|row| row.endpoint).collect();
    let endpoints: Vec<String> = endpoint::all()
        .iter()
        .map(|endpoint| format!("{} {}", endpoint.method.as_str(), endpoint.path))
        .collect();
    let unique: BTreeSet<&str> = rows.iter().copied().collect();
    assert_eq!(unique.len(), rows.len(), "a row is listed twice");
    assert_eq!(
        unique,
        endpoints
            .iter()
            .map(String::as_str)
            .chain([MCP])
            .collect::<BTreeSet<_>>()
    );
}

#[test]
fn every_credential_gets_the_answer_in_the_table() {
    let (server, call) = with_a_call(&Configuration::granting_one(SESSION));
    let (bare, call_of_bare) = with_a_call(&Configuration::default());
    let mut wrong = Vec::new();
    for row in TABLE {
        let request = valid(row.endpoint, &call);
        for (who, wanted) in [
            (Credential::None, row.anybody),
            (Credential::Unknown, row.anybody),
            (Credential::Forge, row.forge),
            (Credential::WrongSignature, row.anybody),
            (Credential::Ingest, row.ingest),
            (Credential::Operator, row.operator),
            (Credential::Retrieval, row.retrieval),
        ] {
            let reply = server.send(&present(&request, who));
            wrong.extend(difference(row, &format!("{who:?}"), wanted, &reply));
        }
        let request = valid(row.endpoint, &call_of_bare);
        for (who, wanted) in [
            (Credential::Operator, row.operator_without_grant),
            // If retrieval is not configured, there is no such token.
            (Credential::Retrieval, row.anybody),
        ] {
            let reply = bare.send(&present(&request, who));
            let who = format!("{who:?} without a grant");
            wrong.extend(difference(row, &who, wanted, &reply));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} answers differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Returns how an answer differs from what its status requires.
fn difference(row: &Row, who: &str, wanted: u16, reply: &Reply) -> Option<String> {
    // Where only the forge may call, a token is of no use.
    let refusal = if row.forge == 200 && row.anybody != 200 {
        r#"{"detail":"Invalid webhook signature"}"#
    } else {
        r#"{"detail":"Invalid token"}"#
    };
    let detail = match wanted {
        401 => refusal,
        404 => r#"{"detail":"Context retrieval is disabled"}"#,
        _ => "",
    };
    let holds = reply.status == wanted
        && (detail.is_empty() || reply.text() == detail)
        && (wanted != 403 || reply.text().contains("authority required"))
        && reply.header("www-authenticate") == (wanted == 401).then_some("Bearer")
        && (wanted == 401
            || row.endpoint == "GET /health"
            || reply.header("cache-control") == Some("no-store"));
    (!holds).then(|| {
        format!(
            "  {} as {who}: {} {:?} {}, not {wanted}",
            row.endpoint,
            reply.status,
            reply.headers,
            reply.text()
        )
    })
}

#[test]
fn a_refused_caller_learns_nothing_about_the_request() {
    let (server, call) = with_a_call(&Configuration::granting_one(SESSION));
    let mut wrong = Vec::new();
    for row in TABLE {
        let valid = valid(row.endpoint, &call);
        // The refusal reveals neither a body that is not JSON nor a missing parameter.
        let mut invalid = valid.clone();
        invalid.path = valid.path.split('?').next().expect("a path").to_owned();
        invalid.body = valid.body.map(|_| b"{".to_vec());
        invalid.headers.retain(|(name, _)| name != "x-forge-event");
        for (who, wanted) in [
            (Credential::None, row.anybody),
            (Credential::Unknown, row.anybody),
            (Credential::WrongSignature, row.anybody),
            (Credential::Ingest, row.ingest),
            (Credential::Operator, row.operator),
            (Credential::Retrieval, row.retrieval),
        ] {
            if wanted == 401 || wanted == 403 {
                let reply = server.send(&present(&invalid, who));
                wrong.extend(difference(row, &format!("{who:?}"), wanted, &reply));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} answers differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn every_path_answers_other_methods_with_405_and_what_it_allows() {
    let (server, _) = with_a_call(&Configuration::default());
    for row in TABLE {
        let (_, path) = row.endpoint.split_once(' ').expect("a method and a path");
        let methods = ["GET", "POST"].into_iter();
        let is_in_table = |method: &&str| {
            TABLE
                .iter()
                .any(|row| row.endpoint == format!("{method} {path}"))
        };
        let methods: Vec<&str> = methods.filter(is_in_table).collect();
        let path = filled(path);
        // Where anybody may ask, `HEAD` is answered like `GET`, but is not listed.
        let also = if path == "/health" { "HEAD" } else { "" };
        for other in ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"] {
            if !methods.contains(&other) && other != also {
                let request = Request {
                    method: other.into(),
                    path: path.clone(),
                    ..Request::default()
                };
                let reply = server.try_send(&request).expect("an answer");
                assert_eq!(reply.status, 405, "{other} {path}: {}", reply.text());
                assert_eq!(
                    reply.header("allow"),
                    Some(&*methods.join(", ")),
                    "{other} {path}"
                );
                let stored = (path != "/health").then_some("no-store");
                assert_eq!(reply.header("cache-control"), stored, "{other} {path}");
            }
        }
    }
    assert_eq!(
        server
            .try_send(&Request::get("/v1/nothing"))
            .expect("an answer")
            .status,
        404
    );
}
