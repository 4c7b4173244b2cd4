//! Converts one logged item to a message, if the item is one.

use svc_model::evidence::{Message, Part};
use svc_model::json::{Json, NodeBudget, Object, Text};

use crate::MessagesError;
use crate::degradation::Degradation;
use crate::identity::{identity, usable};
use crate::tool::Arguments;

/// The memory of a message while it is stored, besides its content: its place in lists with spare
/// capacity, its digest, and the reference to it. In bytes.
const MESSAGE_BYTES: usize = 512;
/// The memory of an item of a prompt: its index, its segment, and its template. In bytes.
const ITEM_BYTES: usize = 256;
/// The memory of a part while it is converted, in bytes.
const PART_BYTES: usize = 256;

/// Converts the items of a payload to messages, and counts what is left out.
#[derive(Debug)]
pub struct Normaliser {
    /// The memory budget for the messages and the documents decoded for them.
    pub memory: NodeBudget,
    pub degradation: Degradation,
    /// The origin of each part of the messages, in order.
    pub origins: Vec<Origin>,
    /// The index of the message of each item of the prompt.
    pub prompt_places: Vec<Option<usize>>,
}

/// Where a part came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The part's strings are strings of the payload.
    Verbatim,
    /// The part was decoded from a document in a string.
    Decoded,
}

/// A part that has not been added to a message yet.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) part: Part,
    pub(crate) origin: Origin,
}

impl Draft {
    pub(crate) fn text(content: &Text) -> Self {
        Self {
            part: Part::Text {
                content: content.clone(),
            },
            origin: Origin::Verbatim,
        }
    }

    pub(crate) fn reasoning(content: &Text) -> Self {
        Self {
            part: Part::Reasoning {
                content: content.clone(),
            },
            origin: Origin::Verbatim,
        }
    }

    /// Returns the bytes of the draft's texts in stored form. Arguments and results are not
    /// counted: their memory was taken when they were decoded.
    fn text_bytes(&self) -> usize {
        match &self.part {
            Part::Text { content } | Part::Reasoning { content } => content.escaped_len(),
            Part::ToolCall { id, name, .. } => id.len() + name.len(),
            Part::ToolCallResponse { id, .. } => id.len(),
        }
    }
}

#[cfg(test)]
impl Default for Normaliser {
    fn default() -> Self {
        Self::new(NodeBudget::unlimited())
    }
}

impl Normaliser {
    pub fn new(memory: NodeBudget) -> Self {
        Self {
            memory,
            degradation: Degradation::default(),
            origins: Vec::new(),
            prompt_places: Vec::new(),
        }
    }

    /// Adds a part to a message's parts.
    pub(crate) fn add(&self, draft: Draft, drafts: &mut Vec<Draft>) -> Result<(), MessagesError> {
        self.memory.take(PART_BYTES + draft.text_bytes())?;
        drafts.push(draft);
        Ok(())
    }

    /// Returns the messages of a prompt: a list of items, an object with such a list, or the user's
    /// plain text.
    pub fn prompt(&mut self, prompt: Option<&Json>) -> Result<Vec<Message>, MessagesError> {
        match prompt {
            Some(Json::Array(items)) => self.prompt_items(items),
            Some(Json::Object(holder)) => {
                if let Some(Json::Array(items)) = holder.get("messages") {
                    return self.prompt_items(items);
                }
                self.degradation.unsupported_content += 1;
                Ok(Vec::new())
            }
            Some(Json::String(text)) if !text.is_empty() => {
                Ok(vec![self.plain("user", text, None)])
            }
            None | Some(Json::Null | Json::String(_)) => Ok(Vec::new()),
            Some(Json::Bool(_) | Json::Number(_)) => {
                self.degradation.unsupported_content += 1;
                Ok(Vec::new())
            }
        }
    }

    /// Returns the messages of a list of items.
    pub fn prompt_items(&mut self, items: &[Json]) -> Result<Vec<Message>, MessagesError> {
        let mut messages = Vec::new();
        for item in items {
            let message = self.item(item)?;
            self.memory.take(ITEM_BYTES)?;
            self.prompt_places
                .push(message.is_some().then_some(messages.len()));
            if let Some(message) = message {
                self.memory.take(MESSAGE_BYTES)?;
                messages.push(message);
            }
        }
        Ok(messages)
    }

    pub fn items(&mut self, items: &[Json]) -> Result<Vec<Message>, MessagesError> {
        let mut messages = Vec::new();
        for item in items {
            if let Some(message) = self.item(item)? {
                self.memory.take(MESSAGE_BYTES)?;
                messages.push(message);
            }
        }
        Ok(messages)
    }

    /// Returns the message of an item in a list.
    fn item(&mut self, item: &Json) -> Result<Option<Message>, MessagesError> {
        if let Some(item) = item.as_object() {
            return self.object(item, None);
        }
        self.degradation.unsupported_content += 1;
        Ok(None)
    }

    /// Returns the message of an item, in either interface's form.
    pub fn object(
        &mut self,
        item: &Object,
        finish_reason: Option<Text>,
    ) -> Result<Option<Message>, MessagesError> {
        let kind = match item.get("type") {
            None | Some(Json::Null) => "message",
            Some(kind) => kind.as_str().unwrap_or_default(),
        };
        let (role, draft) = match kind {
            "message" => return self.ordinary(item, finish_reason),
            "function_call" => {
                let arguments = self.arguments(item.get("arguments"));
                ("assistant", self.called_item(item, arguments)?)
            }
            "custom_tool_call" => {
                let arguments = self.free_input(item.get("input"));
                ("assistant", self.called_item(item, arguments)?)
            }
            "function_call_output" | "custom_tool_call_output" => {
                let id = identity(item.get("call_id"))?;
                ("tool", self.tool_result(id, item.get("output")))
            }
            "reasoning" => {
                let drafts = self.item_reasoning(item)?;
                return Ok(drafts.map(|drafts| self.message("assistant".into(), drafts, None)));
            }
            // Tool definitions are never kept, wherever they stand.
            "additional_tools" => return Ok(None),
            _ => {
                let Some(drafts) = self.built_in(item)? else {
                    self.degradation.unsupported_content += 1;
                    return Ok(None);
                };
                let role = if kind.ends_with("_output") {
                    "tool"
                } else {
                    "assistant"
                };
                let message = !drafts.is_empty();
                return Ok(message.then(|| self.message(role.into(), drafts, None)));
            }
        };
        Ok(draft.map(|draft| self.message(role.into(), vec![draft], None)))
    }

    /// Returns a message that has one text.
    pub(crate) fn plain(
        &mut self,
        role: &str,
        text: &Text,
        finish_reason: Option<Text>,
    ) -> Message {
        self.message(role.into(), vec![Draft::text(text)], finish_reason)
    }

    pub(crate) fn message(
        &mut self,
        role: Text,
        drafts: Vec<Draft>,
        finish_reason: Option<Text>,
    ) -> Message {
        self.origins.extend(drafts.iter().map(|draft| draft.origin));
        let parts = drafts.into_iter().map(|draft| draft.part).collect();
        Message {
            role,
            parts,
            finish_reason,
        }
    }

    fn called_item(
        &mut self,
        item: &Object,
        arguments: Arguments,
    ) -> Result<Option<Draft>, MessagesError> {
        let id = match identity(item.get("call_id"))? {
            Some(id) => Some(id),
            None => identity(item.get("id"))?,
        };
        Ok(self.tool_call(id, item.get("name"), arguments))
    }

    fn ordinary(
        &mut self,
        item: &Object,
        finish_reason: Option<Text>,
    ) -> Result<Option<Message>, MessagesError> {
        let Some(role) = usable(item.get("role")).map(Text::trimmed) else {
            self.degradation.unsupported_content += 1;
            return Ok(None);
        };
        self.count_unread(item);
        let result_of = match role.as_str() {
            Some("tool") => identity(item.get("tool_call_id"))?,
            // An old result names its function only.
            Some("function") => identity(item.get("name")).ok().flatten(),
            _ => None,
        };
        if let Some(id) = result_of {
            let (result, origin) = self.decoded(item.get("content"));
            let part = Part::ToolCallResponse {
                id: id.to_owned(),
                result,
            };
            return Ok(Some(self.message(
                role,
                vec![Draft { part, origin }],
                finish_reason,
            )));
        }
        let assistant = role == "assistant";
        let mut drafts = Vec::new();
        if let Some(content) = item.get("content") {
            self.content(content, &mut drafts)?;
        }
        if assistant {
            let inline = drafts
                .iter()
                .any(|draft| matches!(draft.part, Part::Reasoning { .. }));
            if !inline {
                drafts.splice(0..0, self.sibling_reasoning(item)?);
            }
            drafts.extend(usable(item.get("refusal")).map(Draft::text));
        }
        match (item.get("tool_calls"), item.get("function_call")) {
            (Some(Json::Array(calls)), _) if !calls.is_empty() => {
                self.chat_calls(calls, &mut drafts)?;
            }
            (_, Some(Json::Object(call))) => {
                if let Some(draft) = self.old_call(call) {
                    self.add(draft, &mut drafts)?;
                }
            }
            _ => {}
        }
        Ok(Some(self.message(role, drafts, finish_reason)))
    }

    /// Counts the members of a message that hold text and are not read, such as the transcript of
    /// an answer that was spoken.
    fn count_unread(&mut self, item: &Object) {
        let unread = item.iter().filter(|(name, value)| {
            let is_known = name.as_str().is_some_and(|name| MEMBERS.contains(&name));
            !is_known && holds_text(value)
        });
        self.degradation.unsupported_content += unread.count() as u64;
    }
}

/// The members of a message that are read, and those that say nothing of what was said.
const MEMBERS: [&str; 31] = [
    "role",
    "content",
    "type",
    "tool_calls",
    "tool_call_id",
    "function_call",
    "refusal",
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "thinking_blocks",
    "provider_specific_fields",
    "annotations",
    "name",
    "id",
    "status",
    "phase",
    "model",
    "object",
    "created",
    "index",
    "cache_control",
    "stop_reason",
    "stop_sequence",
    "finish_reason",
    "usage",
    "metadata",
    "container",
    "context_management",
    "service_tier",
    "timestamp",
];

fn holds_text(value: &Json) -> bool {
    match value {
        Json::String(text) => !text.is_blank(),
        Json::Array(items) => items.iter().any(holds_text),
        Json::Object(members) => members.iter().any(|(_, value)| holds_text(value)),
        Json::Null | Json::Bool(_) | Json::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{json, parts_json};

    fn prompted(prompt: &str) -> (Vec<String>, Degradation) {
        let mut normaliser = Normaliser::default();
        let messages = normaliser.prompt(Some(&json(prompt))).unwrap();
        let parts: usize = messages.iter().map(|message| message.parts.len()).sum();
        assert_eq!(normaliser.origins.len(), parts, "{prompt}");
        (
            messages.iter().map(parts_json).collect(),
            normaliser.degradation,
        )
    }

    /// Returns the role and the parts of the only message of an item.
    fn read(item: &str) -> Option<String> {
        prompted(&format!("[{item}]")).0.pop()
    }

    #[test]
    fn a_prompt_is_a_message_list_an_object_with_messages_or_text() {
        let hi = r#"user [{"type":"text","content":"hi"}]"#;
        for (prompt, expected) in [
            (r#"[{"role":"user","content":"hi"}]"#, vec![hi]),
            (r#"{"messages":[{"role":"user","content":"hi"}]}"#, vec![hi]),
            (r#""hi""#, vec![hi]),
            (r#""""#, vec![]),
            (r#"{"messages":"hi"}"#, vec![]),
            (r#"{"role":"user","content":"hi"}"#, vec![]),
            ("null", vec![]),
            ("5", vec![]),
            ("[]", vec![]),
        ] {
            assert_eq!(prompted(prompt).0, expected, "{prompt}");
        }
    }

    #[test]
    fn items_that_are_not_messages_are_dropped() {
        for item in [
            "null",
            "\"text\"",
            "5",
            "[]",
            "{}",
            r#"{"content":"no role"}"#,
            r#"{"role":" ","content":"x"}"#,
            r#"{"role":5,"content":"x"}"#,
            r#"{"type":"web_search_call","role":"user","content":"x"}"#,
            r#"{"type":5,"role":"user","content":"x"}"#,
            r#"{"type":"","role":"user"}"#,
            r#"{"type":"Message","role":"user"}"#,
        ] {
            assert_eq!(read(item), None, "{item}");
        }
        let tools = r#"[{"type":"additional_tools","role":"developer","tools":[{}]}]"#;
        let (messages, left_out) = prompted(tools);
        assert_eq!(messages.len(), 0);
        assert_eq!(left_out, Degradation::default());
        let (_, left_out) = prompted(r#"["x",{"type":"web_search_call"},{"content":"x"}]"#);
        assert_eq!(
            left_out,
            Degradation {
                unsupported_content: 3,
                ..Degradation::default()
            }
        );
    }

    #[test]
    fn a_message_keeps_its_role_even_without_content() {
        for (item, expected) in [
            (r#"{"role":" Developer ","type":null}"#, "Developer []"),
            (
                r#"{"role":"user","type":"message","content":null}"#,
                "user []",
            ),
            (r#"{"role":"user","content":[]}"#, "user []"),
            (r#"{"role":"user","content":5}"#, "user []"),
            (
                r#"{"role":"user","content":""}"#,
                r#"user [{"type":"text","content":""}]"#,
            ),
            (
                r#"{"role":"user","content":{"type":"text","text":"one block"}}"#,
                r#"user [{"type":"text","content":"one block"}]"#,
            ),
            (
                r#"{"role":"a\u0000\ud800","content":"\u0000\ud800"}"#,
                r#"a\u0000\ud800 [{"type":"text","content":"\u0000\ud800"}]"#,
            ),
        ] {
            assert_eq!(read(item).as_deref(), Some(expected), "{item}");
        }
    }

    #[test]
    fn a_tool_message_with_an_id_is_one_result() {
        for (item, expected) in [
            (
                r#"{"role":"tool","tool_call_id":" t ","content":"{\"a\":1}","tool_calls":[{"id":"x","function":{}}]}"#,
                r#"tool [{"type":"tool_call_response","id":"t","result":{"a":1}}]"#,
            ),
            (
                r#"{"role":" tool ","tool_call_id":"t"}"#,
                r#"tool [{"type":"tool_call_response","id":"t","result":null}]"#,
            ),
            (
                r#"{"role":"tool","tool_call_id":"t","content":[{"type":"text","text":"x"}]}"#,
                r#"tool [{"type":"tool_call_response","id":"t","result":[{"type":"text","text":"x"}]}]"#,
            ),
            (
                r#"{"role":"tool","tool_call_id":" ","content":"x"}"#,
                r#"tool [{"type":"text","content":"x"}]"#,
            ),
            (
                r#"{"role":"tool","tool_call_id":5,"content":"x","tool_calls":[{"id":"i","function":{"name":"f"}}]}"#,
                r#"tool [{"type":"text","content":"x"},{"type":"tool_call","id":"i","name":"f","arguments":{}}]"#,
            ),
            (
                r#"{"role":"Tool","tool_call_id":"t","content":"5"}"#,
                r#"Tool [{"type":"text","content":"5"}]"#,
            ),
        ] {
            assert_eq!(read(item).as_deref(), Some(expected), "{item}");
        }
    }

    #[test]
    fn items_of_the_responses_api_are_normalised() {
        for (item, expected) in [
            (
                r#"{"type":"function_call","call_id":" c ","id":"i","name":"f","arguments":"{\"a\":1}"}"#,
                Some(r#"assistant [{"type":"tool_call","id":"c","name":"f","arguments":{"a":1}}]"#),
            ),
            (
                r#"{"type":"function_call","call_id":" ","id":"i","name":"f"}"#,
                Some(r#"assistant [{"type":"tool_call","id":"i","name":"f","arguments":{}}]"#),
            ),
            (
                r#"{"type":"function_call","name":"f","arguments":"{}"}"#,
                None,
            ),
            (
                r#"{"type":"function_call_output","call_id":"c","output":"[1, 2]"}"#,
                Some(r#"tool [{"type":"tool_call_response","id":"c","result":[1,2]}]"#),
            ),
            (
                r#"{"type":"function_call_output","id":"c","output":"x"}"#,
                None,
            ),
            (
                r#"{"type":"function_call_output","call_id":"c"}"#,
                Some(r#"tool [{"type":"tool_call_response","id":"c","result":null}]"#),
            ),
            (
                r#"{"type":"custom_tool_call","call_id":"c","name":"apply_patch","input":"*** Begin"}"#,
                Some(
                    r#"assistant [{"type":"tool_call","id":"c","name":"apply_patch","arguments":{"input":"*** Begin"}}]"#,
                ),
            ),
            (
                r#"{"type":"custom_tool_call_output","call_id":"c","output":"{\"output\":\"Done\"}"}"#,
                Some(r#"tool [{"type":"tool_call_response","id":"c","result":{"output":"Done"}}]"#),
            ),
            (
                r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"one"},{"text":" "},{"text":"two"}],"encrypted_content":"zz"}"#,
                Some(
                    r#"assistant [{"type":"reasoning","content":"one"},{"type":"reasoning","content":"two"}]"#,
                ),
            ),
            (
                r#"{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"raw"}]}"#,
                Some(r#"assistant [{"type":"reasoning","content":"raw"}]"#),
            ),
            (
                r#"{"type":"reasoning","summary":[],"encrypted_content":"zz"}"#,
                None,
            ),
        ] {
            assert_eq!(read(item).as_deref(), expected, "{item}");
        }
    }

    #[test]
    fn a_built_in_tool_of_the_responses_api_is_a_call_with_its_result() {
        for (item, expected) in [
            (
                r#"{"type":"mcp_call","id":"m1","name":"find","arguments":"{\"q\":1}","output":"two"}"#,
                r#"assistant [{"type":"tool_call","id":"m1","name":"find","arguments":{"q":1}},{"type":"tool_call_response","id":"m1","result":"two"}]"#,
            ),
            (
                r#"{"type":"mcp_call","id":"m1","name":"find","arguments":"{}","output":null,"error":"down"}"#,
                r#"assistant [{"type":"tool_call","id":"m1","name":"find","arguments":{}},{"type":"tool_call_response","id":"m1","result":"down"}]"#,
            ),
            (
                r#"{"type":"code_interpreter_call","id":"c1","code":"print(1)","outputs":[{"type":"logs","logs":"1"}]}"#,
                r#"assistant [{"type":"tool_call","id":"c1","name":"code_interpreter","arguments":{"code":"print(1)"}},{"type":"tool_call_response","id":"c1","result":[{"type":"logs","logs":"1"}]}]"#,
            ),
            (
                r#"{"type":"local_shell_call","id":"x","call_id":"s1","action":{"command":["ls"]}}"#,
                r#"assistant [{"type":"tool_call","id":"s1","name":"local_shell","arguments":{"command":["ls"]}}]"#,
            ),
            (
                r#"{"type":"local_shell_call_output","call_id":"s1","output":"a.py"}"#,
                r#"tool [{"type":"tool_call_response","id":"s1","result":"a.py"}]"#,
            ),
            (
                r#"{"type":"apply_patch_call","call_id":"p1","operation":{"path":"a.py"}}"#,
                r#"assistant [{"type":"tool_call","id":"p1","name":"apply_patch","arguments":{"path":"a.py"}}]"#,
            ),
        ] {
            assert_eq!(read(item).as_deref(), Some(expected), "{item}");
        }
    }

    #[test]
    fn reasoning_beside_the_content_comes_first_unless_the_content_has_its_own() {
        let reasoned = |text: &str| {
            format!(
                r#"assistant [{{"type":"reasoning","content":"{text}"}},{{"type":"text","content":"a"}}]"#
            )
        };
        for (item, expected) in [
            (
                r#"{"role":"assistant","content":"a","reasoning_content":" flat "}"#,
                reasoned(" flat "),
            ),
            (
                r#"{"role":"assistant","content":"a","reasoning_content":"flat","thinking_blocks":[{"type":"thinking","thinking":"block"},{"type":"redacted_thinking"}]}"#,
                reasoned("block"),
            ),
            (
                r#"{"role":"assistant","content":"a","reasoning_content":"flat","thinking_blocks":[{"type":"redacted_thinking"}]}"#,
                reasoned("flat"),
            ),
            (
                r#"{"role":"assistant","content":"a","thinking_blocks":[],"provider_specific_fields":{"thinking_blocks":[{"type":"thinking","thinking":"nested"}]},"reasoning_content":"flat"}"#,
                reasoned("flat"),
            ),
            (
                r#"{"role":"assistant","content":"a","thinking_blocks":null,"provider_specific_fields":{"thinking_blocks":[{"type":"reasoning","text":"nested"}]}}"#,
                reasoned("nested"),
            ),
            (
                r#"{"role":"assistant","content":[{"type":"thinking","thinking":"inline"},{"type":"text","text":"a"}],"reasoning_content":"flat"}"#,
                reasoned("inline"),
            ),
            (
                r#"{"role":"user","content":"a","reasoning_content":"flat"}"#,
                r#"user [{"type":"text","content":"a"}]"#.to_owned(),
            ),
            (
                r#"{"role":"assistant","content":"a","reasoning_content":" "}"#,
                r#"assistant [{"type":"text","content":"a"}]"#.to_owned(),
            ),
        ] {
            assert_eq!(read(item), Some(expected), "{item}");
        }
    }

    #[test]
    fn a_refusal_is_text_before_the_tool_calls() {
        assert_eq!(
            read(r#"{"role":"assistant","content":null,"refusal":"no","tool_calls":[{"id":"t","function":{"name":"f"}}]}"#).as_deref(),
            Some(r#"assistant [{"type":"text","content":"no"},{"type":"tool_call","id":"t","name":"f","arguments":{}}]"#)
        );
        assert_eq!(
            read(r#"{"role":"assistant","refusal":null}"#).as_deref(),
            Some("assistant []")
        );
    }

    #[test]
    fn an_invalid_tool_call_id_refuses_the_payload() {
        for item in [
            r#"{"role":"tool","tool_call_id":"x\u0000","content":"a"}"#,
            r#"{"type":"function_call","call_id":"\ud800"}"#,
            r#"{"type":"function_call_output","call_id":"x\u0000"}"#,
            r#"{"role":"assistant","tool_calls":[{"id":"x\u0000","function":{}}]}"#,
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"x\u0000"}]}"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"x\u0000"}]}"#,
        ] {
            let prompt = json(&format!("[{item}]"));
            let refused = Normaliser::default().prompt(Some(&prompt));
            assert_eq!(refused, Err(MessagesError::InvalidIdentity), "{item}");
        }
        let long = format!(
            r#"[{{"role":"tool","tool_call_id":"{}"}}]"#,
            "x".repeat(1_025)
        );
        assert!(Normaliser::default().prompt(Some(&json(&long))).is_err());
    }
}
