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
    /// Where deliveries come from.
    pub enum CaptureSource {
        /// A gateway, with calls of a model.
        Gateway = "gateway",
        /// An agent or a hook, with OTLP log records.
        Logs = "logs",
        /// A program, with OTLP spans.
        Traces = "traces",
        /// A program or the reader of a transcript, with calls of a model.
        Calls = "calls",
        /// A CI system, with outcomes of runs.
        Ci = "ci",
        /// The forge, with pushes.
        ForgePush = "forge_push",
        /// The forge, with events of pull requests.
        ForgePullRequest = "forge_pull_request",
        /// The forge, with runs of its own CI.
        ForgeCi = "forge_ci",
        /// The forge, with changes of repositories, such as renames.
        ForgeRepository = "forge_repository",
        /// The forge, with other events, none of which is stored.
        ForgeOther = "forge_other",
    }
}

/// How many facts of one kind arrived from one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ArrivedFacts {
    /// The number of new facts.
    pub stored: u64,
    /// The number of facts that were already stored.
    pub duplicates: u64,
}

/// What arrived from one source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SourceCounts {
    /// The number of requests that were read completely and answered with success.
    pub deliveries: u64,
    /// The facts in these deliveries, by kind. A kind without facts is absent.
    #[cfg_attr(feature = "schema", schemars(schema_with = "counts_by_table"))]
    pub facts: BTreeMap<Open<FactTable>, ArrivedFacts>,
    /// The number of facts that differ from a stored fact with the same identity. The stored fact
    /// is kept.
    pub conflicts: u64,
    /// What was skipped although the answer was a success, by reason: payloads of a gateway,
    /// deliveries of a forge, log records, spans.
    pub skipped: BTreeMap<String, u64>,
    /// Payloads of a batch that can never be stored as they were sent, by reason.
    pub rejected: BTreeMap<String, u64>,
    /// When the last delivery arrived; null if there was none.
    pub last_delivery_at: Option<Instant>,
    /// When the last new fact arrived; null if there was none.
    pub last_stored_at: Option<Instant>,
}

/// What became of log records, or of spans. `received` is the sum of `translated`, `untranslated` and
/// `malformed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct LogRecordCounts {
    /// The number of records in the requests.
    pub received: u64,
    /// The number of records that became at least one fact.
    pub translated: u64,
    /// The number of objects that became no fact, including results that only complete a decision.
    pub untranslated: u64,
    /// The number of records that are not objects.
    pub malformed: u64,
    /// The number of lists, list elements and resources around the records that have the wrong JSON
    /// type. They count as empty.
    pub malformed_containers: u64,
}

/// What the readers of an agent's transcripts met, as they report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ReaderCounts {
    /// The number of lines.
    pub lines: u64,
    /// The number of lines of a kind that the reader does not know.
    pub unknown: u64,
    /// The number of files in which nothing that the reader knows is left.
    pub format_changed: u64,
}

impl ReaderCounts {
    fn add(&mut self, other: Self) {
        self.lines += other.lines;
        self.unknown += other.unknown;
        self.format_changed += other.format_changed;
    }
}

impl SourceCounts {
    /// Adds the counts of other deliveries of the source.
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

/// Adds counts to the counts of the same reasons.
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

/// The bodies of requests and responses that wait for their other half. Both halves are one
/// inference call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct PendingHalves {
    /// How many wait.
    pub count: u64,
    /// The canonical bytes of their bodies.
    pub bytes: u64,
    /// When the oldest of them arrived; null if none waits.
    pub oldest_at: Option<Instant>,
}

/// What arrived, by source: in one delivery, at one server, or in an organization.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CaptureTotals {
    /// When the first delivery was counted; `None` before that.
    pub since: Option<Instant>,
    /// What arrived, by source. A source without deliveries is absent.
    pub sources: BTreeMap<Open<CaptureSource>, SourceCounts>,
    /// What became of log records.
    pub log_records: LogRecordCounts,
    /// What became of spans; `None` before the first trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_records: Option<Box<LogRecordCounts>>,
    /// What the readers of transcripts met, by agent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub readers: BTreeMap<String, ReaderCounts>,
}

impl LogRecordCounts {
    /// Adds other counts.
    fn add(&mut self, other: Self) {
        self.received += other.received;
        self.translated += other.translated;
        self.untranslated += other.untranslated;
        self.malformed += other.malformed;
        self.malformed_containers += other.malformed_containers;
    }
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
            span_records: None,
            readers: BTreeMap::new(),
        }
    }

    /// Returns whether nothing is counted.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Returns the counts of a source, so that the caller can add to them.
    pub fn of(&mut self, source: CaptureSource) -> &mut SourceCounts {
        self.sources.entry(source.into()).or_default()
    }

    /// Adds other totals.
    pub fn add(&mut self, other: &Self) {
        self.since = match (self.since, other.since) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        for (source, counts) in &other.sources {
            self.sources.entry(source.clone()).or_default().add(counts);
        }
        self.log_records.add(other.log_records);
        if let Some(more) = &other.span_records {
            self.span_records.get_or_insert_default().add(**more);
        }
        for (agent, counts) in &other.readers {
            self.readers.entry(agent.clone()).or_default().add(*counts);
        }
    }
}

/// How many commits that clients reported are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CommitClaimCounts {
    /// No mirror has the commit yet.
    pub open: u64,
    /// Exactly one commit of the mirrors fits. It is linked to the Session.
    pub resolved: u64,
    /// Several commits fit, so none is linked.
    pub ambiguous: u64,
    /// No mirror had the commit within 30 days.
    pub expired: u64,
}

/// What was captured. The counts by source cover the organization: all its servers, across
/// restarts. A delivery that stores facts is counted in the same transaction. One that stores
/// nothing is counted within seconds; if a server crashes, the last of these may be lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CaptureCounts {
    /// When the first delivery was counted; null before that.
    pub since: Option<Instant>,
    /// What arrived, by source. Every source is present, except `traces` and `calls` before
    /// their first delivery.
    #[cfg_attr(feature = "schema", schemars(schema_with = "counts_by_source"))]
    pub sources: BTreeMap<Open<CaptureSource>, SourceCounts>,
    /// What became of log records.
    pub log_records: LogRecordCounts,
    /// What became of spans; absent before the first trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_records: Option<LogRecordCounts>,
    /// What the readers of transcripts met, by agent; absent before the first report.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub readers: BTreeMap<String, ReaderCounts>,
    /// When the answering server started. Its `answers` are counted from then on.
    pub server_since: Instant,
    /// How many requests the answering server answered since it started, by the path of the route
    /// and by status. Other servers are not included. Paths without requests are absent.
    pub answers: BTreeMap<String, BTreeMap<u16, u64>>,
    /// What became of the commits that clients reported. Absent while none was reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_claims: Option<CommitClaimCounts>,
    /// Whether the answering server keeps mirrors of repositories. Without mirrors, nothing ties
    /// calls to commits. An earlier service does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeps_mirrors: Option<bool>,
    /// The bodies that wait for their other half. Absent before the first arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_halves: Option<PendingHalves>,
    /// How far the search index of the answering server is. Absent if it keeps none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchIndexState>,
}

/// How far a search index is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SearchIndexState {
    /// Every fact that was captured by this moment is searched. Null while the index is being built.
    pub indexed_up_to: Option<Instant>,
    /// The number of distinct parts in the index.
    pub indexed_parts: u64,
    /// The bytes of its files.
    pub bytes: u64,
    /// False while the index is being built.
    pub complete: bool,
    /// Why the index does not go on. Absent if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
}

impl CaptureCounts {
    /// Combines the totals of an organization with the answers of one server.
    pub fn new(
        totals: CaptureTotals,
        server_since: Instant,
        answers: BTreeMap<String, BTreeMap<u16, u64>>,
    ) -> Self {
        let mut sources = totals.sources;
        let later = [CaptureSource::Traces, CaptureSource::Calls];
        let always = CaptureSource::ALL.iter();
        for source in always.filter(|source| !later.contains(source)) {
            sources.entry(Open::Known(*source)).or_default();
        }
        Self {
            since: totals.since,
            sources,
            log_records: totals.log_records,
            span_records: totals.span_records.map(|counts| *counts),
            readers: totals.readers,
            server_since,
            answers,
            commit_claims: None,
            keeps_mirrors: None,
            search: None,
            pending_halves: None,
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
