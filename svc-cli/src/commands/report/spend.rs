use clap::Args;
use svc_client::Client;
use svc_engine::clock::Clock;
use svc_engine::error::Error;
use svc_engine::read::{self, Extent, ReportMemory, ReportSources, SpendQuestion};
use svc_model::limit::{SPEND_ITEMS_MAX, SPEND_ROWS_DEFAULT};
use svc_model::problem::{Problem, QueryFault, ReportBound};
use svc_model::reports::ReportScope;
use svc_model::spend::{CohortSpend, SpendBy, SpendFigure, SpendRequest, SpendRowLimit};
use svc_model::time::Instant;
use svc_view::{
    AT_LIST_PRICE, NO_EVIDENCE, SHELL, before, period, spend_outcomes, spend_unit, spend_verdicts,
};

use super::served::too_long;
use super::{MEMORY_BYTES, ReportOptions, too_much, up_to_now};
use crate::commands::moment::moment;
use crate::error::CommandError;
use crate::output::{Output, Table};

const DAY_MICROSECONDS: i64 = 24 * 60 * 60 * 1_000_000;
/// The days that a report covers unless it says otherwise.
const DAYS: i64 = 30;

#[derive(Debug, Args)]
pub(crate) struct Spend {
    /// What a row stands for: model, session, repository, pull-request, commit, user or agent.
    #[arg(long, value_name = "KEY", default_value = "model", value_parser = key)]
    by: SpendBy,

    /// The start: a number of days before the end, a moment, a date or an age; by default 30 days.
    #[arg(long, value_name = "DAYS|TIME", allow_hyphen_values = true)]
    since: Option<String>,

    /// The end, not included: a moment, a date or an age; by default now, or --as-of.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<String>,

    /// How many rows to show at most: 1 to 1000. The others are summed up.
    #[arg(long, value_name = "N", default_value_t = SPEND_ROWS_DEFAULT)]
    limit: u64,

    /// Do not say what the spend became. It is faster, and covers more calls.
    #[arg(long)]
    no_outcomes: bool,

    #[command(flatten)]
    report: ReportOptions,
}

fn key(text: &str) -> Result<SpendBy, String> {
    SpendBy::from_wire(text).ok_or_else(|| {
        let all: Vec<&str> = SpendBy::ALL.iter().map(|by| by.as_str()).collect();
        format!("must be one of {}", all.join(", "))
    })
}

impl Spend {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let limit = SpendRowLimit::new(self.limit)
            .ok_or_else(|| CommandError::misuse("--limit", "must be from 1 to 1000"))?;
        let as_of = self.report.as_of()?;
        let end = self.end(as_of)?;
        let start = self.start(end)?;
        if start >= end {
            return Err(CommandError::argument("--since", "must be before the end"));
        }
        let report = if self.report.asks_service()? {
            self.served(output, start, end, as_of, limit)?
        } else {
            self.read(output, &Extent::within(start..end, as_of))?
        };
        output.value(&report, |report| render(report, &period(start, end)))
    }

    fn end(&self, as_of: Instant) -> Result<Instant, CommandError> {
        let end = match &self.until {
            Some(text) => moment("--until", text, Clock::system().now())?,
            None => as_of,
        };
        if end > as_of {
            return Err(CommandError::argument(
                "--until",
                "must not be after --as-of",
            ));
        }
        Ok(end)
    }

    fn start(&self, end: Instant) -> Result<Instant, CommandError> {
        let days = match self.since.as_deref() {
            None => DAYS,
            Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                text.parse().unwrap_or(i64::MAX)
            }
            Some(text) => return moment("--since", text, Clock::system().now()),
        };
        before(end, days.saturating_mul(DAY_MICROSECONDS))
            .map_err(|rule| CommandError::argument("--since", rule))
    }

    fn served(
        &self,
        output: &mut Output,
        start: Instant,
        end: Instant,
        as_of: Instant,
        limit: SpendRowLimit,
    ) -> Result<CohortSpend, CommandError> {
        let scope = ReportScope::new(start..end, as_of).map_err(|fault| match fault {
            QueryFault::CohortTooLong => too_long("--since"),
            other => CommandError::argument("--since", other.message()),
        })?;
        let (by, outcomes) = (self.by, !self.no_outcomes);
        let ask = async move |client: Client, scope| {
            let mut request = SpendRequest::new(scope);
            (request.by, request.limit, request.outcomes) = (by, limit, outcomes);
            Ok(client.spend_report(&request).await?.report)
        };
        Ok(self.report.ask_within(output, scope, ask)?.1)
    }

    fn read(&self, output: &mut Output, extent: &Extent) -> Result<CohortSpend, CommandError> {
        let question = SpendQuestion {
            by: self.by,
            rows_max: self.limit,
            outcomes: !self.no_outcomes,
        };
        let read = if question.needs_commits() {
            self.report.read(output, |snapshot, sources| {
                let extent = up_to_now(extent, snapshot)?;
                read::cohort_spend(snapshot, sources, &extent, question)
            })?
        } else {
            self.report.read_facts(output, |snapshot| {
                let memory = ReportMemory::new(MEMORY_BYTES);
                let sources = ReportSources {
                    mirrors: None,
                    memory: &memory,
                };
                let extent = up_to_now(extent, snapshot)?;
                read::cohort_spend(snapshot, sources, &extent, question)
            })?
        };
        read.map_err(|error| refused(error, question))
    }
}

fn refused(error: Error, question: SpendQuestion) -> CommandError {
    let Error::ReportBound(bound) = error else {
        return error.into();
    };
    let refused = match bound {
        ReportBound::Evidence if question.needs_commits() => too_much().hint(format!(
            "by model, session, user or agent, --no-outcomes covers {SPEND_ITEMS_MAX} calls"
        )),
        _ => CommandError::refused("report_bound", bound.message()),
    };
    refused.advised(Problem::ReportBound(bound).advice())
}

fn render(report: &CohortSpend, period: &str) -> String {
    let mut page = format!("Spend {period}, {AT_LIST_PRICE}\n");
    let unit = spend_unit(&report.by).to_uppercase();
    let has_attributed = report.rows.iter().any(|row| row.attributed_items.is_some());
    let mut rows: Vec<(String, &SpendFigure, Option<u64>)> = report
        .rows
        .iter()
        .map(|row| (SHELL.spend_key(&row.key), &row.figure, row.attributed_items))
        .collect();
    if let Some(others) = &report.other_rows {
        let name = format!("{} others", SHELL.whole(others.rows));
        rows.push((name, &others.figure, others.attributed_items));
    }
    let attributed = rows.iter().filter_map(|row| row.2).sum();
    rows.push(("total".to_owned(), &report.total, Some(attributed)));
    page += &if has_attributed {
        attributed_rows(&unit, &rows)
    } else {
        figures(
            &unit,
            rows.iter()
                .map(|(name, figure, _)| (name.as_str(), *figure)),
        )
    };
    page += &SHELL.spend_basis(report);
    page.push('\n');
    if let Some(outcomes) = &report.outcomes {
        page.push('\n');
        let outcomes = spend_outcomes(outcomes);
        let outcomes = outcomes.map(|(name, of)| (name, &of.figure));
        page += &figures("WHAT IT BECAME", outcomes);
    }
    if let Some(ci) = &report.ci {
        page.push('\n');
        page += &figures("CI OF THE COMMITS", spend_verdicts(ci));
    }
    if report.outcomes.is_some() {
        page += NO_EVIDENCE;
        page.push('\n');
    }
    for note in SHELL.spend_notes(report) {
        page += &note;
        page.push('\n');
    }
    page
}

/// Returns a table of figures.
fn figures<'f>(unit: &str, rows: impl IntoIterator<Item = (&'f str, &'f SpendFigure)>) -> String {
    let headings = [
        unit,
        "CALLS",
        "RECEIPTS",
        "CAPTURED",
        "DERIVED",
        "TOTAL",
        "NOT PRICED",
    ];
    let mut table = Table::new(headings).numbers(&[1, 2, 3, 4, 5, 6]);
    for (name, figure) in rows {
        let [calls, receipts, captured, derived, total, unpriced] = cells(figure);
        let name = name.to_owned();
        table.row([name, calls, receipts, captured, derived, total, unpriced]);
    }
    table.render()
}

/// Returns a table of figures that says how many items are attributed to the commits.
fn attributed_rows(unit: &str, rows: &[(String, &SpendFigure, Option<u64>)]) -> String {
    let headings = [
        unit,
        "CALLS",
        "RECEIPTS",
        "CAPTURED",
        "DERIVED",
        "TOTAL",
        "NOT PRICED",
        "ATTRIBUTED",
    ];
    let mut table = Table::new(headings).numbers(&[1, 2, 3, 4, 5, 6, 7]);
    for (name, figure, attributed) in rows {
        let [calls, receipts, captured, derived, total, unpriced] = cells(figure);
        let attributed = SHELL.whole(attributed.unwrap_or(0));
        let name = name.clone();
        table.row([
            name, calls, receipts, captured, derived, total, unpriced, attributed,
        ]);
    }
    table.render()
}

fn cells(figure: &SpendFigure) -> [String; 6] {
    [
        SHELL.whole(figure.calls),
        SHELL.whole(figure.receipts_only),
        SHELL.item_cost(&figure.captured),
        SHELL.item_cost(&figure.derived),
        SHELL.spent(figure),
        SHELL.whole(figure.unpriced_items),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_over_too_many_calls_names_the_one_that_covers_more() {
        let question = |by, outcomes| SpendQuestion {
            by,
            rows_max: 1,
            outcomes,
        };
        let hint = "by model, session, user or agent, --no-outcomes covers 1000000 calls";
        for (bound, question, has_hint) in [
            (ReportBound::Evidence, question(SpendBy::Model, true), true),
            (
                ReportBound::Evidence,
                question(SpendBy::Commit, false),
                true,
            ),
            (
                ReportBound::Evidence,
                question(SpendBy::Model, false),
                false,
            ),
            (ReportBound::Reply, question(SpendBy::Model, true), false),
        ] {
            let refused = refused(Error::ReportBound(bound), question);
            assert_eq!(refused.code(), "report_bound");
            let hints = refused.hints().iter().any(|said| said.contains(hint));
            assert_eq!(hints, has_hint, "{bound:?} {question:?}");
        }
    }
}
