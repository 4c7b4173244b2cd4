//! The segments of a payload that repeat from call to call.

use svc_engine_fact::{Repeats, Segment};
use svc_model::json::{Json, Object, Text};

/// Members whose values depend only on the agent or the model, such as tool definitions and entries
/// of the price table.
const EVERYWHERE: [&str; 2] = ["model_parameters", "model_map_information"];

/// The name of the list in a prompt that is an object.
const MESSAGES: &str = "messages";

/// From this many canonical bytes on, any other member is assumed to repeat within the Session.
/// What the gateway reports about the call itself is shorter.
const LARGE: usize = 1_024;

/// Members that differ in every call.
const NEW: [&str; 2] = ["response", "metadata"];

/// Returns the segments of a payload: the items of its prompt, and large members of its first two
/// levels. `member` is the name of the member with the prompt, and `places` holds the index of each
/// item's message.
pub(super) fn of(payload: &Object, member: Option<&str>, places: &[Option<usize>]) -> Vec<Segment> {
    let mut segments = Vec::with_capacity(places.len() + 8);
    for (place, (name, value)) in payload.iter().enumerate() {
        let name = name.as_str().unwrap_or_default();
        match value {
            Json::Array(items) if Some(name) == member => {
                prompt(&mut segments, &[place], items.len(), places);
            }
            Json::Object(holder) if Some(name) == member => {
                let held = |(name, value): (&Text, &Json)| {
                    *name == *MESSAGES && value.as_array().is_some()
                };
                if let Some(held) = holder.iter().position(held) {
                    prompt(&mut segments, &[place, held], places.len(), places);
                }
            }
            Json::Object(members) if EVERYWHERE.contains(&name) => {
                segments.extend((0..members.len()).map(|member| Segment {
                    place: vec![place, member],
                    repeats: Repeats::Everywhere,
                    message: None,
                }));
            }
            Json::Object(_) | Json::Array(_) | Json::String(_)
                if !NEW.contains(&name) && value.canonical_len() >= LARGE =>
            {
                segments.push(Segment {
                    place: vec![place],
                    repeats: Repeats::InSession,
                    message: None,
                });
            }
            _ => {}
        }
    }
    segments
}

fn prompt(segments: &mut Vec<Segment>, holder: &[usize], items: usize, places: &[Option<usize>]) {
    segments.extend((0..items).map(|item| Segment {
        place: [holder, &[item]].concat(),
        repeats: Repeats::InSession,
        message: places.get(item).copied().flatten(),
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::testing::call;
    use svc_messages::testing::json;

    fn found(payload: &str) -> Vec<(Vec<usize>, Repeats, Option<usize>)> {
        let (call, _) = call(json(payload));
        let segment = |segment: Segment| (segment.place, segment.repeats, segment.message);
        call.raw.segments.into_iter().map(segment).collect()
    }

    #[test]
    fn each_prompt_item_is_a_segment_that_names_its_message() {
        let prompt = r#"[{"role":"user","content":"a"},5,{"role":"user","content":"b"}]"#;
        let expected = |holder: &[usize]| {
            [Some(0), None, Some(1)]
                .into_iter()
                .enumerate()
                .map(|(item, message)| ([holder, &[item]].concat(), Repeats::InSession, message))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            found(&format!(r#"{{"model":"m","messages":{prompt}}}"#)),
            expected(&[1])
        );
        assert_eq!(
            found(&format!(
                r#"{{"messages":{{"system":"s","messages":{prompt}}}}}"#
            )),
            expected(&[0, 1])
        );
        assert_eq!(found(r#"{"messages":"text"}"#), []);
    }

    #[test]
    fn tool_definitions_repeat_everywhere_and_other_large_members_within_a_session() {
        let large = "x".repeat(LARGE);
        assert_eq!(
            found(&format!(
                r#"{{"model_parameters":{{"stream":false,"tools":[]}},"response":"{large}","other":"{large}","small":"x","metadata":{{"large":"{large}"}}}}"#
            )),
            [
                (vec![0, 0], Repeats::Everywhere, None),
                (vec![0, 1], Repeats::Everywhere, None),
                (vec![2], Repeats::InSession, None),
            ]
        );
    }
}
