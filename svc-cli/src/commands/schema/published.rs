//! Published schemas by name.

use svc_server::schemas::{PUBLISHED, PublishedSchema};

use crate::error::CommandError;

/// The maximum number of names suggested for an unknown one.
const NEAREST_MAX: usize = 5;
/// The minimum similarity, from 0 to 1, at which a name is suggested.
const LIKENESS_MIN: f64 = 0.7;

/// The name of the OpenAPI document, which is not a schema.
pub(super) const OPENAPI: &str = "openapi";
/// Returns whether a name matches, ignoring case and the file extension.
pub(super) fn is_named(given: &str, name: &str) -> bool {
    plain(given) == name.to_ascii_lowercase()
}

fn plain(given: &str) -> String {
    let given = given.trim().to_ascii_lowercase();
    let file = given.rsplit('/').next().unwrap_or_default();
    file.strip_suffix(".json").unwrap_or(file).to_owned()
}

/// Returns the schema of this name, or an error that suggests similar names.
pub(super) fn find(given: &str) -> Result<PublishedSchema, CommandError> {
    let mut all = PUBLISHED.iter();
    if let Some(found) = all.find(|schema| is_named(given, schema.name)) {
        return Ok(*found);
    }
    let error = CommandError::refused("unknown_schema", format!("there is no schema {given}"));
    Err(match &*nearest(given) {
        [] => error.hint("to list them all: svc schema list"),
        names => error.hint(format!("did you mean {}?", names.join(", "))),
    })
}

/// Returns the most similar names, best first.
fn nearest(given: &str) -> Vec<&'static str> {
    let given = plain(given);
    let likeness = |name: &str| {
        let name = name.to_ascii_lowercase();
        if given.len() > 2 && name.contains(&given) {
            return 1.0;
        }
        strsim::jaro_winkler(&given, &name)
    };
    let mut names: Vec<(f64, &str)> = PUBLISHED
        .iter()
        .map(|schema| (likeness(schema.name), schema.name))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .collect();
    names.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(other.1)));
    let names = names.into_iter().map(|(_, name)| name);
    names.take(NEAREST_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_found_by_its_name_in_any_case_and_by_its_file() {
        for given in ["Part", "part", " PART ", "part.json", "schemas/Part.json"] {
            assert_eq!(find(given).unwrap().name, "Part", "{given}");
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        assert_eq!(nearest("GatewayPayloads")[0], "GatewayPayload");
        assert_eq!(nearest("comitnote")[0], "CommitNote");
        assert!(nearest("gateway").contains(&"GatewayPayload"));
        assert!(nearest("xyz").is_empty());
        let error = find("GatewayPayloads").unwrap_err();
        assert_eq!(error.code(), "unknown_schema");
        assert!(error.hints()[0].starts_with("did you mean GatewayPayload"));
        assert_eq!(
            find("xyz").unwrap_err().hints(),
            ["to list them all: svc schema list"]
        );
    }
}
