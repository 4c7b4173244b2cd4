use clap::Args;
use svc_engine::read;
use svc_model::reports::{
    Counts, MembershipSkip, MergeRetentionReport, RetentionScores, ScoringSkip, ThresholdShare,
    UncheckedPullRequests, Unobservable, merges_unobservable,
};
use svc_view::SHELL;

use super::page::{Page, bar, known_rate, rate, repository, window};
use super::{CohortOptions, up_to_now};
use crate::error::CommandError;
use crate::output::{Output, Table, escape};

#[derive(Debug, Args)]
pub(crate) struct MergeRetention {
    /// List the pull requests that make it impossible to determine where commits were merged.
    #[arg(long)]
    explain: bool,

    #[command(flatten)]
    cohort: CohortOptions,
}

impl MergeRetention {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let as_of = self.cohort.report.as_of()?;
        self.cohort.report.require_store()?;
        let extent = self.cohort.extent(as_of);
        let mut report = self.cohort.read(output, |snapshot, sources| {
            let extent = up_to_now(&extent, snapshot)?;
            read::merge_retention(snapshot, sources, &extent)
        })?;
        if !self.explain {
            report.unchecked_pull_requests = None;
        }
        let window = window(self.cohort.since_days);
        output.value(&report, |report| render(report, &window))
    }
}

fn render(report: &MergeRetentionReport, window: &str) -> String {
    let mut page = Page::default();
    let why = merges_unobservable(report.candidates_joined_to_merge, &report.membership);
    page.line(format!(
        "org: {}  window: {window}",
        escape(report.org_id.as_str())
    ));
    page.line(
        "The part of what agents added to a file that is still in that file: a lower bound on \
         retention, since moved and reworded lines do not count.",
    );
    page.line(
        "Covers only pull requests that the forge reported; for investigation only, not ranking.",
    );
    page.line("In brackets: counts, and the 95 % interval of the rate.");
    page.heading("files that a call wrote, at a commit where its Session was observed:");
    page.line(format!(
        "  attributed: {}",
        report.attributed_file_candidates
    ));
    let steps = [
        report.attributed_file_candidates,
        report.candidates_joined_to_merge,
        report.scored_rows,
    ];
    let skips = (&report.membership, &report.scoring_skips);
    merged(&mut page, steps, skips, why, why);
    page.line(format!(
        "  merged pull requests: {}, of which scored: {}",
        report.joined_pull_requests, report.scored_pull_requests
    ));
    if let Some(unchecked) = &report.unchecked_pull_requests {
        explain(&mut page, &report.membership, unchecked);
    }
    page.heading("what is left, from 0 to 1:");
    scores(
        &mut page,
        [("head", &report.head), ("merge", &report.merge)],
    );
    page.heading(&format!(
        "the same, of calls that a person accepted (files: {}):",
        report.explicit_accept_rows
    ));
    thresholds(
        &mut page,
        [
            ("head", &report.explicit_accept_head_thresholds),
            ("merge", &report.explicit_accept_merge_thresholds),
        ],
    );
    page.heading("not counted at all:");
    page.said(SHELL.not_counted(report));
    page.finish()
}

fn explain(
    page: &mut Page,
    membership: &Counts<MembershipSkip>,
    unchecked: &[UncheckedPullRequests],
) {
    if unchecked.is_empty() {
        page.line(match membership.get(MembershipSkip::AncestryCheckFailed) {
            0 => "  every merged pull request could be checked",
            _ => "  of some files, the merged pull request cannot be determined",
        });
    }
    for of_repository in unchecked {
        let numbers: Vec<String> = of_repository
            .pr_numbers
            .iter()
            .map(|number| format!("#{number}"))
            .collect();
        page.line(format!(
            "  no mirror has a head or base, or it is unknown whose they are, {}: {}",
            repository(
                &of_repository.repo,
                of_repository.repository_identity.as_ref()
            ),
            numbers.join(" ")
        ));
    }
}

/// Adds how many of the candidates are in one merged pull request, and how many of these are scored.
/// `said` is why it is unknown, if that is to be said in a sentence.
pub(super) fn merged(
    page: &mut Page,
    [candidates, joined, scored]: [u64; 3],
    (not_joined, not_scored): (&Counts<MembershipSkip>, &Counts<ScoringSkip>),
    why: Option<Unobservable>,
    said: Option<Unobservable>,
) {
    page.line(format!(
        "  in one merged pull request: {}",
        known_rate(joined, candidates, why)
    ));
    page.unobservable("it", said);
    page.skips("not in one", not_joined);
    page.line(format!("  scored: {}", rate(scored, joined)));
    page.skips("not scored", not_scored);
}

/// Adds the scores at the final head and at the merge.
pub(super) fn scores(page: &mut Page, sides: [(&str, &RetentionScores); 2]) {
    if sides
        .iter()
        .all(|(_, scores)| scores.distribution.count == 0)
    {
        page.line("  scores: no data");
        return;
    }
    let mut table = Table::new(["", "files", "mean", "median", "p10", "p90"]).numbers(&[1]);
    for (side, scores) in sides {
        let spread = &scores.distribution;
        table.row([
            side.to_owned(),
            spread.count.to_string(),
            SHELL.decimal(spread.mean),
            SHELL.decimal(spread.median),
            SHELL.decimal(spread.p10),
            SHELL.decimal(spread.p90),
        ]);
    }
    page.table(&table);
    thresholds(page, sides.map(|(side, scores)| (side, &scores.thresholds)));
}

fn thresholds(page: &mut Page, sides: [(&str, &Vec<ThresholdShare>); 2]) {
    let mut table = Table::new(["", "below", "files", ""]);
    for (side, shares) in sides {
        for share in shares {
            table.row([
                side.to_owned(),
                format!("{:.1}", share.threshold),
                SHELL.part(share.below, share.total),
                bar(share.below, share.total),
            ]);
        }
    }
    page.table(&table);
}
