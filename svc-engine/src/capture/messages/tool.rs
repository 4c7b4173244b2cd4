//! Tool calls and their results.

use svc_model::evidence::Part;
use svc_model::json::{Json, Object, OverBudget, Text};

use super::MessagesError;
use super::embedded;
use super::identity::identity;
use super::message::{Draft, Normaliser, Origin};

/// The name of the argument of a tool that takes free text.
const FREE_INPUT: &str = "input";

impl Normaliser {
    /// Returns a tool call, if it has an id.
    pub(super) fn tool_call(
        &mut self,
        id: Option<&str>,
        name: Option<&Json>,
        arguments: Object,
        origin: Origin,
    ) -> Option<Draft> {
        let Some(id) = id else {
            self.degradation.missing_id += 1;
            return None;
        };
        let part = Part::ToolCall {
            id: id.to_owned(),
            name: tool_name(name),
            arguments,
        };
        Some(Draft { part, origin })
    }

    /// Returns the result of a tool call, if it has an id.
    pub(super) fn tool_result(&mut self, id: Option<&str>, result: Option<&Json>) -> Option<Draft> {
        let Some(id) = id else {
            self.degradation.missing_id += 1;
            return None;
        };
        let (result, origin) = self.decoded(result);
        Some(Draft {
            part: Part::ToolCallResponse {
                id: id.to_owned(),
                result,
            },
            origin,
        })
    }

    /// Appends the tool calls beside the content of a chat message.
    pub(super) fn chat_calls(
        &mut self,
        calls: &[Json],
        drafts: &mut Vec<Draft>,
    ) -> Result<(), MessagesError> {
        for call in calls {
            let function_call = call.as_object().filter(|call| match call.get("type") {
                None | Some(Json::Null) => true,
                Some(kind) => kind.as_str() == Some("function"),
            });
            let Some(call) = function_call else {
                self.degradation.unsupported_content += 1;
                continue;
            };
            let function = call.get("function").and_then(Json::as_object);
            let member = |name| function.and_then(|function| function.get(name));
            let id = identity(call.get("id"))?;
            let (arguments, origin) = self.arguments(member("arguments"));
            if let Some(draft) = self.tool_call(id, member("name"), arguments, origin) {
                self.add(draft, drafts)?;
            }
        }
        Ok(())
    }

    /// Returns the arguments of a tool call: an object, or the object in a text. Otherwise they are
    /// empty.
    pub(super) fn arguments(&mut self, arguments: Option<&Json>) -> (Object, Origin) {
        let given = match arguments {
            Some(Json::Object(object)) => {
                // Arguments that do not fit are left out; the exhausted budget refuses the call in
                // the end.
                let arguments = match self.memory.take(object.memory()) {
                    Ok(()) => object.clone(),
                    Err(OverBudget) => Object::new(),
                };
                return (arguments, Origin::Verbatim);
            }
            Some(Json::String(text)) => match embedded::object_within(text, &self.memory) {
                Some(object) => return (object, Origin::Decoded),
                None => !text.is_blank(),
            },
            None | Some(Json::Null) => false,
            Some(_) => true,
        };
        self.degradation.malformed_arguments += u64::from(given);
        (Object::new(), Origin::Verbatim)
    }

    /// Returns the arguments of a tool that takes free text.
    pub(super) fn free_input(&mut self, input: Option<&Json>) -> Object {
        if let Some(Json::String(text)) = input {
            return Object::from_iter([(FREE_INPUT, text.clone())]);
        }
        self.degradation.malformed_arguments += 1;
        Object::new()
    }

    /// Returns a result. A text that is a JSON document is decoded.
    pub(super) fn decoded(&self, result: Option<&Json>) -> (Json, Origin) {
        let result = result.unwrap_or(&Json::Null);
        if let Json::String(text) = result
            && let Some(document) = embedded::document(text, &self.memory)
        {
            return (document, Origin::Decoded);
        }
        let bytes = result.memory().max(result.canonical_len());
        let result = match self.memory.take(bytes) {
            Ok(()) => result.clone(),
            Err(OverBudget) => Json::Null,
        };
        (result, Origin::Verbatim)
    }
}

fn tool_name(name: Option<&Json>) -> Text {
    match name {
        None | Some(Json::Null) => Text::default(),
        Some(Json::String(name)) => name.clone(),
        Some(other) => String::from_utf8_lossy(&other.to_canonical())
            .into_owned()
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::degradation::Degradation;
    use super::super::testing::json;
    use super::*;

    fn decoded(result: &Json) -> (Json, Origin) {
        Normaliser::default().decoded(Some(result))
    }

    #[test]
    fn tool_arguments_always_become_an_object() {
        for (sent, expected, malformed) in [
            (r#"{"a":1.10}"#, r#"{"a":1.10}"#, 0),
            (r#""{\"a\":1.10}""#, r#"{"a":1.10}"#, 0),
            (r#"" {\"a\":{\"b\":null}} ""#, r#"{"a":{"b":null}}"#, 0),
            (r#""{bad""#, "{}", 1),
            (r#""[1]""#, "{}", 1),
            (r#""5""#, "{}", 1),
            (r#""""#, "{}", 0),
            ("null", "{}", 0),
            ("5", "{}", 1),
            ("[1]", "{}", 1),
        ] {
            let mut normaliser = Normaliser::default();
            let (arguments, _) = normaliser.arguments(Some(&json(sent)));
            assert_eq!(Json::Object(arguments), json(expected), "{sent}");
            let left_out = Degradation {
                malformed_arguments: malformed,
                ..Degradation::default()
            };
            assert_eq!(normaliser.degradation, left_out, "{sent}");
        }
    }

    #[test]
    fn a_result_that_is_a_document_is_decoded() {
        for (sent, expected) in [
            (r#""5""#, "5"),
            (r#""\"q\"""#, r#""q""#),
            (r#""NaN""#, "NaN"),
            (r#"" [1, 2] ""#, "[1,2]"),
            (r#""{\"a\":1e5}""#, r#"{"a":1e5}"#),
            (r#""5 apples""#, r#""5 apples""#),
            (r#""{""#, r#""{""#),
            (r#""""#, r#""""#),
            ("5", "5"),
            (
                r#"[{"type":"text","text":"{}"}]"#,
                r#"[{"type":"text","text":"{}"}]"#,
            ),
            ("null", "null"),
        ] {
            assert_eq!(decoded(&json(sent)).0, json(expected), "{sent}");
        }
        assert_eq!(Normaliser::default().decoded(None).0, Json::Null);
        let deep = Json::from("[".repeat(513) + &"]".repeat(513));
        assert_eq!(decoded(&deep), (deep.clone(), Origin::Verbatim));
    }

    #[test]
    fn a_tool_name_that_is_not_text_is_written_as_json() {
        for (sent, expected) in [
            (r#"" Edit ""#, " Edit "),
            ("null", ""),
            ("5", "5"),
            (r#"{"a":[true]}"#, r#"{"a":[true]}"#),
        ] {
            assert_eq!(tool_name(Some(&json(sent))), Text::from(expected), "{sent}");
        }
        assert_eq!(tool_name(None), Text::default());
    }

    #[test]
    fn only_chat_tool_calls_with_an_id_and_a_function_type_are_kept() {
        let calls = json(
            r#"[{"id":"t1","type":"function","function":{"name":"edit","arguments":"{\"n\":1}"}},
                {"id":"t2","type":null,"function":{"name":"edit","arguments":{"already":"object"}}},
                {"id":" t3 ","function":"junk"},{"type":"function","function":{"name":"noid"}},
                {"id":"t5","type":5},{"id":"t6","type":"custom"},"junk"]"#,
        );
        let mut normaliser = Normaliser::default();
        let mut drafts = Vec::new();
        normaliser
            .chat_calls(calls.as_array().unwrap(), &mut drafts)
            .unwrap();
        let ids: Vec<_> = drafts
            .iter()
            .map(|draft| match &draft.part {
                Part::ToolCall { id, .. } => id.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(ids, ["t1", "t2", "t3"]);
        let left_out = Degradation {
            missing_id: 1,
            unsupported_content: 3,
            ..Degradation::default()
        };
        assert_eq!(normaliser.degradation, left_out);
    }
}
