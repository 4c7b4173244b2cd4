//! The calls of a Session.

use maud::html;
use svc_model::endpoint::EvidenceInventory;
use svc_model::id::SessionId;
use svc_model::problem::Problem;

use super::sessions;
use crate::console::layout::{Column, Page, Section, note, table};
use crate::console::link::Link;
use crate::console::text::{any, inert, moment, whole};
use crate::console::visit::Visit;

pub(in crate::console) async fn page(visit: Visit) -> Result<Page, Problem> {
    let inventory = visit.ask_given::<EvidenceInventory>(&[]).await?;
    let session_id = &inventory.session_id;
    let rows = inventory.calls.iter().map(|call| {
        let id = call.inference_call_id.to_string();
        vec![
            html! { a href=(address(session_id, &id)) { (moment(call.observed_at)) } },
            html! { (any(call.model_provider.as_deref())) },
            html! { (any(call.model.as_deref())) },
            html! {
                code { (id) }
                @if let Some(at) = call.content_erased_at { " (content erased " (moment(at)) ")" }
            },
        ]
    });
    let body = html! {
        p {
            @if inventory.found {
                (whole(inventory.visible_inference_calls)) " visible, "
                (whole(inventory.quarantined_inference_calls)) " quarantined."
            } @else {
                "No fact of this Session is stored."
            }
        }
        @if !inventory.calls.is_empty() {
            (table("Visible calls, in the order in which they were observed", &[
                Column::Text("observed"), Column::Text("provider"), Column::Text("model"),
                Column::Text("call"),
            ], rows.collect()))
        }
        (note("It is unknown whether every call of the Session was captured."))
    };
    let page = Page::new(Section::Sessions, "Calls", body);
    Ok(below_session(page, session_id))
}

/// Returns the address of a call's page.
pub(super) fn address(session_id: &SessionId, call: &str) -> Link {
    Link::to("/console/call")
        .with("session_id", session_id.as_str())
        .with("inference_call_id", call)
}

/// Adds the Session as the parent page.
pub(super) fn below_session(page: Page, session_id: &SessionId) -> Page {
    let session = format!("Session {}", inert(session_id.as_str()));
    page.below("Sessions", Link::to("/console/sessions"))
        .below(session, sessions::address(session_id))
}
