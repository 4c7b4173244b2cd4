//! Where a payload has the input and the answer of its call.

use std::borrow::Cow;

use svc_model::evidence::Message;
use svc_model::json::{Json, NodeBudget, Object, Text};

use super::kind;
use crate::gateway::GatewayError;
use svc_messages::{Normaliser, embedded, output};

/// What the gateway puts in place of an input that it does not know.
const UNKNOWN_INPUT: &str = "default-message-value";

/// The input and the answer of a call.
#[derive(Debug)]
pub(super) struct Said<'p> {
    /// The system prompt beside the messages.
    system: Option<Cow<'p, Json>>,
    /// The messages; `None` also if the gateway does not know them.
    messages: Option<Cow<'p, Json>>,
    /// The member of the payload with the messages, unless they were decoded from a text.
    pub(super) member: Option<&'static str>,
    /// The answer.
    pub(super) answer: Option<Cow<'p, Json>>,
    /// The model, if a decoded request names it.
    pub(super) model: Option<Json>,
    is_input_unknown: bool,
}

impl<'p> Said<'p> {
    /// Finds what was said. What is decoded takes its memory from `memory`.
    pub(super) fn of(payload: &'p Json, memory: &NodeBudget) -> Self {
        let member = |name| {
            payload
                .as_object()?
                .get(name)
                .filter(|value| !value.is_null())
        };
        let given = |name| member(name).map(Cow::Borrowed);
        // A sender of its own calls may send OpenAI's request and answer as they are.
        let answer = given("response").or_else(|| match (member("output"), member("choices")) {
            (Some(Json::String(_)), None) => given("output"),
            (None, None) => None,
            _ => Some(Cow::Borrowed(payload)),
        });
        let messages = given("messages");
        let name = if messages.is_some() {
            "messages"
        } else {
            "input"
        };
        let mut said = Self {
            system: given("instructions").filter(|_| name == "input"),
            messages: messages.or_else(|| given(name)),
            member: Some(name),
            answer,
            model: None,
            is_input_unknown: false,
        };
        if only_text(said.messages.as_deref()).is_some_and(|text| *text == *UNKNOWN_INPUT) {
            said.messages = None;
            said.is_input_unknown = true;
        }
        if payload.as_object().is_some_and(kind::is_passed_through) {
            said.decode_request(memory);
            said.decode_answer(memory);
        }
        said
    }

    /// Reads a request that the payload has as a text.
    fn decode_request(&mut self, memory: &NodeBudget) {
        let request = only_text(self.messages.as_deref());
        let Some(mut request) = request.and_then(|text| embedded::object_within(text, memory))
        else {
            return;
        };
        let mut either = |one, other| request.remove(one).or_else(|| request.remove(other));
        if let Some(messages) = either("messages", "input") {
            self.messages = Some(Cow::Owned(messages));
            self.member = None;
            self.system = either("system", "instructions").map(Cow::Owned);
            self.model = request.remove("model");
        }
    }

    /// Reads an answer that the payload has as a text.
    fn decode_answer(&mut self, memory: &NodeBudget) {
        let answer = self.answer.as_deref();
        let (text, is_whole) = match answer {
            Some(Json::String(text)) => (Some(text), true),
            Some(Json::Object(answer)) => match answer.get("response") {
                Some(whole) => (whole.as_text(), true),
                None => (text_of_choice(answer), false),
            },
            _ => return,
        };
        let Some(text) = text else {
            return;
        };
        let is_answer = |answer: &Object| {
            let mut members = ["choices", "output", "content"].iter();
            members.any(|name| answer.contains_key(name))
        };
        match embedded::object_within(text, memory).filter(is_answer) {
            Some(answer) => self.answer = Some(Cow::Owned(answer.into())),
            None if is_whole => self.answer = Some(Cow::Owned(text.clone().into())),
            None => {}
        }
    }

    /// Returns the messages of the input and of the answer.
    pub(super) fn messages(
        &self,
        normaliser: &mut Normaliser,
    ) -> Result<(Vec<Message>, Vec<Message>), GatewayError> {
        let mut input = Vec::new();
        if let Some(system) = self.system.as_deref() {
            let message = [("role", "system".into()), ("content", system.clone())];
            input.extend(normaliser.object(&message.into_iter().collect(), None)?);
        }
        let before = input.len();
        input.extend(normaliser.prompt(self.messages.as_deref())?);
        for place in normaliser.prompt_places.iter_mut().flatten() {
            *place += before;
        }
        normaliser.degradation.unsupported_content += u64::from(self.is_input_unknown);
        let output = output(normaliser, self.answer.as_deref())?;
        Ok((input, output))
    }
}

/// Returns the text of a prompt that is a single text.
fn only_text(messages: Option<&Json>) -> Option<&Text> {
    match messages? {
        Json::String(text) => Some(text),
        Json::Array(items) => match items.as_slice() {
            [Json::Object(message)] => message.get("content")?.as_text(),
            _ => None,
        },
        _ => None,
    }
}

fn text_of_choice(answer: &Object) -> Option<&Text> {
    let choice = answer.get("choices")?.as_array()?.first()?.as_object()?;
    choice
        .get("message")?
        .as_object()?
        .get("content")?
        .as_text()
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::InferenceCall;

    use crate::gateway::testing::call;
    use svc_messages::testing::{json, parts_json};

    fn said(payload: &str) -> (Vec<String>, InferenceCall) {
        let (call, _) = call(json(payload));
        let messages = call.input_messages.iter().chain(&call.output_messages);
        (messages.map(parts_json).collect(), call)
    }

    #[test]
    fn a_request_that_was_passed_through_is_read_as_what_it_is() {
        const CALLED: &str =
            r#"assistant [{"type":"tool_call","id":"t","name":"Read","arguments":{"p":"a"}}]"#;
        let (messages, call) = said(
            r#"{"call_type":"pass_through_endpoint","model":"unknown","prompt_tokens":0,"completion_tokens":0,
                "messages":[{"role":"user","content":"{\"model\":\"m\",\"max_tokens\":9,\"system\":[{\"type\":\"text\",\"text\":\"be careful\"}],\"messages\":[{\"role\":\"user\",\"content\":\"fix\"},{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"Read\",\"input\":{\"p\":\"a\"}}]}]}"}],
                "response":{"response":"{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"done\"}],\"stop_reason\":\"end_turn\"}"}}"#,
        );
        assert_eq!(
            messages,
            [
                r#"system [{"type":"text","content":"be careful"}]"#,
                r#"user [{"type":"text","content":"fix"}]"#,
                CALLED,
                r#"assistant [{"type":"text","content":"done"}]"#,
            ]
        );
        assert_eq!(call.model.as_deref(), Some("m"));
        assert_eq!((call.input_tokens, call.output_tokens), (None, None));
        assert_eq!(
            call.output_messages[0].finish_reason,
            Some("end_turn".into())
        );
        // Only the proxy's own routes are sure to show messages as they are.
        let (messages, _) = said(r#"{"messages":[{"role":"user","content":"{\"messages\":[]}"}]}"#);
        assert_eq!(
            messages,
            [r#"user [{"type":"text","content":"{\"messages\":[]}"}]"#]
        );
    }

    #[test]
    fn an_answer_that_is_passed_through_as_plain_text_stays_text() {
        for (answer, expected) in [
            (r#""plain""#, "plain"),
            (r#"{"response":"event: x"}"#, "event: x"),
            (
                r#"{"choices":[{"message":{"role":"assistant","content":"{}"}}]}"#,
                "{}",
            ),
        ] {
            let payload = format!(r#"{{"call_type":"pass_through_endpoint","response":{answer}}}"#);
            let expected = format!(r#"assistant [{{"type":"text","content":"{expected}"}}]"#);
            assert_eq!(said(&payload).0, [expected], "{answer}");
        }
    }

    #[test]
    fn what_the_gateway_writes_for_an_unknown_input_is_counted_and_no_message() {
        let (messages, call) = said(
            r#"{"messages":[{"role":"user","content":"default-message-value"}],"response":"done"}"#,
        );
        assert_eq!(
            messages,
            [r#"assistant [{"type":"text","content":"done"}]"#]
        );
        assert_eq!(call.left_out.unsupported_content, 1);
    }

    #[test]
    fn a_request_and_an_answer_in_the_form_of_the_responses_interface_are_read() {
        let (messages, call) = said(
            r#"{"instructions":"be brief","input":[{"role":"user","content":"hi"}],
                "output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hello"}]}]}"#,
        );
        assert_eq!(
            messages,
            [
                r#"system [{"type":"text","content":"be brief"}]"#,
                r#"user [{"type":"text","content":"hi"}]"#,
                r#"assistant [{"type":"text","content":"hello"}]"#,
            ]
        );
        let segment = &call.raw.segments[0];
        assert_eq!(
            (segment.place.as_slice(), segment.message),
            ([1, 0].as_slice(), Some(1))
        );
        let (messages, _) = said(r#"{"input":"hi","output":"hello"}"#);
        assert_eq!(messages.len(), 2);
    }
}
