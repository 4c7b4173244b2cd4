//! Names the alternatives of a choice, and the member that distinguishes them.

use serde_json::{Map, Value, json};

use super::route::COMPONENTS;

/// Turns every alternative with a constant member into a component, and names that member as the
/// discriminator.
///
/// Client generators number alternatives without a name, and the numbers change when an alternative
/// is inserted before them.
pub(super) fn name_variants(components: &mut Map<String, Value>) {
    let mut named = Map::new();
    for (name, schema) in components.iter_mut() {
        if let Some((tag, words)) = variants(schema) {
            name_alternatives(name, schema, &tag, &words, &mut named);
        }
    }
    components.extend(named);
}

/// Returns the member that is a constant in all alternatives, and the constants in order; nothing
/// if the alternatives are not objects with such a member.
fn variants(schema: &Value) -> Option<(String, Vec<String>)> {
    let alternatives = schema.get("oneOf")?.as_array()?;
    let mut members = alternatives.first()?.get("properties")?.as_object()?.iter();
    let (tag, _) = members.find(|(_, member)| member.get("const").is_some_and(Value::is_string))?;
    let word = |alternative: &Value| {
        let word = alternative.get("properties")?.get(tag)?.get("const")?;
        word.as_str().map(str::to_owned)
    };
    let words: Option<Vec<_>> = alternatives.iter().map(word).collect();
    Some((tag.clone(), words?))
}

fn name_alternatives(
    choice: &str,
    schema: &mut Value,
    tag: &str,
    words: &[String],
    named: &mut Map<String, Value>,
) {
    let alternatives = schema.get_mut("oneOf").and_then(Value::as_array_mut);
    let mut mapping = Map::new();
    for (alternative, word) in alternatives.into_iter().flatten().zip(words) {
        let name = format!("{choice}{}", pascal_case(word));
        let reference = format!("{COMPONENTS}{name}");
        mapping.insert(word.clone(), reference.as_str().into());
        let mut component = std::mem::replace(alternative, json!({ "$ref": reference }));
        let member = &mut component["properties"][tag];
        // Some generators ignore a constant without a type.
        member["type"] = "string".into();
        if member.get("description").is_none() {
            member["description"] = format!("Always `{word}`.").into();
        }
        named.insert(name, component);
    }
    schema["discriminator"] = json!({ "propertyName": tag, "mapping": mapping });
}

/// Turns the words of `a_name` into the form of a type name: `AName`.
fn pascal_case(word: &str) -> String {
    let capitalized = word.split('_').map(|part| {
        let mut characters = part.chars();
        let first = characters.next().into_iter().flat_map(char::to_uppercase);
        first.chain(characters).collect::<String>()
    });
    capitalized.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alternative_with_a_constant_becomes_a_component() {
        let kind =
            |word: &str| json!({ "type": "object", "properties": { "kind": { "const": word } } });
        let mut components = Map::new();
        components.insert(
            "Shape".into(),
            json!({ "oneOf": [kind("long_line"), kind("dot")] }),
        );
        name_variants(&mut components);
        assert_eq!(
            components["Shape"],
            json!({
                "oneOf": [
                    { "$ref": "#/components/schemas/ShapeLongLine" },
                    { "$ref": "#/components/schemas/ShapeDot" },
                ],
                "discriminator": {
                    "propertyName": "kind",
                    "mapping": {
                        "long_line": "#/components/schemas/ShapeLongLine",
                        "dot": "#/components/schemas/ShapeDot",
                    },
                },
            })
        );
        let kind = &components["ShapeLongLine"]["properties"]["kind"];
        let expected = json!({
            "type": "string",
            "const": "long_line",
            "description": "Always `long_line`.",
        });
        assert_eq!(*kind, expected);
    }

    #[test]
    fn words_and_alternatives_of_another_kind_are_unchanged() {
        let words = json!({ "oneOf": [{ "const": "a" }, { "const": "b" }] });
        let mixed =
            json!({ "oneOf": [{ "properties": { "k": { "const": "a" } } }, { "type": "null" }] });
        let mut components = Map::new();
        components.insert("Words".into(), words.clone());
        components.insert("Mixed".into(), mixed.clone());
        name_variants(&mut components);
        assert_eq!(components.len(), 2);
        assert_eq!(
            (&components["Words"], &components["Mixed"]),
            (&words, &mixed)
        );
    }
}
