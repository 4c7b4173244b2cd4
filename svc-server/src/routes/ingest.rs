//! The routes of deliveries, which the engine ingests.

use svc_engine::ingest::{ForgeWebhook, Ingest};
use svc_model::ingest::{ForgeDelivery, ForgeEvent, IngestReceipt};
use svc_model::open::Open;
use svc_model::problem::Problem;

use crate::dispatch::Exchange;

/// Ingests a delivery that says everything itself.
pub(super) async fn deliver<D: Ingest, R: From<D::Receipt>>(
    exchange: Exchange,
    delivery: D,
) -> Result<R, Problem> {
    let Exchange { app, budget, .. } = exchange;
    Ok(app.engine.ingest(delivery, budget).await?.into())
}

type IngestAnswer = Result<Open<IngestReceipt>, Problem>;

/// Accepts every event of a forge.
pub(super) async fn forge(exchange: Exchange, delivery: ForgeDelivery) -> IngestAnswer {
    webhook(exchange, delivery, None).await
}

/// Accepts pushes.
pub(super) async fn push(exchange: Exchange, delivery: ForgeDelivery) -> IngestAnswer {
    webhook(exchange, delivery, Some(ForgeEvent::Push)).await
}

/// Accepts repository changes.
pub(super) async fn repository(exchange: Exchange, delivery: ForgeDelivery) -> IngestAnswer {
    webhook(exchange, delivery, Some(ForgeEvent::Repository)).await
}

/// Accepts the forge's own CI runs.
pub(super) async fn workflow_run(exchange: Exchange, delivery: ForgeDelivery) -> IngestAnswer {
    webhook(exchange, delivery, Some(ForgeEvent::WorkflowRun)).await
}

/// Accepts pull requests.
pub(super) async fn pull_request(exchange: Exchange, delivery: ForgeDelivery) -> IngestAnswer {
    webhook(exchange, delivery, Some(ForgeEvent::PullRequest)).await
}

async fn webhook(
    exchange: Exchange,
    delivery: ForgeDelivery,
    only: Option<ForgeEvent>,
) -> IngestAnswer {
    let Exchange { app, budget, .. } = exchange;
    let webhook = ForgeWebhook {
        delivery,
        host: &app.forge_host,
        only,
    };
    Ok(app.engine.ingest(webhook, budget).await?.into())
}
