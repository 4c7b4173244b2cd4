//! The options that select a run.

use std::collections::BTreeSet;

use clap::Args;
use svc_client::{Client, RawReply};
use svc_model::endpoint::CiOutcomeQuery;
use svc_model::id::RunId;
use svc_model::ingest::{CiProvider, CiResult};
use svc_model::open::Open;
use svc_model::query::{
    CiDelivery, CiOutcomeAnswer, CiOutcomeRequest, CiRun, CiRuns, CiRunsRequest, LifetimeIdentity,
    RepositorySelector, RunName, RunUrl,
};
use svc_model::time::Instant;

use super::place::{self, Name};
use super::run_flags;

use crate::commands::moment::optional_boundary;
use crate::commands::repository::RepositoryOptions;
use crate::error::CommandError;
use crate::product::{product, product_parser};

/// A run.
#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// The CI system's id of the run, its job or its pipeline; or the URL of its page.
    run: String,

    /// The CI system; by default any.
    #[arg(long, alias = "provider", value_name = "SYSTEM", value_parser = product_parser::<CiProvider>())]
    system: Option<CiProvider>,

    /// The attempt, from 1; by default the latest.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..))]
    attempt: Option<i64>,

    #[command(flatten)]
    repository: RepositoryOptions,

    /// The moment up to which facts count, itself included: RFC 3339 with an offset, or like 7d.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    as_of: Option<String>,
}

impl RunOptions {
    /// Returns the run as the user gave it.
    pub(crate) fn run(&self) -> &str {
        &self.run
    }

    /// Returns the moment up to which facts count, if one was given.
    pub(crate) fn as_of(&self, now: Instant) -> Result<Option<Instant>, CommandError> {
        optional_boundary("--as-of", self.as_of.as_deref(), now)
    }

    /// Looks up the run. Returns the answer about it, other runs of the same name, and what was
    /// delivered with its commit. If no such run is stored, the answer says so.
    pub(crate) async fn find(
        &self,
        client: &Client,
        now: Instant,
    ) -> Result<FoundRun, CommandError> {
        let named = place::read(&self.run);
        let attempt = self.attempt.or(named.attempt);
        let (repository, as_of) = (self.repository.selector()?, self.as_of(now)?);
        for candidate in &named.candidates {
            let name = match &candidate.name {
                Name::Id(id) => RunName::Id(run_id(id)?),
                Name::Url(url) => RunName::Url(
                    RunUrl::new(url).map_err(|rule| CommandError::argument("the URL", rule))?,
                ),
            };
            let request = CiRunsRequest {
                name,
                provider: self.system.or(candidate.provider),
                repository: repository.clone(),
                as_of,
            };
            let mut found = client.ci_runs(&request).await?;
            if let Some(repo) = &candidate.repo {
                found.runs.retain(|run| run.outcome.repo == *repo);
            }
            if !found.runs.is_empty() {
                return self.choose(client, found, &request, attempt).await;
            }
        }
        let request = CiOutcomeRequest {
            provider: self.system.unwrap_or(CiProvider::Other),
            run_id: run_id(&self.run)?,
            run_attempt: attempt,
            latest: attempt.is_none(),
            repository,
            as_of,
        };
        Ok(FoundRun {
            run: client.call_raw::<CiOutcomeQuery>(&request).await?,
            others: Vec::new(),
            delivery: None,
        })
    }

    /// Chooses among the runs of this name: the run with exactly this id, or else the latest one
    /// that did not pass.
    async fn choose(
        &self,
        client: &Client,
        found: CiRuns,
        asked: &CiRunsRequest,
        attempt: Option<i64>,
    ) -> Result<FoundRun, CommandError> {
        let is_exact = |run: &CiRun| match &asked.name {
            RunName::Id(id) => run.outcome.run_id == id.as_str(),
            RunName::Url(_) => false,
        };
        let (mut exact, mut others): (Vec<CiRun>, Vec<CiRun>) =
            found.runs.into_iter().partition(is_exact);
        if exact.is_empty() {
            exact = std::mem::take(&mut others);
        }
        one_commit(&exact)?;
        let failed = |run: &CiRun| {
            use CiResult::{Error, Failed, TimedOut};
            matches!(run.outcome.result, Open::Known(Failed | Error | TimedOut))
        };
        let chosen = exact.iter().position(failed).unwrap_or_default();
        let chosen = exact.remove(chosen);
        exact.extend(others);
        let identity = chosen.outcome.repository_identity.as_ref();
        let Some(provider) = chosen.outcome.provider.known() else {
            return Err(CommandError::newer(
                "the CI system",
                &chosen.outcome.provider,
            ));
        };
        let request = CiOutcomeRequest {
            provider: *provider,
            run_id: run_id(&chosen.outcome.run_id)?,
            run_attempt: attempt,
            latest: attempt.is_none(),
            repository: identity
                .and_then(LifetimeIdentity::repository)
                .map_or_else(|| asked.repository.clone(), RepositorySelector::identified),
            as_of: asked.as_of,
        };
        Ok(FoundRun {
            run: client.call_raw::<CiOutcomeQuery>(&request).await?,
            others: exact,
            delivery: found.delivery,
        })
    }
}

/// A run, and what else has its name.
pub(crate) struct FoundRun {
    pub(crate) run: RawReply<CiOutcomeAnswer>,
    /// Other runs of the same name: other jobs of the same pipeline or build.
    pub(crate) others: Vec<CiRun>,
    /// What was delivered with the commit that they have in common.
    pub(crate) delivery: Option<CiDelivery>,
}

fn run_id(text: &str) -> Result<RunId, CommandError> {
    RunId::new(text).map_err(|rule| CommandError::argument("the id of the run", rule))
}

/// Refuses runs from several systems, repositories or commits, because the name is ambiguous then.
fn one_commit(runs: &[CiRun]) -> Result<(), CommandError> {
    let providers: BTreeSet<&Open<CiProvider>> =
        runs.iter().map(|run| &run.outcome.provider).collect();
    let of = |run: &CiRun| {
        let outcome = &run.outcome;
        let identity = outcome.repository_identity.clone();
        (identity, outcome.repo.clone(), outcome.commit_sha.clone())
    };
    let distinct: BTreeSet<_> = runs.iter().map(of).collect();
    if providers.len() == 1 && distinct.len() == 1 {
        return Ok(());
    }
    let mut systems = providers.iter().map(|provider| product(provider));
    let error = match (systems.next(), systems.next()) {
        (Some(one), Some(other)) => CommandError::refused(
            "several_runs",
            format!("both {one} and {other} have a run with this id"),
        )
        .hint("name the system: --system SYSTEM"),
        _ => CommandError::refused(
            "several_runs",
            format!("{} runs of several commits have this id", runs.len()),
        ),
    };
    let shown = runs.iter().take(HINTS_MAX);
    let by_number = |run: &CiRun| run.outcome.repository_identity.is_some();
    let is_mixed = runs.iter().any(by_number) && !runs.iter().all(by_number);
    Err(shown.fold(error, |error, run| {
        error.hint(if is_mixed && !by_number(run) {
            // No selector tells it from those whose repository is known by number.
            format!(
                "one of them, of a repository that is known by name only: svc commit {}",
                run.outcome.commit_sha
            )
        } else {
            format!("one of them: svc investigate {}", run_flags(&run.outcome))
        })
    }))
}

/// The maximum number of runs that are suggested when the name is ambiguous.
const HINTS_MAX: usize = 5;
