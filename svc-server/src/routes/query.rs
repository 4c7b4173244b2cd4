use svc_model::problem::Problem;
use svc_model::query::{
    CiFailures, CiFailuresRequest, CiOutcomeAnswer, CiOutcomeRequest, CiRuns, CiRunsRequest,
    CommitEvidence, CommitRequest, SessionAnswer, SessionDossierRequest, SessionList,
    SessionsRequest,
};

use crate::dispatch::Exchange;

pub(crate) async fn ci_outcome(
    exchange: Exchange,
    request: CiOutcomeRequest,
) -> Result<CiOutcomeAnswer, Problem> {
    exchange
        .app
        .engine
        .ci_outcome(request)
        .await
        .map_err(Problem::from)
}

pub(crate) async fn ci_runs(exchange: Exchange, request: CiRunsRequest) -> Result<CiRuns, Problem> {
    exchange
        .app
        .engine
        .ci_runs(request)
        .await
        .map_err(Problem::from)
}

pub(crate) async fn ci_failures(
    exchange: Exchange,
    request: CiFailuresRequest,
) -> Result<CiFailures, Problem> {
    exchange
        .app
        .engine
        .ci_failures(request)
        .await
        .map_err(Problem::from)
}

pub(crate) async fn sessions(
    exchange: Exchange,
    request: SessionsRequest,
) -> Result<SessionList, Problem> {
    exchange
        .app
        .engine
        .sessions(request)
        .await
        .map_err(Problem::from)
}

pub(crate) async fn session(
    exchange: Exchange,
    request: SessionDossierRequest,
) -> Result<SessionAnswer, Problem> {
    exchange
        .engine()
        .session_dossier(request)
        .await
        .map_err(Problem::from)
}

pub(crate) async fn commit(
    exchange: Exchange,
    request: CommitRequest,
) -> Result<CommitEvidence, Problem> {
    exchange
        .engine()
        .commit_evidence(request)
        .await
        .map_err(Problem::from)
}
