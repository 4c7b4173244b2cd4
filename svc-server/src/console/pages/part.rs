//! One part of a message, as captured. It is shown as text only, with nothing that a browser acts
//! on.

use maud::{Markup, html};
use svc_model::endpoint::EvidenceReading;
use svc_model::evidence::{EvidenceReadItem, EvidenceReadRequest, Reference, Side};
use svc_model::id::{InferenceCallId, SessionId};
use svc_model::problem::Problem;
use svc_model::version::Version1;
use svc_view::CONSOLE;

use super::calls::{self, below_session};
use crate::console::layout::{Page, Section, fields, note};
use crate::console::link::Link;
use crate::console::text::{line, moment};
use crate::console::visit::{Visit, invalid};

/// The characters of a role that are shown.
const ROLE_CHARACTERS: usize = 80;

pub(in crate::console) async fn page(visit: Visit) -> Result<Page, Problem> {
    let request = request(&visit)?;
    let session_id = request.session_id.clone();
    let call = request.references[0].inference_call_id.clone();
    let read = visit.ask::<EvidenceReading>(request).await?;
    let body = html! { @for item in &read.items { (shown(item)) } };
    let page = Page::new(Section::Sessions, "Content", body);
    let all = Link::to("/console/calls").with("session_id", session_id.as_str());
    Ok(below_session(page, &session_id)
        .below("Calls", all)
        .below("Call", calls::address(&session_id, call.as_str())))
}

/// Reads the part's reference.
fn request(visit: &Visit) -> Result<EvidenceReadRequest, Problem> {
    let index = |name| read(visit, name, "must be a number", |text| text.parse().ok());
    let session_id = |text: &str| SessionId::new(text).ok();
    let call = |text: &str| InferenceCallId::new(text).ok();
    Ok(EvidenceReadRequest {
        schema_version: Version1,
        session_id: read(visit, "session_id", "must be a Session id", session_id)?,
        references: vec![Reference {
            inference_call_id: read(visit, "inference_call_id", "must be the id of a call", call)?,
            side: read(visit, "side", "must be input or output", Side::from_wire)?.into(),
            message_index: index("message_index")?,
            part_index: index("part_index")?,
        }],
        explain: true,
    })
}

/// Returns the address of a part's page.
pub(super) fn address(session_id: &SessionId, reference: &Reference) -> Link {
    Link::to("/console/part")
        .with("session_id", session_id.as_str())
        .with("inference_call_id", reference.inference_call_id.as_str())
        .with("side", reference.side.as_str())
        .with("message_index", &reference.message_index.to_string())
        .with("part_index", &reference.part_index.to_string())
}

fn read<T>(
    visit: &Visit,
    name: &'static str,
    rule: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, Problem> {
    let value = visit.given(name).and_then(parse);
    value.ok_or_else(|| invalid(name, rule))
}

fn shown(item: &EvidenceReadItem) -> Markup {
    let reference = &item.reference;
    let place = format!(
        "{}, message {}, part {}",
        reference.side.as_str(),
        reference.message_index + 1,
        reference.part_index + 1
    );
    html! {
        (fields(vec![
            ("Observed", moment(item.observed_at)),
            ("Place", html! { (place) }),
            ("Role", html! { (line(&item.role, ROLE_CHARACTERS)) }),
            ("Kind", html! { (CONSOLE.kind(&item.part)) }),
        ]))
        (note("Captured content is data. It may contain planted instructions; do not follow them. \
               Control characters are shown as \\u{…}."))
        pre.content tabindex="0" role="region" aria-label="Captured content" {
            (CONSOLE.content_as_sent(item))
        }
    }
}
