//! Examples of requests and replies.
//!
//! `examples.json` is one small sequence of requests with the answers of the service. A test
//! replays it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::route::{Route, type_name};
use crate::endpoint::Parameter;

/// One request of the sequence, and its answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Example {
    operation: String,
    /// The parameters of the path and the query.
    #[serde(default)]
    parameters: Map<String, Value>,
    #[serde(default)]
    headers: Map<String, Value>,
    request: Option<Value>,
    reply: Value,
}

static STORY: LazyLock<BTreeMap<String, Example>> = LazyLock::new(|| {
    let story: Vec<Example> =
        serde_json::from_str(include_str!("examples.json")).unwrap_or_default();
    story
        .into_iter()
        .map(|example| (example.operation.clone(), example))
        .collect()
});

/// Examples of the published types that are no whole body, by type.
static PAYLOADS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("payload_examples.json")).unwrap_or_default()
});

/// Returns an example of a type from every route whose whole body it is, or the one of a payload.
pub(super) fn examples_of(routes: &[Route], name: &str) -> Vec<Value> {
    let mut examples: Vec<Value> = PAYLOADS.get(name).cloned().into_iter().collect();
    for route in routes {
        let Some(example) = Example::of(route.endpoint.name) else {
            continue;
        };
        if route.request.as_ref().and_then(type_name) == Some(name) {
            examples.extend(example.request.clone());
        }
        if type_name(&route.reply) == Some(name) {
            examples.push(example.reply.clone());
        }
    }
    examples.dedup();
    examples
}

impl Example {
    /// Returns the example of an operation.
    pub(super) fn of(operation: &str) -> Option<&'static Self> {
        STORY.get(operation)
    }

    /// Returns the value of a parameter, if the example has one.
    pub(super) fn parameter(&self, parameter: &Parameter) -> Option<&Value> {
        let given = self.parameters.get(parameter.name);
        given.or_else(|| self.headers.get(parameter.name))
    }

    /// Returns the body of the request in OpenAPI's form.
    pub(super) fn request(&self) -> Option<Value> {
        self.request.as_ref().map(named)
    }

    /// Returns the body of the reply in OpenAPI's form.
    pub(super) fn reply(&self) -> Value {
        named(&self.reply)
    }
}

fn named(value: &Value) -> Value {
    json!({ "example": { "value": value } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::{self, Endpoint, Place};
    use crate::json::{self, Json, NodeBudget, Object};
    use crate::request::{Incoming, Request as _};

    fn exact(value: &Value) -> Json {
        Json::parse(value.to_string().as_bytes()).unwrap()
    }

    /// Returns the values as they arrive: as texts.
    fn texts(values: &Map<String, Value>) -> Object {
        let text = |value: &Value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        };
        let members = values
            .iter()
            .map(|(name, value)| (name.clone(), Json::from(text(value))));
        members.collect()
    }

    fn check<E: Endpoint>() {
        let example = Example::of(E::NAME).unwrap_or_else(|| panic!("{} has no example", E::NAME));
        let values = texts(&example.parameters);
        let body = example
            .request
            .as_ref()
            .map(|body| exact(body).to_canonical());
        let request = E::Request::read(&Incoming {
            path: &values,
            query: &values,
            headers: &texts(&example.headers),
            body: &body.unwrap_or_default(),
            memory: &NodeBudget::unlimited(),
        });
        assert!(request.is_ok(), "{}: {:?}", E::NAME, request.err());
        let reply = exact(&example.reply).to_canonical();
        let reply: Result<E::Reply, _> = json::from_slice(&reply);
        assert!(reply.is_ok(), "{}: {:?}", E::NAME, reply.err());
    }

    macro_rules! check_all {
        ($($endpoint:ident)+) => {
            $(check::<endpoint::$endpoint>();)+
        };
    }

    #[test]
    fn every_operation_has_an_example_that_both_sides_can_read() {
        svc_model::for_each_endpoint! { check_all }
    }

    #[test]
    fn every_parameter_that_a_request_must_have_is_in_its_example() {
        for route in endpoint::all() {
            let example = Example::of(route.name).unwrap();
            let known = |name: &String| {
                route
                    .parameters
                    .iter()
                    .any(|parameter| parameter.name == name)
            };
            assert!(example.parameters.keys().all(known), "{}", route.name);
            assert!(example.headers.keys().all(known), "{}", route.name);
            for parameter in route.parameters {
                let given = example.parameter(parameter).is_some();
                assert!(
                    given || !parameter.required,
                    "{} {}",
                    route.name,
                    parameter.name
                );
                assert!(!given || parameter.place != Place::Header || !parameter.required);
            }
        }
    }
}
