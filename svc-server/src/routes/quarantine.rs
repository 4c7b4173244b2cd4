use svc_model::problem::Problem;
use svc_model::quarantine::{QuarantineAction, QuarantineReceipt, QuarantineRequest};

use crate::dispatch::Exchange;

pub(super) async fn quarantine(
    exchange: Exchange,
    request: QuarantineRequest,
) -> Result<QuarantineReceipt, Problem> {
    change(exchange, request, QuarantineAction::Quarantine).await
}

pub(super) async fn release(
    exchange: Exchange,
    request: QuarantineRequest,
) -> Result<QuarantineReceipt, Problem> {
    change(exchange, request, QuarantineAction::Release).await
}

/// Records a change under the name of the client whose token the request has.
async fn change(
    exchange: Exchange,
    request: QuarantineRequest,
    action: QuarantineAction,
) -> Result<QuarantineReceipt, Problem> {
    // The route requires the operator, so there is a caller.
    let caller = exchange.caller.ok_or(Problem::Unauthorized)?;
    let engine = &exchange.app.engine;
    let receipt = engine
        .quarantine(request, action, caller.client_id.clone())
        .await?;
    tracing::info!(
        client = caller.client_id,
        %action,
        table = %receipt.table,
        fact_id = receipt.fact_id,
        quarantine_revision = receipt.quarantine_revision,
        "quarantine.changed"
    );
    Ok(receipt)
}
