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

macro_rules! published {
    ($($name:literal),+ $(,)?) => {
        /// Every schema, ordered by name.
        pub const PUBLISHED: &[PublishedSchema] = &[$(PublishedSchema {
            name: $name,
            path: concat!("/schemas/1/", $name, ".json"),
            text: include_str!(concat!("../../schemas/", $name, ".json")),
        }),+];
    };
}

published! {
    "AbandonmentReport",
    "AcceptedWorkLifecycle",
    "AttributionShareReport",
    "CaptureCounts",
    "CiFailures",
    "CiOutcomeAnswer",
    "CiRuns",
    "CommitEvidence",
    "CommitNote",
    "CompatibilityEvidence",
    "ContextDiscoveryRequest",
    "ContextResult",
    "ContextRetrievalRequest",
    "ContextSelectedRequest",
    "DiscoveryResult",
    "EvidenceRead",
    "EvidenceReadRequest",
    "ExportedFact",
    "FactsCounts",
    "ForgeDelivery",
    "GatewayBatchReceipt",
    "GatewayBatchRequest",
    "GatewayIngestRequest",
    "GatewayPayload",
    "GrantExplanation",
    "GrantList",
    "GrantReceipt",
    "GrantRemovalRequest",
    "GrantRequest",
    "Health",
    "IdentityProbe",
    "IngestReceipt",
    "IngestResult",
    "Inventory",
    "LogsReceipt",
    "LogsRequest",
    "Manifest",
    "MergeRetentionReport",
    "ModelOutcomes",
    "OwnLogRecord",
    "Part",
    "ProblemBody",
    "QuarantineLog",
    "QuarantineReceipt",
    "QuarantineRequest",
    "SessionAnswer",
    "SessionFactsCounts",
    "SessionInferenceCalls",
    "SessionList",
    "TokenChangeRequest",
    "VendorCIRequest",
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use serde_json::Value;

    use super::*;

    #[test]
    fn every_file_of_the_published_schemas_is_in_the_program() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schemas");
        let files = std::fs::read_dir(folder).unwrap();
        let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut files: BTreeSet<String> = files.collect();
        for other in ["index.json", "openapi.json", "openapi-3.0.json"] {
            assert!(files.remove(other));
        }
        let named: BTreeSet<String> = PUBLISHED
            .iter()
            .map(|schema| format!("{}.json", schema.name))
            .collect();
        assert_eq!(named, files);
    }

    #[test]
    fn a_schema_is_served_where_its_id_says() {
        for schema in PUBLISHED {
            let document: Value = serde_json::from_str(schema.text).unwrap();
            assert_eq!(document["$id"], schema.path);
        }
    }
}
