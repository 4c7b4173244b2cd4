use clap::Args;
use svc_client::Client;
use svc_engine::read;
use svc_model::reports::{
    AcceptedWorkSkip, EditRetention, Examples, LifecycleReport, ReworkComponent, ReworkName, Stage,
};
use svc_model::time::Instant;
use svc_view::{
    NO_COMMIT, NOT_EVERY_PULL_REQUEST, NOT_IN_A_STAGE, PANELS, SCORES, SHELL, STAGE_WITHOUT_ERASED,
    stages,
};

use super::merge_retention::{merged, scores};
use super::page::{Page, bar, known_bar, known_part, known_rate, rate, repository, window};
use super::{CohortOptions, up_to_now};
use crate::error::CommandError;
use crate::output::{Output, Table, escape};

#[derive(Debug, Args)]
pub(crate) struct Lifecycle {
    #[command(flatten)]
    cohort: CohortOptions,
}

impl Lifecycle {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let options = &self.cohort.report;
        let as_of = options.as_of()?;
        let since_days = self.cohort.since_days;
        let report = if options.asks_service()? {
            let ask = async |client: Client, scope| {
                Ok(client.accepted_work_lifecycle(scope).await?.report)
            };
            options.ask(output, since_days, as_of, ask)?.1
        } else {
            let extent = self.cohort.extent(as_of);
            self.cohort.read(output, |snapshot, sources| {
                let extent = up_to_now(&extent, snapshot)?;
                read::lifecycle_report(snapshot, sources, &extent)
            })?
        };
        let window = window(since_days);
        output.value(&report, |report| render(report, &window, as_of))
    }
}

fn render(report: &LifecycleReport, window: &str, as_of: Instant) -> String {
    let mut page = Page::default();
    page.line(format!(
        "org: {}  window: {window}  as_of: {as_of}",
        escape(report.org_id.as_str())
    ));
    page.lost_mirrors(report.lost_mirrors);
    page.line(PANELS);
    page.line("In brackets: counts, and the 95 % interval of the rate.");
    accepted_work(&mut page, report);
    edit_retention(&mut page, &report.edit_retention);
    merge_durability(&mut page, report);
    session_attrition(&mut page, report);
    rework(&mut page, &report.rework);
    strata(&mut page, report);
    page.said(SHELL.unknown_repositories(report));
    page.finish()
}

fn accepted_work(page: &mut Page, report: &LifecycleReport) {
    let panel = &report.accepted_work;
    page.heading("accepted_work: calls that a person accepted");
    page.line(format!("  accepted: {}", panel.accepted_calls));
    let mut table = Table::new(["stage", "of the stage before", "", "of all accepted"]);
    for (name, stage, why) in stages(report) {
        let Stage {
            count,
            denominator,
            initial_denominator,
            ..
        } = *stage;
        table.row([
            name.to_owned(),
            known_rate(count, denominator, why),
            known_bar(count, denominator, why),
            known_part(count, initial_denominator, why),
        ]);
    }
    page.table(&table);
    // What a stage lacks, every later one lacks too.
    let first = stages(report).find(|(_, _, why)| why.is_some());
    if let Some((name, _, why)) = first.filter(|_| panel.accepted_calls > 0) {
        page.unobservable(name, why);
    }
    page.line(format!(
        "  CI passed: {}, failed: {}",
        panel.ci_passed, panel.ci_failed
    ));
    page.line(format!("  {NOT_IN_A_STAGE}"));
    if panel.skips.get(AcceptedWorkSkip::ContentErased) > 0 {
        page.line(format!("  {STAGE_WITHOUT_ERASED}"));
    }
    page.skips("left out", &panel.skips);
    page.said(SHELL.coverage(&panel.coverage));
    examples(page, &panel.examples);
}

fn edit_retention(page: &mut Page, panel: &EditRetention) {
    page.heading("edit_retention: edits, as their files were at the end of the Session");
    page.line(format!(
        "  edits: {}, eligible: {}, with a Fate: {}",
        panel.observations,
        panel.eligible,
        rate(panel.derived_fates, panel.eligible)
    ));
    for (fate, count) in SHELL.fates(panel) {
        page.line(format!(
            "  {fate:<20} {}  {}",
            bar(count, panel.derived_fates),
            rate(count, panel.derived_fates)
        ));
    }
    page.line(format!(
        "  lines from elsewhere: {}",
        SHELL.external_lines(panel)
    ));
    page.skips("left out", &panel.skips);
    page.said(SHELL.coverage(&panel.coverage));
    examples(page, &panel.examples);
}

fn merge_durability(page: &mut Page, report: &LifecycleReport) {
    let (panel, why) = (&report.merge_durability, report.merges_unobservable());
    page.heading("merge_durability: attributed files in merged pull requests");
    page.line(format!(
        "  {}: {NOT_EVERY_PULL_REQUEST}",
        panel.coverage_qualification
    ));
    let steps = [
        panel.attributed_file_candidates,
        panel.unique_pull_request_membership,
        panel.scored_rows,
    ];
    let said = why.filter(|_| panel.attributed_file_candidates > 0);
    let skips = (&panel.membership, &panel.scoring_skips);
    merged(page, steps, skips, why, said);
    page.line(format!("  {SCORES}"));
    scores(page, [("head", &panel.head), ("merge", &panel.merge)]);
    page.said(SHELL.coverage(&panel.coverage));
    examples(page, &panel.examples);
}

fn session_attrition(page: &mut Page, report: &LifecycleReport) {
    let (panel, why) = (&report.session_attrition, report.commits_unobservable());
    page.heading("session_attrition: Sessions with accepted work");
    for (status, count) in [
        ("committed", panel.committed),
        ("attribution_unavailable", panel.attribution_unavailable),
    ] {
        page.line(format!(
            "  {status:<24} {}  {}",
            known_bar(count, panel.eligible_sessions, why),
            known_rate(count, panel.eligible_sessions, why)
        ));
    }
    if panel.eligible_sessions > 0 {
        page.unobservable("which of them were committed", why);
    }
    page.line(format!(
        "  abandoned: {}, in_flight: {}",
        panel.abandoned, panel.in_flight
    ));
    page.line(format!(
        "  {NO_COMMIT}: nothing is ever called abandoned or in flight."
    ));
    page.skips("found", &panel.skips);
    page.said(SHELL.coverage(&panel.coverage));
    examples(page, &panel.examples);
}

fn rework(page: &mut Page, components: &[ReworkComponent]) {
    page.heading("rework: separate counts, each of a unit of its own");
    let mut table = Table::new(["what", "unit", "", "how many"]);
    for component in components {
        let (count, denominator) = (component.count, component.denominator);
        let [drawn, shown] = if component.name == ReworkName::AbandonedSessions {
            // No Session is ever called abandoned. A rate of zero would say that none was.
            [String::new(), format!("{count}, never derived")]
        } else {
            [bar(count, denominator), rate(count, denominator)]
        };
        table.row([
            component.name.to_string(),
            component.grain.to_string(),
            drawn,
            shown,
        ]);
    }
    page.table(&table);
}

fn strata(page: &mut Page, report: &LifecycleReport) {
    page.heading("accepted calls by agent, model, repository and workflow");
    let accepted = report.accepted_work.accepted_calls;
    let mut table = Table::new(["by", "value", "", "accepted calls"]);
    for stratum in &report.strata {
        let value = match &stratum.repo {
            Some(repo) if *repo == stratum.value => {
                repository(repo, stratum.repository_identity.as_ref())
            }
            Some(repo) => format!(
                "{} in {}",
                escape(&stratum.value),
                repository(repo, stratum.repository_identity.as_ref())
            ),
            None => escape(&stratum.value),
        };
        table.row([
            stratum.dimension.to_string(),
            value,
            bar(stratum.accepted_calls, accepted),
            SHELL.part(stratum.accepted_calls, accepted),
        ]);
    }
    if report.strata.is_empty() {
        page.line("  no data");
    } else {
        page.table(&table);
    }
    page.skips("left out", &report.stratum_skips);
}

fn examples(page: &mut Page, examples: &[Examples]) {
    for examples in examples
        .iter()
        .filter(|example| !example.session_ids.is_empty())
    {
        let sessions: Vec<String> = examples
            .session_ids
            .iter()
            .map(|session| escape(session.as_str()))
            .collect();
        page.line(format!(
            "  Sessions, {}: {}",
            examples.population,
            sessions.join(" ")
        ));
    }
}
