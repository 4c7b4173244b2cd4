//! The pictures of an overview. Everything in them is beside them as text. What is unknown is
//! hatched, and never drawn as nothing.

use maud::{Markup, html};
use svc_model::overview::{OverviewDay, OverviewFigures};
use svc_view::{CONSOLE, Evidence, FlowPart, FlowRow, OutcomeBar, bar};

use super::filters::Filters;
use crate::console::layout::{Column, note, table};
use crate::console::text::{NONE, capital, day, whole};

/// The width of a bar, and of a day.
const WIDTH: u64 = 1_000;
const DAY_WIDTH: usize = 20;
/// The height of the strip, and of the marks above it.
const HEIGHT: u64 = 100;
const MARK_HEIGHT: u64 = 8;
/// What fills what is unknown.
const HATCHED: &str = "url(#hatched)";

/// Defines what fills what is unknown, once for the page.
pub(super) fn patterns() -> Markup {
    html! {
        svg.patterns width="0" height="0" aria-hidden="true" focusable="false" {
            defs {
                pattern #hatched width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                    rect.track width="8" height="8" {}
                    line.hatch x1="0" y1="0" x2="0" y2="8" {}
                }
            }
        }
    }
}

/// Draws the way of changes: one row for each step, on the scale of all changes.
pub(super) fn flow(figures: &OverviewFigures, filters: &Filters<'_>) -> Markup {
    if figures.changes == 0 {
        return html! {};
    }
    html! {
        figure.plot.flow {
            figcaption { "What became of " (CONSOLE.changes(figures.changes)) }
            ul {
                @for row in svc_view::flow(figures) {
                    li {
                        span.label { (capital(row.name)) }
                        span.drawn { (step(&row, figures.changes)) }
                        span.said { (parts(&row.parts, filters)) }
                    }
                }
            }
            (legend())
        }
    }
}

fn step(row: &FlowRow, changes: u64) -> Markup {
    let texts = row
        .parts
        .iter()
        .map(|part| format!("{} {}", whole(part.count), part.said));
    let texts: Vec<String> = texts.collect();
    let label = if texts.is_empty() {
        "none reached this step".to_owned()
    } else {
        texts.join(", ")
    };
    let mut x = 0;
    html! {
        svg viewBox="0 0 1000 20" preserveAspectRatio="none" role="img" aria-label=(label) {
            rect.track x="0" y="0" width="1000" height="20" {}
            @for (part, text) in row.parts.iter().zip(&texts) {
                @let width = part.count * WIDTH / changes.max(1);
                (piece(part.evidence, [x, 2, width, 16], text))
                @let () = x += width;
            }
        }
    }
}

/// Draws a part of a bar at `x`, `y`, with a width and a height.
fn piece(evidence: Evidence, [x, y, width, height]: [u64; 4], text: &str) -> Markup {
    let (class, fill) = match evidence {
        Evidence::Reached => ("bar", None),
        Evidence::Against => ("against", None),
        Evidence::Unknown => ("unknown", Some(HATCHED)),
    };
    html! {
        rect class=(class) fill=[fill] x=(x) y=(y) width=(width) height=(height) { title { (text) } }
    }
}

fn parts(parts: &[FlowPart], filters: &Filters<'_>) -> Markup {
    html! {
        @if parts.is_empty() { (NONE) }
        @for (place, part) in parts.iter().enumerate() {
            @if place > 0 { ", " }
            @if let Some(outcome) = part.outcome {
                a href=(filters.list(Some(outcome))) { (whole(part.count)) " " (part.said) }
            } @else {
                (whole(part.count)) " " (part.said)
            }
        }
    }
}

fn legend() -> Markup {
    html! {
        p.legend {
            @for (evidence, text) in [
                (Evidence::Reached, "known"), (Evidence::Against, "known to be lost or red"),
                (Evidence::Unknown, "unknown, which is no failure"),
            ] {
                span {
                    svg viewBox="0 0 20 20" aria-hidden="true" focusable="false" {
                        (piece(evidence, [0, 0, 20, 20], text))
                    }
                    (text)
                }
            }
        }
    }
}

/// Draws a bar for each day, with a mark where CI is red, and lists the days in a table.
pub(super) fn strip(days: &[OverviewDay]) -> Markup {
    let most = days.iter().map(|day| bar(&day.figures).changes()).max();
    let most = most.unwrap_or(0).max(1);
    let width = DAY_WIDTH * days.len();
    html! {
        figure.plot.strip {
            figcaption { "Changes by day" }
            svg viewBox=(format!("0 0 {width} 108")) preserveAspectRatio="none" role="img"
                aria-label="A bar for each day: merged, committed, thrown away, unknown; a mark above where CI is red now" {
                @for (place, of) in days.iter().enumerate() {
                    (day_bar(of, place * DAY_WIDTH, most))
                }
            }
            p.axis aria-hidden="true" {
                span { (days.first().map_or_else(String::new, |first| day(first.start))) }
                span { (days.last().map_or_else(String::new, |last| day(last.start))) }
            }
            (note("From the bottom: merged, committed without a known merge, thrown away, and hatched \
                   what is unknown. A mark above a day: CI is red now."))
            details {
                summary { "The days as a table" }
                (day_table(days))
            }
        }
    }
}

fn day_bar(of: &OverviewDay, x: usize, most: u64) -> Markup {
    let bar = bar(&of.figures);
    let text = format!("{}: {}", day(of.start), said(&bar));
    let x = x + 2;
    let mut y = HEIGHT + MARK_HEIGHT;
    html! {
        g {
            title { (text) }
            rect.track x=(x) y=(MARK_HEIGHT) width="16" height=(HEIGHT) {}
            @for (class, fill, count) in pieces(&bar) {
                @let height = count * HEIGHT / most;
                @let () = y -= height;
                @if count > 0 { rect class=(class) fill=[fill] x=(x) y=(y) width="16" height=(height) {} }
            }
            @if bar.failed > 0 { rect.against x=(x) y="0" width="16" height="5" {} }
        }
    }
}

/// Returns the parts of a bar, each with its class, what fills it, and how many changes it holds.
const fn pieces(bar: &OutcomeBar) -> [(&'static str, Option<&'static str>, u64); 4] {
    [
        ("bar", None, bar.merged),
        ("open", None, bar.committed),
        ("against", None, bar.deleted),
        ("unknown", Some(HATCHED), bar.unknown),
    ]
}

fn said(bar: &OutcomeBar) -> String {
    let all = [
        (bar.merged, "merged"),
        (bar.committed, "committed, no merge known"),
        (bar.deleted, "thrown away"),
        (bar.unknown, "unknown"),
        (bar.failed, "red now"),
    ];
    let all = all.into_iter().filter(|(count, _)| *count > 0);
    let all: Vec<String> = all
        .map(|(count, what)| format!("{} {what}", whole(count)))
        .collect();
    if all.is_empty() {
        "no changes".to_owned()
    } else {
        all.join(", ")
    }
}

/// Draws what became of changes, on the scale of the most of any row.
pub(super) fn multiple(figures: &OverviewFigures, most: u64) -> Markup {
    let bar = bar(figures);
    let mut x = 0;
    html! {
        svg.multiple viewBox="0 0 1000 20" preserveAspectRatio="none" role="img" aria-label=(said(&bar)) {
            rect.track x="0" y="0" width="1000" height="20" {}
            @for (class, fill, count) in pieces(&bar) {
                @let width = count * WIDTH / most.max(1);
                @if count > 0 { rect class=(class) fill=[fill] x=(x) y="2" width=(width) height="16" {} }
                @let () = x += width;
            }
        }
    }
}

fn day_table(days: &[OverviewDay]) -> Markup {
    let rows = days.iter().rev().map(|of| {
        let bar = bar(&of.figures);
        vec![
            html! { (day(of.start)) },
            html! { (whole(of.figures.calls)) },
            html! { (whole(bar.changes())) },
            html! { (whole(of.figures.committed)) },
            html! { (whole(bar.merged)) },
            html! { (whole(bar.failed)) },
            html! { (whole(bar.unknown)) },
            html! { (CONSOLE.spent(&of.figures.spend)) },
        ]
    });
    table(
        "Days, latest first",
        &[
            Column::Text("day"),
            Column::Number("calls"),
            Column::Number("changes"),
            Column::Number("committed"),
            Column::Number("merged"),
            Column::Number("red now"),
            Column::Number("unknown"),
            Column::Number("cost"),
        ],
        rows.collect(),
    )
}
