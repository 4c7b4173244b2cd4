use svc_model::capture::{CaptureCounts, SearchIndexState};
use svc_model::problem::Problem;
use svc_model::request::NoParameters;

use crate::dispatch::Exchange;

pub(super) async fn counts(exchange: Exchange, _: NoParameters) -> Result<CaptureCounts, Problem> {
    let totals = exchange.app.engine.captured().await?;
    let mut counts = exchange.app.counts.beside(totals);
    counts.commit_claims = exchange.app.engine.commit_claims().await?;
    counts.keeps_mirrors = Some(exchange.app.engine.keeps_mirrors());
    counts.pending_halves = exchange.app.engine.pending_halves().await?;
    counts.search = exchange
        .app
        .engine
        .search_status()
        .map(|status| SearchIndexState {
            indexed_up_to: status.indexed_up_to,
            indexed_parts: status.indexed_parts,
            bytes: status.bytes,
            complete: status.is_complete(),
            obstacle: status.obstacle,
        });
    Ok(counts)
}
