use clap::Args;
use svc_engine::clock::Clock;
use svc_engine::derive::statistics::cases_for_margin;
use svc_engine::error::Error;
use svc_engine::read;
use svc_model::reports::AttributionShareReport;

use super::page::Page;
use super::{ReportOptions, shares, too_much};
use crate::error::CommandError;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct AttributionShare {
    /// The largest half-width of a share's 95 % interval at which a decline is reported: 0.1 needs
    /// 97 commits in both windows.
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    target_margin: f64,

    #[command(flatten)]
    options: ReportOptions,
}

impl AttributionShare {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let margin = self.target_margin;
        if !margin.is_finite() || margin <= 0.0 {
            let rule = "must be a number greater than 0";
            return Err(CommandError::argument("--target-margin", rule));
        }
        let as_of = self.options.as_of()?;
        let cases_min = cases_for_margin(margin);
        self.options.require_store()?;
        let report = self.options.read(output, |snapshot, sources| {
            let as_of = snapshot.bound(as_of, Clock::system().now())?;
            read::attribution_share(snapshot, sources, as_of, cases_min)
        })?;
        let report = report.map_err(|error| match error {
            Error::ReportBound(_) => too_much().hint("use an earlier end: --as-of 30d"),
            other => other.into(),
        })?;
        output.value(&report, render)
    }
}

fn render(report: &AttributionShareReport) -> String {
    let mut page = Page::default();
    page.line(format!(
        "min_cases_for_decline_verdict: {} commits in both windows",
        report.min_cases_for_decline_verdict
    ));
    page.line(
        "Counted are commits that a call near their push could have led to; the share says whether \
         notes are written, not how much agents write. In brackets: counts, and its 95 % interval.",
    );
    page.heading("current: the week before the last push of each repository");
    shares::rows(&mut page, &report.current);
    page.heading("baseline: the 28 days before that week");
    shares::rows(&mut page, &report.baseline);
    page.heading("alerts:");
    if report.alerts.is_empty() {
        page.line("  none");
    }
    shares::alerts(&mut page, &report.alerts);
    if !report.attribution_skips.is_empty() {
        page.heading(
            "what could not be looked at, and is in no row: its share of notes is unknown",
        );
        page.skips("by reason", &report.attribution_skips);
    }
    page.finish()
}
