//! No input whatever is a reason to fail: a body is stored, or it is refused with a documented
//! status and nothing of it is stored. It is never a 5xx, and never silence.

use std::collections::BTreeSet;

use harness::delivery::{
    Call, Webhook, allowed_edit, ci_outcome, log_record, logs, pull_request, push, renaming,
    workflow_run,
};
use harness::http::{Framing, Reply, Request};
use harness::pattern::{dig, shown};
use harness::random::Random;
use harness::server::{Backend, Configuration, OPERATOR_TOKEN, Server};
use serde_json::json;
use svc_model::endpoint::{self, Access, Description, Method, Place};
use svc_model::json::Json;

/// The Session of every valid body.
const SESSION: &str = "bad-input";
/// Random changes of each valid body.
const MUTATIONS: usize = 300;

on_both_backends! {
    a_body_that_is_no_request_is_refused_with_its_status_and_stores_nothing,
    a_member_of_a_wrong_type_is_refused_and_stores_nothing,
    an_undeclared_member_is_refused_and_stores_nothing,
    a_body_over_its_cap_is_413_whoever_sends_it,
    a_broken_body_is_never_answered_with_a_failure,
    an_odd_parameter_is_never_answered_with_a_failure,
}

/// A server under bad input, and a route with a valid body for it.
struct Target {
    server: Server,
    call: String,
    grant: String,
}

/// A route that takes a body.
struct Route {
    endpoint: Description,
    path: String,
    /// A valid body.
    body: Json,
}

impl Route {
    /// Returns the event that a webhook's route gets its valid body for.
    fn event(&self) -> Option<&'static str> {
        if self.endpoint.access != Access::Signature {
            return None;
        }
        Some(match self.endpoint.path {
            "/ingest/forge/push" => "push",
            "/ingest/forge/repository" => "repository",
            "/ingest/forge/ci" => "workflow_run",
            _ => "pull_request",
        })
    }

    /// Returns whether the body is another's document, of which no member is required or refused: a
    /// forge's event, an export of logs.
    fn takes_any_object(&self) -> bool {
        self.event().is_some() || self.endpoint.path == "/v1/logs"
    }
}

impl Target {
    fn start(backend: Backend) -> Option<Self> {
        let server = Server::start(backend, &Configuration::granting_one(SESSION))?;
        let stored = server
            .deliver("/ingest/gateway", Call::new(SESSION, "first").body())
            .json();
        let call = dig(&stored, "fact_id")
            .and_then(Json::as_str)
            .expect("a fact id")
            .to_owned();
        let granted = json!({"token": "removed", "session_id": SESSION, "reason": "a try"});
        let granted = server.ask("/v1/grants/add", granted.to_string()).json();
        let grant = dig(&granted, "entry.grant_id")
            .and_then(Json::as_str)
            .expect("the id of a grant")
            .to_owned();
        let revoked = json!({"token": "revoked", "reason": "a try"});
        let revoked = server.ask("/v1/grants/revoke", revoked.to_string());
        assert_eq!(revoked.status, 200, "{}", revoked.text());
        Some(Self {
            server,
            call,
            grant,
        })
    }

    /// Returns every route that takes a body.
    fn routes(&self) -> Vec<Route> {
        let routes: Vec<Route> = endpoint::all()
            .into_iter()
            .filter(|endpoint| endpoint.method == Method::Post)
            .map(|endpoint| Route {
                path: endpoint.path.replace("{provider}", "gateway_a"),
                body: self.valid(endpoint.path),
                endpoint,
            })
            .collect();
        assert!(!routes.is_empty());
        routes
    }

    fn valid(&self, path: &str) -> Json {
        let rich = Call::new(SESSION, "rich")
            .captured("531f97ae-8872-41e7-8b99-d5840ab3cd2f", "2026-01-02T05:04:05.678901+02:00")
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
        let reference = json!({"inference_call_id": self.call, "side": "output", "message_index": 0, "part_index": 0});
        let body = match path {
            "/ingest/gateway" => rich.envelope(),
            "/ingest/gateway/{provider}" => json!([rich.bare(), Call::new(SESSION, "next").bare()]),
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
            // About no stored fact, so that nothing else is hidden by it.
            "/v1/quarantine" | "/v1/release" => json!({
                "table": "pushes", "fact_id": "none", "reason": "a try", "force": true,
            }),
            "/v1/grants/add" => json!({
                "token": "review", "session_id": SESSION, "reason": "a try",
            }),
            "/v1/grants/remove" => json!({"grant_id": self.grant, "reason": "a try"}),
            // Who was never revoked cannot be restored.
            "/v1/grants/revoke" | "/v1/grants/restore" => {
                json!({"token": "revoked", "reason": "a try"})
            }
            other => panic!("no valid body for {other}: give one"),
        };
        Json::parse(body.to_string().as_bytes()).expect("JSON")
    }

    /// Posts a body as one who may, so that nothing but the body can be refused.
    fn post(&self, route: &Route, body: impl Into<Vec<u8>>) -> Reply {
        let Some(event) = route.event() else {
            return self.server.ask(&route.path, body);
        };
        let delivery = Webhook::unnamed(body).header("x-forge-event", event);
        // One name for all, so that a rename is repeated rather than another one.
        self.server
            .send(&delivery.named("bad-input").to(&route.path))
    }

    /// Returns what is stored, as counts.
    fn facts(&self) -> Vec<u8> {
        self.server.read("/v1/facts").body
    }

    /// Posts a body that may be bad, and checks all that holds of every answer.
    fn try_body(&self, route: &Route, body: &[u8]) -> Reply {
        let before = self.facts();
        let reply = self.post(route, body);
        let what = || {
            format!(
                "{} {}",
                route.path,
                String::from_utf8_lossy(&body[..body.len().min(600)])
            )
        };
        let documented = reply.status == 200 || route.endpoint.statuses.contains(&reply.status);
        assert!(
            documented && reply.status < 500,
            "{}: {} {}",
            what(),
            reply.status,
            reply.text()
        );
        let skipped = Some(&Json::Bool(true));
        let declined = reply.status == 200 && dig(&reply.json(), "skipped") == skipped;
        if reply.status != 200 || declined {
            assert!(
                declined || dig(&reply.json(), "detail").is_some(),
                "{}: {}",
                what(),
                reply.text()
            );
            assert_eq!(
                self.facts(),
                before,
                "{}: {} and stored",
                what(),
                reply.status
            );
        }
        reply
    }

    /// Reads everything that is stored for the Session: whatever got in must not break a read.
    fn read_everything(&self) {
        let inventory = self
            .server
            .read(&format!("/query/evidence?session_id={SESSION}"))
            .json();
        let calls = dig(&inventory, "calls")
            .and_then(Json::as_array)
            .expect("calls");
        for call in calls {
            let id = dig(call, "inference_call_id")
                .and_then(Json::as_str)
                .expect("an id");
            let manifest = self.server.read_json(&format!(
                "/query/evidence/manifest?session_id={SESSION}&inference_call_id={id}"
            ));
            let messages = dig(&manifest, "messages")
                .and_then(Json::as_array)
                .expect("messages");
            let parts = messages
                .iter()
                .filter_map(|message| dig(message, "parts")?.as_array());
            for part in parts.flatten() {
                let reference = dig(part, "reference").expect("a reference").to_canonical();
                let reference = String::from_utf8(reference).expect("ASCII");
                let body = format!(
                    r#"{{"schema_version":1,"session_id":"{SESSION}","references":[{reference}]}}"#
                );
                let reply = self.server.ask("/query/evidence/read", body);
                let declined = reply.status == 409 && reply.text().contains("non_finite_number");
                assert!(
                    reply.status == 200 || declined,
                    "{reference}: {}",
                    reply.text()
                );
            }
        }
        for rest in ["", "/inference-calls"] {
            self.server
                .read_json(&format!("/v1/facts/session/{SESSION}{rest}"));
        }
        let query = r#"{"schema_version":1,"query":"pager window text"}"#;
        assert_eq!(self.server.ask("/query/context", query).status, 200);
    }
}

fn nested(open: &str, close: &str, depth: usize) -> Vec<u8> {
    format!("{}{}", open.repeat(depth), close.repeat(depth)).into_bytes()
}

fn a_body_that_is_no_request_is_refused_with_its_status_and_stores_nothing(backend: Backend) {
    let Some(target) = Target::start(backend) else {
        return;
    };
    let malformed: Vec<Vec<u8>> = vec![
        b"{".to_vec(),
        b"}".to_vec(),
        b"{]".to_vec(),
        b"nul".to_vec(),
        b"{'a':1}".to_vec(),
        b"{\"a\":1,}".to_vec(),
        b"{\"a\":01}".to_vec(),
        b"{\"a\":\"\\x\"}".to_vec(),
        b"{\"a\":\"\\ud8\"}".to_vec(),
        b"{\"a\":\"\n\"}".to_vec(),
        b"{} {}".to_vec(),
        b"{\"a\":-}".to_vec(),
        b"\xff\xfe\xfd".to_vec(),
        b"{\"a\":\"\xc3\x28\"}".to_vec(),
        b"\x1f\x8b\x08\x00".to_vec(),
        b"\x00".to_vec(),
        format!("{{\"a\":{}}}", "9".repeat(4_301)).into_bytes(),
        nested("[", "]", 513),
        nested("{\"a\":", "}", 513),
        nested("[", "", 10_000),
        nested("[", "]", 8_000),
        nested("{\"a\":[", "]}", 2_000),
    ];
    let other_values = ["null", "true", "1", "NaN", "\"text\"", "-1e400"];
    for route in target.routes() {
        // The one route for which no 400 is documented says it with 422.
        let wanted = if route.endpoint.statuses.contains(&400) {
            400
        } else {
            422
        };
        for body in &malformed {
            let reply = target.try_body(&route, body);
            let start = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
            assert_eq!(
                reply.status,
                wanted,
                "{} {start}: {}",
                route.path,
                reply.text()
            );
        }
        // A route that takes any object refuses every other value as it does what is no JSON.
        let (other, empty) = if route.takes_any_object() {
            (400, 200)
        } else {
            (422, 422)
        };
        for value in other_values {
            assert_eq!(
                target.try_body(&route, value.as_bytes()).status,
                other,
                "{} {value}",
                route.path
            );
        }
        assert_eq!(
            target.try_body(&route, b"").status,
            other,
            "{} without a body",
            route.path
        );
        if route.body.as_array().is_none() {
            assert_eq!(
                target.try_body(&route, b"[]").status,
                other,
                "{} []",
                route.path
            );
            assert_eq!(
                target.try_body(&route, b"{}").status,
                empty,
                "{} {{}}",
                route.path
            );
        }
    }
    target.read_everything();
}

/// One step from a value to one inside it.
#[derive(Clone, Debug)]
enum Step {
    Member(String),
    Item(usize),
}

/// Returns the places of all values inside a value.
fn places(value: &Json) -> Vec<Vec<Step>> {
    let inside: Vec<(Step, &Json)> = match value {
        Json::Object(object) => object
            .iter()
            .map(|(name, value)| (Step::Member(name.to_string_lossy().into_owned()), value))
            .collect(),
        Json::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, item)| (Step::Item(index), item))
            .collect(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Vec::new(),
    };
    let mut all = Vec::new();
    for (step, value) in inside {
        all.push(vec![step.clone()]);
        for mut rest in places(value) {
            rest.insert(0, step.clone());
            all.push(rest);
        }
    }
    all
}

/// Returns the value with another at a place, or without any when there is none.
fn with(value: &Json, place: &[Step], other: Option<&Json>) -> Json {
    let mut changed = value.clone();
    let (step, rest) = place.split_first().expect("a place inside");
    match (&mut changed, step) {
        (Json::Object(object), Step::Member(name)) => match (rest.is_empty(), other) {
            (true, None) => drop(object.remove(name)),
            (true, Some(other)) => drop(object.insert(name.as_str(), other.clone())),
            (false, _) => {
                let inner = with(object.get(name).expect("a member"), rest, other);
                object.insert(name.as_str(), inner);
            }
        },
        (Json::Array(items), Step::Item(index)) => match (rest.is_empty(), other) {
            (true, None) => drop(items.remove(*index)),
            (true, Some(other)) => items[*index] = other.clone(),
            (false, _) => items[*index] = with(&items[*index], rest, other),
        },
        _ => panic!("{place:?} is not in {}", shown(value)),
    }
    changed
}

fn a_member_of_a_wrong_type_is_refused_and_stores_nothing(backend: Backend) {
    let Some(target) = Target::start(backend) else {
        return;
    };
    let long = format!("\"{}\"", "x".repeat(1_100));
    let odd: Vec<Json> = [
        "null",
        "true",
        "0",
        "-1",
        "1.5",
        "1e999",
        "9223372036854775808",
        "NaN",
        r#""""#,
        r#"" ""#,
        r#""x""#,
        r#""\u0000""#,
        r#""\ud800""#,
        "[]",
        "[[]]",
        "{}",
        &long,
    ]
    .iter()
    .map(|text| Json::parse(text.as_bytes()).expect("JSON"))
    .collect();
    let mut statuses = BTreeSet::new();
    for route in target.routes() {
        // Stored first, so that no variant takes its ids.
        target.post(&route, route.body.to_canonical());
        for place in places(&route.body) {
            for other in odd.iter().map(Some).chain([None]) {
                let body = with(&route.body, &place, other).to_canonical();
                statuses.insert(target.try_body(&route, &body).status);
            }
        }
        // Whatever came before, a valid body is still taken.
        let reply = target.post(&route, route.body.to_canonical());
        assert_eq!(reply.status, 200, "{}: {}", route.path, reply.text());
    }
    assert!(
        statuses.contains(&200) && statuses.contains(&422),
        "{statuses:?}"
    );
    target.read_everything();
}

fn an_undeclared_member_is_refused_and_stores_nothing(backend: Backend) {
    let Some(target) = Target::start(backend) else {
        return;
    };
    let secret = "undeclared-and-private";
    for route in target.routes() {
        // The payload of a gateway is the gateway's: anything may be in it.
        if route.path.starts_with("/ingest/gateway/") || route.takes_any_object() {
            continue;
        }
        let strict = |place: &[Step]| {
            !place
                .iter()
                .any(|step| matches!(step, Step::Member(name) if name == "payload"))
        };
        let objects = places(&route.body)
            .into_iter()
            .filter(|place| strict(place))
            .filter_map(|place| {
                let inside = place
                    .iter()
                    .try_fold(&route.body, |value, step| match step {
                        Step::Member(name) => value.as_object()?.get(name),
                        Step::Item(index) => value.as_array()?.get(*index),
                    })?;
                inside.as_object().map(|object| (place, object.clone()))
            });
        let mut bodies: Vec<Json> = objects
            .map(|(place, mut object)| {
                object.insert("undeclared", secret);
                with(&route.body, &place, Some(&object.into()))
            })
            .collect();
        let mut outermost = route.body.as_object().expect("an object").clone();
        outermost.insert("undeclared", secret);
        bodies.push(outermost.into());
        for body in bodies {
            let reply = target.try_body(&route, &body.to_canonical());
            assert_eq!(
                reply.status,
                422,
                "{} {}: {}",
                route.path,
                shown(&body),
                reply.text()
            );
            assert!(reply.text().contains("extra_forbidden"), "{}", reply.text());
            assert!(
                !reply.text().contains(secret),
                "the input is repeated: {}",
                reply.text()
            );
            let named = reply.text().contains(r#""undeclared""#);
            let ingest = route.path.starts_with("/ingest");
            assert_eq!(named, ingest, "{}: {}", route.path, reply.text());
        }
    }
}

fn a_body_over_its_cap_is_413_whoever_sends_it(backend: Backend) {
    let Some(target) = Target::start(backend) else {
        return;
    };
    for route in target.routes() {
        let cap = route.endpoint.body_bytes_max;
        for framing in [Framing::Sized, Framing::Chunked] {
            let mut request = Request::post(&route.path, vec![b' '; cap + 1]);
            request.framing = framing;
            for request in [request.clone(), request.clone().bearer(OPERATOR_TOKEN)] {
                let reply = target.server.send(&request);
                assert_eq!(
                    reply.status,
                    413,
                    "{} {framing:?}: {}",
                    route.path,
                    reply.text()
                );
                assert_eq!(reply.text(), r#"{"detail":"request body too large"}"#);
            }
            request.body = Some(vec![b' '; cap]);
            let reply = target.server.send(&request);
            assert_eq!(reply.status, 401, "{} {framing:?}, {cap} bytes", route.path);
        }
        // Blanks around it bring a valid body to the cap exactly.
        let mut body = route.body.to_canonical();
        body.resize(cap, b' ');
        let reply = target.post(&route, body.clone());
        assert_eq!(
            reply.status,
            200,
            "{} of {cap} bytes: {}",
            route.path,
            reply.text()
        );
    }
}

fn a_broken_body_is_never_answered_with_a_failure(backend: Backend) {
    let Some(target) = Target::start(backend) else {
        return;
    };
    let mut random = Random::new(2_026);
    let fragments: [&[u8]; 14] = [
        b"\"",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\\",
        b"\\ud800",
        b"\\u0000",
        b"\xed\xa0\x80",
        b"\xff",
        b"1e999",
        b"null",
    ];
    for route in target.routes() {
        let valid = route.body.to_canonical();
        for _ in 0..MUTATIONS {
            let mut body = valid.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(body.len().max(1)).min(body.len());
                let end = (at + random.below(12)).min(body.len());
                match random.below(5) {
                    0 => body.truncate(at),
                    1 => drop(body.drain(at..end)),
                    2 => {
                        let copy = body[at..end].to_vec();
                        drop(body.splice(at..at, copy));
                    }
                    3 => drop(body.splice(at..at, random.one_of(&fragments).iter().copied())),
                    _ => drop(body.splice(at..end, random.one_of(&fragments).iter().copied())),
                }
            }
            target.try_body(&route, &body);
        }
    }
    target.read_everything();
}

fn an_odd_parameter_is_never_answered_with_a_failure(backend: Backend) {
    let Some(target) = Target::start(backend) else {
        return;
    };
    let long = "x".repeat(2_000);
    let odd = [
        "",
        "%20",
        "%00",
        "%ff",
        "%ED%A0%80",
        "%",
        "%zz",
        "+",
        "a%2Fb",
        "%F0%9F%98%80",
        &long,
    ];
    for endpoint in endpoint::all() {
        let in_path = endpoint
            .parameters
            .iter()
            .any(|parameter| parameter.place == Place::Path);
        let names: Vec<&str> = endpoint
            .parameters
            .iter()
            .filter(|parameter| parameter.place == Place::Query && parameter.required)
            .map(|parameter| parameter.name)
            .collect();
        for value in odd {
            let mut path = endpoint.path.to_owned();
            for parameter in endpoint.parameters {
                path = path.replace(&format!("{{{}}}", parameter.name), value);
            }
            let query: Vec<String> = names.iter().map(|name| format!("{name}={value}")).collect();
            let request = Request {
                method: endpoint.method.as_str().into(),
                path: format!("{path}?{}&undeclared={value}", query.join("&")),
                body: (endpoint.method == Method::Post).then(|| b"{}".to_vec()),
                ..Request::default()
            };
            let reply = target
                .server
                .try_send(&request.bearer(OPERATOR_TOKEN))
                .expect("an answer");
            let documented = reply.status == 200 || endpoint.statuses.contains(&reply.status);
            // An empty segment is another path; some of these are no request at all.
            let other_path = in_path && matches!(reply.status, 400 | 404 | 405);
            assert!(
                (documented || other_path) && reply.status < 500,
                "{} {path}: {} {}",
                endpoint.method.as_str(),
                reply.status,
                reply.text()
            );
            if !names.is_empty() && matches!(value, "" | "%20" | "%00" | "+") {
                let refused = reply.status == 422 || reply.status == 403;
                assert!(
                    refused,
                    "{path} with {value:?}: {} {}",
                    reply.status,
                    reply.text()
                );
            }
        }
    }
}
