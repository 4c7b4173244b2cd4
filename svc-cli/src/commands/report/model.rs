use clap::{ArgAction, Args};
use svc_client::Client;
use svc_engine::derive::comparison::{self, Cases};
use svc_engine::read;
use svc_model::id::OrgId;
use svc_model::reports::{ModelReport, ModelRow, Unobservable};
use svc_model::time::Instant;
use svc_view::{ATTRIBUTION_RATE, NO_COMMIT, SHELL, attribution};

use super::page::{Page, bar, known_bar, known_part, known_rate, rate, window};
use super::{CohortOptions, comparison as compared, shares, stratification, up_to_now};
use crate::error::CommandError;
use crate::output::{Output, Table, escape};

#[derive(Debug, Args)]
pub(crate) struct Model {
    /// Test two models against each other.
    #[arg(long, num_args = 2, action = ArgAction::Set, value_names = ["MODEL_A", "MODEL_B"])]
    compare: Option<Vec<String>>,

    /// Also test whether model B is worse than model A by at most this margin, from 0 to 1.
    #[arg(
        long,
        value_name = "NUMBER",
        allow_negative_numbers = true,
        requires = "compare"
    )]
    non_inferiority_margin: Option<f64>,

    #[command(flatten)]
    cohort: CohortOptions,
}

impl Model {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let models = match self.compare.as_deref() {
            Some([a, b]) if a == b => {
                let rule = "must name two different models";
                return Err(CommandError::argument("--compare", rule));
            }
            Some([a, b]) => Some((a, b)),
            _ => None,
        };
        let margin = self.non_inferiority_margin;
        if margin.is_some_and(|margin| !(margin > 0.0 && margin <= 1.0)) {
            let rule = "must be greater than 0, and at most 1";
            return Err(CommandError::argument("--non-inferiority-margin", rule));
        }
        let options = &self.cohort.report;
        let as_of = options.as_of()?;
        let extent = self.cohort.extent(as_of);
        let since_days = self.cohort.since_days;
        let (org_id, mut report) = if options.asks_service()? {
            let ask = async |client: Client, scope| Ok(client.model_outcomes(scope).await?.report);
            options.ask(output, since_days, as_of, ask)?
        } else {
            self.cohort.read(output, |snapshot, sources| {
                let extent = up_to_now(&extent, snapshot)?;
                let report = read::model_report(snapshot, sources, &extent)?;
                Ok((snapshot.org_id().clone(), report))
            })?
        };
        if let Some((a, b)) = models {
            check_models(output, &report.rows, [a, b])?;
            let (rows, cases) = (&report.rows, Cases::All);
            report.comparison = Some(comparison::compare(rows, a, b, cases));
            report.non_inferiority =
                margin.map(|margin| comparison::non_inferiority(rows, a, b, margin, cases));
        }
        let header = ReportHeader {
            org_id,
            since_days,
            as_of,
        };
        output.value(&report, |report| render(&header, report))
    }
}

/// Refuses to compare a model without calls. In JSON, a comparison says that it has no cases.
fn check_models(
    output: &mut Output,
    rows: &[ModelRow],
    models: [&String; 2],
) -> Result<(), CommandError> {
    let absent = |model: &&String| !rows.iter().any(|row| row.model == **model);
    let Some(absent) = models.into_iter().find(absent) else {
        return Ok(());
    };
    let known: Vec<String> = rows.iter().map(|row| escape(&row.model)).collect();
    let known = if known.is_empty() {
        "there is no call of any model".to_owned()
    } else {
        format!("there are: {}", known.join(", "))
    };
    let absent = format!("no calls of model {}; {known}", escape(absent));
    if output.is_for_people() {
        return Err(CommandError::refused("model_absent", absent));
    }
    output.caveat(&absent);
    Ok(())
}

/// The header of the report.
#[derive(Debug)]
struct ReportHeader {
    org_id: OrgId,
    since_days: Option<u32>,
    as_of: Instant,
}

fn render(header: &ReportHeader, report: &ModelReport) -> String {
    let mut page = Page::default();
    let window = window(header.since_days);
    page.line(format!(
        "org: {}  window: {window}  as_of: {}",
        escape(header.org_id.as_str()),
        header.as_of
    ));
    page.lost_mirrors(report.lost_mirrors);
    page.heading("calls by model, and what became of them (in brackets: counts, 95 % interval):");
    if report.rows.is_empty() {
        page.line("  no data");
    } else {
        rows(&mut page, report);
    }
    page.said(SHELL.left_out_of_models(report));

    page.heading("from calls to training data (each but the first of the attributed):");
    funnel(&mut page, report);

    page.heading("commits tied to agents by notes:");
    shares::rows(&mut page, &report.attribution_share);
    shares::alerts(&mut page, &report.attribution_alerts);
    page.some_skips("could not be looked at", &report.attribution_share_skipped);

    page.heading("sessions with accepted work:");
    page.skips("found", &report.abandonment.derivation_skipped);
    page.line(format!("  {NO_COMMIT}."));

    if let Some(comparison) = &report.comparison {
        let margin = report.non_inferiority.as_ref();
        let margin = margin.map(|tests| tests.attribution_rate.margin);
        let models = [&*comparison.model_a, &*comparison.model_b];
        compared::models(&mut page, &report.rows, models, margin);
    }
    stratification::render(&mut page, &report.stratification);
    page.finish()
}

fn rows(page: &mut Page, report: &ModelReport) {
    let rows = &report.rows;
    let mut table = Table::new([
        "model",
        "calls",
        "attribution_rate",
        "",
        "ci_pass_rate",
        "",
        "accepts",
        "rejects",
        "mean similarity",
    ])
    .numbers(&[1, 6, 7, 8]);
    for row in rows {
        let (attributed, cases, why) = attribution(row);
        table.row([
            escape(&row.model),
            row.completions.to_string(),
            known_rate(attributed, cases, why),
            known_bar(attributed, cases, why),
            rate(row.ci_passed, row.ci_linked),
            bar(row.ci_passed, row.ci_linked),
            row.explicit_accepts.to_string(),
            row.explicit_rejects.to_string(),
            SHELL.similarity(row),
        ]);
    }
    page.table(&table);
    for row in rows {
        details(page, row);
    }
    page.unobservable("attribution_rate", report.unobservable());
    let unjudged = rows.iter().all(|row| row.ci_linked == 0);
    page.unobservable("ci_pass_rate", unjudged.then_some(Unobservable::NoCi));
    page.line(format!("  attribution_rate: {ATTRIBUTION_RATE}"));
    page.line(
        "  ci_pass_rate: of the model's commits at which its Session was observed and that CI judged; \
         a commit without a verdict is no failure.",
    );
    page.line("  accepts and rejects: by people, not by rules.");
}

/// Adds the counts of a row beside its rates. Zeros are left out.
fn details(page: &mut Page, row: &ModelRow) {
    let mut details = Vec::new();
    if !row.completions_skipped.is_empty() {
        details.push(format!(
            "calls left out of attribution_rate: {}",
            SHELL.counts(&row.completions_skipped)
        ));
    }
    if let Some(unobservable) = SHELL.unobservable_calls(row) {
        details.push(format!("attribution_rate: {unobservable}"));
    }
    details.extend(SHELL.unjudged_calls(row));
    if row.session_commit_unobserved > 0 {
        details.push(format!(
            "session_commit_unobserved {}",
            row.session_commit_unobserved
        ));
    }
    if !row.ci_failures_by_workflow.is_empty() {
        details.push(format!(
            "CI failures by workflow: {}",
            SHELL.workflows(&row.ci_failures_by_workflow)
        ));
    }
    if !row.explicit_rejects_by_agent_harness.is_empty() {
        details.push(format!(
            "rejects by harness: {}",
            SHELL.counts(&row.explicit_rejects_by_agent_harness)
        ));
    }
    for (what, fates) in [
        ("edits", &row.fates),
        ("edits that people accepted", &row.explicit_accept_fates),
        (
            "edits with changes from elsewhere",
            &row.fates_with_external_changes,
        ),
    ] {
        if !fates.is_empty() {
            details.push(format!("{what}: {}", SHELL.counts(fates)));
        }
    }
    if !details.is_empty() {
        page.line(format!("  {}: {}", escape(&row.model), details.join("; ")));
    }
}

fn funnel(page: &mut Page, report: &ModelReport) {
    if report.signal_funnel.is_empty() {
        page.line("  no data");
        return;
    }
    let mut table = Table::new([
        "model",
        "calls",
        "attributed",
        "CI linked",
        "with a decision",
        "training eligible",
    ])
    .numbers(&[1]);
    for (row, of_model) in report.signal_funnel.iter().zip(&report.rows) {
        let (attributed, cases, why) = attribution(of_model);
        table.row([
            escape(&row.model),
            row.completions_total.to_string(),
            known_part(attributed, cases, why),
            SHELL.part(row.ci_linked, row.attributed),
            SHELL.part(row.has_decision, row.attributed),
            SHELL.part(row.training_row_eligible, row.attributed),
        ]);
    }
    page.table(&table);
}
