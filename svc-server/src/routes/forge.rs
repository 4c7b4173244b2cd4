//! Deliveries of a forge's webhooks. Pings and skipped events never need the store, so they are
//! answered even while it is down.

use svc_engine::capture::forge::{self, Delivery, ForgeFact, Notes};
use svc_engine::store::{Append, Counted};
use svc_model::capture::CaptureSource;
use svc_model::ingest::{ForgeDelivery, ForgeEvent, IngestReceipt, SkipReason, Skipped};
use svc_model::open::Open;
use svc_model::problem::Problem;
use svc_model::time::Instant;

use super::ingest::{append_one, skipped};
use crate::app::App;
use crate::dispatch::Exchange;

type Answer = Result<Open<IngestReceipt>, Problem>;

/// Accepts every event.
pub(super) async fn any(exchange: Exchange, delivery: ForgeDelivery) -> Answer {
    match ForgeEvent::from_wire(&delivery.event) {
        Some(event) => take(exchange, event, delivery).await,
        None if delivery.event == "ping" => Ok(other(&exchange.app, SkipReason::Ping)),
        None => Ok(other(&exchange.app, SkipReason::UnsupportedEvent)),
    }
}

/// Accepts pushes.
pub(super) async fn push(exchange: Exchange, delivery: ForgeDelivery) -> Answer {
    only(exchange, ForgeEvent::Push, delivery).await
}

/// Accepts repository changes.
pub(super) async fn repository(exchange: Exchange, delivery: ForgeDelivery) -> Answer {
    only(exchange, ForgeEvent::Repository, delivery).await
}

/// Accepts the forge's own CI runs.
pub(super) async fn ci(exchange: Exchange, delivery: ForgeDelivery) -> Answer {
    only(exchange, ForgeEvent::WorkflowRun, delivery).await
}

/// Accepts pull requests.
pub(super) async fn pull_request(exchange: Exchange, delivery: ForgeDelivery) -> Answer {
    only(exchange, ForgeEvent::PullRequest, delivery).await
}

async fn only(exchange: Exchange, event: ForgeEvent, delivery: ForgeDelivery) -> Answer {
    if delivery.event == event.as_str() {
        return take(exchange, event, delivery).await;
    }
    let reason = match event {
        ForgeEvent::Push => SkipReason::NotPush,
        ForgeEvent::Repository => SkipReason::NotRepository,
        ForgeEvent::WorkflowRun => SkipReason::NotWorkflowRun,
        ForgeEvent::PullRequest => SkipReason::NotPullRequest,
    };
    Ok(other(&exchange.app, reason))
}

/// Captures a delivery and stores its fact.
async fn take(exchange: Exchange, event: ForgeEvent, delivery: ForgeDelivery) -> Answer {
    let app = &exchange.app;
    let receipt = app.engine.receipt();
    let at = receipt.received_at;
    let source = match event {
        ForgeEvent::Push => CaptureSource::ForgePush,
        ForgeEvent::Repository => CaptureSource::ForgeRepository,
        ForgeEvent::WorkflowRun => CaptureSource::ForgeCi,
        ForgeEvent::PullRequest => CaptureSource::ForgePullRequest,
    };
    let described = Delivery {
        receipt,
        host: &app.forge_host,
        id: delivery.delivery_id.as_deref(),
    };
    let mut notes = Notes::default();
    let captured =
        exchange.in_place(|| forge::capture(event, delivery.payload, &described, &mut notes));
    let fact = match captured {
        Ok(fact) => fact,
        Err(reason) => return Ok(skip(app, source, at, reason)),
    };
    log_notes(&notes);
    let (line, fact) = match fact {
        ForgeFact::Push(push) => ("push_stored", Append::Push(push)),
        ForgeFact::CiOutcome(outcome) => ("ci_outcome_stored", Append::CiOutcome(outcome)),
        ForgeFact::Revision(revision) => (
            "pull_request_revision_stored",
            Append::PullRequestRevision(revision),
        ),
        ForgeFact::Merge(merge) => ("pull_request_merge_stored", Append::PullRequestMerge(merge)),
        ForgeFact::Rename(rename) => ("repository_rename_stored", Append::RepositoryRename(rename)),
    };
    let appended = append_one(app, Counted::new(source, at), fact).await?;
    tracing::info!(fact_id = %appended.fact_id, stored = appended.stored, "{line}");
    Ok(IngestReceipt::Fact(appended).into())
}

/// Logs what a captured fact lacks, and what was redacted.
fn log_notes(notes: &Notes) {
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

/// Skips an event that the route does not accept.
fn other(app: &App, reason: SkipReason) -> Open<IngestReceipt> {
    skip(app, CaptureSource::ForgeOther, app.engine.now(), reason)
}

fn skip(app: &App, source: CaptureSource, at: Instant, reason: SkipReason) -> Open<IngestReceipt> {
    tracing::info!(
        source = source.as_str(),
        reason = reason.as_str(),
        "forge_delivery_skipped"
    );
    skipped(app, source, at, reason);
    IngestReceipt::Skipped(Skipped::new(reason)).into()
}
