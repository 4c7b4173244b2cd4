//! Parts as plain text, in pieces if they are long.

use std::ops::Range;

use serde_json::Value;
use svc_model::evidence::{
    EvidenceRead, EvidenceReadItem, Manifest, ManifestMessage, Part, Reference,
};
use svc_model::json::Text;
use svc_model::limit::EVIDENCE_REFERENCES_MAX;
use svc_model::open::Open;
use svc_model::search::search_text;
use svc_view::part_text;

use super::{Answer, Members, NOTICE, Step, kind, of_session, opening, reference_value};
use crate::arguments::{Asked, Focus, Shown, Slice, TEXT_BYTES_MAX, View, reading};
use crate::moment::minute;
use crate::resource;

/// The maximum bytes of a neighbour of the part that was asked for.
const NEIGHBOUR_BYTES_MAX: usize = 600;
/// The maximum bytes of the part that was asked for among its neighbours.
const NEAR_BYTES_MAX: usize = 4_000;

/// Returns the text of a part that was read, with what was sent in place of arguments.
fn text_of_item(item: &EvidenceReadItem) -> String {
    let mut text = part_text(&item.part);
    if let Some(sent) = &item.sent_arguments {
        text.push('\n');
        text.push_str(&sent.to_string_lossy());
    }
    text
}

/// Returns the kind of a part.
pub(super) fn kind_of(part: &Open<Part>) -> String {
    match part {
        Open::Known(part) => kind(&Open::Known(part.part_type())),
        Open::Unknown(part) => part.word().to_owned(),
    }
}

/// Returns the beginning of a text on one line.
pub(super) fn shortened(text: &str, characters_max: usize) -> String {
    svc_view::snippet(text, &std::collections::BTreeSet::new(), characters_max).text
}

/// Makes an answer of parts.
pub(crate) fn read(shown: &Shown, reply: &EvidenceRead) -> Step {
    Step::Answer(match &shown.view {
        View::Beginnings(listed) => listed.with(reply),
        View::Near(focus) => near(reply, focus),
        View::Parts(slice) => parts(shown, reply, *slice),
        View::Whole | View::Page(_) | View::Around(..) => parts(shown, reply, WHOLE),
    })
}

const WHOLE: Slice = Slice {
    offset: 0,
    length: TEXT_BYTES_MAX,
};

fn parts(shown: &Shown, reply: &EvidenceRead, slice: Slice) -> Answer {
    let texts: Vec<String> = reply.items.iter().map(text_of_item).collect();
    let lengths: Vec<usize> = texts
        .iter()
        .map(|text| text.len().saturating_sub(slice.offset).min(slice.length))
        .collect();
    let share = fair_share(&lengths, TEXT_BYTES_MAX);
    let mut pieces = Vec::new();
    for (item, text) in reply.items.iter().zip(&texts) {
        let range = piece(text, slice.offset, slice.length.min(share));
        pieces.push((item, text, range));
    }
    let session = reply.session_id.to_string();
    let next = pieces
        .iter()
        .find(|(_, text, range)| range.end < text.len())
        .map(|(item, _, range)| rest(shown, &session, item, range.end));
    answer(&session, pieces, next, None)
}

/// Says how to read the rest of a part.
fn rest(shown: &Shown, session: &str, item: &EvidenceReadItem, offset: usize) -> String {
    let reference = reference_value(&item.reference);
    let length = shown.arguments.get("length").cloned();
    let call = opening(session, &reference, &[("offset", offset as u64)]);
    let same = length.map_or_else(String::new, |length| {
        format!(", with length {length} as before")
    });
    format!("For the rest: {call}{same}")
}

type Piece<'a> = (&'a EvidenceReadItem, &'a String, Range<usize>);

fn answer(
    session: &str,
    pieces: Vec<Piece<'_>>,
    next: Option<String>,
    hit: Option<&Reference>,
) -> Answer {
    let mut inexact = Vec::new();
    let mut parts = Vec::new();
    for (place, (item, text, range)) in pieces.into_iter().enumerate() {
        let mut part = entry(item, text, range);
        if let Value::Object(members) = &mut part {
            if hit == Some(&item.reference) {
                members.insert("hit".to_owned(), true.into());
            }
            if is_inexact(item) {
                inexact.push(format!("/parts/{place}/text"));
                members.insert("exact".to_owned(), address(session, item).into());
            }
        }
        parts.push(part);
    }
    let mut structured = Members::default()
        .with("session", session)
        .with("next", next)
        .with("notice", NOTICE)
        .0;
    structured.insert("parts".to_owned(), parts.into());
    Answer {
        inexact,
        ..Answer::new(structured)
    }
}

fn entry(item: &EvidenceReadItem, text: &str, range: Range<usize>) -> Value {
    let tool = match &item.part {
        Open::Known(Part::ToolCall { name, .. }) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    };
    let is_cut = range != (0..text.len());
    let cut = |place: usize| is_cut.then_some(place);
    let role = item.role.to_string_lossy();
    Members::default()
        .with("reference", reference_value(&item.reference))
        .with("time", minute(item.observed_at))
        .with("role", &*role)
        .with("kind", kind_of(&item.part))
        .with("tool", tool)
        .with("text", &text[range.clone()])
        .with("start", cut(range.start))
        .with("end", cut(range.end))
        .with("total", cut(text.len()))
        .value()
}

/// Returns whether a text stands for one that no library of the protocol takes.
fn is_inexact(item: &EvidenceReadItem) -> bool {
    let part = item.part.known().map(search_text);
    let texts = [part.as_ref(), item.sent_arguments.as_ref()];
    texts.into_iter().flatten().any(Text::has_surrogate)
}

fn address(session: &str, item: &EvidenceReadItem) -> String {
    let Reference {
        inference_call_id,
        side,
        message_index,
        part_index,
    } = &item.reference;
    resource::part(
        session,
        inference_call_id.as_str(),
        &side.to_string(),
        &message_index.to_string(),
        &part_index.to_string(),
    )
}

/// Returns the bytes of a text from an offset on, within characters.
fn piece(text: &str, offset: usize, length: usize) -> Range<usize> {
    let start = text.floor_char_boundary(offset.min(text.len()));
    let end = text.floor_char_boundary(start.saturating_add(length).min(text.len()));
    // A character that is longer than the piece is shown all the same, or the next piece would be
    // the same.
    let end = if end == start {
        text.ceil_char_boundary((start + 1).min(text.len()))
    } else {
        end
    };
    start..end
}

/// Returns the largest limit per text at which texts of these lengths together stay within a total.
fn fair_share(lengths: &[usize], total: usize) -> usize {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    let mut left = total;
    for (index, length) in sorted.iter().enumerate() {
        let share = left / (sorted.len() - index);
        if *length > share {
            return share;
        }
        left -= length;
    }
    total
}

/// Asks for a part with the messages before and after it. If they are too much for one reply, or
/// one of them cannot be read, asks for the part alone.
pub(super) fn around(shown: &Shown, manifest: &Manifest, focus: &Focus, count: usize) -> Step {
    let alone = vec![focus.reference.clone()];
    let near = neighbours(&manifest.messages, &focus.reference, count);
    let ask = |references| {
        let shown = Shown {
            view: View::Near(focus.clone()),
            ..shown.clone()
        };
        let question = reading(manifest.session_id.clone(), references, shown.operator);
        Box::new(Asked {
            question,
            shown,
            ignored: None,
        })
    };
    if near.len() <= 1 {
        return Step::Ask(ask(alone), None);
    }
    let otherwise = Step::Ask(ask(alone), None);
    Step::Ask(ask(near), Some(Box::new(otherwise)))
}

/// Returns the parts of the messages around a part, in order: the nearest, if they are too many.
fn neighbours(messages: &[ManifestMessage], reference: &Reference, count: usize) -> Vec<Reference> {
    let is_hit = |message: &ManifestMessage| {
        message.side == reference.side && message.message_index == reference.message_index
    };
    let Some(place) = messages.iter().position(is_hit) else {
        return Vec::new();
    };
    let from = place.saturating_sub(count);
    let window = messages.iter().enumerate().skip(from);
    let window = window.take(place - from + count + 1);
    let parts = window.flat_map(|(index, message)| {
        let parts = message.parts.iter();
        parts.map(move |part| (index.abs_diff(place), &part.reference))
    });
    let mut ordered: Vec<(usize, (usize, &Reference))> = parts.enumerate().collect();
    ordered.sort_by_key(|(_, (distance, part))| (*part != reference, *distance));
    ordered.truncate(EVIDENCE_REFERENCES_MAX);
    ordered.sort_by_key(|(order, _)| *order);
    let kept = ordered.into_iter();
    kept.map(|(_, (_, part))| part.clone()).collect()
}

/// Makes an answer of a part among its neighbours.
fn near(reply: &EvidenceRead, Focus { reference, offset }: &Focus) -> Answer {
    let texts: Vec<String> = reply.items.iter().map(text_of_item).collect();
    let others = reply.items.len().saturating_sub(1).max(1);
    let share = ((TEXT_BYTES_MAX - NEAR_BYTES_MAX) / others).min(NEIGHBOUR_BYTES_MAX);
    let items = reply.items.iter().zip(&texts);
    let pieces: Vec<Piece<'_>> = items
        .map(|(item, text)| {
            let range = if item.reference == *reference {
                piece(text, *offset, NEAR_BYTES_MAX)
            } else {
                piece(text, 0, share)
            };
            (item, text, range)
        })
        .collect();
    let session = reply.session_id.to_string();
    let cut = pieces
        .iter()
        .find(|(item, text, range)| item.reference == *reference && range.end < text.len());
    let next = match cut {
        Some((_, _, range)) => {
            let offset = [("offset", range.end as u64)];
            let call = opening(&session, &reference_value(reference), &offset);
            format!("For the rest of the hit: {call}")
        }
        None => later(&session, reference),
    };
    answer(&session, pieces, Some(next), Some(reference))
}

/// Says how to see what came after a call.
fn later(session: &str, reference: &Reference) -> String {
    let mut arguments = of_session(session);
    let call = reference.inference_call_id.as_str();
    arguments.insert("cursor".to_owned(), call.into());
    let call = super::call("open_evidence", arguments);
    format!("For the calls after this one: {call}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_ends_between_characters_and_always_goes_on() {
        let text = "a日本";
        assert_eq!(piece(text, 0, 2), 0..1);
        assert_eq!(piece(text, 1, 2), 1..4);
        assert_eq!(piece(text, 2, 3), 1..4);
        assert_eq!(piece(text, 4, 100), 4..7);
        assert_eq!(piece(text, 100, 5), 7..7);
        assert_eq!(piece("", 0, 5), 0..0);
    }

    #[test]
    fn short_texts_leave_their_room_to_long_ones() {
        assert_eq!(fair_share(&[10, 20], 100), 100);
        assert_eq!(fair_share(&[10, 200, 300], 100), 45);
    }
}
