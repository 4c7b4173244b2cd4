use std::error::Error;
use std::io::Write as _;

use svc_client::Client;
use svc_client::model::id::SessionId;
use svc_client::model::query::{CiFailuresRequest, CiOutcomeRecord, RepositorySelector};
use svc_client::model::repository::RepositoryName;
use svc_client::model::time::Instant;

/// A failed run, and the Sessions that were observed at its commit.
#[derive(Debug)]
pub struct Finding {
    pub run: CiOutcomeRecord,
    pub sessions: Vec<SessionId>,
}

/// Returns the failed runs of a repository in a range, latest first, with the Sessions behind each.
pub async fn triage(
    client: &Client,
    repository: &str,
    range: std::ops::Range<Instant>,
) -> Result<Vec<Finding>, Box<dyn Error>> {
    let name = RepositoryName::new(repository).ok_or("a repository is owner/name")?;
    let selector = RepositorySelector::named(name);
    let mut failures = client.ci_failures(CiFailuresRequest::new(selector, range.start, range.end));
    let mut findings = Vec::new();

    // Pages are read on demand.
    while let Some(run) = failures.next().await {
        let run = run?;
        // The link is bound to the repository and the boundary of the reply that contains it.
        let commit = client.commit_at(&run.commit_query).await?;
        let repositories = commit.repos.into_iter().flatten();
        let observed = repositories.flat_map(|repository| repository.observed_sessions);
        let sessions = observed.map(|session| session.session_id).collect();
        findings.push(Finding { run, sessions });
    }
    Ok(findings)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &str| arguments.next().ok_or(format!("{what} is missing"));
    let repository = next("owner/name")?;
    let start = Instant::parse(&next("the first moment")?)?;
    let end = Instant::parse(&next("the end")?)?;
    let client = Client::from_env()?;
    for Finding { run, sessions } in triage(&client, &repository, start..end).await? {
        let (id, commit) = (&run.run_id, &run.commit_sha);
        writeln!(
            std::io::stdout(),
            "{id} of {commit}: {} Sessions",
            sessions.len()
        )?;
        for session in sessions {
            if let Some(dossier) = client.session_dossier(&session).await? {
                let calls = dossier.coverage.inference_calls.visible;
                writeln!(std::io::stdout(), "  {session}: {calls} calls")?;
            }
        }
    }
    Ok(())
}
