//! Reports that a service gives: of 31 days at most.

use svc_client::Client;
use svc_engine::read::Extent;
use svc_model::id::OrgId;
use svc_model::limit::REPORT_COHORT_DAYS_MAX;
use svc_model::reports::ReportScope;
use svc_model::time::Instant;

use super::ReportOptions;
use super::progress::Progress;
use crate::commands::service;
use crate::credentials::Credentials;
use crate::error::CommandError;
use crate::output::{Output, escape};

impl ReportOptions {
    /// Returns whether the service is asked: no store is named, and a service is, or there was a login.
    pub(super) fn asks_service(&self) -> Result<bool, CommandError> {
        if self.mirror.are_named() {
            return Ok(false);
        }
        Ok(service::given(&self.service).is_some() || Credentials::load()?.current().is_some())
    }

    /// Asks the service for a report of so many days, and of which organization it is.
    pub(super) fn ask<T, A>(
        &self,
        output: &mut Output,
        since_days: Option<u32>,
        as_of: Instant,
        ask: impl FnOnce(Client, ReportScope) -> A,
    ) -> Result<(OrgId, T), CommandError>
    where
        A: Future<Output = Result<T, svc_client::Error>>,
    {
        let scope = scope(since_days, as_of)?;
        let client = service::client(&self.service)?;
        let probe = service::block_on(async { Ok(client.me().await?) })?;
        service::warn_of_skew(&probe.version, output);
        if let Some(named) = self.mirror.organization()
            && named != probe.org_id.as_str()
        {
            return Err(CommandError::refused(
                "other_organization",
                format!("the service is that of {}", escape(probe.org_id.as_str())),
            )
            .hint("another organization is read from the store: --database-url"));
        }
        let _progress = Progress::begin(output, "waiting for the service");
        let report = service::block_on(async { Ok(ask(client.clone(), scope).await?) })?;
        Ok((probe.org_id, report))
    }
}

/// Returns the calls of so many days before a moment.
fn scope(since_days: Option<u32>, as_of: Instant) -> Result<ReportScope, CommandError> {
    let too_long = || {
        CommandError::refused(
            "report_window",
            format!("a report of a service covers {REPORT_COHORT_DAYS_MAX} days at most"),
        )
        .hint(format!(
            "say how many: --since-days {REPORT_COHORT_DAYS_MAX}, and with --as-of up to when"
        ))
        .hint(
            "all history is read from the store and the mirrors: --database-url and --mirror-path",
        )
    };
    let days = since_days.ok_or_else(too_long)?;
    if i64::from(days) > REPORT_COHORT_DAYS_MAX {
        return Err(too_long());
    }
    let cohort = Extent::days_before(as_of, days).observed();
    ReportScope::new(cohort, as_of)
        .map_err(|fault| CommandError::argument("--as-of", fault.message()))
}
