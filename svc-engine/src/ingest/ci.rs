use svc_engine_capture::ci;
use svc_engine_store::{Append, DeliveryCounts};
use svc_model::capture::CaptureSource;
use svc_model::endpoint::CiOutcomeQuery;
use svc_model::ingest::{CiResult, IngestResult, VendorCIRequest};
use svc_model::open::Open;
use svc_model::query::{CiOutcomeRequest, RepositorySelector};

use super::{BodyBudget, Ingest, store_one};
use crate::engine::Engine;
use crate::error::Error;

impl Ingest for VendorCIRequest {
    type Receipt = IngestResult;

    async fn ingest(self, engine: &Engine, _: BodyBudget) -> Result<IngestResult, Error> {
        let receipt = engine.receipt();
        let asked = self.compare.then(|| retained(&self));
        let sent = self.result;
        let (outcome, redactions) = ci::capture(self, receipt);
        if !redactions.is_empty() {
            tracing::info!(?redactions, "fact_redacted");
        }
        let counted = DeliveryCounts::new(CaptureSource::Ci, receipt.received_at);
        let outcome = Append::CiOutcome(Box::new(outcome));
        let mut result = store_one(engine, outcome, counted).await?;
        if let Some(asked) = asked.filter(|_| !result.stored) {
            let stored = stored_result(engine, asked, &result).await;
            result.stored_result = stored.filter(|stored| *stored != sent);
        }
        Ok(result)
    }
}

/// Returns the request for the outcome that is stored for the reported run.
fn retained(request: &VendorCIRequest) -> CiOutcomeRequest {
    CiOutcomeRequest {
        provider: request.provider,
        run_id: request.run_id.clone(),
        run_attempt: request.run_attempt,
        latest: false,
        repository: RepositorySelector {
            repo: None,
            identity: request.repository_identity(),
        },
        as_of: None,
    }
}

/// Returns the result that is stored for a run that was reported again, if it can be read: the
/// receipt is correct without it.
async fn stored_result(
    engine: &Engine,
    asked: CiOutcomeRequest,
    result: &IngestResult,
) -> Option<Open<CiResult>> {
    let retained = engine.answer::<CiOutcomeQuery>(asked).await.ok()?.outcome?;
    let superseded = retained.superseded.iter().map(|other| other.outcome_id);
    let is_of_run = superseded
        .chain([retained.outcome_id])
        .any(|outcome_id| outcome_id == result.fact_id);
    is_of_run.then_some(retained.result)
}
