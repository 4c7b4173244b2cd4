//! The files that are published.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::endpoint::{
    ContextRetrieval, Discovery, Endpoint as _, EvidenceReading, GrantRead, IngestGateway,
    IngestGatewayBatch, Logs, Selected,
};

use super::catalogue::Catalogue;
use super::document::document;
use super::downgrade::downgraded;
use super::route::{Route, type_name};

/// The name of the OpenAPI document.
const OPENAPI: &str = "openapi.json";
/// The name of the same document for generators that know only OpenAPI 3.0.
const OPENAPI_3_0: &str = "openapi-3.0.json";
/// The published types that are not whole bodies, with the operations whose bodies contain them.
/// Commit notes, exported facts and the reports that only the shell prints are in no body.
const PAYLOADS: [(&str, &[&str]); 8] = [
    ("AbandonmentReport", &[]),
    ("AttributionShareReport", &[]),
    ("CommitNote", &[]),
    ("ExportedFact", &[]),
    (
        "GatewayPayload",
        &[IngestGateway::NAME, IngestGatewayBatch::NAME],
    ),
    ("MergeRetentionReport", &[]),
    ("OwnLogRecord", &[Logs::NAME]),
    (
        "Part",
        &[
            EvidenceReading::NAME,
            GrantRead::NAME,
            ContextRetrieval::NAME,
            Discovery::NAME,
            Selected::NAME,
        ],
    ),
];
/// The name of the index.
const INDEX: &str = "index.json";

/// Returns every published file: its name and its text.
pub fn documents() -> BTreeMap<String, String> {
    let catalogue = Catalogue::new();
    let index = index(&catalogue);
    let mut documents = BTreeMap::new();
    for entry in &index {
        if let Some(schema) = catalogue.standalone(entry.name) {
            documents.insert(entry.file.clone(), pretty(schema));
        }
    }
    let openapi = document(&catalogue);
    documents.insert(OPENAPI_3_0.to_owned(), pretty(downgraded(openapi.clone())));
    documents.insert(OPENAPI.to_owned(), pretty(openapi));
    documents.insert(INDEX.to_owned(), pretty(serde_json::json!(index)));
    documents
}

/// Returns the OpenAPI document as it is served.
pub fn openapi_json() -> String {
    pretty(document(&Catalogue::new()))
}

/// One published type.
#[derive(Debug, Serialize)]
struct PublishedType<'a> {
    /// Its name.
    #[serde(rename = "type")]
    name: &'a str,
    /// The file with its schema.
    file: String,
    /// Where the type is used.
    direction: Direction,
    /// The routes that have it as their whole body, or inside of it.
    routes: BTreeSet<Usage>,
}

/// Where a type is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Direction {
    Request,
    /// Within a body, in a note on a commit, or only printed by the shell.
    Payload,
    Reply,
    Problem,
}

/// One route that uses a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Usage {
    path: &'static str,
    method: &'static str,
    operation: &'static str,
}

impl Usage {
    fn of(route: &Route) -> Self {
        Self {
            path: route.endpoint.path,
            method: route.endpoint.method.as_str(),
            operation: route.endpoint.name,
        }
    }
}

/// Lists every request, every reply, the payloads within them and the problem body, by name.
fn index(catalogue: &Catalogue) -> Vec<PublishedType<'_>> {
    let mut entries = BTreeMap::<&str, PublishedType<'_>>::new();
    let mut add = |schema, direction, route: &Route| {
        let Some(name) = type_name(schema) else {
            return;
        };
        let entry = entries.entry(name).or_insert_with(|| PublishedType {
            name,
            file: format!("{name}.json"),
            direction,
            routes: BTreeSet::new(),
        });
        entry.routes.insert(Usage::of(route));
    };
    for route in &catalogue.routes {
        if let Some(request) = &route.request {
            add(request, Direction::Request, route);
        }
        add(&route.reply, Direction::Reply, route);
        if !route.endpoint.statuses.is_empty() {
            add(&catalogue.problem, Direction::Problem, route);
        }
    }
    for (name, operations) in PAYLOADS {
        let routes = catalogue.routes.iter();
        let routes = routes.filter(|route| operations.contains(&route.endpoint.name));
        let payload = PublishedType {
            name,
            file: format!("{name}.json"),
            direction: Direction::Payload,
            routes: routes.map(Usage::of).collect(),
        };
        entries.insert(name, payload);
    }
    entries.into_values().collect()
}

/// Writes a document with sorted members, whatever else is in the build.
fn pretty(mut document: Value) -> String {
    document.sort_all_objects();
    format!("{document:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_body_has_a_file() {
        let catalogue = Catalogue::new();
        let documents = documents();
        for route in &catalogue.routes {
            for schema in route
                .request
                .iter()
                .chain([&route.reply, &catalogue.problem])
            {
                let file = type_name(schema).map(|name| format!("{name}.json"));
                let published = file.is_some_and(|file| documents.contains_key(&file));
                assert!(published, "{}: {schema:?}", route.endpoint.path);
            }
        }
    }

    #[test]
    fn every_published_schema_has_an_example() {
        let catalogue = Catalogue::new();
        for entry in index(&catalogue) {
            let schema = catalogue.standalone(entry.name).unwrap();
            let examples = schema["examples"].as_array();
            assert!(
                examples.is_some_and(|examples| !examples.is_empty()),
                "{} has no example",
                entry.name
            );
        }
    }

    #[test]
    fn no_type_is_both_a_request_and_a_reply() {
        let catalogue = Catalogue::new();
        let name = |schema| type_name(schema).map(str::to_owned);
        let requests: BTreeSet<_> = catalogue
            .routes
            .iter()
            .filter_map(|route| name(route.request.as_ref()?))
            .collect();
        let replies: BTreeSet<_> = catalogue
            .routes
            .iter()
            .filter_map(|route| name(&route.reply))
            .collect();
        assert!(requests.is_disjoint(&replies));
    }

    #[test]
    fn members_are_sorted_and_the_text_ends_with_a_line_break() {
        assert_eq!(
            pretty(serde_json::json!({ "b": 1, "a": {} })),
            "{\n  \"a\": {},\n  \"b\": 1\n}\n"
        );
    }

    #[test]
    fn two_runs_give_the_same_bytes() {
        assert_eq!(documents(), documents());
    }
}
