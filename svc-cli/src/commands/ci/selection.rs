//! Which run is meant.

use clap::Args;
use svc_client::{Client, RawReply};
use svc_model::endpoint::CiOutcomeQuery;
use svc_model::id::RunId;
use svc_model::ingest::CiProvider;
use svc_model::query::{CiOutcomeAnswer, CiOutcomeRequest};
use svc_model::time::Instant;

use crate::commands::moment::optional_moment;
use crate::commands::one_of::one_of;
use crate::commands::repository::RepositoryOptions;
use crate::error::CommandError;

/// A run.
#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// The CI system's id of the run, or a URL with /runs/ID or /pipelines/ID in its path.
    run: String,

    /// The CI system. Without it, all are asked.
    #[arg(long, value_name = "SYSTEM", value_parser = one_of(CiProvider::ALL, CiProvider::as_str))]
    provider: Option<CiProvider>,

    /// The attempt, from 1. Without it the run that was reported without an attempt, else the last of
    /// the attempts 1, 2, 3 and so on.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..))]
    attempt: Option<i64>,

    #[command(flatten)]
    repository: RepositoryOptions,

    /// The moment up to which facts count, itself included: RFC 3339 with an offset, or like -7d.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    as_of: Option<String>,
}

/// What a person calls a run.
#[derive(Debug, PartialEq, Eq)]
struct Named<'a> {
    run_id: &'a str,
    attempt: Option<i64>,
}

impl<'a> Named<'a> {
    /// Reads an id, or the URL of a run: `…/runs/7/attempts/2`, `…/pipelines/7`.
    fn read(text: &'a str) -> Option<Self> {
        if !text.starts_with("https://") && !text.starts_with("http://") {
            return Some(Self {
                run_id: text,
                attempt: None,
            });
        }
        let path = text.split(['?', '#']).next().unwrap_or_default();
        let after = |names: &[&str]| {
            let mut segments = path.split('/').skip_while(|it| !names.contains(it));
            segments.nth(1).filter(|segment| !segment.is_empty())
        };
        Some(Self {
            run_id: after(&["runs", "pipelines"])?,
            attempt: after(&["attempts"]).and_then(|attempt| attempt.parse().ok()),
        })
    }
}

impl RunOptions {
    /// Returns the run as it was given.
    pub(crate) fn run(&self) -> &str {
        &self.run
    }

    /// Returns the moment up to which facts count, when one was given.
    pub(crate) fn as_of(&self, now: Instant) -> Result<Option<Instant>, CommandError> {
        optional_moment("--as-of", self.as_of.as_deref(), now)
    }

    /// Asks for the run: the answer about it, or the last answer that there is no such run.
    pub(crate) async fn find(
        &self,
        client: &Client,
        now: Instant,
    ) -> Result<RawReply<CiOutcomeAnswer>, CommandError> {
        let named = Named::read(&self.run).ok_or_else(|| {
            CommandError::argument("the URL", "must have /runs/ID or /pipelines/ID in its path")
        })?;
        let run_id = RunId::new(named.run_id)
            .map_err(|rule| CommandError::argument("the id of the run", rule))?;
        let mut request = CiOutcomeRequest {
            provider: CiProvider::Other,
            run_id,
            run_attempt: None,
            repository: self.repository.selector()?,
            as_of: self.as_of(now)?,
        };
        let given = self.provider.as_ref().map(std::slice::from_ref);
        let mut found: Option<RawReply<CiOutcomeAnswer>> = None;
        let mut none = None;
        for provider in given.unwrap_or(CiProvider::ALL) {
            request.provider = *provider;
            let reply = latest(client, &mut request, self.attempt.or(named.attempt)).await?;
            if !reply.value.found {
                none = Some(reply);
            } else if let Some(other) = &found {
                let other = other.value.outcome.as_ref();
                let other = other.map_or(*provider, |outcome| outcome.provider);
                return Err(CommandError::refused(
                    "several_runs",
                    format!("both {other} and {provider} have such a run"),
                )
                .hint("say which system is meant: --provider SYSTEM"));
            } else {
                found = Some(reply);
            }
        }
        found
            .or(none)
            .ok_or_else(|| CommandError::refused("no_system", "there is no CI system to ask about"))
    }
}

/// Asks for a run of one system. Without an attempt, attempts are tried until there is no next one.
async fn latest(
    client: &Client,
    request: &mut CiOutcomeRequest,
    attempt: Option<i64>,
) -> Result<RawReply<CiOutcomeAnswer>, CommandError> {
    request.run_attempt = attempt;
    let mut last = client.call_raw::<CiOutcomeQuery>(request).await?;
    if attempt.is_some() || last.value.found {
        return Ok(last);
    }
    for attempt in 1.. {
        request.run_attempt = Some(attempt);
        let reply = client.call_raw::<CiOutcomeQuery>(request).await?;
        if !reply.value.found {
            break;
        }
        last = reply;
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_named_by_its_id_or_its_url() {
        for (text, run_id, attempt) in [
            ("7000", "7000", None),
            ("7000/build", "7000/build", None),
            ("https://github.com/a/b/actions/runs/7000", "7000", None),
            (
                "https://github.com/a/b/actions/runs/7000/attempts/2?pr=1",
                "7000",
                Some(2),
            ),
            (
                "https://github.com/a/b/actions/runs/7000/job/9#step:3:1",
                "7000",
                None,
            ),
            ("https://gitlab.example/a/b/-/pipelines/7000", "7000", None),
        ] {
            let expected = Named { run_id, attempt };
            assert_eq!(Named::read(text), Some(expected), "{text}");
        }
        for text in ["https://github.com/a/b", "https://github.com/a/runs/"] {
            assert_eq!(Named::read(text), None, "{text}");
        }
    }
}
