//! The timeline of a Session, as a plot and as a list of events.

use std::collections::BTreeSet;

use maud::{Markup, html};
use svc_model::open::Open;
use svc_model::query::{SessionDossier, TimelineEvent};
use svc_model::time::Instant;
use svc_view::CONSOLE;

use crate::console::layout::{Column, table};
use crate::console::link::Link;
use crate::console::plot;
use crate::console::text::{any, moment, whole, words};
use crate::console::visit::Visit;

/// The number of events per page.
const EVENTS: usize = 100;

/// The kinds of events, with their plural names.
const KINDS: [(&str, &str); 6] = [
    ("inference_call", "calls"),
    ("developer_decision", "decisions"),
    ("edit_observation", "edits observed"),
    ("rejected_edit", "edits rejected"),
    ("retry_linkage", "retries"),
    ("usage_receipt", "usage reported"),
];

pub(super) fn shown(visit: &Visit, dossier: &SessionDossier) -> Markup {
    let events = &dossier.timeline;
    let from = visit.number("from", 0_usize).min(events.len());
    let to = events.len().min(from + EVENTS);
    let at = |from: usize| {
        Link::to("/console/session")
            .with("session_id", dossier.session_id.as_str())
            .with("from", &from.to_string())
    };
    let rows = events[from..to].iter().map(|event| row(dossier, event));
    html! {
        section aria-labelledby="timeline" {
            h2 #timeline { "Timeline" }
            @if events.is_empty() {
                p { "No visible events." }
            } @else {
                (drawn(events))
                (table(&format!("Events {} to {} of {}", from + 1, to, whole(events.len() as u64)), &[
                    Column::Text("time"), Column::Text("event"), Column::Text("from"),
                    Column::Text("what"), Column::Text("file"),
                ], rows.collect()))
            }
            @if from > 0 || to < events.len() {
                nav.pages aria-label="Pages of the timeline" {
                    @if from > 0 { a href=(at(from.saturating_sub(EVENTS))) rel="prev" { "Earlier events" } }
                    @if to < events.len() { a href=(at(to)) rel="next" { "Later events" } }
                }
            }
            @if dossier.omitted_events > 0 {
                p { (whole(dossier.omitted_events)) " more events are quarantined." }
            }
            @if let Some(erased) = dossier.content_erased {
                p { "Of " (whole(erased)) " facts the content was erased; the facts are as before." }
            }
        }
    }
}

/// Plots each kind of event on a line of its own.
fn drawn(events: &[Open<TimelineEvent>]) -> Markup {
    let known = || events.iter().filter_map(Open::known);
    let moments = || known().map(TimelineEvent::occurred_at);
    let (Some(first), Some(last)) = (moments().min(), moments().max()) else {
        return html! {};
    };
    let length = first.microseconds().abs_diff(last.microseconds()).max(1);
    // In thousandths of the whole, so events that are closer together share a mark.
    let place = |at: Instant| {
        let thousandths = u128::from(first.microseconds().abs_diff(at.microseconds())) * 1_000;
        u64::try_from(thousandths / u128::from(length)).unwrap_or(1_000)
    };
    let lanes = KINDS.iter().map(|(kind, name)| {
        let of = || known().filter(|event| event.event_type() == *kind);
        let at: BTreeSet<u64> = of().map(|event| place(event.occurred_at())).collect();
        (*name, of().count() as u64, at)
    });
    let lanes: Vec<_> = lanes.filter(|(_, count, _)| *count > 0).collect();
    html! {
        figure.plot {
            figcaption { "Events by kind, from " (moment(first)) " to " (moment(last)) }
            ul {
                @for (name, count, at) in &lanes {
                    li {
                        span.label { (name) }
                        span.drawn { (plot::moments(&format!("when the {name} were"), at)) }
                        span.said { (whole(*count)) }
                    }
                }
            }
            p.axis aria-hidden="true" { span { "first" } span { "last" } }
        }
    }
}

fn row(dossier: &SessionDossier, event: &Open<TimelineEvent>) -> Vec<Markup> {
    let Open::Known(event) = event else {
        return vec![
            html! { "–" },
            html! { (words(event.as_str())) },
            html! { "–" },
            html! { "known to a newer service" },
            html! { "–" },
        ];
    };
    let (from, what) = CONSOLE.describe(event);
    let kind = words(event.event_type());
    let kind = if let TimelineEvent::InferenceCall { fact_id, .. } = event {
        let call = Link::to("/console/call")
            .with("session_id", dossier.session_id.as_str())
            .with("inference_call_id", &fact_id.to_string());
        html! { a href=(call) title=(fact_id) { (kind) } }
    } else {
        html! { span title=(event.fact_id()) { (kind) } }
    };
    vec![
        moment(event.occurred_at()),
        kind,
        html! { (from) },
        html! { (what) },
        html! { (any(event.file_path())) },
    ]
}
