//! Reads a model's answer, in the form of whichever interface was used.

use svc_model::evidence::Message;
use svc_model::json::{Json, Object, Text};

use crate::MessagesError;
use crate::identity::usable;
use crate::message::Normaliser;

/// Returns the messages of an answer. Of several choices, the first is kept and the others are
/// counted.
pub fn output(
    normaliser: &mut Normaliser,
    answer: Option<&Json>,
) -> Result<Vec<Message>, MessagesError> {
    let answer = match answer {
        Some(Json::Object(answer)) => answer,
        Some(Json::String(text)) if !text.is_empty() => {
            return Ok(vec![normaliser.plain("assistant", text, None)]);
        }
        _ => return Ok(Vec::new()),
    };
    let choices = answer.get("choices").and_then(Json::as_array);
    let choices = choices.unwrap_or_default();
    normaliser.degradation.unsupported_content += choices.len().saturating_sub(1) as u64;
    if let Some(choice) = choices.first().and_then(Json::as_object) {
        let finish_reason = || usable(choice.get("finish_reason")).map(Text::trimmed);
        match choice.get("message") {
            Some(Json::Object(message)) if !message.is_empty() => {
                return Ok(normaliser
                    .object(message, finish_reason())?
                    .into_iter()
                    .collect());
            }
            _ => {}
        }
        if let Some(Json::String(text)) = choice.get("text") {
            return Ok(vec![normaliser.plain("assistant", text, finish_reason())]);
        }
    }
    match answer.get("output") {
        Some(Json::Array(items)) if !items.is_empty() => normaliser.items(items),
        _ => native(normaliser, answer),
    }
}

/// Returns the message of an answer that is itself a message made of content blocks.
fn native(normaliser: &mut Normaliser, answer: &Object) -> Result<Vec<Message>, MessagesError> {
    if !matches!(
        answer.get("content"),
        Some(Json::Array(_) | Json::String(_))
    ) {
        return Ok(Vec::new());
    }
    let finish_reason = usable(answer.get("stop_reason")).map(Text::trimmed);
    Ok(normaliser
        .object(answer, finish_reason)?
        .into_iter()
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{json, parts_json};

    fn answered(answer: &str) -> (Vec<String>, Option<Text>) {
        let mut normaliser = Normaliser::default();
        let messages = output(&mut normaliser, Some(&json(answer))).unwrap();
        let finish_reason = messages
            .first()
            .and_then(|message| message.finish_reason.clone());
        (messages.iter().map(parts_json).collect(), finish_reason)
    }

    #[test]
    fn the_first_known_form_of_a_response_is_the_answer() {
        let hi = r#"assistant [{"type":"text","content":"hi"}]"#;
        for (answer, expected, finish_reason) in [
            (
                r#"{"choices":[{"finish_reason":" stop ","message":{"role":"assistant","content":"hi"}}],"output":[{"role":"user","content":"no"}]}"#,
                vec![hi],
                Some("stop"),
            ),
            (
                r#"{"choices":[{"message":{},"text":"hi","finish_reason":"length"}]}"#,
                vec![hi],
                Some("length"),
            ),
            (
                r#"{"choices":[{"text":"","finish_reason":5}]}"#,
                vec![r#"assistant [{"type":"text","content":""}]"#],
                None,
            ),
            (
                r#"{"choices":[{"message":null}],"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}"#,
                vec![
                    hi,
                    r#"assistant [{"type":"tool_call","id":"c","name":"f","arguments":{}}]"#,
                ],
                None,
            ),
            (r#""hi""#, vec![hi], None),
            (
                r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"hi"},{"type":"tool_use","id":"t","name":"f","input":{"a":1}}],"stop_reason":"tool_use"}"#,
                vec![
                    r#"assistant [{"type":"text","content":"hi"},{"type":"tool_call","id":"t","name":"f","arguments":{"a":1}}]"#,
                ],
                Some("tool_use"),
            ),
            (
                r#"{"role":"assistant","content":"hi","stop_reason":null}"#,
                vec![hi],
                None,
            ),
            (
                r#"{"choices":[{"message":{"content":"no role"}}],"output":[{"role":"user"}]}"#,
                vec![],
                None,
            ),
            (
                r#"{"choices":["x",{"message":{"role":"assistant","content":"second"}}]}"#,
                vec![],
                None,
            ),
            (r#"{"choices":[],"output":[]}"#, vec![], None),
            (r#"{"content":{"a":1},"role":"assistant"}"#, vec![], None),
            (r#""""#, vec![], None),
            ("5", vec![], None),
            ("[]", vec![], None),
        ] {
            let (messages, found) = answered(answer);
            assert_eq!(messages, expected, "{answer}");
            assert_eq!(found, finish_reason.map(Text::from), "{answer}");
        }
    }

    #[test]
    fn only_the_first_choice_is_kept_and_the_others_are_counted() {
        let answer = json(
            r#"{"choices":[{"message":{"role":"assistant","content":"a"}},{"message":{"role":"assistant","content":"b"}}]}"#,
        );
        let mut normaliser = Normaliser::default();
        assert_eq!(output(&mut normaliser, Some(&answer)).unwrap().len(), 1);
        assert_eq!(normaliser.degradation.unsupported_content, 1);
    }
}
