//! What happened in a Session, drawn and event by event.

use std::collections::BTreeSet;

use maud::{Markup, html};
use svc_model::open::Open;
use svc_model::query::{SessionDossier, TimelineEvent};
use svc_model::time::Instant;

use crate::console::layout::{Column, table};
use crate::console::link::Link;
use crate::console::plot;
use crate::console::text::{any, gateway, inert, moment, whole, words};
use crate::console::visit::Visit;

/// Events of a page.
const EVENTS: usize = 100;

/// The kinds of event, as they are called and as people call several.
const KINDS: [(&str, &str); 5] = [
    ("inference_call", "calls"),
    ("developer_decision", "decisions"),
    ("edit_observation", "edits observed"),
    ("rejected_edit", "edits rejected"),
    ("retry_linkage", "retries"),
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
                p { "No event of it is visible." }
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

/// Draws each kind of event that there is on a line of its own.
fn drawn(events: &[Open<TimelineEvent>]) -> Markup {
    let known = || events.iter().filter_map(Open::known);
    let moments = || known().map(TimelineEvent::occurred_at);
    let (Some(first), Some(last)) = (moments().min(), moments().max()) else {
        return html! {};
    };
    let length = first.microseconds().abs_diff(last.microseconds()).max(1);
    // In thousandths of the whole: what lies as close together is one line.
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
    let (from, what) = said(event);
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

/// Returns who told of an event, and what it was.
fn said(event: &TimelineEvent) -> (String, String) {
    match event {
        TimelineEvent::InferenceCall {
            gateway_provider,
            model_provider,
            model,
            input_tokens,
            output_tokens,
            duration_ms,
            ..
        } => {
            let model = format!(
                "{}/{}",
                any(model_provider.as_deref()),
                any(model.as_deref())
            );
            let tokens = input_tokens.zip(*output_tokens);
            let tokens = tokens.map(|(input, output)| format!("{input} tokens in, {output} out"));
            let duration = duration_ms.map(|duration| format!("{duration} ms"));
            let what: Vec<String> = [Some(model), tokens, duration]
                .into_iter()
                .flatten()
                .collect();
            (inert(gateway(gateway_provider)), what.join(", "))
        }
        TimelineEvent::DeveloperDecision {
            agent_harness,
            accepted,
            explicit,
            interaction_mode,
            call_id,
            ..
        } => {
            let verdict = if *accepted { "accepted" } else { "rejected" };
            let who = if *explicit { "a person" } else { "a rule" };
            let call_id = call_id.as_ref();
            let call_id = call_id.map_or_else(String::new, |id| format!(", {}", inert(id)));
            let mode = inert(interaction_mode.as_str());
            let what = format!("{verdict} by {who}, {mode}{call_id}");
            (inert(agent_harness.as_str()), what)
        }
        TimelineEvent::EditObservation {
            agent_harness,
            call_id,
            external_lines_added,
            external_lines_removed,
            ..
        } => {
            let lines = |sign: char, lines: &Option<i64>| match lines {
                Some(lines) => format!("{sign}{lines}"),
                None => format!("{sign}?"),
            };
            let what = format!(
                "{}, by others {} {}",
                inert(call_id),
                lines('+', external_lines_added),
                lines('−', external_lines_removed)
            );
            (inert(agent_harness.as_str()), what)
        }
        TimelineEvent::RejectedEdit {
            agent_harness,
            call_id,
            ..
        } => (inert(agent_harness.as_str()), inert(call_id)),
        TimelineEvent::RetryLinkage {
            agent_harness,
            tool_name,
            rejected_call_id,
            accepted_call_id,
            ..
        } => {
            let what = format!(
                "{} {}, accepted as {}",
                inert(tool_name.as_str()),
                inert(rejected_call_id),
                inert(accepted_call_id)
            );
            (inert(agent_harness.as_str()), what)
        }
    }
}
