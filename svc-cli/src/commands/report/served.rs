//! Reports that a service offers, over 31 days at most.

use svc_client::Client;
use svc_engine::read::Extent;
use svc_model::id::OrgId;
use svc_model::limit::REPORT_COHORT_DAYS_MAX;
use svc_model::reports::ReportScope;
use svc_model::time::Instant;

use super::ReportOptions;
use super::progress::Progress;
use crate::commands::place::{DefaultPlace, asks_service};
use crate::commands::service;
use crate::error::CommandError;
use crate::output::{Output, escape};

impl ReportOptions {
    /// Returns whether to ask a service. If only the mirrors are named, the store beside them is
    /// meant; if a service is named too, the service is.
    pub(super) fn asks_service(&self) -> Result<bool, CommandError> {
        let asks = asks_service(&self.service, &self.mirror.store, DefaultPlace::Store)?;
        Ok(asks && (!self.mirror.has_path() || service::given(&self.service)?.is_some()))
    }

    /// Asks the service for a report over this many days, and for its organization.
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
        self.ask_within(output, scope(since_days, as_of)?, ask)
    }

    /// Asks the service for a report over a cohort, and for its organization.
    pub(super) fn ask_within<T, A>(
        &self,
        output: &mut Output,
        scope: ReportScope,
        ask: impl FnOnce(Client, ReportScope) -> A,
    ) -> Result<(OrgId, T), CommandError>
    where
        A: Future<Output = Result<T, svc_client::Error>>,
    {
        let client = service::client(&self.service)?;
        let probe = service::block_on(async { Ok(client.me().await?) })?;
        service::warn_of_skew(&probe.version, output);
        if let Some(named) = self.mirror.organization()
            && named != probe.org_id.as_str()
        {
            return Err(CommandError::refused(
                "other_organization",
                format!(
                    "the service belongs to organization {}",
                    escape(probe.org_id.as_str())
                ),
            )
            .hint("to report on another organization, read its store with --database-url"));
        }
        let _progress = Progress::begin(output, "waiting for the service");
        let report = service::block_on(async { Ok(ask(client.clone(), scope).await?) })?;
        Ok((probe.org_id, report))
    }
}

/// Refuses a report over more days than a service's report covers. The option sets their number.
pub(super) fn too_long(option: &str) -> CommandError {
    CommandError::refused(
        "report_window",
        format!("a service's report covers {REPORT_COHORT_DAYS_MAX} days at most"),
    )
    .hint(format!(
        "give the number of days: {option} {REPORT_COHORT_DAYS_MAX}; --as-of sets the end"
    ))
    .hint("for all history, read the store and the mirrors with --database-url and --mirror-path")
}

/// Returns a report's scope of this many days before a moment.
fn scope(since_days: Option<u32>, as_of: Instant) -> Result<ReportScope, CommandError> {
    let too_long = || too_long("--since-days");
    let days = since_days.ok_or_else(too_long)?;
    if i64::from(days) > REPORT_COHORT_DAYS_MAX {
        return Err(too_long());
    }
    let cohort = Extent::days_before(as_of, days).observed();
    ReportScope::new(cohort, as_of)
        .map_err(|fault| CommandError::argument("--as-of", fault.message()))
}
