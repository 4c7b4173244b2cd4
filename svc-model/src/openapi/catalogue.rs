//! The schemas of all messages, by type name.

use std::collections::BTreeSet;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::example::examples_of;
use super::route::{Route, component_name, type_name};
use super::variant::name_variants;
use crate::endpoint;
use crate::export::ExportedFact;
use crate::ingest::event::OwnLogRecord;
use crate::note::CommitNote;
use crate::problem::ProblemBody;
use crate::reports::{AbandonmentReport, AttributionShareReport, MergeRetentionReport};

/// The path of referenced schemas in a standalone schema.
const DEFINITIONS: &str = "#/$defs/";
/// The folder of the schemas' identifiers, relative to the server that serves them. It contains their
/// version, which changes only when their meaning changes, not with every version of the service.
const IDENTIFIERS: &str = "/schemas/1/";
/// The dialect of every schema.
pub(super) const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Every route with the schemas of its bodies, and the schemas that these refer to.
#[derive(Debug)]
pub(super) struct Catalogue {
    /// The routes in the order of the endpoint list.
    pub(super) routes: Vec<Route>,
    /// The schema of every unsuccessful answer.
    pub(super) problem: Schema,
    /// The named schemas.
    pub(super) components: Map<String, Value>,
    /// The payloads that are not bodies themselves, and the schemas that these refer to.
    payloads: Map<String, Value>,
}

impl Catalogue {
    /// Describes every route.
    pub(super) fn new() -> Self {
        let mut incoming = generator(SchemaSettings::for_deserialize);
        let mut outgoing = generator(SchemaSettings::for_serialize);
        let routes = endpoint::all()
            .into_iter()
            .map(|endpoint| Route {
                request: endpoint.request_schema.map(|schema| schema(&mut incoming)),
                reply: (endpoint.reply_schema)(&mut outgoing),
                parameters: endpoint
                    .parameters
                    .iter()
                    .map(|parameter| (parameter.schema)(&mut incoming))
                    .collect(),
                endpoint,
            })
            .collect();
        let problem = outgoing.subschema_for::<ProblemBody>();
        let mut components = outgoing.take_definitions(true);
        components.extend(incoming.take_definitions(true));
        name_variants(&mut components);
        components.values_mut().for_each(list_constants);
        let mut within = generator(SchemaSettings::for_deserialize);
        within.subschema_for::<OwnLogRecord>();
        within.subschema_for::<CommitNote>();
        within.subschema_for::<ExportedFact>();
        let mut printed = generator(SchemaSettings::for_serialize);
        printed.subschema_for::<AbandonmentReport>();
        printed.subschema_for::<AttributionShareReport>();
        printed.subschema_for::<MergeRetentionReport>();
        let mut payloads = within.take_definitions(true);
        payloads.extend(printed.take_definitions(true));
        payloads.values_mut().for_each(list_constants);
        Self {
            routes,
            problem,
            components,
            payloads,
        }
    }

    /// Returns the named schema as a self-contained document.
    pub(super) fn standalone(&self, name: &str) -> Option<Value> {
        let mut document = self.named(name)?.as_object()?.clone();
        let mut needed = BTreeSet::new();
        self.gather(self.named(name)?, &mut needed);
        let definitions: Map<String, Value> = needed
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), self.named(name)?.clone())))
            .collect();
        document.insert("$schema".into(), DIALECT.into());
        document.insert("$id".into(), format!("{IDENTIFIERS}{name}.json").into());
        document.insert("title".into(), name.into());
        document
            .entry("examples")
            .or_insert_with(|| examples_of(&self.routes, name).into());
        if !definitions.is_empty() {
            document.insert("$defs".into(), definitions.into());
        }
        let mut document = Value::Object(document);
        localize(&mut document);
        Some(document)
    }

    fn named(&self, name: &str) -> Option<&Value> {
        self.components
            .get(name)
            .or_else(|| self.payloads.get(name))
    }

    /// Returns the first required member of a route's request body.
    pub(super) fn required_member(&self, route: &Route) -> Option<&str> {
        let body = self.components.get(type_name(route.request.as_ref()?)?)?;
        body.get("required")?.get(0)?.as_str()
    }

    /// Adds the name of every schema that `schema` refers to, directly or indirectly.
    fn gather<'a>(&'a self, schema: &'a Value, needed: &mut BTreeSet<&'a str>) {
        match schema {
            Value::Object(members) => {
                for (member, value) in members {
                    if member == "$ref"
                        && let Some(name) = value.as_str().and_then(component_name)
                    {
                        if let Some(target) = self.named(name)
                            && needed.insert(name)
                        {
                            self.gather(target, needed);
                        }
                    } else {
                        self.gather(value, needed);
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.gather(item, needed)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

fn generator(direction: fn(SchemaSettings) -> SchemaSettings) -> SchemaGenerator {
    let mut settings = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        })
        .with_transform(RecursiveTransform(list_values))
        .with_transform(RecursiveTransform(name_sizes))
        .with_transform(RecursiveTransform(join_lines));
    settings = direction(settings);
    if settings.contract.is_serialize() {
        settings = settings.with_transform(RecursiveTransform(forbid_null));
    }
    settings.into_generator()
}

/// Adds a plain `enum` to a closed set, in addition to the list of documented values.
///
/// The generator writes each documented value as a separate alternative. That keeps the description
/// of each value, but most tools then do not recognise a closed set of strings.
fn list_values(schema: &mut Schema) {
    let values: Option<Vec<Value>> =
        schema
            .get("oneOf")
            .and_then(Value::as_array)
            .and_then(|alternatives| {
                let value = |alternative: &Value| {
                    alternative
                        .get("const")
                        .filter(|alternative| alternative.is_string())
                        .cloned()
                };
                alternatives.iter().map(value).collect()
            });
    let Some(values) = values.filter(|values| !values.is_empty()) else {
        return;
    };
    if values.len() == 1 {
        // A single alternative is not a choice.
        schema.remove("oneOf");
    }
    for alternative in schema
        .get_mut("oneOf")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(members) = alternative.as_object_mut() {
            members.remove("type");
        }
    }
    schema.insert("type".into(), json!("string"));
    schema.insert("enum".into(), values.into());
}

/// Repeats a constant as an `enum` of one value, which more generators of clients understand.
fn list_constants(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.contains_key("type")
                && let Some(constant) = members
                    .get("const")
                    .filter(|value| !value.is_object())
                    .cloned()
            {
                members.insert("enum".into(), json!([constant]));
            }
            members.values_mut().for_each(list_constants);
        }
        Value::Array(items) => items.iter_mut().for_each(list_constants),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Names the size of an integer as OpenAPI does. Strict validators refuse the names of Rust's unsigned
/// types; that there is no negative value is in `minimum`.
fn name_sizes(schema: &mut Schema) {
    let format = match schema.get("format").and_then(Value::as_str) {
        Some("uint" | "uint32" | "uint64") => "int64",
        Some("uint8" | "uint16" | "int8" | "int16") => "int32",
        _ => return,
    };
    schema.insert("format".into(), format.into());
}

/// Removes the source's line breaks from paragraphs.
fn join_lines(schema: &mut Schema) {
    if let Some(Value::String(description)) = schema.get_mut("description") {
        let paragraphs: Vec<_> = description
            .split("\n\n")
            .map(|paragraph| paragraph.replace('\n', " "))
            .collect();
        *description = paragraphs.join("\n\n");
    }
}

/// Declares that an optional member of a reply is never null; it is absent instead.
fn forbid_null(schema: &mut Schema) {
    let required: BTreeSet<String> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect();
    let members = schema
        .get_mut("properties")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flatten();
    for (name, member) in members {
        let Some(member) = member.as_object_mut().filter(|_| !required.contains(name)) else {
            continue;
        };
        if let Some(Value::Array(types)) = member.get_mut("type") {
            types.retain(|name| name != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                member.insert("type".into(), only);
            }
        }
        if let Some(Value::Array(alternatives)) = member.get_mut("anyOf") {
            alternatives.retain(|alternative| *alternative != json!({ "type": "null" }));
            if let [Value::Object(only)] = alternatives.as_slice() {
                let only = only.clone();
                member.remove("anyOf");
                for (keyword, value) in only {
                    member.entry(keyword).or_insert(value);
                }
            }
        }
    }
}

/// Turns a schema of an OpenAPI document into plain JSON Schema: references within one document, and
/// no discriminator, which strict validators do not know.
fn localize(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            // A property of that name would be an object with a type.
            if members
                .get("discriminator")
                .is_some_and(|value| value.get("mapping").is_some())
            {
                members.remove("discriminator");
            }
            for (member, value) in members {
                if member == "$ref"
                    && let Some(name) = value.as_str().and_then(component_name)
                {
                    *value = format!("{DEFINITIONS}{name}").into();
                } else {
                    localize(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(localize),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::route::COMPONENTS;
    use super::*;

    #[test]
    fn types_of_requests_and_replies_differ_only_in_undeclared_members() {
        let mut incoming = generator(SchemaSettings::for_deserialize);
        let mut outgoing = generator(SchemaSettings::for_serialize);
        for endpoint in endpoint::all() {
            if let Some(schema) = endpoint.request_schema {
                schema(&mut incoming);
            }
            (endpoint.reply_schema)(&mut outgoing);
        }
        let sent = outgoing.take_definitions(true);
        let mut shared = 0;
        for (name, mut accepted) in incoming.take_definitions(true) {
            let Some(sent) = sent.get(&name) else {
                continue;
            };
            shared += 1;
            if let Some(members) = accepted.as_object_mut()
                && sent.get("additionalProperties").is_none()
            {
                members.remove("additionalProperties");
            }
            assert_eq!(&accepted, sent, "{name}");
        }
        assert!(shared > 0);
    }

    #[test]
    fn a_standalone_schema_has_no_outside_references() {
        let catalogue = Catalogue::new();
        for name in catalogue.components.keys() {
            let text = catalogue.standalone(name).unwrap().to_string();
            assert!(!text.contains(COMPONENTS), "{name}");
            for reference in text.split(DEFINITIONS).skip(1) {
                let target = reference.split('"').next().unwrap();
                assert!(
                    text.contains(&format!("\"{target}\":")),
                    "{name} refers to {target}"
                );
            }
        }
    }

    #[test]
    fn every_type_and_every_member_has_a_description() {
        for (name, schema) in Catalogue::new().components {
            assert!(
                schema.get("description").is_some(),
                "{name} has no description"
            );
            let members = schema.get("properties").and_then(Value::as_object);
            for (member, schema) in members.into_iter().flatten() {
                assert!(
                    schema.get("description").is_some(),
                    "{name}.{member} has no description"
                );
            }
            for alternative in schema
                .get("oneOf")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                assert!(
                    alternative.get("description").is_some() || alternative.get("$ref").is_some(),
                    "{name}: {alternative}"
                );
            }
            let text = schema.to_string();
            assert!(
                !text.contains("[`") && !text.contains("`]"),
                "{name} publishes a source link"
            );
        }
    }

    #[test]
    fn a_reply_leaves_a_member_out_or_sends_its_value() {
        let catalogue = Catalogue::new();
        let probe = &catalogue.components["IdentityProbe"]["properties"];
        assert_eq!(
            probe["source_session_id"]["$ref"],
            "#/components/schemas/SessionId"
        );
        assert_eq!(probe["source_session_ids"]["type"], "array");
        let call = &catalogue.components["SessionInferenceCall"]["properties"];
        assert_eq!(call["model"]["type"], json!(["string", "null"]));
    }

    #[test]
    fn descriptions_have_no_line_breaks_from_the_source() {
        let mut schema = schemars::json_schema!({ "description": "One\nline.\n\nAnother." });
        join_lines(&mut schema);
        assert_eq!(schema.get("description").unwrap(), "One line.\n\nAnother.");
    }

    #[test]
    fn the_bounds_of_a_checked_text_are_published() {
        let components = Catalogue::new().components;
        assert_eq!(components["SessionId"]["maxLength"], 1_024);
        assert_eq!(components["Query"]["maxLength"], 2_048);
        assert_eq!(components["MaxBytes"]["minimum"], 4_096);
        assert!(components["CommitSha"]["pattern"].is_string());
    }

    #[test]
    fn a_closed_set_lists_its_values_and_says_what_each_means() {
        let catalogue = Catalogue::new();
        let side = &catalogue.components["Side"];
        assert_eq!(side["type"], "string");
        assert_eq!(side["enum"], json!(["input", "output"]));
        assert_eq!(
            side["oneOf"][0]["description"],
            "What was sent to the model."
        );
    }
}
