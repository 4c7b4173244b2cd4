//! What a pipeline tells the service.

mod environment;
mod flags;
mod outcome;
mod repository;
mod system;

use std::time::Duration;

use clap::Args;
use serde::Serialize;
use svc_client::ErrorKind;
use svc_model::id::FactId;
use svc_model::ingest::{CiProvider, CiResult, IngestResult, VendorCIRequest};
use svc_model::json;
use svc_model::problem::Code;

use self::environment::Environment;
use self::flags::Flags;
use self::outcome::outcome;
use crate::commands::service;
use crate::credentials::Role;
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Output, escape};

/// How long a pipeline waits for the service, repetitions included.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Args)]
pub(crate) struct Report {
    #[command(flatten)]
    flags: Flags,

    /// End with 0 and a warning when the service cannot be reached, or there is no token for it, as
    /// in the pipeline of a fork.
    #[arg(long)]
    soft_fail: bool,

    /// Print what would be sent, and send nothing.
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    service: ServiceOptions,
}

/// A report, as a program reads it.
#[derive(Debug, Serialize)]
struct Reported {
    delivered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    fact_id: Option<FactId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stored: Option<bool>,
    provider: CiProvider,
    run_id: String,
    run_attempt: Option<i64>,
    result: CiResult,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failure>,
}

#[derive(Debug, Serialize)]
struct Failure {
    code: String,
    message: String,
}

/// Why a report was not delivered.
struct Undelivered {
    error: CommandError,
    /// Whether it says nothing about the report itself.
    out_of_reach: bool,
}

impl Report {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let request = outcome(&self.flags, &Environment::process())?;
        if self.dry_run {
            let bytes = json::to_vec(&request, usize::MAX)
                .map_err(|error| CommandError::refused("unwritable", error.to_string()))?;
            // ASCII, so a terminal is told nothing.
            return output.text(&format!("{}\n", String::from_utf8_lossy(&bytes)));
        }
        match self.send(&request) {
            Ok(receipt) => output.value(&Reported::of(&request, Some(receipt), None), render),
            Err(undelivered) if self.soft_fail && undelivered.out_of_reach => {
                let error = undelivered.error;
                output.warning(&format!("nothing was reported: {}", error.message()));
                output.value(&Reported::of(&request, None, Some(&error)), |_| {
                    String::new()
                })
            }
            Err(undelivered) => Err(undelivered.error),
        }
    }

    fn send(&self, request: &VendorCIRequest) -> Result<IngestResult, Undelivered> {
        let client = service::client_for(&self.service, Role::Capture).map_err(|error| {
            let out_of_reach = error.code() == "no_token";
            Undelivered {
                error,
                out_of_reach,
            }
        })?;
        let client = client.with_timeout(PATIENCE);
        let mut out_of_reach = false;
        let sent = service::block_on(async {
            client.ingest_ci(request).await.map_err(|error| {
                out_of_reach = error.is_retryable();
                let conflict = matches!(
                    error.kind(),
                    ErrorKind::Conflict(Code::RepositoryIdentityConflict)
                );
                let error = CommandError::from(error);
                if conflict {
                    error.hint(
                        "this run was reported with another commit, repository or workflow; is its \
                         id unique? see --run-id",
                    )
                } else {
                    error
                }
            })
        });
        sent.map_err(|error| Undelivered {
            error,
            out_of_reach,
        })
    }
}

impl Reported {
    fn of(
        request: &VendorCIRequest,
        receipt: Option<IngestResult>,
        error: Option<&CommandError>,
    ) -> Self {
        Self {
            delivered: receipt.is_some(),
            fact_id: receipt.map(|receipt| receipt.fact_id),
            stored: receipt.map(|receipt| receipt.stored),
            provider: request.provider,
            run_id: request.run_id.to_string(),
            run_attempt: request.run_attempt,
            result: request.result,
            error: error.map(|error| Failure {
                code: error.code().to_owned(),
                message: error.message().to_owned(),
            }),
        }
    }
}

fn render(reported: &Reported) -> String {
    let Reported {
        provider, result, ..
    } = reported;
    let run = escape(&reported.run_id);
    let attempt = reported
        .run_attempt
        .map_or_else(String::new, |attempt| format!(" attempt {attempt}"));
    let fact = reported
        .fact_id
        .map_or_else(String::new, |fact_id| fact_id.to_string());
    let state = if reported.stored == Some(true) {
        "stored"
    } else {
        "was stored before, and stays as it was"
    };
    format!("{provider} run {run}{attempt} {result}: fact {fact} {state}\n")
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_report_is_one_line() {
        let reported = |stored| Reported {
            delivered: true,
            fact_id: Some(FactId::new(Uuid::from_u128(1))),
            stored: Some(stored),
            provider: CiProvider::CiB,
            run_id: "500/test\u{1b}".to_owned(),
            run_attempt: Some(9001),
            result: CiResult::Passed,
            error: None,
        };
        assert_eq!(
            render(&reported(true)),
            "ci_b run 500/test\\u{1b} attempt 9001 passed: fact 00000000-0000-0000-0000-000000000001 stored\n"
        );
        assert!(render(&reported(false)).ends_with("was stored before, and stays as it was\n"));
    }
}
