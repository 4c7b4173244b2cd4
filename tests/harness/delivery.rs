//! Deliveries as senders make them, with sensible values for whatever a test does not care about.

use serde_json::{Value, json};
use svc_model::json::Json;

use crate::http::{Reply, Request};
use crate::pattern::dig;
use crate::player::{SIGNATURE_HEADER, signature};
use crate::server::FORGE_SECRET;

/// A gateway call, as sent to `POST /ingest/gateway`.
#[derive(Clone, Debug)]
pub struct Call {
    session: String,
    name: String,
    capture: Option<(String, String)>,
    model: String,
    messages: Vec<Value>,
    answer: Value,
}

impl Call {
    /// Returns a call of a Session. `name` is the gateway's own id of the call.
    pub fn new(session: &str, name: &str) -> Self {
        Self {
            session: session.into(),
            name: name.into(),
            capture: None,
            model: "gpt-4o".into(),
            messages: vec![json!({"role": "user", "content": "fix the pager in src/pager.rs"})],
            answer: json!({"role": "assistant", "content": format!("the window of {name} is half open")}),
        }
    }

    /// Sets the delivery's id and when it was observed.
    #[must_use]
    pub fn captured(mut self, id: &str, observed_at: &str) -> Self {
        self.capture = Some((id.into(), observed_at.into()));
        self
    }

    /// Sets the model.
    #[must_use]
    pub fn model(mut self, model: &str) -> Self {
        self.model = model.into();
        self
    }

    /// Sets the messages that were sent to the model.
    #[must_use]
    pub fn messages(mut self, messages: Vec<Value>) -> Self {
        self.messages = messages;
        self
    }

    /// Sets the message that the model answered with.
    #[must_use]
    pub fn answer(mut self, answer: Value) -> Self {
        self.answer = answer;
        self
    }

    /// Returns the gateway's own description of the call, without the envelope.
    pub fn payload(&self) -> Value {
        json!({
            "litellm_call_id": self.name,
            "model": self.model,
            "custom_llm_provider": "openai",
            "messages": self.messages,
            "response": {
                "id": format!("response-{}", self.name),
                "choices": [{"finish_reason": "stop", "message": self.answer}],
                "usage": {"prompt_tokens": 11, "completion_tokens": 2},
            },
            "response_time": 1.25,
        })
    }

    /// Returns the description with its Session, as a gateway's own logger sends it.
    pub fn bare(&self) -> Value {
        let mut payload = self.payload();
        payload["metadata"] = json!({"session_id": self.session, "user_id": "dev-1"});
        payload
    }

    /// Returns the request with its envelope.
    pub fn envelope(&self) -> Value {
        let mut envelope = json!({
            "provider": "gateway_a",
            "session_id": self.session,
            "user_id": "dev-1",
            "payload": self.payload(),
        });
        if let Some((id, observed_at)) = &self.capture {
            envelope["capture"] = json!({"id": id, "observed_at": observed_at});
        }
        envelope
    }

    /// Returns the bytes of the request.
    pub fn body(&self) -> Vec<u8> {
        self.envelope().to_string().into_bytes()
    }
}

/// Returns the outcome of a CI run, as sent to `POST /ingest/ci`.
pub fn ci_outcome(run: &str) -> Value {
    json!({
        "provider": "ci_a",
        "run_id": run,
        "run_attempt": 1,
        "repo": "acme/pager",
        "repository_provider": "github",
        "repository_host": "github.com",
        "repository_id": "77",
        "commit_sha": "a".repeat(40),
        "branch": "main",
        "workflow_name": "build",
        "result": "passed",
        "run_url": "https://ci.example/run/1",
        "reason": "all 12 jobs passed",
    })
}

/// When the events of [`log_record`] happen, in nanoseconds of Unix time: 2026-07-07T19:57:35.424Z.
pub const LOGGED_AT: u64 = 1_783_454_255_424_000_000;

/// Returns a log record whose body is the name of its event. Its attributes are the members of an
/// object of strings, booleans and integers.
pub fn log_record(event: &str, attributes: &Value) -> Value {
    let wrapped = |value: &Value| match value {
        Value::Bool(_) => json!({ "boolValue": value }),
        Value::Number(number) => json!({ "intValue": number.to_string() }),
        _ => json!({ "stringValue": value }),
    };
    let attributes: Vec<Value> = attributes
        .as_object()
        .expect("an object")
        .iter()
        .map(|(key, value)| json!({ "key": key, "value": wrapped(value) }))
        .collect();
    json!({
        "timeUnixNano": LOGGED_AT.to_string(),
        "body": { "stringValue": event },
        "attributes": attributes,
    })
}

/// Returns an export of log records, as sent to `POST /v1/logs`.
pub fn logs(records: &[Value]) -> Value {
    json!({
        "resourceLogs": [{
            "resource": { "attributes": [{ "key": "user.id", "value": { "stringValue": "dev-1" } }] },
            "scopeLogs": [{ "scope": { "name": "tests" }, "logRecords": records }],
        }],
    })
}

/// Returns an export of spans, as sent to `POST /v1/traces`.
pub fn traces(spans: &[Value]) -> Value {
    json!({
        "resourceSpans": [{
            "resource": { "attributes": [{ "key": "user.id", "value": { "stringValue": "dev-1" } }] },
            "scopeSpans": [{ "scope": { "name": "tests" }, "spans": spans }],
        }],
    })
}

/// Returns a span that ended at [`LOGGED_AT`] after 1.5 seconds, with attributes that have no
/// structure.
pub fn span(id: &str, name: &str, attributes: &Value) -> Value {
    let mut record = log_record("", attributes);
    json!({
        "traceId": "00112233445566778899aabbccddeeff",
        "spanId": id,
        "name": name,
        "startTimeUnixNano": (LOGGED_AT - 1_500_000_000).to_string(),
        "endTimeUnixNano": LOGGED_AT.to_string(),
        "attributes": record["attributes"].take(),
    })
}

/// Returns a request with calls of a Session that a transcript of an agent has.
pub fn sent_calls(session: &str, calls: &[Value]) -> Value {
    json!({
        "source": { "kind": "transcript", "agent": "claude-code", "agent_version": "2.1.0" },
        "session_id": session,
        "calls": calls,
    })
}

/// Returns two calls: a command that a model asked for, and what it said of the result. The second
/// names the first, so it has only what is new.
pub fn first_two_calls() -> [Value; 2] {
    let result = json!({ "type": "tool_call_response", "id": "toolu_1", "result": "a.txt" });
    [
        json!({
            "response_id": "msg_1",
            "ended_at": "2026-11-02T10:00:04Z",
            "input": { "messages": [said("user", &json!({ "type": "text", "content": "list" }))] },
            "output": [said("assistant", &json!({ "type": "tool_call", "id": "toolu_1",
                "name": "Bash", "arguments": { "command": "ls" } }))],
            "stop_reason": "tool_use",
        }),
        json!({
            "response_id": "msg_2",
            "ended_at": "2026-11-02T10:00:09Z",
            "input": { "after": "msg_1", "messages": [said("user", &result)] },
            "output": [said("assistant", &json!({ "type": "text", "content": "One file." }))],
            "usage": { "input_tokens_uncached": 4, "cache_read_tokens": 900, "output_tokens": 6 },
        }),
    ]
}

/// Returns a message of one canonical part.
pub fn said(role: &str, part: &Value) -> Value {
    json!({ "role": role, "parts": [part] })
}

/// Returns the span of one call of a model, by OpenTelemetry's conventions.
pub fn traced_call(session: &str, response: &str) -> Value {
    span(
        "0011223344556677",
        "chat gpt-x",
        &traced_attributes(session, response),
    )
}

/// Returns the attributes of one call of a model, by OpenTelemetry's conventions, with its messages
/// as JSON text.
pub fn traced_attributes(session: &str, response: &str) -> Value {
    json!({
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": session,
        "gen_ai.response.id": response,
        "gen_ai.usage.input_tokens": 1500,
        "gen_ai.usage.cache_read.input_tokens": 1024,
        "gen_ai.usage.output_tokens": 64,
        "gen_ai.input.messages": r#"[{"role":"user","parts":[{"type":"text","content":"hi"}]}]"#,
        "gen_ai.output.messages": r#"[{"role":"assistant","parts":[{"type":"tool_call","id":"t1","name":"ls","arguments":"{\"p\":\".\"}"}],"finish_reason":"tool_call"}]"#,
    })
}

/// Returns what Claude Code logs for an edit that a person allowed: the decision and the tool's
/// result.
pub fn allowed_edit(session: &str, call: &str) -> [Value; 2] {
    let decision = json!({
        "session.id": session,
        "decision": "accept",
        "source": "user_temporary",
        "tool_name": "Edit",
        "tool_use_id": call,
    });
    let result = json!({
        "session.id": session,
        "tool_use_id": call,
        "tool_input": "{\"file_path\":\"/w/a.py\"}",
    });
    [
        log_record("claude_code.tool_decision", &decision),
        log_record("claude_code.tool_result", &result),
    ]
}

/// A webhook delivery, signed as the forge would sign it.
#[derive(Clone, Debug)]
pub struct Webhook {
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    secret: String,
}

impl Webhook {
    /// Returns the delivery of an event.
    pub fn new(event: &str, payload: &Value) -> Self {
        Self::unnamed(payload.to_string()).header("x-forge-event", event)
    }

    /// Returns a delivery that names no event.
    pub fn unnamed(body: impl Into<Vec<u8>>) -> Self {
        Self {
            headers: Vec::new(),
            body: body.into(),
            secret: FORGE_SECRET.into(),
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the delivery's id.
    #[must_use]
    pub fn named(self, id: &str) -> Self {
        self.header("x-forge-delivery", id)
    }

    /// Sets the secret that the delivery is signed with.
    #[must_use]
    pub fn secret(mut self, secret: &str) -> Self {
        self.secret = secret.into();
        self
    }

    /// Returns the request that sends the delivery to a route.
    pub fn to(&self, path: &str) -> Request {
        let mut request = Request::post(path, self.body.clone());
        request.headers.extend(self.headers.iter().cloned());
        request.header(SIGNATURE_HEADER, signature(&self.secret, &self.body))
    }
}

/// Returns a push to a branch from one commit to another, each given as a digit.
pub fn push(from: char, to: char) -> Value {
    json!({
        "ref": "refs/heads/main",
        "before": commit(from),
        "after": commit(to),
        "deleted": false,
        "forced": false,
        "repository": {
            "id": 77,
            "full_name": "Acme/Pager",
            "clone_url": "https://git.example/Acme/Pager.git",
        },
    })
}

/// Returns a pull request that was opened, or with `closed` one that was merged.
pub fn pull_request(action: &str, number: u32) -> Value {
    json!({
        "action": action,
        "pull_request": {
            "number": number,
            "merged": action == "closed",
            "merged_at": "2026-02-03T04:05:06Z",
            "merge_commit_sha": commit('5'),
            "head": {
                "ref": "feat",
                "sha": commit('6'),
                "repo": {"id": 78, "full_name": "Fork/Pager"},
            },
            "base": {"ref": "main", "sha": commit('7')},
        },
        "repository": {"id": 77, "full_name": "Acme/Pager"},
    })
}

/// Returns a completed run of the forge's own CI.
pub fn workflow_run(id: u32, conclusion: &str) -> Value {
    json!({
        "action": "completed",
        "workflow_run": {
            "id": id,
            "run_attempt": 1,
            "name": "CI",
            "head_branch": "main",
            "head_sha": commit('c'),
            "conclusion": conclusion,
            "html_url": "https://git.example/acme/pager/actions/runs/1",
            "workflow_id": 7,
            "path": ".github/workflows/ci.yml",
            "pull_requests": [{"number": 14}],
        },
        "repository": {"id": 77, "full_name": "Acme/Pager"},
    })
}

/// Returns the renaming of a repository.
pub fn renaming(from: &str, to: &str) -> Value {
    json!({
        "action": "renamed",
        "changes": {"repository": {"name": {"from": from}}},
        "repository": {"id": 77, "full_name": format!("Acme/{to}")},
    })
}

/// Returns the id of a commit, given as the digit that it consists of.
pub fn commit(digit: char) -> String {
    digit.to_string().repeat(40)
}

/// The acknowledgement of a single delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The id of the fact.
    pub fact: String,
    /// Whether the fact is new.
    pub stored: bool,
}

impl Receipt {
    /// Returns the receipt in an answer. Panics if the answer is not one.
    pub fn of(reply: &Reply) -> Self {
        assert_eq!(reply.status, 200, "{}", reply.text());
        let receipt = reply.json();
        let fact = dig(&receipt, "fact_id").and_then(Json::as_str);
        let stored = dig(&receipt, "stored").and_then(Json::as_bool);
        Self {
            fact: fact
                .unwrap_or_else(|| panic!("no fact id: {}", reply.text()))
                .to_owned(),
            stored: stored.unwrap_or_else(|| {
                panic!(
                    "the receipt does not say whether it was stored: {}",
                    reply.text()
                )
            }),
        }
    }
}
