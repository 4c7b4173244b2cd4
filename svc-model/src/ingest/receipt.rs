use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::RejectedPayload;
use crate::closed_set;
use crate::id::FactId;

/// The receipt of one fact. It is given after the commit reached the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IngestResult {
    /// The id of the fact: of a redelivery, that of the retained one.
    pub fact_id: FactId,
    /// False when this is a redelivery, which is a success.
    pub stored: bool,
}

closed_set! {
    /// Why a delivery is declined with success, so that its sender does not repeat it.
    pub enum SkipReason {
        /// No source of the payload names a Session.
        NoSession = "no_session",
    }
}

/// A declined delivery. Nothing was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// Always true.
    #[schemars(extend("const" = true))]
    pub skipped: bool,
    /// Why.
    pub reason: SkipReason,
}

impl Skipped {
    /// Returns the answer for this reason.
    pub const fn new(reason: SkipReason) -> Self {
        Self {
            skipped: true,
            reason,
        }
    }
}

/// The answer to one delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum IngestReceipt {
    /// The fact is stored, now or before.
    Fact(IngestResult),
    /// The delivery is declined.
    Skipped(Skipped),
}

/// The answer to a batch of payloads: what became of each, as counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GatewayBatchReceipt {
    /// Payloads that became new facts.
    pub stored: u64,
    /// Payloads that were stored before.
    pub duplicates: u64,
    /// Payloads declined with success, by reason.
    #[schemars(schema_with = "counts_by::<SkipReason>")]
    pub skipped: BTreeMap<SkipReason, u64>,
    /// Payloads that can never be stored as they are, by reason.
    #[schemars(schema_with = "counts_by::<RejectedPayload>")]
    pub rejected: BTreeMap<RejectedPayload, u64>,
}

/// Counts whose names are of a closed set.
fn counts_by<Name: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "propertyNames": generator.subschema_for::<Name>(),
        "additionalProperties": generator.subschema_for::<u64>(),
    })
}
