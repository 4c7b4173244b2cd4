//! The OpenAPI document for generators that know only OpenAPI 3.0.

use serde_json::{Map, Value, json};

use super::route::component_name;

/// Keywords of JSON Schema that OpenAPI 3.0 does not have. They only restrict, so without them a schema
/// accepts more, and the service still checks.
const UNKNOWN: [&str; 6] = [
    "$schema",
    "if",
    "patternProperties",
    "propertyNames",
    "then",
    "unevaluatedProperties",
];

/// Returns an OpenAPI 3.1 document in the words of OpenAPI 3.0.
pub(super) fn downgraded(mut document: Value) -> Value {
    document["openapi"] = "3.0.3".into();
    if let Some(members) = document.as_object_mut() {
        members.remove("jsonSchemaDialect");
    }
    document["info"]["license"] = json!({
        "name": "Apache License 2.0",
        "url": "https://www.apache.org/licenses/LICENSE-2.0",
    });
    let components = document["components"]["schemas"].clone();
    visit(&mut document["paths"], &components);
    let schemas = document["components"]["schemas"].as_object_mut();
    for (_, value) in schemas.into_iter().flatten() {
        schema(value, &components);
    }
    document
}

/// Finds the schemas of operations, and leaves everything else.
fn visit(value: &mut Value, components: &Value) {
    match value {
        Value::Object(members) => {
            for (member, value) in members {
                match member.as_str() {
                    "schema" => schema(value, components),
                    "example" | "examples" => {}
                    _ => visit(value, components),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| visit(item, components)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn schema(value: &mut Value, components: &Value) {
    if value.is_boolean() {
        // A schema that accepts everything.
        *value = json!({});
    }
    let Some(members) = value.as_object_mut() else {
        return;
    };
    members.retain(|member, _| !UNKNOWN.contains(&member.as_str()));
    for (member, value) in members.iter_mut() {
        match member.as_str() {
            "items" | "not" => schema(value, components),
            // OpenAPI 3.0 has this as a schema or a truth value.
            "additionalProperties" if value.is_object() => schema(value, components),
            "properties" => {
                let properties = value.as_object_mut().into_iter().flatten();
                properties.for_each(|(_, value)| schema(value, components));
            }
            "allOf" | "anyOf" | "oneOf" => {
                let alternatives = value.as_array_mut().into_iter().flatten();
                alternatives.for_each(|value| schema(value, components));
            }
            _ => {}
        }
    }
    if let Some(constant) = members.remove("const") {
        members.insert("enum".into(), json!([constant]));
    }
    if let Some(Value::Array(examples)) = members.remove("examples")
        && let Some(example) = examples.into_iter().next()
    {
        members.insert("example".into(), example);
    }
    make_nullable(members, components);
    wrap_reference(members);
}

/// Writes the type `null` as `nullable`, which means something only beside a type.
fn make_nullable(members: &mut Map<String, Value>, components: &Value) {
    let null = json!("null");
    match members.get_mut("type") {
        Some(Value::Array(types)) => {
            let before = types.len();
            types.retain(|name| *name != null);
            let nullable = types.len() < before;
            if let [only] = types.as_slice() {
                let only = only.clone();
                members.insert("type".into(), only);
            } else {
                members.remove("type");
            }
            if nullable {
                members.insert("nullable".into(), true.into());
            }
        }
        Some(name) if *name == null => {
            members.remove("type");
            members.insert("nullable".into(), true.into());
        }
        _ => {}
    }
    for choice in ["anyOf", "oneOf"] {
        let Some(Value::Array(alternatives)) = members.get_mut(choice) else {
            continue;
        };
        let before = alternatives.len();
        alternatives.retain(|alternative| *alternative != json!({ "nullable": true }));
        if alternatives.len() == before {
            continue;
        }
        if let [only] = alternatives.as_slice() {
            let only = only.clone();
            members.remove(choice);
            let name = only["$ref"].as_str().and_then(component_name);
            if let Some(name) = name {
                members.insert("type".into(), components[name]["type"].clone());
                members.insert("allOf".into(), json!([only]));
            } else if let Value::Object(only) = only {
                members.extend(only);
            }
            members.insert("nullable".into(), true.into());
            continue;
        }
        for alternative in alternatives {
            if alternative.get("type").is_some() {
                alternative["nullable"] = true.into();
            }
        }
    }
}

/// Sets a reference apart from its neighbours, which OpenAPI 3.0 would ignore.
fn wrap_reference(members: &mut Map<String, Value>) {
    if members.len() > 1
        && let Some(reference) = members.remove("$ref")
    {
        members.insert("allOf".into(), json!([{ "$ref": reference }]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_newer_version_become_those_of_the_older() {
        let mut newer = json!({
            "type": "object",
            "propertyNames": { "pattern": "a" },
            "properties": {
                "const": { "type": ["string", "null"], "examples": ["a", "b"] },
                "a": { "const": 1, "type": "integer", "enum": [1] },
                "b": { "$ref": "#/components/schemas/B", "description": "One." },
                "c": { "anyOf": [{ "$ref": "#/components/schemas/B" }, { "type": "null" }] },
                "d": true,
            },
            "additionalProperties": false,
        });
        schema(&mut newer, &json!({ "B": { "type": "string" } }));
        let older = json!({
            "type": "object",
            "properties": {
                "const": { "type": "string", "nullable": true, "example": "a" },
                "a": { "type": "integer", "enum": [1] },
                "b": { "allOf": [{ "$ref": "#/components/schemas/B" }], "description": "One." },
                "c": {
                    "type": "string",
                    "allOf": [{ "$ref": "#/components/schemas/B" }],
                    "nullable": true,
                },
                "d": {},
            },
            "additionalProperties": false,
        });
        assert_eq!(newer, older);
    }
}
