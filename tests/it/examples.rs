//! The published examples, played in order against a service: every request is accepted, and every
//! answer has the form of the published one.

use std::path::Path;

use harness::delivery::Webhook;
use harness::http::Request;
use harness::server::{Backend, Configuration, OPERATOR_TOKEN, Server};
use serde_json::Value;
use svc_model::endpoint::{self, Access, Description, Method};

on_both_backends! {
    every_published_example_is_answered_as_published,
}

/// The Session of the story.
const SESSION: &str = "fix-the-pager";

fn story() -> Vec<Value> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let path = workspace.expect("the workspace");
    let text = std::fs::read(path.join("svc-model/src/openapi/examples.json"));
    serde_json::from_slice(&text.expect("the examples")).expect("JSON")
}

/// Percent-encodes what may not be in a path or a query.
fn encoded(value: &Value) -> String {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    let encode = |byte: u8| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(encode).collect()
}

fn request(route: &Description, example: &Value) -> Request {
    let mut path = route.path.to_owned();
    let mut query = Vec::new();
    for (name, value) in example["parameters"].as_object().into_iter().flatten() {
        let (place, value) = (format!("{{{name}}}"), encoded(value));
        if path.contains(&place) {
            path = path.replace(&place, &value);
        } else {
            query.push(format!("{name}={value}"));
        }
    }
    let target = format!("{path}?{}", query.join("&"));
    if route.access == Access::Signature {
        let webhook = Webhook::unnamed(example["request"].to_string());
        let headers = example["headers"].as_object().into_iter().flatten();
        let webhook = headers.fold(webhook, |webhook, (name, value)| {
            webhook.header(name, value.as_str().expect("a text"))
        });
        return webhook.to(&target);
    }
    let request = match route.method {
        Method::Get => Request::get(target),
        Method::Post => Request::post(target, example["request"].to_string()),
    };
    request.bearer(OPERATOR_TOKEN)
}

/// Returns where two values differ in form: in the type of a value, the names of members, or the
/// length of a list.
fn difference(place: &str, published: &Value, answered: &Value) -> Option<String> {
    match (published, answered) {
        (Value::Object(published), Value::Object(answered)) => {
            if !published.keys().eq(answered.keys()) {
                let names = |object: &serde_json::Map<_, _>| format!("{:?}", object.keys());
                return Some(format!(
                    "{place}: {} became {}",
                    names(published),
                    names(answered)
                ));
            }
            let mut members = published.iter();
            members.find_map(|(name, value)| {
                difference(&format!("{place}.{name}"), value, &answered[name])
            })
        }
        (Value::Array(published), Value::Array(answered)) => {
            if published.len() != answered.len() {
                let lengths = (published.len(), answered.len());
                return Some(format!("{place}: {} items became {}", lengths.0, lengths.1));
            }
            let mut items = published.iter().zip(answered).enumerate();
            items.find_map(|(index, (published, answered))| {
                difference(&format!("{place}[{index}]"), published, answered)
            })
        }
        _ => {
            let same = std::mem::discriminant(published) == std::mem::discriminant(answered);
            (!same).then(|| format!("{place}: {published} became {answered}"))
        }
    }
}

fn every_published_example_is_answered_as_published(backend: Backend) {
    let configuration = Configuration::granting_one(SESSION);
    let Some(server) = Server::start(backend, &configuration) else {
        return;
    };
    let routes = endpoint::all();
    let story = story();
    assert_eq!(story.len(), routes.len(), "each operation has one example");
    // The published ids of grants, and those that the service assigns here.
    let mut given: Vec<(String, String)> = Vec::new();
    for example in &story {
        let text = given.iter().fold(example.to_string(), |text, (id, given)| {
            text.replace(id, given)
        });
        let example: Value = serde_json::from_str(&text).expect("JSON");
        let name = example["operation"].as_str().expect("a name");
        let route = routes.iter().find(|route| route.name == name);
        let route = route.unwrap_or_else(|| panic!("{name} is not an operation"));
        // The harness checks the answer against its schema.
        let reply = server.send(&request(route, &example));
        assert_eq!(reply.status, 200, "{name}: {}", reply.text());
        // How many requests were answered, and how fast, differs in each run.
        if name == "capture" {
            continue;
        }
        let answered: Value = serde_json::from_slice(&reply.body).expect("JSON");
        let grant = |reply: &Value| reply["entry"]["grant_id"].as_str().map(str::to_owned);
        given.extend(grant(&example["reply"]).zip(grant(&answered)));
        let difference = difference(name, &example["reply"], &answered);
        assert_eq!(difference, None, "{}", reply.text());
    }
}

#[test]
fn a_difference_in_form_is_found() {
    let differs = |published: Value, answered: Value| difference("x", &published, &answered);
    let published = serde_json::json!({ "a": [1, { "b": "c" }] });
    for other in [
        serde_json::json!({ "a": [1, { "b": 2 }] }),
        serde_json::json!({ "a": [1] }),
        serde_json::json!({ "a": [1, { "d": "c" }] }),
        serde_json::json!([]),
    ] {
        assert!(
            differs(published.clone(), other.clone()).is_some(),
            "{other}"
        );
    }
    let alike = serde_json::json!({ "a": [7, { "b": "other" }] });
    assert_eq!(differs(published, alike), None);
}
