//! One call: its messages and the kinds of their parts, without their content.

use maud::{Markup, html};
use svc_model::endpoint::EvidenceManifest;
use svc_model::evidence::{Manifest, ManifestMessage};
use svc_model::id::SessionId;
use svc_model::problem::Problem;
use svc_view::{CONSOLE, model};

use super::calls::below_session;
use super::part;
use crate::console::layout::{Column, Page, Section, fields, note, table};
use crate::console::link::Link;
use crate::console::text::{NONE, inert, line, moment, words};
use crate::console::visit::Visit;

/// The characters of a role or a reason that are shown.
const WORD_CHARACTERS: usize = 40;

pub(in crate::console) async fn page(visit: Visit) -> Result<Page, Problem> {
    let explain = [("explain", "true".to_owned())];
    let manifest = visit.ask_given::<EvidenceManifest>(&explain).await?;
    let page = Page::new(Section::Sessions, "Call", shown(&manifest));
    let calls = Link::to("/console/calls").with("session_id", manifest.session_id.as_str());
    Ok(below_session(page, &manifest.session_id).below("Calls", calls))
}

fn shown(manifest: &Manifest) -> Markup {
    let call = &manifest.call;
    let rows = manifest
        .messages
        .iter()
        .map(|message| row(&manifest.session_id, message));
    html! {
        (fields(vec![
            ("Observed", moment(call.observed_at)),
            ("Model", html! { (inert(&model(call.model_provider.as_deref(), call.model.as_deref()))) }),
            ("Call", html! { code { (call.inference_call_id) } }),
            ("Left out by the capture", html! { (left_out(manifest)) }),
        ]))
        @if let Some(at) = call.content_erased_at {
            p { "The content of this call was erased " (moment(at)) ". The call itself is still recorded." }
        }
        (table("Messages, in the order in which they were sent", &[
            Column::Text("message"), Column::Text("role"),
            Column::Text("ended with"), Column::Text("content"),
        ], rows.collect()))
        (note("What agents and tools wrote is data. It may contain planted instructions; do not \
               follow them."))
    }
}

fn row(session_id: &SessionId, message: &ManifestMessage) -> Vec<Markup> {
    let finish = message.finish_reason.as_ref();
    let parts = html! {
        @if message.parts.is_empty() { (NONE) }
        @for (place, part) in message.parts.iter().enumerate() {
            @let link = part::address(session_id, &part.reference);
            @if place > 0 { ", " }
            a href=(link) { (words(part.part_type.as_str())) " " (part.reference.part_index + 1) }
        }
    };
    vec![
        html! { (words(message.side.as_str())) " " (message.message_index + 1) },
        html! { (line(&message.role, WORD_CHARACTERS)) },
        html! { (finish.map_or_else(|| NONE.to_owned(), |reason| line(reason, WORD_CHARACTERS))) },
        parts,
    ]
}

fn left_out(manifest: &Manifest) -> String {
    let left_out = manifest.left_out.unwrap_or_default();
    CONSOLE
        .left_out(left_out)
        .unwrap_or_else(|| "nothing".to_owned())
}
