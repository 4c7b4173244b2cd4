//! What was captured, for an operator who checks whether a client is set up correctly: totals of
//! the organization over all its servers, and the answers of one server since it started. The facts
//! themselves are counted in [`facts`](crate::facts).

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::closed_set;
use crate::facts::FactTable;
use crate::open::Open;
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
        /// The forge's repository renames.
        ForgeRepository = "forge_repository",
        /// Other deliveries of the forge.
        ForgeOther = "forge_other",
    }
}

/// How many facts of one kind arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ArrivedFacts {
    /// New facts.
    pub stored: u64,
    /// Facts that were already stored.
    pub duplicates: u64,
}

/// What arrived from one source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SourceCounts {
    /// Requests that were read completely and answered with success.
    pub deliveries: u64,
    /// The facts in them, by table. Tables without facts are absent.
    #[cfg_attr(feature = "schema", schemars(schema_with = "counts_by_table"))]
    pub facts: BTreeMap<Open<FactTable>, ArrivedFacts>,
    /// Facts that conflict with a stored fact of the same identity.
    pub conflicts: u64,
    /// What was skipped with a successful answer, by reason: payloads of a gateway, deliveries of a
    /// forge, log records.
    pub skipped: BTreeMap<String, u64>,
    /// Payloads of a batch that can never be stored as sent, by reason.
    pub rejected: BTreeMap<String, u64>,
    /// When the last delivery arrived.
    pub last_delivery_at: Option<Instant>,
    /// When the last new fact arrived.
    pub last_stored_at: Option<Instant>,
}

/// What became of log records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct LogRecordCounts {
    /// Records in the requests.
    pub received: u64,
    /// Records that became at least one fact.
    pub translated: u64,
    /// Records that became none, including results that complete a decision.
    pub untranslated: u64,
    /// Records that are not objects.
    pub malformed: u64,
    /// Record lists that are not lists, or whose parents are not objects.
    pub malformed_containers: u64,
}

impl SourceCounts {
    /// Counts facts, each with its table.
    fn add(&mut self, other: &Self) {
        self.deliveries += other.deliveries;
        for (table, facts) in &other.facts {
            let known = self.facts.entry(table.clone()).or_default();
            known.stored += facts.stored;
            known.duplicates += facts.duplicates;
        }
        self.conflicts += other.conflicts;
        add_all(&mut self.skipped, &other.skipped);
        add_all(&mut self.rejected, &other.rejected);
        self.last_delivery_at = self.last_delivery_at.max(other.last_delivery_at);
        self.last_stored_at = self.last_stored_at.max(other.last_stored_at);
    }
}

/// Adds counts by reason.
fn add_all(counts: &mut BTreeMap<String, u64>, others: &BTreeMap<String, u64>) {
    for (reason, count) in others {
        match counts.get_mut(reason) {
            Some(known) => *known += count,
            None => {
                counts.insert(reason.clone(), *count);
            }
        }
    }
}

/// What arrived, by source: in one delivery, at one server, or in an organization.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CaptureTotals {
    /// When counting began; absent before the first delivery.
    pub since: Option<Instant>,
    /// What arrived, by source.
    pub sources: BTreeMap<Open<CaptureSource>, SourceCounts>,
    /// What became of log records.
    pub log_records: LogRecordCounts,
}

impl CaptureTotals {
    /// Returns the totals of one delivery without facts.
    pub fn delivery(source: CaptureSource, at: Instant) -> Self {
        let delivery = SourceCounts {
            deliveries: 1,
            last_delivery_at: Some(at),
            ..SourceCounts::default()
        };
        Self {
            since: Some(at),
            sources: [(source.into(), delivery)].into(),
            log_records: LogRecordCounts::default(),
        }
    }

    /// Returns whether nothing is counted.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Returns the counts of a source, to add to them.
    pub fn of(&mut self, source: CaptureSource) -> &mut SourceCounts {
        self.sources.entry(source.into()).or_default()
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &Self) {
        self.since = match (self.since, other.since) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        for (source, counts) in &other.sources {
            self.sources.entry(source.clone()).or_default().add(counts);
        }
        let (records, more) = (&mut self.log_records, &other.log_records);
        records.received += more.received;
        records.translated += more.translated;
        records.untranslated += more.untranslated;
        records.malformed += more.malformed;
        records.malformed_containers += more.malformed_containers;
    }
}

/// What was captured. The counts by source cover the organization: all its servers, across
/// restarts. A delivery that stores facts is counted in the same transaction; one that stores
/// nothing is counted within seconds, and the last of these may be lost if a server crashes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CaptureCounts {
    /// When the first delivery was counted; null before that.
    pub since: Option<Instant>,
    /// What arrived, by source. Every source is present.
    #[cfg_attr(feature = "schema", schemars(schema_with = "counts_by_source"))]
    pub sources: BTreeMap<Open<CaptureSource>, SourceCounts>,
    /// What became of log records.
    pub log_records: LogRecordCounts,
    /// When the answering server started. Each server counts its own answers.
    pub server_since: Instant,
    /// How many requests this server answered, by path and status. Paths without requests are
    /// absent.
    pub answers: BTreeMap<String, BTreeMap<u16, u64>>,
}

impl CaptureCounts {
    /// Combines the totals of an organization with the answers of a server.
    pub fn new(
        totals: CaptureTotals,
        server_since: Instant,
        answers: BTreeMap<String, BTreeMap<u16, u64>>,
    ) -> Self {
        let mut sources = totals.sources;
        for source in CaptureSource::ALL {
            sources.entry(Open::Known(*source)).or_default();
        }
        Self {
            since: totals.since,
            sources,
            log_records: totals.log_records,
            server_since,
            answers,
        }
    }
}

#[cfg(feature = "schema")]
fn counts_by_table(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "propertyNames": generator.subschema_for::<FactTable>(),
        "additionalProperties": generator.subschema_for::<ArrivedFacts>(),
    })
}

#[cfg(feature = "schema")]
fn counts_by_source(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "propertyNames": generator.subschema_for::<CaptureSource>(),
        "additionalProperties": generator.subschema_for::<SourceCounts>(),
    })
}
