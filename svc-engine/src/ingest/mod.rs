//! The arrow in: a delivery becomes facts, which are stored together with what is counted of it,
//! and its sender gets a receipt.
//!
//! [`Engine::ingest`] is the one way in, for the server as for any program. Each kind of delivery
//! is a module here, which calls its part of `capture`, writes the log lines and makes the receipt.
//! Only counts and ids are logged, never content.

mod batch;
mod budget;
mod calls;
mod ci;
mod forge;
mod gateway;
mod logs;
#[cfg(test)]
mod suite;
mod traces;

use svc_engine_capture::otlp::RecordCounts;
use svc_engine_store::{Append, DeliveryCounts, Outcome};
use svc_model::capture::{CaptureSource, LogRecordCounts};
use svc_model::id::FactId;
use svc_model::ingest::{IngestReceipt, IngestResult, SkipReason, Skipped};
use svc_model::open::Open;
use svc_model::time::Instant;

use crate::engine::Engine;
use crate::error::Error;

pub use budget::BodyBudget;
pub use forge::ForgeWebhook;

/// A delivery that an engine can ingest.
pub trait Ingest {
    /// What its sender gets.
    type Receipt;

    /// Captures, stores and counts the delivery. Callers use [`Engine::ingest`].
    fn ingest(
        self,
        engine: &Engine,
        budget: BodyBudget,
    ) -> impl Future<Output = Result<Self::Receipt, Error>> + Send;
}

impl Engine {
    /// Captures, stores and counts a delivery, and returns the receipt after its facts are on disk.
    /// A delivery without facts is only counted, without waiting for the store.
    ///
    /// # Errors
    ///
    /// If the delivery can never be stored, or was not stored. Then none of its facts is.
    pub async fn ingest<D: Ingest>(
        &self,
        delivery: D,
        budget: BodyBudget,
    ) -> Result<D::Receipt, Error> {
        delivery.ingest(self, budget).await
    }
}

/// Stores the only fact of a delivery, and counts the delivery.
async fn store_one(
    engine: &Engine,
    fact: Append,
    counted: DeliveryCounts,
) -> Result<IngestResult, Error> {
    let outcomes = engine.deliver(vec![fact], counted).await?;
    let outcome = outcomes.first().copied().ok_or(Error::NoOutcome)?;
    if let Outcome::Superseding(fact_id) | Outcome::Overruled(fact_id) = outcome {
        tracing::info!(signed = %fact_id, "ci_outcome.contradicted");
    }
    match outcome {
        Outcome::Stored(fact_id)
        | Outcome::StoredApart(fact_id)
        | Outcome::Superseding(fact_id) => Ok(logged(fact_id, true)),
        Outcome::Redelivered(fact_id) | Outcome::Overruled(fact_id) => Ok(logged(fact_id, false)),
        Outcome::Differs(fact_id, members) => Ok(IngestResult {
            differs: members.iter().copied().map(Open::Known).collect(),
            ..result(fact_id, false)
        }),
        Outcome::Conflict(code) => {
            tracing::info!(code = code.as_str(), "ingest.identity_conflict");
            Err(Error::Conflict(code))
        }
        // What becomes of calls that are sent together has a receipt of its own.
        Outcome::Known | Outcome::Copied(_) | Outcome::Rejected(_) => Err(Error::NoOutcome),
    }
}

fn logged(fact_id: FactId, stored: bool) -> IngestResult {
    tracing::debug!(%fact_id, stored, "fact.stored");
    result(fact_id, stored)
}

fn result(fact_id: FactId, stored: bool) -> IngestResult {
    IngestResult {
        fact_id,
        stored,
        stored_result: None,
        differs: Vec::new(),
    }
}

/// Counts a delivery that is skipped, and returns its receipt.
fn skip(engine: &Engine, source: CaptureSource, at: Instant, reason: SkipReason) -> IngestReceipt {
    let mut counted = DeliveryCounts::new(source, at);
    count_skipped(&mut counted, reason.as_str(), 1);
    engine.count(&counted);
    IngestReceipt::Skipped(Skipped::new(reason))
}

fn count_skipped(counted: &mut DeliveryCounts, reason: &str, by: u64) {
    let skipped = &mut counted.source().skipped;
    *skipped.entry(reason.to_owned()).or_default() += by;
}

fn count_rejected(counted: &mut DeliveryCounts, reason: &str, by: u64) {
    let rejected = &mut counted.source().rejected;
    *rejected.entry(reason.to_owned()).or_default() += by;
}

/// Returns how many facts of a delivery were new.
fn stored(outcomes: &[Outcome]) -> u64 {
    let stored = outcomes.iter().filter_map(|outcome| outcome.stored());
    stored.count() as u64
}

/// Returns what to count of the records or spans of an export.
fn record_counts(records: RecordCounts, malformed_containers: u64) -> LogRecordCounts {
    LogRecordCounts {
        received: records.received,
        translated: records.translated,
        untranslated: records.untranslated,
        malformed: records.malformed,
        malformed_containers,
    }
}
