//! What is opened: the calls of a Session, the messages of a call, or parts.

use rmcp::model::JsonObject;
use serde_json::{Value, json};
use svc_model::evidence::{EvidenceReadRequest, InventoryRequest, ManifestRequest, Reference};
use svc_model::id::SessionId;
use svc_model::version::Version1;

use super::taking::{Arguments, wrong};
use super::{Focus, Slice, ToolCaller, View, ViewedQuestion, body, queried};
use crate::page::Page;
use crate::refusal::ToolRefusal;
use crate::resource::ResourceAddress;
use crate::tool::Question;

/// The number of calls or messages that are listed unless the call says otherwise.
const LISTED: u64 = 20;
/// The maximum number that are listed.
const LISTED_MAX: u64 = 100;
/// The maximum number of messages before and after a part.
const AROUND_MAX: u64 = 10;
/// The maximum bytes of what is shown of parts in one answer: about 2,000 tokens.
pub(crate) const TEXT_BYTES_MAX: usize = 8_000;

/// Reads what is to be opened.
///
/// # Errors
///
/// If the arguments are not valid, or do not go together.
pub(crate) fn opening(
    arguments: JsonObject,
    caller: &ToolCaller,
) -> Result<ViewedQuestion, ToolRefusal> {
    let mut arguments = Arguments::new(arguments, caller);
    if arguments.has("references") {
        return parts(arguments, caller);
    }
    for name in ["around", "offset", "length"] {
        if arguments.has(name) {
            return Err(wrong(name, "requires references"));
        }
    }
    let page = Page {
        limit: listed(arguments.number("limit", 1..=LISTED_MAX)?.unwrap_or(LISTED)),
        cursor: arguments.text("cursor")?,
    };
    let session_id: SessionId = arguments.require("session_id")?;
    let Some(inference_call_id) = arguments.take("inference_call_id")? else {
        let (question, _) = inventory(InventoryRequest { session_id }, caller);
        return Ok((question, View::Page(page)));
    };
    // With what the capture left out.
    let request = ManifestRequest::new(session_id, inference_call_id);
    Ok((manifest(request, caller.is_operator()), View::Page(page)))
}

fn listed(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// Returns the question for the calls of a Session, and shows the first of them.
pub(super) fn inventory(request: InventoryRequest, caller: &ToolCaller) -> ViewedQuestion {
    let page = Page {
        limit: listed(LISTED),
        cursor: None,
    };
    let question = if caller.is_operator() {
        Question::EvidenceInventory(request)
    } else {
        Question::GrantInventory(request)
    };
    (question, View::Page(page))
}

fn manifest(request: ManifestRequest, operator: bool) -> Question {
    if operator {
        Question::EvidenceManifest(request)
    } else {
        Question::GrantManifest(request)
    }
}

/// Returns the question for exact parts.
pub(crate) fn reading(
    session_id: SessionId,
    references: Vec<Reference>,
    operator: bool,
) -> Question {
    question_of(
        EvidenceReadRequest {
            schema_version: Version1,
            session_id,
            references,
            explain: true,
        },
        operator,
    )
}

fn question_of(request: EvidenceReadRequest, operator: bool) -> Question {
    if operator {
        Question::EvidenceReading(request)
    } else {
        Question::GrantRead(request)
    }
}

fn parts(mut arguments: Arguments<'_>, caller: &ToolCaller) -> Result<ViewedQuestion, ToolRefusal> {
    for name in ["inference_call_id", "limit", "cursor"] {
        if arguments.has(name) {
            return Err(wrong(name, "cannot be used with references"));
        }
    }
    let has_slice = arguments.has("offset") || arguments.has("length");
    let around = arguments.number("around", 1..=AROUND_MAX)?;
    let offset = arguments.number("offset", 0..=u64::MAX)?;
    let length = arguments.number("length", 1..=TEXT_BYTES_MAX as u64)?;
    let mut request: EvidenceReadRequest = body(arguments.rest())?;
    request.explain = true;
    if length.is_some() && around.is_some() {
        return Err(wrong("length", "cannot be used with around"));
    }
    let offset = listed(offset.unwrap_or(0));
    if (has_slice || around.is_some()) && request.references.len() != 1 {
        return Err(ToolRefusal::invalid(
            "around, offset and length require exactly one reference",
        ));
    }
    if let (Some(around), [reference]) = (around, &*request.references) {
        let reference = reference.clone();
        let call = reference.inference_call_id.clone();
        let request = ManifestRequest::new(request.session_id, call);
        return Ok((
            manifest(request, caller.is_operator()),
            View::Around(Focus { reference, offset }, listed(around)),
        ));
    }
    let slice = Slice {
        offset,
        length: length.map_or(TEXT_BYTES_MAX, listed),
    };
    Ok((
        question_of(request, caller.is_operator()),
        View::Parts(slice),
    ))
}

/// Returns the question whose reply is a resource, exactly.
///
/// # Errors
///
/// If a step of the address is not valid.
pub(crate) fn exact(place: ResourceAddress, operator: bool) -> Result<Question, ToolRefusal> {
    match place {
        ResourceAddress::Session(session_id) => {
            let request = queried(members(json!({"session_id": session_id})))?;
            Ok(if operator {
                Question::EvidenceInventory(request)
            } else {
                Question::GrantInventory(request)
            })
        }
        ResourceAddress::Call(session_id, inference_call_id) => {
            let call = json!({"session_id": session_id, "inference_call_id": inference_call_id});
            Ok(manifest(queried(members(call))?, operator))
        }
        ResourceAddress::Part {
            session_id,
            inference_call_id,
            side,
            message_index,
            part_index,
        } => {
            let part = json!({
                "session_id": session_id,
                "references": [{
                    "inference_call_id": inference_call_id,
                    "side": side,
                    "message_index": message_index,
                    "part_index": part_index,
                }],
            });
            Ok(question_of(body(members(part))?, operator))
        }
    }
}

fn members(value: Value) -> JsonObject {
    match value {
        Value::Object(members) => members,
        _ => JsonObject::new(),
    }
}
