//! What calls cost, by model, and what the spend became.

use maud::{Markup, html};
use svc_model::endpoint::CohortSpendReport;
use svc_model::problem::Problem;
use svc_model::spend::{CohortSpend, SpendCi, SpendFigure, SpendOutcomes, SpendRequest};
use svc_view::{AT_LIST_PRICE, CONSOLE, NO_EVIDENCE, dollars, spend_outcomes, spend_verdicts};

use super::caveat;
use super::period::{self, Period};
use crate::console::layout::{Column, Page, Section, note, table};
use crate::console::plot::{self, Part};
use crate::console::text::whole;
use crate::console::visit::Visit;

const FIGURE: [Column; 7] = [
    Column::Text("model"),
    Column::Number("calls"),
    Column::Number("receipts"),
    Column::Number("captured"),
    Column::Number("derived"),
    Column::Number("total"),
    Column::Number("not priced"),
];

pub(in crate::console) async fn page(visit: Visit) -> Result<Page, Problem> {
    let form = period::form(&visit, "/console/spend");
    let body = report(&visit).await;
    Ok(Page::of(Section::Spend, "Spend", &form, body))
}

async fn report(visit: &Visit) -> Result<Markup, Problem> {
    let period = Period::read(visit)?;
    let request = SpendRequest::new(period.request()?.scope);
    let spend = visit.ask::<CohortSpendReport>(request).await?;
    let report = &spend.report;
    let caveat = caveat::of_mirrors(visit).await?;
    Ok(html! {
        (period.describe(&spend.scope))
        (caveat)
        (caveat::of_lost_mirrors(report.lost_mirrors))
        @if report.total.items() == 0 {
            p { "No calls were observed in these days." }
        } @else {
            (total(report))
            (by_model(report))
            @if let Some(outcomes) = &report.outcomes { (became(&report.total, outcomes)) }
            @if let Some(ci) = &report.ci { (checked(&report.total, ci)) }
        }
    })
}

fn total(report: &CohortSpend) -> Markup {
    let total = &report.total;
    let unpriced = match total.unpriced_items {
        0 => "every call has a price".to_owned(),
        unpriced => format!(
            "{} of {} have no price",
            whole(unpriced),
            whole(total.items())
        ),
    };
    html! {
        p { strong { (dollars(total.cost_usd_micros)) } " " (AT_LIST_PRICE) "; " (unpriced) "." }
        (note(&CONSOLE.spend_basis(report)))
        @for said in CONSOLE.spend_notes(report) { (note(&said)) }
    }
}

fn by_model(report: &CohortSpend) -> Markup {
    let mut rows: Vec<(String, &SpendFigure)> = report
        .rows
        .iter()
        .map(|row| (CONSOLE.spend_key(&row.key), &row.figure))
        .collect();
    if let Some(others) = &report.other_rows {
        rows.push((format!("{} others", whole(others.rows)), &others.figure));
    }
    rows.push(("total".to_owned(), &report.total));
    let rows = rows.into_iter().map(|(name, figure)| {
        vec![
            html! { (name) },
            html! { (whole(figure.calls)) },
            html! { (whole(figure.receipts_only)) },
            html! { (dollars(figure.captured.cost_usd_micros)) },
            html! { (dollars(figure.derived.cost_usd_micros)) },
            html! { (dollars(figure.cost_usd_micros)) },
            html! { (whole(figure.unpriced_items)) },
        ]
    });
    html! {
        section aria-labelledby="models" {
            h2 #models { "By model" }
            (table("What calls cost at list price, by model", &FIGURE, rows.collect()))
        }
    }
}

fn became(total: &SpendFigure, outcomes: &SpendOutcomes) -> Markup {
    let parts = spend_outcomes(outcomes).map(|(name, of)| part(name, &of.figure, total));
    html! {
        section aria-labelledby="outcomes" {
            h2 #outcomes { "What the spend became" }
            (plot::parts("Parts of the spend, each call once", &parts))
            (note(NO_EVIDENCE))
        }
    }
}

fn checked(total: &SpendFigure, ci: &SpendCi) -> Markup {
    let parts = spend_verdicts(ci).map(|(name, figure)| part(name, figure, total));
    html! {
        section aria-labelledby="verdicts" {
            h2 #verdicts { "What CI said of its commits" }
            (plot::parts("Parts of the spend, each call once", &parts))
        }
    }
}

fn part(name: &str, figure: &SpendFigure, total: &SpendFigure) -> Part {
    let calls = CONSOLE.calls_of_models(figure.items());
    let cost = dollars(figure.cost_usd_micros);
    let unpriced = match figure.unpriced_items {
        0 => String::new(),
        unpriced => format!(", {} not priced", whole(unpriced)),
    };
    Part {
        label: name.to_owned(),
        count: figure.cost_usd_micros.unsigned_abs(),
        whole: total.cost_usd_micros.unsigned_abs(),
        text: format!("{cost} ({calls}{unpriced})"),
    }
}
