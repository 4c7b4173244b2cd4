//! Deliveries of a forge's webhooks. Pings and skipped events never need the store, so they are
//! answered even while it is down.

use svc_engine_capture::forge::{self, DeliveryNotes, ForgeFact};
use svc_engine_store::{Append, DeliveryCounts};
use svc_model::capture::CaptureSource;
use svc_model::ingest::{ForgeDelivery, ForgeEvent, IngestReceipt, SkipReason};
use svc_model::repository::RepositoryHost;
use svc_model::time::Instant;

use super::{BodyBudget, Ingest, store_one};
use crate::engine::Engine;
use crate::error::Error;

/// A delivery of a forge's webhook, and what its receiver knows.
#[derive(Clone, Debug)]
pub struct ForgeWebhook<'a> {
    /// The delivery.
    pub delivery: ForgeDelivery,
    /// The host of the forge, which is recorded on its facts.
    pub host: &'a RepositoryHost,
    /// The only event that is accepted; `None` accepts every event.
    pub only: Option<ForgeEvent>,
}

impl Ingest for ForgeWebhook<'_> {
    type Receipt = IngestReceipt;

    async fn ingest(self, engine: &Engine, budget: BodyBudget) -> Result<IngestReceipt, Error> {
        let event = match accepted(&self.delivery.event, self.only) {
            Ok(event) => event,
            Err(reason) => {
                let at = engine.now();
                return Ok(skip(engine, CaptureSource::ForgeOther, at, reason));
            }
        };
        let receipt = engine.receipt();
        let (at, source) = (receipt.received_at, source(event));
        let delivery = forge::WebhookDelivery {
            receipt,
            host: self.host,
            id: self.delivery.delivery_id.as_deref(),
        };
        let mut notes = DeliveryNotes::default();
        let payload = self.delivery.payload;
        let captured = budget.in_place(|| forge::capture(event, payload, &delivery, &mut notes));
        let fact = match captured {
            Ok(fact) => fact,
            Err(reason) => return Ok(skip(engine, source, at, reason)),
        };
        log_notes(&notes);
        let (line, fact) = append(fact);
        let result = store_one(engine, fact, DeliveryCounts::new(source, at)).await?;
        tracing::info!(fact_id = %result.fact_id, stored = result.stored, "{line}");
        Ok(IngestReceipt::Fact(result))
    }
}

/// Returns the event of a delivery, if it is accepted.
fn accepted(event: &str, only: Option<ForgeEvent>) -> Result<ForgeEvent, SkipReason> {
    match (ForgeEvent::from_wire(event), only) {
        (Some(event), None) => Ok(event),
        (Some(event), Some(only)) if event == only => Ok(event),
        (_, Some(ForgeEvent::Push)) => Err(SkipReason::NotPush),
        (_, Some(ForgeEvent::Repository)) => Err(SkipReason::NotRepository),
        (_, Some(ForgeEvent::WorkflowRun)) => Err(SkipReason::NotWorkflowRun),
        (_, Some(ForgeEvent::PullRequest)) => Err(SkipReason::NotPullRequest),
        (None, None) if event == "ping" => Err(SkipReason::Ping),
        (None, None) => Err(SkipReason::UnsupportedEvent),
    }
}

/// Returns what an event is counted as.
fn source(event: ForgeEvent) -> CaptureSource {
    match event {
        ForgeEvent::Push => CaptureSource::ForgePush,
        ForgeEvent::Repository => CaptureSource::ForgeRepository,
        ForgeEvent::WorkflowRun => CaptureSource::ForgeCi,
        ForgeEvent::PullRequest => CaptureSource::ForgePullRequest,
    }
}

/// Returns the fact to store, and the log line that says it was.
fn append(fact: ForgeFact) -> (&'static str, Append) {
    match fact {
        ForgeFact::Push(push) => ("push_stored", Append::Push(push)),
        ForgeFact::CiOutcome(outcome) => ("ci_outcome_stored", Append::CiOutcome(outcome)),
        ForgeFact::Revision(revision) => (
            "pull_request_revision_stored",
            Append::PullRequestRevision(revision),
        ),
        ForgeFact::Merge(merge) => ("pull_request_merge_stored", Append::PullRequestMerge(merge)),
        ForgeFact::Rename(rename) => ("repository_rename_stored", Append::RepositoryRename(rename)),
    }
}

/// Logs what a captured fact lacks, and what was redacted.
fn log_notes(notes: &DeliveryNotes) {
    for declined in &notes.declined_identities {
        tracing::info!(reason = declined.as_str(), "repository_identity_declined");
    }
    if notes.unnamed_repository {
        tracing::info!("push_missing_repo");
    }
    if !notes.redactions.is_empty() {
        tracing::info!(redactions = %notes.redactions, "fact_redacted");
    }
}

fn skip(engine: &Engine, source: CaptureSource, at: Instant, reason: SkipReason) -> IngestReceipt {
    tracing::info!(
        source = source.as_str(),
        reason = reason.as_str(),
        "forge.delivery_skipped"
    );
    super::skip(engine, source, at, reason)
}
