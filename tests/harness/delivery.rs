//! Deliveries as senders make them, with sensible values for what a test does not care about.

use serde_json::{Value, json};
use svc_model::json::Json;

use crate::http::Reply;
use crate::pattern::dig;

/// A gateway call: what is sent to `POST /ingest/gateway`.
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
    /// Returns a call of a Session; `name` is the gateway's own id of it.
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

    /// Names the delivery, and when it was observed.
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

    /// Sets the messages that the model got.
    #[must_use]
    pub fn messages(mut self, messages: Vec<Value>) -> Self {
        self.messages = messages;
        self
    }

    /// Sets the message that the model gave.
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

/// The outcome of a run of a CI system: what is sent to `POST /ingest/ci`.
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

/// When the events of [`log_record`] happen, in nanoseconds: 2026-07-07T19:57:35.424Z.
pub const LOGGED_AT: u64 = 1_783_454_255_424_000_000;

/// A log record whose body is the name of its event; its attributes are the members of an object of
/// strings, booleans and integers.
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

/// An export of log records: what is sent to `POST /v1/logs`.
pub fn logs(records: &[Value]) -> Value {
    json!({
        "resourceLogs": [{
            "resource": { "attributes": [{ "key": "user.id", "value": { "stringValue": "dev-1" } }] },
            "scopeLogs": [{ "scope": { "name": "tests" }, "logRecords": records }],
        }],
    })
}

/// What Claude Code logs of an edit that a person allowed: the decision and the tool's result.
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

/// What a single delivery was acknowledged with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The id of the fact.
    pub fact: String,
    /// Whether it is new.
    pub stored: bool,
}

impl Receipt {
    /// Returns the receipt in an answer, which must be one.
    pub fn of(reply: &Reply) -> Self {
        assert_eq!(reply.status, 200, "{}", reply.text());
        let receipt = reply.json();
        let fact = dig(&receipt, "fact_id").and_then(Json::as_str);
        let stored = dig(&receipt, "stored").and_then(Json::as_bool);
        Self {
            fact: fact
                .unwrap_or_else(|| panic!("no fact id: {}", reply.text()))
                .to_owned(),
            stored: stored.unwrap_or_else(|| panic!("stored or not: {}", reply.text())),
        }
    }
}
