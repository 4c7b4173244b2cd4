//! What became of the work of the last days. Its numbers lead to the Sessions behind them, which the
//! same page lists.

mod attention;
mod drawn;
mod filters;
mod list;

use maud::{Markup, html};
use svc_model::endpoint::OverviewQuery;
use svc_model::overview::{
    Overview, OverviewFigures, OverviewModel, OverviewOutcome, OverviewRepository,
};
use svc_model::problem::Problem;
use svc_model::spend::UnpricedReason;
use svc_view::{Behind, CONSOLE, Piece};

use self::filters::Filters;
use super::{caveat, repository};
use crate::console::layout::{Column, Page, Section, fields, note, table};
use crate::console::link::Link;
use crate::console::text::{inert, moment, whole};
use crate::console::visit::Visit;

/// The rows of a table by repository or model.
const ROWS_MAX: usize = 20;

pub(in crate::console) async fn page(visit: Visit) -> Result<Page, Problem> {
    let filters = Filters::new(&visit);
    let body = match visit.ask_given::<OverviewQuery>(&[]).await {
        Ok(overview) => {
            let mirrors = caveat::of_mirrors(&visit).await?;
            Ok(shown(&visit, &filters, &overview, &mirrors))
        }
        Err(problem) => Err(problem),
    };
    let title = "What became of it";
    Ok(match body {
        Ok(body) => Page::new(Section::Overview, title, body),
        Err(problem) => Page::of(Section::Overview, title, &filters.form(), Err(problem)),
    })
}

fn shown(visit: &Visit, filters: &Filters<'_>, overview: &Overview, mirrors: &Markup) -> Markup {
    let figures = &overview.figures;
    html! {
        (sentence(visit, filters, overview))
        (filters.days())
        (filters.form())
        (filters.selected())
        (mirrors)
        (caveat::of_lost_mirrors(overview.lost_mirrors))
        @if figures.calls > 0 {
            (spend(overview, filters))
            (drawn::patterns())
            (drawn::flow(figures, filters))
            (drawn::strip(&overview.days))
            (repositories(&overview.repositories, filters))
            (models(&overview.models, filters))
        }
        (attention::shown(overview, visit.now))
        (list::shown(overview, filters, visit.now))
        (note("Each figure counts calls of models. A change is a call that proposed an edit which \
               was accepted, or that was seen in an edit or a commit. What nobody could see is \
               unknown, and is no failure. Costs are list prices, and nobody's bill."))
    }
}

/// Shows the sentence, whose numbers lead to the Sessions behind them.
fn sentence(visit: &Visit, filters: &Filters<'_>, overview: &Overview) -> Markup {
    let now = filters.now(visit.now);
    let Some(pieces) = CONSOLE.overview_sentence(overview, now) else {
        return nothing(filters, overview);
    };
    html! {
        p.lead { (said(&pieces, filters)) }
        p.note {
            "Calls that were observed from " (moment(overview.window.start)) " to "
            (moment(overview.window.end)) ", with what was known " (moment(overview.window.as_of)) "."
        }
    }
}

/// Shows pieces of a sentence, with links to the lists behind them.
fn said(pieces: &[Piece], filters: &Filters<'_>) -> Markup {
    html! {
        @for piece in pieces {
            @match piece.behind {
                Behind::Nothing => (piece.said),
                Behind::Sessions => a href=(filters.list(None)) { (piece.said) },
                Behind::Outcome(outcome) => a href=(filters.list(Some(outcome))) { (piece.said) },
            }
        }
    }
}

fn nothing(filters: &Filters<'_>, overview: &Overview) -> Markup {
    html! {
        p.lead { (overview.sentence) }
        @if !filters.is_now() {
            p { a href=(filters.wide()) { "All calls up to now" } "." }
        } @else {
            ul {
                li { "Let calls arrive: " code { "svc install claude-code" } " shows how, and "
                     code { "svc install" } " lists the other sources." }
                li { "Send what agents keep on disk: " code { "svc import claude-code" } "." }
                li { "Load a sample organization: " code { "svc demo" } "." }
            }
            p { a href="/console/health" { "What arrived, and what did not" } "." }
        }
    }
}

/// Shows what the calls cost, unless nothing has a cost, and why some have none.
fn spend(overview: &Overview, filters: &Filters<'_>) -> Markup {
    let spend = &overview.figures.spend;
    let is_known = spend.captured.items + spend.derived.items > 0;
    let days = match overview.window.days {
        1 => "24 hours".to_owned(),
        days => format!("{days} days"),
    };
    html! {
        @if is_known {
            (fields(vec![(
                format!("Spend of the {days}, at list price"),
                html! {
                    @let cost = CONSOLE.cost(spend);
                    @if let Some(link) = filters.spend() { a href=(link) { (cost) } } @else { (cost) }
                },
            )]))
        }
        @let reasons = CONSOLE.not_priced(overview);
        @if !reasons.is_empty() {
            p.note {
                "Not priced: " (reasons.join("; ")) "."
                @if overview.unpriced.get(UnpricedReason::NoPriceTable) > 0 {
                    " To load prices: " code { "svc prices load FILE" } "."
                }
            }
        }
    }
}

fn repositories(rows: &[OverviewRepository], filters: &Filters<'_>) -> Markup {
    let shown = rows.iter().take(ROWS_MAX).map(|row| Multiple {
        name: row.repo.as_ref().map(|repo| {
            let identity = row.repository_identity.as_ref();
            let link = filters.repository(repo, identity);
            (repository::shown(repo, identity), link)
        }),
        figures: &row.figures,
    });
    multiples(
        "By repository",
        "repository",
        &shown.collect::<Vec<_>>(),
        rows.len(),
    )
}

fn models(rows: &[OverviewModel], filters: &Filters<'_>) -> Markup {
    let shown = rows.iter().take(ROWS_MAX).map(|row| Multiple {
        name: row.model.as_ref().map(|model| {
            let link = filters.model(model);
            (html! { (inert(model)) }, link)
        }),
        figures: &row.figures,
    });
    multiples("By model", "model", &shown.collect::<Vec<_>>(), rows.len())
}

/// The figures of a repository or a model.
struct Multiple<'o> {
    /// Its name, and the address of this page narrowed to it; absent if it is unknown.
    name: Option<(Markup, Link)>,
    figures: &'o OverviewFigures,
}

impl Multiple<'_> {
    fn row(&self, most: u64) -> Vec<Markup> {
        let figures = self.figures;
        let name = html! {
            @if let Some((name, link)) = &self.name { a href=(link) { (name) } } @else { "unknown" }
        };
        vec![
            name,
            html! { (whole(figures.calls)) },
            drawn::multiple(figures, most),
            self.count(figures.changes, OverviewOutcome::Changes),
            self.count(figures.committed, OverviewOutcome::Committed),
            self.count(figures.merged, OverviewOutcome::Merged),
            self.count(figures.failed, OverviewOutcome::Failed),
            self.count(figures.no_commit_found, OverviewOutcome::NoCommitFound),
            self.count(figures.not_observable, OverviewOutcome::NotObservable),
            html! { (CONSOLE.spent(&figures.spend)) },
            self.count(figures.spend.unpriced_items, OverviewOutcome::Unpriced),
        ]
    }

    /// Shows a count, which leads to the Sessions behind it.
    fn count(&self, count: u64, outcome: OverviewOutcome) -> Markup {
        match &self.name {
            Some((_, link)) if count > 0 => {
                let link = filters::behind(link.clone(), outcome);
                html! { a href=(link) { (whole(count)) } }
            }
            _ => html! { (whole(count)) },
        }
    }
}

/// Shows figures by name, each with a bar on the scale of the largest.
fn multiples(title: &str, name: &'static str, rows: &[Multiple<'_>], all: usize) -> Markup {
    let most = rows.iter().map(|row| row.figures.changes).max();
    let most = most.unwrap_or(0);
    let shown = rows.len();
    let rows = rows.iter().map(|row| row.row(most));
    html! {
        section.multiples {
            (table(title, &[
                Column::Text(name), Column::Number("calls"), Column::Text("what became of changes"),
                Column::Number("changes"), Column::Number("committed"), Column::Number("merged"),
                Column::Number("red now"), Column::Number("no commit found"),
                Column::Number("not observable"), Column::Number("cost"),
                Column::Number("not priced"),
            ], rows.collect()))
            @if shown < all {
                p { (whole(shown as u64)) " of " (whole(all as u64)) ", by number of calls." }
            }
        }
    }
}
