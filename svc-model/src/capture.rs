//! What a server captured since it started, for the operator who asks whether a client is set up
//! right. These are counts of one process, kept in memory; the facts themselves are counted in
//! [`facts`](crate::facts).

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::closed_set;
use crate::facts::FactTable;
use crate::time::Instant;

closed_set! {
    /// Where facts come from.
    pub enum CaptureSource {
        /// Model calls of a gateway.
        Gateway = "gateway",
        /// OTLP log records.
        Logs = "logs",
        /// Reports of CI systems.
        Ci = "ci",
        /// The forge's pushes.
        ForgePush = "forge_push",
        /// The forge's pull requests.
        ForgePullRequest = "forge_pull_request",
        /// The forge's own CI runs.
        ForgeCi = "forge_ci",
        /// The forge's changes of repository names.
        ForgeRepository = "forge_repository",
        /// Deliveries of the forge that are none of these.
        ForgeOther = "forge_other",
    }
}

/// How many facts of one kind arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArrivedFacts {
    /// New facts.
    pub stored: u64,
    /// Facts that were stored before.
    pub duplicates: u64,
}

/// What arrived from one source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceCounts {
    /// Requests that were read to their end and answered with success.
    pub deliveries: u64,
    /// The facts in them, by table. A table without a fact is absent.
    #[schemars(schema_with = "counts_by_table")]
    pub facts: BTreeMap<FactTable, ArrivedFacts>,
    /// Facts whose identity says otherwise than a stored one.
    pub conflicts: u64,
    /// What was declined with success, by its closed reason: payloads of a gateway, deliveries of
    /// a forge, log records.
    pub skipped: BTreeMap<String, u64>,
    /// Payloads of a batch that can never be stored as they are, by their closed reason.
    pub rejected: BTreeMap<String, u64>,
    /// When the last delivery came.
    pub last_delivery_at: Option<Instant>,
    /// When the last new fact came.
    pub last_stored_at: Option<Instant>,
}

/// What became of log records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogRecordCounts {
    /// Records in the requests.
    pub received: u64,
    /// Records that became at least one fact.
    pub translated: u64,
    /// Records that became none; results that complete a decision are among them.
    pub untranslated: u64,
    /// Records that are no object.
    pub malformed: u64,
    /// Lists of records that are no list, or whose parents are no objects.
    pub malformed_containers: u64,
}

/// What this server captured since it started. Each server of a deployment counts for itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureCounts {
    /// When it began to count.
    pub since: Instant,
    /// What arrived, by source. Every source is present.
    #[schemars(schema_with = "counts_by_source")]
    pub sources: BTreeMap<CaptureSource, SourceCounts>,
    /// What became of log records.
    pub log_records: LogRecordCounts,
    /// How many requests were answered, by path and status. A path that was not asked is absent.
    pub answers: BTreeMap<String, BTreeMap<u16, u64>>,
}

fn counts_by_table(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "propertyNames": generator.subschema_for::<FactTable>(),
        "additionalProperties": generator.subschema_for::<ArrivedFacts>(),
    })
}

fn counts_by_source(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "propertyNames": generator.subschema_for::<CaptureSource>(),
        "additionalProperties": generator.subschema_for::<SourceCounts>(),
    })
}
