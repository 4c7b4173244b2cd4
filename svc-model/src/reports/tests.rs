#[cfg(feature = "schema")]
use schemars::{JsonSchema, schema_for};
use serde_json::Value;

use super::*;

/// Lists the members of every object in a schema that have no description.
fn undocumented<T: JsonSchema>() -> Vec<String> {
    fn visit(schema: &Value, path: &str, missing: &mut Vec<String>) {
        let Value::Object(object) = schema else {
            if let Value::Array(items) = schema {
                for item in items {
                    visit(item, path, missing);
                }
            }
            return;
        };
        for (key, value) in object {
            let path = format!("{path}/{key}");
            if key == "properties" {
                for (name, member) in value.as_object().into_iter().flatten() {
                    if member.get("description").is_none() {
                        missing.push(format!("{path}/{name}"));
                    }
                    visit(member, &format!("{path}/{name}"), missing);
                }
            } else {
                visit(value, &path, missing);
            }
        }
    }
    let mut missing = Vec::new();
    visit(schema_for!(T).as_value(), "", &mut missing);
    missing
}

#[test]
fn every_member_of_a_report_has_a_description() {
    assert_eq!(undocumented::<ModelOutcomes>(), [""; 0]);
    assert_eq!(undocumented::<AcceptedWorkLifecycle>(), [""; 0]);
    assert_eq!(undocumented::<AbandonmentReport>(), [""; 0]);
    assert_eq!(undocumented::<AttributionShareReport>(), [""; 0]);
    assert_eq!(undocumented::<MergeRetentionReport>(), [""; 0]);
}
