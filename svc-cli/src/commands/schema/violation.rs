//! The ways in which a document violates a schema, in a form that a person can act on.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde::Serialize;
use serde_json::Value;

/// The placeholder in messages for a value of the document, which may be long or private.
const MASK: &str = "the value";

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Violation {
    /// The JSON Pointer to the value in the document; empty for the document itself.
    pub(super) pointer: String,
    /// What is wrong there.
    pub(super) message: String,
    /// The JSON Pointer to the keyword in the schema.
    pub(super) keyword: String,
}

impl Violation {
    fn of(error: &ValidationError<'_>) -> Self {
        let message = match error.kind() {
            // The library lists only the first few.
            ValidationErrorKind::Enum { options } => {
                let options = options.as_array().into_iter().flatten();
                let words: Vec<String> = options.map(Value::to_string).collect();
                format!("{MASK} is not one of {}", words.join(", "))
            }
            _ => error.masked_with(MASK).to_string(),
        };
        Self {
            pointer: error.instance_path().to_string(),
            message,
            keyword: error.schema_path().to_string(),
        }
    }
}

impl Violation {
    /// Returns whether the error is about the closed set whose words are also listed one by one.
    fn is_of_the_set(&self, error: &ValidationError<'_>) -> bool {
        let set = self.keyword.strip_suffix("/enum");
        let listed = error.schema_path().as_str().strip_suffix("/oneOf");
        set.is_some() && set == listed && self.pointer == error.instance_path().as_str()
    }
}

/// Returns every violation in the order of the schema.
pub(super) fn violations(validator: &Validator, document: &Value) -> Vec<Violation> {
    let mut found = Vec::new();
    for error in validator.iter_errors(document) {
        add(&error, &mut found);
    }
    found
}

/// Adds an error. If a value may have one of several forms and nearly has one of them, the
/// violations of that form are more useful than the fact that no form matches.
fn add(error: &ValidationError<'_>, found: &mut Vec<Violation>) {
    // A closed set lists its words twice, the second time with their descriptions.
    if error.schema_path().as_str().ends_with("/oneOf")
        && found.iter().any(|violation| violation.is_of_the_set(error))
    {
        return;
    }
    let (ValidationErrorKind::AnyOf { context: forms }
    | ValidationErrorKind::OneOfNotValid { context: forms }) = error.kind()
    else {
        return found.push(Violation::of(error));
    };
    let meant: Vec<_> = forms.iter().filter(|form| is_meant(error, form)).collect();
    match *meant {
        [form] => form.iter().for_each(|error| add(error, found)),
        _ => found.push(Violation::of(error)),
    }
}

/// Returns whether a value is meant to have this form: its type matches, and so do the members that
/// distinguish the forms.
fn is_meant(of: &ValidationError<'_>, form: &[ValidationError<'_>]) -> bool {
    let here = of.instance_path().as_str();
    !form.iter().any(|error| {
        let place = error.instance_path().as_str();
        match error.kind() {
            ValidationErrorKind::Type { .. } => place == here,
            ValidationErrorKind::Constant { .. } | ValidationErrorKind::Enum { .. } => {
                let beneath = place.strip_prefix(here).unwrap_or_default();
                !beneath.trim_start_matches('/').contains('/')
            }
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use svc_model::json::Json;

    use super::super::published::find;
    use super::super::validate::{plain, validator};
    use super::*;
    use svc_server::schemas::PUBLISHED;

    fn of(schema: &str, document: &str) -> Vec<(String, String)> {
        let validator = validator(find(schema).unwrap()).unwrap();
        let document = plain(&Json::parse(document.as_bytes()).unwrap());
        let found = violations(&validator, &document);
        let found = found
            .into_iter()
            .map(|violation| (violation.pointer, violation.message));
        found.collect()
    }

    /// Returns the examples in a body, each with the schema that it conforms to.
    fn examples(body: &Value) -> Vec<(String, Value)> {
        let content = &body["content"]["application/json"];
        let reference = content["schema"]["$ref"].as_str().unwrap_or_default();
        let name = reference.rsplit('/').next().unwrap_or_default();
        let examples = content["examples"].as_object().into_iter().flatten();
        examples
            .map(|(_, example)| (name.to_owned(), example["value"].clone()))
            .collect()
    }

    #[test]
    fn every_published_example_satisfies_its_schema() {
        let mut all = Vec::new();
        for schema in PUBLISHED {
            let document: Value = serde_json::from_str(schema.text).unwrap();
            let examples = document["examples"].as_array().cloned();
            let examples = examples.into_iter().flatten();
            all.extend(examples.map(|example| (schema.name.to_owned(), example)));
        }
        let api: Value = serde_json::from_str(svc_server::OPENAPI).unwrap();
        let operations = api["paths"].as_object().unwrap().values();
        for operation in operations.flat_map(|path| path.as_object().unwrap().values()) {
            all.extend(examples(&operation["requestBody"]));
            for answer in operation["responses"].as_object().unwrap().values() {
                all.extend(examples(answer));
            }
        }
        assert!(all.len() > 50, "{}", all.len());
        for (name, example) in all {
            let validator = validator(find(&name).unwrap()).unwrap();
            assert_eq!(violations(&validator, &example), [], "{name}: {example}");
        }
    }

    #[test]
    fn each_violation_has_a_place_and_repeats_no_content() {
        let note = r#"{"v": 2, "sessions": [{"tool": "secret", "session_id": 7}], "more": 1}"#;
        let found = of("CommitNote", note);
        let places: Vec<&str> = found.iter().map(|(place, _)| &**place).collect();
        for place in ["", "/v", "/sessions/0", "/sessions/0/session_id"] {
            assert!(places.contains(&place), "{place} in {found:?}");
        }
        let text = format!("{found:?}");
        assert!(
            text.contains("stamped_at") && text.contains("'more'"),
            "{text}"
        );
        assert!(!text.contains("secret"), "{text}");
    }

    #[test]
    fn violations_are_reported_for_the_alternative_that_fits_best() {
        let call = r#"{"type": "tool_call", "id": "t", "name": 5, "arguments": {}}"#;
        let found = of("Part", call);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, "/name");
        let image = of("Part", r#"{"type": "image"}"#);
        assert_eq!(image.len(), 1, "{image:?}");
        assert_eq!(image[0].0, "");
    }

    #[test]
    fn an_unknown_word_is_one_violation_that_lists_the_known_words() {
        let found = of("VendorCIRequest", r#"{"provider": "jenkins"}"#);
        let of_word: Vec<_> = found
            .iter()
            .filter(|(place, _)| place == "/provider")
            .collect();
        assert_eq!(of_word.len(), 1, "{found:?}");
        for word in ["forge_actions", "ci_a", "ci_d", "other"] {
            assert!(of_word[0].1.contains(&format!("\"{word}\"")), "{of_word:?}");
        }
    }

    #[test]
    fn numbers_too_large_for_a_double_are_still_numbers() {
        for (number, is_number) in [
            ("1E400", true),
            ("-1E400", true),
            ("12", true),
            ("NaN", false),
        ] {
            let value = plain(&Json::parse(number.as_bytes()).unwrap());
            assert_eq!(value.is_number(), is_number, "{number}");
        }
        assert_eq!(
            plain(&Json::parse(b"-1E400").unwrap()),
            Value::from(-f64::MAX)
        );
    }
}
