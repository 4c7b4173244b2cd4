//! What calls cost, by model or another key, and what the spend became.

use maud::{Markup, html};
use svc_model::endpoint::CohortSpendReport;
use svc_model::problem::Problem;
use svc_model::spend::{
    CohortSpend, SpendBy, SpendCi, SpendFigure, SpendKey, SpendOutcomes, SpendRequest,
};
use svc_view::{
    AT_LIST_PRICE, CONSOLE, NO_EVIDENCE, spend_key_name, spend_outcomes, spend_verdicts,
};

use super::period::{self, Period};
use super::{caveat, repository, sessions};
use crate::console::layout::{Column, Field, InputKind, Page, Section, narrowing, note, table};
use crate::console::plot::{self, Part};
use crate::console::text::{inert, whole};
use crate::console::visit::{Visit, invalid};

const BY: &str = "by";

pub(in crate::console) async fn page(visit: Visit) -> Result<Page, Problem> {
    let form = form(&visit);
    let body = report(&visit).await;
    Ok(Page::of(Section::Spend, "Spend", &form, body))
}

fn form(visit: &Visit) -> Markup {
    let keys: Vec<(&str, &str)> = SpendBy::ALL
        .iter()
        .map(|by| (by.as_str(), spend_key_name(*by)))
        .collect();
    let by = Field {
        label: "By",
        name: BY,
        value: visit.given(BY).unwrap_or(SpendBy::Model.as_str()),
        kind: InputKind::One(&keys),
    };
    let fields = [by, period::days_field(visit), period::until_field(visit)];
    narrowing("/console/spend", "Choose the rows and the days", &fields)
}

fn by(visit: &Visit) -> Result<SpendBy, Problem> {
    let Some(given) = visit.given(BY) else {
        return Ok(SpendBy::Model);
    };
    let rule = "must be model, session, repository, pull-request, commit, user or agent";
    SpendBy::from_wire(given).ok_or_else(|| invalid(BY, rule))
}

async fn report(visit: &Visit) -> Result<Markup, Problem> {
    let period = Period::read(visit)?;
    let by = by(visit)?;
    let request = SpendRequest {
        by,
        ..SpendRequest::new(period.request()?.scope)
    };
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
            (rows(report, spend_key_name(by)))
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
    let is_known = total.captured.items + total.derived.items > 0;
    html! {
        p {
            @if is_known { strong { (CONSOLE.spent(total)) } " " (AT_LIST_PRICE) }
            @else { "No cost is known" }
            "; " (unpriced) "."
        }
        (note(&CONSOLE.spend_basis(report)))
        @for said in CONSOLE.spend_notes(report) { (note(&said)) }
    }
}

fn rows(report: &CohortSpend, unit: &'static str) -> Markup {
    let mut rows: Vec<(Markup, &SpendFigure)> = report
        .rows
        .iter()
        .map(|row| (key(&row.key), &row.figure))
        .collect();
    if let Some(others) = &report.other_rows {
        rows.push((html! { (whole(others.rows)) " others" }, &others.figure));
    }
    rows.push((html! { "total" }, &report.total));
    let rows = rows.into_iter().map(|(name, figure)| {
        vec![
            name,
            html! { (whole(figure.calls)) },
            html! { (whole(figure.receipts_only)) },
            html! { (CONSOLE.item_cost(&figure.captured)) },
            html! { (CONSOLE.item_cost(&figure.derived)) },
            html! { (CONSOLE.spent(figure)) },
            html! { (whole(figure.unpriced_items)) },
        ]
    });
    let columns = [
        Column::Text(unit),
        Column::Number("calls"),
        Column::Number("receipts"),
        Column::Number("captured"),
        Column::Number("derived"),
        Column::Number("total"),
        Column::Number("not priced"),
    ];
    let title = format!("What calls cost at list price, by {unit}");
    html! {
        section aria-labelledby="rows" {
            h2 #rows { "By " (unit) }
            (table(&title, &columns, rows.collect()))
        }
    }
}

/// Shows what a row stands for, with a link to its page if it has one.
fn key(key: &SpendKey) -> Markup {
    let said = CONSOLE.spend_key(key);
    match key {
        SpendKey::Session { session_id } => sessions::link(session_id),
        SpendKey::Commit {
            repo,
            repository,
            commit_sha,
        } => html! {
            (inert(repo)) " " (repository::commit(commit_sha, repo, repository.as_ref()))
        },
        _ => html! { (said) },
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
    let cost = CONSOLE.spent(figure);
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
