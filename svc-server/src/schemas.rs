//! The files of `schemas/`, embedded in the program.

/// The OpenAPI document, as served at `/openapi.json`.
pub static OPENAPI: &str = include_str!("../../schemas/openapi.json");
/// The same document in the words of OpenAPI 3.0, as served at `/openapi-3.0.json`.
pub(crate) static OPENAPI_3_0: &str = include_str!("../../schemas/openapi-3.0.json");
/// The list of the schemas: their names, directions and routes.
pub const INDEX: &str = include_str!("../../schemas/index.json");

/// A published schema.
#[derive(Clone, Copy, Debug)]
pub struct PublishedSchema {
    /// Its name, which is also the name of its file.
    pub name: &'static str,
    /// The path at which a server with documentation serves it, which is its `$id`.
    pub path: &'static str,
    /// The file.
    pub text: &'static str,
}

/// Every schema, ordered by name.
pub const PUBLISHED: &[PublishedSchema] = include!(concat!(env!("OUT_DIR"), "/schemas.rs"));

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    #[test]
    fn the_program_has_the_schemas_that_the_index_lists() {
        let index: Vec<Value> = serde_json::from_str(INDEX).unwrap();
        let listed: BTreeSet<&str> = index
            .iter()
            .filter_map(|row| row["type"].as_str())
            .collect();
        let named: BTreeSet<&str> = PUBLISHED.iter().map(|schema| schema.name).collect();
        assert!(PUBLISHED.is_sorted_by_key(|schema| schema.name));
        assert_eq!(named, listed);
    }

    #[test]
    fn a_schema_is_served_where_its_id_says() {
        for schema in PUBLISHED {
            let document: Value = serde_json::from_str(schema.text).unwrap();
            assert_eq!(document["$id"], schema.path);
        }
    }
}
