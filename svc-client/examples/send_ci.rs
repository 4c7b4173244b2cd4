use std::error::Error;
use std::io::Write as _;

use svc_client::Client;
use svc_client::model::id::RunId;
use svc_client::model::ingest::{CiProvider, CiResult, VendorCIRequest};
use svc_client::model::open::Open;
use svc_client::model::repository::{Branch, CommitSha, RepositoryName};

/// Describes a Jenkins run from the variables of its build.
pub fn outcome(
    variable: impl Fn(&str) -> Option<String>,
) -> Result<VendorCIRequest, Box<dyn Error>> {
    let needed = |name: &str| variable(name).ok_or(format!("{name} is not set"));
    let result = match needed("BUILD_RESULT")?.as_str() {
        "SUCCESS" => CiResult::Passed,
        "FAILURE" => CiResult::Failed,
        "ABORTED" => CiResult::Cancelled,
        _ => CiResult::Unknown,
    };
    let mut outcome = VendorCIRequest::new(
        CiProvider::CiA,
        RunId::new(&needed("BUILD_TAG")?)?,
        RepositoryName::new(&needed("REPOSITORY")?).ok_or("REPOSITORY is not owner/name")?,
        CommitSha::new(&needed("GIT_COMMIT")?).ok_or("GIT_COMMIT is no commit")?,
        Branch::new(&needed("GIT_BRANCH")?).ok_or("GIT_BRANCH is no branch")?,
        result,
    );
    outcome.workflow_name = needed("JOB_NAME")?.into();
    outcome.run_url = variable("BUILD_URL").map(Into::into);
    // The first report of a run stands, so ask for its result if it differs from this one.
    outcome.compare = true;
    Ok(outcome)
}

/// Reports a run, and returns its stored result.
pub async fn send(
    client: &Client,
    outcome: &VendorCIRequest,
) -> Result<Open<CiResult>, Box<dyn Error>> {
    let receipt = client.ingest_ci(outcome).await?;
    Ok(receipt.stored_result.unwrap_or(outcome.result.into()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (client, trace) = Client::from_env()?.traced();
    let outcome = outcome(|name| std::env::var(name).ok())?;
    let stored = send(&client, &outcome).await?;
    let request_id = trace.last().and_then(|answered| answered.request_id);
    writeln!(
        std::io::stdout(),
        "stored as {stored} (request {})",
        request_id.as_deref().unwrap_or("without a name")
    )?;
    Ok(())
}
