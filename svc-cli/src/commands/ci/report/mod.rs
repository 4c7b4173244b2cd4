//! Reports a pipeline's outcome to the service.

mod environment;
mod flags;
mod outcome;
mod repository;
mod system;

use std::time::Duration;

use clap::Args;
use serde::Serialize;
use svc_client::outbox::DeliveryId;
use svc_client::{ErrorKind, Outbox};
use svc_model::id::FactId;
use svc_model::ingest::{CiProvider, CiResult, IngestResult, VendorCIRequest};
use svc_model::json;
use svc_model::open::Open;
use svc_model::problem::Code;

use self::environment::Environment;
use self::flags::Flags;
use self::outcome::outcome;
use crate::commands::sending::ServiceOutbox;
use crate::commands::{revision, service};
use crate::credentials::Role;
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Output, escape};
use crate::product::Product as _;

/// How long a pipeline waits for the service, including retries.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Args)]
pub(crate) struct Report {
    #[command(flatten)]
    flags: Flags,

    /// Exit with 0 and a warning if the report is not invalid but could not be delivered: whatever
    /// answers instead of the service, or if there is no token, as in the pipeline of a fork.
    #[arg(long)]
    soft_fail: bool,

    /// Print what would be sent without sending it.
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    service: ServiceOptions,
}

/// A report, for programs.
#[derive(Debug, Serialize)]
struct ReportResult {
    delivered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    fact_id: Option<FactId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stored: Option<bool>,
    /// The result that is already stored for the run, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored_result: Option<Open<CiResult>>,
    provider: CiProvider,
    run_id: String,
    run_attempt: Option<i64>,
    result: CiResult,
    /// True if the report is kept and sent later.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failure>,
}

#[derive(Debug, Serialize)]
struct Failure {
    code: String,
    message: String,
}

/// Why a report was not delivered.
struct UndeliveredReport {
    error: CommandError,
    /// Whether the failure has nothing to do with the report itself, so that it may be delivered
    /// later.
    out_of_reach: bool,
    /// Whether there is no token to deliver it with.
    no_token: bool,
}

impl Report {
    pub(crate) fn run(mut self, output: &mut Output) -> Result<(), CommandError> {
        self.flags.commit = self.flags.commit.as_deref().map(revision::full);
        let request = outcome(&self.flags, &Environment::process())?;
        if self.dry_run {
            let bytes = json::to_vec(&request, usize::MAX)
                .map_err(|error| CommandError::refused("unwritable", error.to_string()))?;
            return output.text(&format!("{}\n", String::from_utf8_lossy(&bytes)));
        }
        // Kept on disk before it is sent, because a pipeline may be stopped at any moment. A
        // failure to keep it is reported only if it cannot be sent either.
        let kept = self.soft_fail.then(|| self.keep(&request));
        match self.send(&request) {
            Ok(receipt) => {
                if let Some(Ok(kept)) = &kept
                    && let set_aside @ 1.. = kept.done()
                {
                    output.warning(&format!(
                        "{set_aside} kept deliveries were not sent but set aside: svc outbox status"
                    ));
                }
                let reported = ReportResult::of(&request, Some(&receipt), None);
                if let Some(stored) = &receipt.stored_result {
                    output.warning(&format!(
                        "this run is already stored with the result {stored}, which stands; to \
                         report another result, use another run id or attempt"
                    ));
                }
                output.value(&reported, render)
            }
            Err(undelivered) if self.soft_fail && undelivered.out_of_reach => {
                let error = undelivered.error;
                let kept = match kept {
                    // A report that this pipeline may not deliver must not be delivered by another
                    // pipeline later.
                    Some(Ok(kept)) if undelivered.no_token => {
                        kept.withdraw();
                        None
                    }
                    Some(kept) => Some(kept),
                    None => None,
                };
                let mut reported = ReportResult::of(&request, None, Some(&error));
                match &kept {
                    Some(Ok(_)) => {
                        reported.kept = Some(true);
                        output.warning(&format!("not reported yet: {}", error.traced()));
                        output.note(
                            "the report is kept and sent with the next one: svc outbox status",
                        );
                    }
                    Some(Err(unkept)) => output.warning(&format!(
                        "not reported: {}; {}",
                        error.traced(),
                        unkept.message()
                    )),
                    None => output.warning(&format!("not reported: {}", error.traced())),
                }
                output.value(&reported, |_| String::new())
            }
            Err(undelivered) => {
                // The report itself is invalid and would always be refused.
                if let Some(Ok(kept)) = &kept {
                    kept.withdraw();
                }
                Err(undelivered.error)
            }
        }
    }

    fn keep(&self, request: &VendorCIRequest) -> Result<KeptReport, CommandError> {
        let kept = ServiceOutbox::of(&self.service)?;
        let id = kept.keep(request.clone())?;
        Ok(KeptReport { kept, id })
    }

    fn send(&self, request: &VendorCIRequest) -> Result<IngestResult, UndeliveredReport> {
        let client = service::client_for(&self.service, Role::Capture).map_err(|error| {
            let no_token = error.code() == "no_token";
            UndeliveredReport {
                error,
                out_of_reach: no_token,
                no_token,
            }
        })?;
        let client = client.with_timeout(PATIENCE);
        let mut out_of_reach = false;
        let sent = service::block_on(async {
            client.ingest_ci(request).await.map_err(|error| {
                out_of_reach = Outbox::waits(&error);
                let conflict = matches!(
                    error.kind(),
                    ErrorKind::Conflict(Code::RepositoryIdentityConflict)
                );
                let error = CommandError::from(error);
                if conflict {
                    error.hint(
                        "this run was already reported with another commit, repository or \
                         workflow; is its id unique? see --run-id",
                    )
                } else {
                    error
                }
            })
        });
        sent.map_err(|error| UndeliveredReport {
            error,
            out_of_reach,
            no_token: false,
        })
    }
}

/// A report on disk.
struct KeptReport {
    kept: ServiceOutbox,
    id: DeliveryId,
}

impl KeptReport {
    fn withdraw(&self) {
        self.kept.withdraw(Some(self.id));
    }

    /// Removes the delivered report from the outbox, and sends what was waiting before it. Returns
    /// how much of that was set aside.
    fn done(&self) -> u64 {
        self.withdraw();
        let waits = self
            .kept
            .outbox
            .status()
            .is_ok_and(|status| status.waiting > 0);
        if let (true, Ok(client)) = (waits, self.kept.client()) {
            let drained = service::block_on(self.kept.drain_within(&client, PATIENCE));
            // Whatever is not sent keeps waiting.
            return drained.ok().flatten().map_or(0, |drained| drained.refused);
        }
        0
    }
}

impl ReportResult {
    fn of(
        request: &VendorCIRequest,
        receipt: Option<&IngestResult>,
        error: Option<&CommandError>,
    ) -> Self {
        Self {
            delivered: receipt.is_some(),
            fact_id: receipt.map(|receipt| receipt.fact_id),
            stored: receipt.map(|receipt| receipt.stored),
            stored_result: receipt.and_then(|receipt| receipt.stored_result.clone()),
            provider: request.provider,
            run_id: request.run_id.to_string(),
            run_attempt: request.run_attempt,
            result: request.result,
            kept: None,
            error: error.map(|error| Failure {
                code: error.code().to_owned(),
                message: error.message().to_owned(),
            }),
        }
    }
}

fn render(reported: &ReportResult) -> String {
    let ReportResult {
        provider, result, ..
    } = reported;
    let run = escape(&reported.run_id);
    let attempt = reported
        .run_attempt
        .map_or_else(String::new, |attempt| format!(" attempt {attempt}"));
    let fact = reported
        .fact_id
        .map_or_else(String::new, |fact_id| fact_id.to_string());
    let state = match (reported.stored, &reported.stored_result) {
        (Some(true), _) => "stored".to_owned(),
        (_, None) => "was already stored".to_owned(),
        (_, Some(stored)) => format!("was already stored as {stored}, which stands"),
    };
    let system = provider.product();
    format!("{system} run {run}{attempt} {result}: fact {fact} {state}\n")
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_report_is_one_line() {
        let reported = |stored| ReportResult {
            delivered: true,
            fact_id: Some(FactId::new(Uuid::from_u128(1))),
            stored: Some(stored),
            stored_result: None,
            provider: CiProvider::CiB,
            run_id: "500/test\u{1b}".to_owned(),
            run_attempt: Some(9001),
            result: CiResult::Passed,
            kept: None,
            error: None,
        };
        assert_eq!(
            render(&reported(true)),
            "gitlab-ci run 500/test\\u{1b} attempt 9001 passed: fact 00000000-0000-0000-0000-000000000001 stored\n"
        );
        assert!(render(&reported(false)).ends_with("was already stored\n"));
    }
}
