//! The calls of a Session and the messages of a call, each with its first words.

use rmcp::model::JsonObject;
use serde_json::{Value, json};
use svc_model::evidence::{
    CallSummary, EvidenceRead, Inventory, LeftOut, Manifest, ManifestMessage, Reference, Side,
};
use svc_model::id::{InferenceCallId, SessionId};
use svc_model::limit::EVIDENCE_REFERENCES_MAX;
use svc_model::open::Open;
use svc_view::part_text;

use super::part::shortened;
use super::{Answer, Members, NOTHING, NOTICE, Step, kind, of_session, opening, reference_value};
use crate::arguments::{Asked, Shown, View, reading};
use crate::moment::minute;
use crate::page::Page;
use crate::refusal::ToolRefusal;
use crate::text::counted;

/// The maximum number of characters of the first words of an entry.
const FIRST_CHARACTERS_MAX: usize = 100;

/// A list whose entries have no first words yet.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    answer: Answer,
    /// The member with the list.
    list: &'static str,
    /// The entries that have first words, and the parts that they are read from.
    beginnings: Vec<(usize, Reference)>,
}

impl Listed {
    /// Returns what reads the first words. Without them, the list is an answer too.
    fn step(self, session_id: SessionId, shown: &Shown) -> Step {
        let plain = Step::Answer(self.answer.clone());
        if self.beginnings.is_empty() {
            return plain;
        }
        let references = self.beginnings.iter().map(|(_, part)| part.clone());
        let question = reading(session_id, references.collect(), shown.operator);
        let asked = Asked {
            question,
            shown: Shown {
                view: View::Beginnings(self),
                ..shown.clone()
            },
            ignored: None,
        };
        Step::Ask(Box::new(asked), Some(Box::new(plain)))
    }

    /// Adds the first words.
    pub(super) fn with(&self, read: &EvidenceRead) -> Answer {
        let mut answer = self.answer.clone();
        let list = answer.structured.get_mut(self.list);
        let Some(entries) = list.and_then(Value::as_array_mut) else {
            return answer;
        };
        for item in &read.items {
            let mut places = self.beginnings.iter();
            let place = places.find(|(_, reference)| *reference == item.reference);
            let entry = place.and_then(|(index, _)| entries.get_mut(*index)?.as_object_mut());
            let words = shortened(&part_text(&item.part), FIRST_CHARACTERS_MAX);
            if let Some(entry) = entry
                && !words.is_empty()
            {
                entry.insert("begins".to_owned(), words.into());
            }
        }
        answer.structured.insert("notice".to_owned(), NOTICE.into());
        answer
    }
}

/// Makes an answer of the calls of a Session.
pub(crate) fn calls(shown: &Shown, reply: Inventory) -> Result<Step, ToolRefusal> {
    let session = reply.session_id.to_string();
    if !reply.found {
        return Ok(Step::Answer(unknown(&session)));
    }
    let mut calls = reply.calls;
    let next = page(shown).cut(&mut calls, |call| call.inference_call_id.to_string())?;
    let more = next.as_deref().map(|cursor| shown.again("cursor", cursor));
    let first = calls.first().map(|call| {
        let mut arguments = of_session(&session);
        let id = call.inference_call_id.to_string();
        arguments.insert("inference_call_id".to_owned(), id.into());
        super::call("open_evidence", arguments)
    });
    let hidden = Some(reply.quarantined_inference_calls).filter(|count| *count > 0);
    let mut structured = Members::default()
        .with("session", session)
        .with("total", reply.visible_inference_calls)
        .with("quarantined", hidden)
        .with("next_cursor", next)
        .with(
            "next",
            sentences("For the messages of the first call", first, more),
        )
        .0;
    let entries: Vec<Value> = calls.iter().map(entry_of_call).collect();
    structured.insert("calls".to_owned(), entries.into());
    let listed = Listed {
        answer: Answer::new(structured),
        list: "calls",
        beginnings: beginnings_of_calls(&calls),
    };
    Ok(listed.step(reply.session_id, shown))
}

fn page(shown: &Shown) -> Page {
    match &shown.view {
        View::Page(page) => page.clone(),
        _ => Page {
            limit: usize::MAX,
            cursor: None,
        },
    }
}

fn unknown(session: &str) -> Answer {
    let next = "Call search_evidence with words, or list_sessions {}.";
    let mut structured = Members::default()
        .with("session", session)
        .with("note", format!("No such Session is known. {NOTHING}"))
        .with("next", next)
        .0;
    structured.insert("calls".to_owned(), json!([]));
    Answer::new(structured)
}

/// Says how to open the first entry, and how to see more.
fn sentences(what: &str, first: Option<String>, more: Option<String>) -> Option<String> {
    let first = first.map(|first| format!("{what}: {first}"));
    let more = more.map(|more| format!("For the next page: {more}"));
    match (first, more) {
        (Some(first), Some(more)) => Some(format!("{first}. {more}")),
        (first, more) => first.or(more),
    }
}

fn entry_of_call(call: &CallSummary) -> Value {
    Members::default()
        .with("call", call.inference_call_id.to_string())
        .with("time", minute(call.observed_at))
        .with("model", call.model.as_deref())
        .with("agent", call.agent.as_deref())
        .with("erased", call.content_erased_at.map(|_| true))
        .value()
}

/// Returns where the answers of the first calls begin, as far as one read goes. What a model answered
/// tells its calls apart; what it was sent repeats the history.
fn beginnings_of_calls(calls: &[CallSummary]) -> Vec<(usize, Reference)> {
    let calls = calls.iter().enumerate();
    let kept = calls.filter(|(_, call)| call.content_erased_at.is_none());
    let places = kept.filter_map(|(index, call)| {
        let reference = Reference {
            inference_call_id: InferenceCallId::new(&call.inference_call_id.to_string()).ok()?,
            side: Open::Known(Side::Output),
            message_index: 0,
            part_index: 0,
        };
        Some((index, reference))
    });
    places.take(EVIDENCE_REFERENCES_MAX).collect()
}

/// Makes an answer of the messages of a call, or asks for a part among its neighbours.
pub(crate) fn messages(shown: &Shown, reply: Manifest) -> Result<Step, ToolRefusal> {
    if let View::Around(focus, count) = &shown.view {
        return Ok(super::part::around(shown, &reply, focus, *count));
    }
    let session = reply.session_id.to_string();
    let total = reply.messages.len();
    let mut messages = reply.messages;
    let next = page(shown).cut(&mut messages, name_of_message)?;
    let more = next.as_deref().map(|cursor| shown.again("cursor", cursor));
    let mut parts = messages.iter().flat_map(|message| &message.parts);
    let first = parts
        .next()
        .map(|part| opening(&session, &reference_value(&part.reference), &[]));
    let what = "For up to 32 parts as text, such as the first";
    let mut structured = Members(head_of_call(&session, &reply.call))
        .with("total", total)
        .with("left_out", not_captured(reply.left_out.as_ref()))
        .with("next_cursor", next)
        .with("next", sentences(what, first, more))
        .0;
    let entries: Vec<Value> = messages.iter().map(entry_of_message).collect();
    structured.insert("messages".to_owned(), entries.into());
    let listed = Listed {
        answer: Answer::new(structured),
        list: "messages",
        beginnings: beginnings_of_messages(&messages),
    };
    Ok(listed.step(reply.session_id, shown))
}

fn head_of_call(session: &str, call: &CallSummary) -> JsonObject {
    let mut head = Members::default().with("session", session).0;
    if let Value::Object(call) = entry_of_call(call) {
        head.extend(call);
    }
    head
}

fn name_of_message(message: &ManifestMessage) -> String {
    format!("{}:{}", message.side, message.message_index)
}

fn entry_of_message(message: &ManifestMessage) -> Value {
    let parts = message.parts.iter().map(|part| kind(&part.part_type));
    let role = message.role.to_string_lossy();
    Members::default()
        .with("side", message.side.to_string())
        .with("message_index", message.message_index)
        .with("role", &*role)
        .with("parts", parts.collect::<Vec<String>>())
        .value()
}

fn beginnings_of_messages(messages: &[ManifestMessage]) -> Vec<(usize, Reference)> {
    let messages = messages.iter().enumerate();
    let first = messages
        .filter_map(|(index, message)| Some((index, message.parts.first()?.reference.clone())));
    first.take(EVIDENCE_REFERENCES_MAX).collect()
}

/// Says what the capture left out of a call.
fn not_captured(left_out: Option<&LeftOut>) -> Vec<String> {
    let Some(left_out) = left_out else {
        return Vec::new();
    };
    let kinds = [
        (
            left_out.unsupported_content,
            "message or part of a kind that is not kept, such as an image or a file",
            "messages or parts of kinds that are not kept, such as images and files",
        ),
        (
            left_out.opaque_reasoning,
            "reasoning part that is encrypted or empty",
            "reasoning parts that are encrypted or empty",
        ),
        (
            left_out.missing_id,
            "tool call or result without an id",
            "tool calls or results without an id",
        ),
        (
            left_out.malformed_arguments,
            "tool call's arguments, which are not a JSON object",
            "tool calls' arguments, which are not JSON objects",
        ),
        (
            left_out.truncated,
            "part that the client had cut",
            "parts that the client had cut",
        ),
    ];
    let nonzero = kinds.into_iter().filter(|(count, ..)| *count > 0);
    nonzero
        .map(|(count, one, many)| format!("not captured: {}", counted(count, one, many)))
        .collect()
}
