//! Tool calls and their results.

use svc_model::evidence::Part;
use svc_model::json::{Json, Object, OverBudget, Text};

use crate::MessagesError;
use crate::embedded;
use crate::identity::identity;
use crate::media;
use crate::message::{Draft, Normaliser, Origin};

/// The name of the argument of a tool that takes free text.
const FREE_INPUT: &str = "input";

/// The arguments of a tool call.
#[derive(Debug)]
pub(crate) struct Arguments {
    object: Object,
    /// What was sent in place of an object.
    sent: Option<Text>,
    origin: Origin,
}

impl Arguments {
    const fn new(object: Object, origin: Origin) -> Self {
        Self {
            object,
            sent: None,
            origin,
        }
    }
}

impl Default for Arguments {
    fn default() -> Self {
        Self::new(Object::new(), Origin::Verbatim)
    }
}

impl Normaliser {
    /// Returns a tool call, if it has an id.
    pub(crate) fn tool_call(
        &mut self,
        id: Option<&str>,
        name: Option<&Json>,
        arguments: Arguments,
    ) -> Option<Draft> {
        let Some(id) = id else {
            self.degradation.missing_id += 1;
            return None;
        };
        let part = Part::ToolCall {
            id: id.to_owned(),
            name: tool_name(name),
            arguments: arguments.object,
            sent: arguments.sent,
        };
        Some(Draft {
            part,
            origin: arguments.origin,
        })
    }

    /// Returns the result of a tool call, if it has an id.
    pub(crate) fn tool_result(&mut self, id: Option<&str>, result: Option<&Json>) -> Option<Draft> {
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
    pub(crate) fn chat_calls(
        &mut self,
        calls: &[Json],
        drafts: &mut Vec<Draft>,
    ) -> Result<(), MessagesError> {
        for call in calls {
            let Some(call) = call.as_object() else {
                self.degradation.unsupported_content += 1;
                continue;
            };
            let id = identity(call.get("id"))?;
            let (name, arguments) = match call.get("type") {
                None | Some(Json::Null) => self.chat_call(call),
                Some(kind) => match (kind.as_str(), call.get("custom")) {
                    (Some("function"), _) => self.chat_call(call),
                    (Some("custom"), Some(Json::Object(custom))) => {
                        (custom.get("name"), self.free_input(custom.get("input")))
                    }
                    _ => {
                        self.degradation.unsupported_content += 1;
                        continue;
                    }
                },
            };
            if let Some(draft) = self.tool_call(id, name, arguments) {
                self.add(draft, drafts)?;
            }
        }
        Ok(())
    }

    fn chat_call<'c>(&mut self, call: &'c Object) -> (Option<&'c Json>, Arguments) {
        let function = call.get("function").and_then(Json::as_object);
        let member = |name| function.and_then(|function| function.get(name));
        (member("name"), self.arguments(member("arguments")))
    }

    /// Returns the call of the function that an old chat message names. It has no id; its result
    /// names the function too.
    pub(crate) fn old_call(&mut self, call: &Object) -> Option<Draft> {
        let arguments = self.arguments(call.get("arguments"));
        let id = identity(call.get("name")).ok().flatten();
        self.tool_call(id, call.get("name"), arguments)
    }

    /// Returns the call, and the result if it has one, of an item of a tool that the model's
    /// provider runs or defines; `None` for any other item.
    pub(crate) fn built_in(&mut self, item: &Object) -> Result<Option<Vec<Draft>>, MessagesError> {
        let kind = item.get("type").and_then(Json::as_str).unwrap_or_default();
        let id = match identity(item.get("call_id"))? {
            Some(id) => Some(id),
            None => identity(item.get("id"))?,
        };
        let mut result = None;
        let call = match kind {
            "mcp_call" => {
                let given = |name| item.get(name).filter(|value| !value.is_null());
                result = given("output").or_else(|| given("error"));
                let arguments = self.arguments(item.get("arguments"));
                self.tool_call(id, item.get("name"), arguments)
            }
            "code_interpreter_call" => {
                result = item.get("outputs").filter(|outputs| !outputs.is_null());
                let code = item.get("code").filter(|code| !code.is_null());
                let code = code.map(|code| ("code", code.clone()));
                let arguments = self.arguments(Some(&Object::from_iter(code).into()));
                self.tool_call(id, Some(&"code_interpreter".into()), arguments)
            }
            "local_shell_call" | "shell_call" | "apply_patch_call" => {
                let arguments = item.get("action").or_else(|| item.get("operation"));
                let arguments = self.arguments(arguments);
                let name = kind.trim_end_matches("_call");
                self.tool_call(id, Some(&name.into()), arguments)
            }
            "local_shell_call_output" | "shell_call_output" | "apply_patch_call_output" => {
                self.tool_result(id, item.get("output"))
            }
            _ => return Ok(None),
        };
        let mut drafts = Vec::new();
        let result = result.and_then(|result| self.tool_result(id, Some(result)));
        for draft in call.into_iter().chain(result) {
            self.add(draft, &mut drafts)?;
        }
        Ok(Some(drafts))
    }

    /// Returns the arguments of a tool call: an object, or the object in a text. Otherwise they are
    /// empty, and what was sent is kept beside them.
    pub(crate) fn arguments(&mut self, arguments: Option<&Json>) -> Arguments {
        let sent = match arguments {
            Some(Json::Object(object)) => {
                // Arguments that do not fit are left out; the exhausted budget refuses the call in
                // the end.
                return match self.memory.take(object.memory()) {
                    Ok(()) => Arguments::new(object.clone(), Origin::Verbatim),
                    Err(OverBudget) => Arguments::default(),
                };
            }
            Some(Json::String(text)) => match embedded::object_within(text, &self.memory) {
                Some(object) => return Arguments::new(object, Origin::Decoded),
                None => Some(text.clone()).filter(|text| !text.is_blank()),
            },
            None | Some(Json::Null) => None,
            Some(value) => Some(written(value)),
        };
        self.degradation.malformed_arguments += u64::from(sent.is_some());
        let fits = |sent: &Text| self.memory.take(sent.len()).is_ok();
        Arguments {
            sent: sent.filter(fits),
            ..Arguments::default()
        }
    }

    /// Returns the arguments of a tool that takes free text.
    pub(crate) fn free_input(&mut self, input: Option<&Json>) -> Arguments {
        if let Some(Json::String(text)) = input {
            let arguments = Object::from_iter([(FREE_INPUT, text.clone())]);
            return Arguments::new(arguments, Origin::Verbatim);
        }
        self.degradation.malformed_arguments += 1;
        Arguments::default()
    }

    /// Returns a result without its images and files. A text that is a JSON document is decoded.
    pub(crate) fn decoded(&mut self, result: Option<&Json>) -> (Json, Origin) {
        let result = result.unwrap_or(&Json::Null);
        if let Json::String(text) = result
            && let Some(document) = embedded::document(text, &self.memory)
        {
            return (
                self.without_media(&document).unwrap_or(document),
                Origin::Decoded,
            );
        }
        if let Some(result) = self.without_media(result) {
            return (result, Origin::Verbatim);
        }
        let bytes = result.memory().max(result.canonical_len());
        let result = match self.memory.take(bytes) {
            Ok(()) => result.clone(),
            Err(OverBudget) => Json::Null,
        };
        (result, Origin::Verbatim)
    }

    /// Returns a copy in which a marker stands for each image and file, or `None` if there are
    /// none.
    fn without_media(&mut self, result: &Json) -> Option<Json> {
        let (copy, left_out) = media::without(result)?;
        self.degradation.unsupported_content += left_out;
        // What does not fit is left out; the exhausted budget refuses the call in the end.
        let bytes = copy.memory().max(copy.canonical_len());
        Some(self.memory.take(bytes).map_or(Json::Null, |()| copy))
    }
}

fn tool_name(name: Option<&Json>) -> Text {
    match name {
        None | Some(Json::Null) => Text::default(),
        Some(Json::String(name)) => name.clone(),
        Some(other) => written(other),
    }
}

/// Returns the JSON of a value.
fn written(value: &Json) -> Text {
    String::from_utf8_lossy(&value.to_canonical())
        .into_owned()
        .into()
}

#[cfg(test)]
mod tests {
    use super::super::degradation::Degradation;
    use super::*;
    use crate::testing::json;

    fn decoded(result: &Json) -> (Json, Origin) {
        Normaliser::default().decoded(Some(result))
    }

    #[test]
    fn tool_arguments_always_become_an_object() {
        for (sent, expected, beside) in [
            (r#"{"a":1.10}"#, r#"{"a":1.10}"#, None),
            (r#""{\"a\":1.10}""#, r#"{"a":1.10}"#, None),
            (r#"" {\"a\":{\"b\":null}} ""#, r#"{"a":{"b":null}}"#, None),
            (r#""{bad""#, "{}", Some("{bad")),
            (r#""[1]""#, "{}", Some("[1]")),
            (r#""5""#, "{}", Some("5")),
            (r#""""#, "{}", None),
            ("null", "{}", None),
            ("5", "{}", Some("5")),
            ("[1, 1.10]", "{}", Some("[1,1.10]")),
        ] {
            let mut normaliser = Normaliser::default();
            let arguments = normaliser.arguments(Some(&json(sent)));
            assert_eq!(Json::Object(arguments.object), json(expected), "{sent}");
            assert_eq!(arguments.sent, beside.map(Text::from), "{sent}");
            let left_out = Degradation {
                malformed_arguments: u64::from(beside.is_some()),
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
    fn only_chat_tool_calls_with_an_id_and_a_known_type_are_kept() {
        let calls = json(
            r#"[{"id":"t1","type":"function","function":{"name":"edit","arguments":"{\"n\":1}"}},
                {"id":"t2","type":null,"function":{"name":"edit","arguments":{"already":"object"}}},
                {"id":" t3 ","function":"junk"},{"type":"function","function":{"name":"noid"}},
                {"id":"t5","type":5},{"id":"t6","type":"custom"},"junk",
                {"id":"t7","type":"custom","custom":{"name":"patch","input":"*** Begin"}}]"#,
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
        assert_eq!(ids, ["t1", "t2", "t3", "t7"]);
        let left_out = Degradation {
            missing_id: 1,
            unsupported_content: 3,
            ..Degradation::default()
        };
        assert_eq!(normaliser.degradation, left_out);
    }
}
