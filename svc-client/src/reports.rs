use svc_model::endpoint::{
    AcceptedWorkLifecycleReport, CohortSpendReport, ModelOutcomesReport, OverviewQuery,
};
use svc_model::overview::{Overview, OverviewRequest};
use svc_model::reports::{AcceptedWorkLifecycle, ModelOutcomes, ReportRequest, ReportScope};
use svc_model::spend::{SpendReport, SpendRequest};

use crate::{Client, Error};

/// Reports, which require an operator token. Each is computed on request and not stored.
impl Client {
    /// Returns what became of the work of the last days, in figures for everything and for each
    /// day, repository, model and Session, and what needs a look.
    ///
    /// ```no_run
    /// # async fn overview(client: svc_client::Client) -> Result<(), svc_client::Error> {
    /// use svc_client::model::overview::{OverviewOutcome, OverviewRequest};
    ///
    /// let request = OverviewRequest {
    ///     outcome: Some(OverviewOutcome::Failed),
    ///     ..OverviewRequest::default()
    /// };
    /// let overview = client.overview(&request).await?;
    /// println!("{} of {} changes are red", overview.figures.failed, overview.figures.changes);
    /// for session in overview.sessions {
    ///     println!("{}: {:?}", session.session_id, session.title);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Client::model_outcomes`].
    pub async fn overview(&self, request: &OverviewRequest) -> Result<Overview, Error> {
        self.call::<OverviewQuery>(request).await
    }

    /// Returns the model report: what became of each model's calls.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ReportEvidence`](crate::ErrorKind::ReportEvidence) if the cohort is too large;
    /// otherwise see [`ErrorKind`](crate::ErrorKind).
    pub async fn model_outcomes(&self, scope: ReportScope) -> Result<ModelOutcomes, Error> {
        let request = ReportRequest { scope };
        self.call::<ModelOutcomesReport>(&request).await
    }

    /// Returns the lifecycle report: what became of accepted work, from the call to the merge.
    ///
    /// # Errors
    ///
    /// As [`Client::model_outcomes`].
    pub async fn accepted_work_lifecycle(
        &self,
        scope: ReportScope,
    ) -> Result<AcceptedWorkLifecycle, Error> {
        let request = ReportRequest { scope };
        self.call::<AcceptedWorkLifecycleReport>(&request).await
    }

    /// Returns the spend report: what the calls of a cohort cost at list price, and what the spend
    /// became.
    ///
    /// # Errors
    ///
    /// As [`Client::model_outcomes`].
    pub async fn spend_report(&self, request: &SpendRequest) -> Result<SpendReport, Error> {
        self.call::<CohortSpendReport>(request).await
    }
}
