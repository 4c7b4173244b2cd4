use clap::Args;
use svc_engine::read;
use svc_model::reports::{AbandonmentReport, SessionStatus};
use svc_view::NO_COMMIT;

use super::page::{Page, window};
use super::{CohortOptions, up_to_now};
use crate::error::CommandError;
use crate::output::{Output, Table, escape};

#[derive(Debug, Args)]
pub(crate) struct Abandonment {
    #[command(flatten)]
    cohort: CohortOptions,
}

impl Abandonment {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let as_of = self.cohort.report.as_of()?;
        self.cohort.report.require_store()?;
        let extent = self.cohort.extent(as_of);
        let report = self.cohort.read_facts(output, |snapshot| {
            let extent = up_to_now(&extent, snapshot)?;
            read::abandonment(snapshot, &extent)
        })?;
        let window = window(self.cohort.since_days);
        output.value(&report, |report| render(report, &window))
    }
}

fn render(report: &AbandonmentReport, window: &str) -> String {
    let with = |status: SessionStatus| {
        let sessions = report.accepted_session_outcomes.iter();
        sessions.filter(|session| session.status == status).count()
    };
    let mut page = Page::default();
    page.line(format!(
        "org: {}  window: {window}",
        escape(report.org_id.as_str())
    ));
    let as_of = report.as_of.map(|at| at.to_string());
    page.line(format!("as_of: {}", as_of.as_deref().unwrap_or("-")));
    page.line(format!(
        "sessions with accepted work: {}",
        report.accepted_session_outcomes.len()
    ));
    page.line(format!(
        "observed_committed_sessions: {}",
        with(SessionStatus::Committed)
    ));
    page.line(format!(
        "unknown_sessions: {}",
        with(SessionStatus::AttributionUnavailable)
    ));
    page.line(format!(
        "abandoned_sessions: {}",
        report.abandoned_sessions.len()
    ));
    let outcomes = report.accepted_session_outcomes.iter();
    let unshipped: u64 = outcomes
        .filter(|session| session.status == SessionStatus::Abandoned)
        .map(|session| session.accepted_decisions)
        .sum();
    page.line(format!("unshipped_accepts: {unshipped}"));
    page.line(format!("{NO_COMMIT}: no Session is called abandoned."));
    if !report.accepted_session_outcomes.is_empty() {
        page.heading("sessions:");
        let mut table = Table::new([
            "session",
            "status",
            "accepted",
            "by people",
            "last decision",
        ])
        .numbers(&[2, 3]);
        for session in &report.accepted_session_outcomes {
            table.row([
                escape(session.session_id.as_str()),
                session.status.to_string(),
                session.accepted_decisions.to_string(),
                session.explicit_accepted_decisions.to_string(),
                session.last_decision_at.to_string(),
            ]);
        }
        page.table(&table);
    }
    page.heading("skipped:");
    if report.skipped.is_empty() {
        page.line("  none");
    }
    for (reason, count) in report.skipped.iter() {
        page.line(format!("  {reason}: {count}"));
    }
    page.finish()
}
