//! A client can still read replies of a newer service, with words, members and kinds that the
//! client does not know. The replies are generated from the published schemas, so every set in
//! every reply is covered.

use serde_json::{Map, Value, json};
use svc_client::model::endpoint;
use svc_client::model::evidence::{EvidenceRead, Part};
use svc_client::model::identity::IdentityProbe;
use svc_client::model::json as exact;
use svc_client::model::open::Open;
use svc_client::model::query::SessionDossier;
use svc_client::testing::{Answer, FakeServer};
use svc_model::openapi;

use super::routes::call_all;

/// A word that is in no set.
const WORD: &str = "a_newer_word";
/// A number that is greater than that of the kinds in any choice.
const KINDS_MAX: usize = 8;

/// How many references deep optional items are generated.
const DEPTH_MAX: u8 = 10;

/// Generates replies as a schema describes them.
struct Replies<'a> {
    components: &'a Value,
    /// The index of the kind to generate where there are several. The index after the last
    /// generates a kind that the client does not know.
    kind: usize,
    /// Whether the service is newer than the schema.
    newer: bool,
    /// How many references led here. A type that contains itself ends somewhere.
    depth: u8,
}

impl Replies<'_> {
    fn make(&self, schema: &Value) -> Value {
        let Some(schema) = schema.as_object() else {
            return json!("anything");
        };
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let name = reference.rsplit('/').next().unwrap_or_default();
            // It repeats a part of the request, so the client knows all of its words.
            let newer = self.newer && name != "CommitAnchor";
            let depth = self.depth + 1;
            return Self {
                newer,
                depth,
                ..*self
            }
            .make(&self.components[name]);
        }
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        if let Some(words) = schema.get("enum").and_then(Value::as_array) {
            return if self.newer {
                json!(WORD)
            } else {
                words[0].clone()
            };
        }
        if let Some(kinds) = schema.get("oneOf").or(schema.get("anyOf")) {
            return self.one_of(kinds.as_array().expect("kinds are a list"));
        }
        if let Some(example) = schema.get("examples").and_then(|examples| examples.get(0)) {
            return example.clone();
        }
        let types = schema.get("type").map(|types| match types {
            Value::Array(types) => types[0].as_str().unwrap_or_default(),
            other => other.as_str().unwrap_or_default(),
        });
        match types {
            Some("object") => self.object(schema),
            Some("array") => self.array(schema),
            Some("integer") => schema.get("minimum").cloned().unwrap_or(json!(1)),
            Some("number") => json!(0.5),
            Some("boolean") => json!(true),
            Some("null") => Value::Null,
            Some("string") => string(schema),
            _ => json!("anything"),
        }
    }

    fn one_of(&self, kinds: &[Value]) -> Value {
        let kinds: Vec<_> = kinds.iter().filter(|kind| kind["type"] != "null").collect();
        match kinds.get(self.kind) {
            Some(kind) => self.make(kind),
            // Only an object that names its kind can be of a newer kind.
            None if self.newer && self.tag(kinds[0]).is_some() => {
                let tag = self.tag(kinds[0]).expect("it was looked for");
                json!({ tag: WORD, "content": [1.10, null] })
            }
            None => self.make(kinds[0]),
        }
    }

    /// Returns the member that says which kind an object is.
    fn tag<'k>(&'k self, kind: &'k Value) -> Option<&'k str> {
        let name = kind["$ref"]
            .as_str()
            .and_then(|reference| reference.rsplit('/').next());
        let kind = name.map_or(kind, |name| &self.components[name]);
        let mut members = kind["properties"].as_object()?.iter();
        let (tag, _) = members.find(|(_, member)| member["const"].is_string())?;
        Some(tag)
    }

    fn object(&self, schema: &Map<String, Value>) -> Value {
        let mut object = Map::new();
        for (name, member) in schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let member = match name.as_str() {
                // A newer service may rank differently, but its replies have the same shape.
                "policy_version" if member["const"] == 1 && self.newer => json!(2),
                _ => self.make(member),
            };
            object.insert(name.clone(), member);
        }
        if let Some(patterns) = schema.get("patternProperties").and_then(Value::as_object) {
            object.extend(
                patterns
                    .values()
                    .map(|member| ("200".to_owned(), self.make(member))),
            );
        }
        if let Some(others) = schema
            .get("additionalProperties")
            .filter(|others| others.is_object())
        {
            let name = schema
                .get("propertyNames")
                .map_or(json!("a name"), |names| self.make(names));
            object.insert(
                name.as_str().unwrap_or_default().to_owned(),
                self.make(others),
            );
        } else if self.newer && object.keys().all(|name| name != "200") {
            object.insert("a_newer_member".to_owned(), json!([{ "x": 1 }]));
        }
        Value::Object(object)
    }

    fn array(&self, schema: &Map<String, Value>) -> Value {
        let length = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let items = &schema["items"];
        let length = length.max(u64::from(self.depth < DEPTH_MAX));
        (0..length).map(|_| self.make(items)).collect()
    }
}

fn string(schema: &Map<String, Value>) -> Value {
    let is = |member: &str, value: &str| schema.get(member).is_some_and(|schema| schema == value);
    if is("format", "uuid") {
        json!("531f97ae-8872-41e7-8b99-d5840ab3cd2f")
    } else if is("format", "date-time") {
        json!("2026-11-20T12:00:00Z")
    } else if is("pattern", "^[0-9a-f]{64}$") {
        json!("ab".repeat(32))
    } else {
        json!("s")
    }
}

/// Returns the reply for each route that was called, in the order of the requests.
fn answers(asked: &FakeServer, kind: usize, newer: bool) -> Vec<(String, Vec<u8>)> {
    let document: Value = serde_json::from_str(&openapi::openapi_json()).expect("a document");
    let replies = Replies {
        components: &document["components"]["schemas"],
        kind,
        newer,
        depth: 0,
    };
    let routes = endpoint::all();
    let of = |method: &str, target: &str| {
        let path = target.split('?').next().unwrap_or_default();
        let is_asked = |route: &&endpoint::Description| {
            let (route_method, mut of_route) = (route.method.as_str(), route.path.split('/'));
            let mut of_path = path.split('/');
            route_method == method
                && of_route.by_ref().count() == of_path.by_ref().count()
                && route
                    .path
                    .split('/')
                    .zip(path.split('/'))
                    .all(|(expected, given)| expected == given || expected.starts_with('{'))
        };
        // A route without path parameters takes precedence over one with them.
        let mut found: Vec<_> = routes.iter().filter(is_asked).collect();
        found.sort_by_key(|route| route.path.contains('{'));
        found[0].path
    };
    asked
        .received()
        .into_iter()
        .map(|request| {
            let path = of(&request.method, &request.target);
            let operation = &document["paths"][path][request.method.to_ascii_lowercase()];
            let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
            assert!(schema.is_object(), "{path} has a published reply");
            (
                path.to_owned(),
                serde_json::to_vec(&replies.make(schema)).expect("a value"),
            )
        })
        .collect()
}

#[tokio::test]
async fn every_reply_of_a_newer_service_is_read() {
    let asked = FakeServer::start(vec![Answer::text(401, ""); 64]);
    call_all(&asked.client()).await;
    let mut words = 0;
    for newer in [false, true] {
        for kind in 0..KINDS_MAX {
            let answers = answers(&asked, kind, newer);
            let script = answers
                .iter()
                .map(|(_, body)| Answer::text(200, body.clone()));
            let server = FakeServer::start(script.collect::<Vec<_>>());
            let errors = call_all(&server.client()).await;
            assert_eq!(errors.len(), answers.len());
            for ((path, body), error) in answers.iter().zip(errors) {
                let body = String::from_utf8_lossy(body);
                words += body.matches(WORD).count();
                let why = error.map(|error| {
                    (
                        std::error::Error::source(&error).map(ToString::to_string),
                        error,
                    )
                });
                assert!(
                    why.is_none(),
                    "{path}, kind {kind}, newer {newer}: {why:?}\n{body}"
                );
            }
        }
    }
    assert!(words > 500, "the replies contain newer words, not {words}");
}

#[test]
fn unknown_values_are_kept_unchanged() {
    let probe = br#"{"org_id":"o","version":"9","authority":"auditor","client_id":"c"}"#;
    let probe: IdentityProbe = exact::from_slice(probe).unwrap();
    assert_eq!(
        (probe.authority.known(), probe.authority.as_str()),
        (None, "auditor")
    );

    let read = br#"{"schema_version":1,"session_id":"s","quarantine_revision":0,"items":[{"reference":{"inference_call_id":"c","side":"tools","message_index":0,"part_index":0,"line":7},"observed_at":"2026-11-20T12:00:00Z","role":"user","finish_reason":null,"part":{"type":"image","bytes":1.10,"text":"\ud800"}}]}"#;
    let read: EvidenceRead = exact::from_slice(read).unwrap();
    let item = &read.items[0];
    let Open::Unknown(image) = &item.part else {
        panic!("the kind image is unknown");
    };
    assert_eq!(image.word(), "image");
    assert_eq!(
        image.value().to_canonical(),
        br#"{"type":"image","bytes":1.10,"text":"\ud800"}"#
    );
    // It can be used in a request unchanged.
    let reference = exact::to_vec(&item.reference, 1024).unwrap();
    assert!(
        String::from_utf8(reference)
            .unwrap()
            .contains(r#""side":"tools""#)
    );
}

#[test]
fn malformed_values_are_not_accepted_as_newer_ones() {
    let malformed = [
        r#"{"type":"text"}"#,
        r#"{"type":7}"#,
        r#"{"content":"x"}"#,
        "7",
    ];
    for part in malformed {
        assert!(
            exact::from_slice::<Open<Part>>(part.as_bytes()).is_err(),
            "{part}"
        );
    }
    let version = br#"{"schema_version":2,"session_id":"s","quarantine_revision":0,"items":[]}"#;
    assert!(
        exact::from_slice::<EvidenceRead>(version).is_err(),
        "another version may mean something else"
    );
    assert!(exact::from_slice::<SessionDossier>(b"{}").is_err());
}
