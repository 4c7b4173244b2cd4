use svc_model::problem::Problem;
use svc_model::reports::{AcceptedWorkLifecycle, ModelOutcomes, ReportRequest};

use crate::dispatch::Exchange;

pub(crate) async fn model_outcomes(
    exchange: Exchange,
    request: ReportRequest,
) -> Result<ModelOutcomes, Problem> {
    exchange
        .engine()
        .model_outcomes(request)
        .await
        .map_err(Problem::from)
}

pub(crate) async fn accepted_work_lifecycle(
    exchange: Exchange,
    request: ReportRequest,
) -> Result<AcceptedWorkLifecycle, Problem> {
    exchange
        .engine()
        .accepted_work_lifecycle(request)
        .await
        .map_err(Problem::from)
}
