use svc_model::problem::Problem;
use svc_model::spend::{LoadedPrices, PriceFileRequest};

use crate::dispatch::Exchange;

pub(super) async fn load(
    exchange: Exchange,
    request: PriceFileRequest,
) -> Result<LoadedPrices, Problem> {
    // The routes require the operator, so there is a caller.
    let caller = exchange.caller.as_ref().ok_or(Problem::Unauthorized)?;
    let loaded = exchange.app.engine.load_prices(request).await?;
    tracing::info!(
        client = caller.client_id,
        price_table_id = %loaded.price_table_id,
        format = %loaded.format,
        digest = loaded.digest,
        models = loaded.models,
        ignored = loaded.ignored,
        new = loaded.new,
        "prices.loaded"
    );
    Ok(loaded)
}
