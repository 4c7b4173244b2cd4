//! Messages and their parts, in the form of the conventions.

use svc_model::json::{Json, NodeBudget, Object, Text};

/// What marks a text that Gemini CLI cut.
const CUT: &str = "...[TRUNCATED]";

/// Who wrote the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::otlp) enum Dialect {
    /// A program that follows the conventions.
    Convention,
    /// Gemini CLI: it calls the model `system`, and cuts long texts.
    Gemini,
}

/// Brings messages to the form of any model's interface.
#[derive(Debug)]
pub(in crate::otlp) struct Reader<'b> {
    memory: &'b NodeBudget,
    dialect: Dialect,
    /// The parts that the client cut.
    pub(in crate::otlp) truncated: u64,
}

impl<'b> Reader<'b> {
    pub(in crate::otlp) const fn new(memory: &'b NodeBudget, dialect: Dialect) -> Self {
        Self {
            memory,
            dialect,
            truncated: 0,
        }
    }

    /// Returns messages; one without a role gets this one.
    pub(in crate::otlp) fn messages(&mut self, messages: Vec<Json>, role: &str) -> Vec<Json> {
        let message = |message| match message {
            Json::Object(message) => self.message(message, role).into(),
            other => other,
        };
        messages.into_iter().map(message).collect()
    }

    /// Returns the messages of an answer, each with its finish reason: its own, or else the one in
    /// its place.
    pub(in crate::otlp) fn answers(
        &mut self,
        messages: Vec<Json>,
        finish_reasons: Vec<Option<Text>>,
    ) -> Vec<(Object, Option<Text>)> {
        let others = finish_reasons.into_iter().chain(std::iter::repeat(None));
        let answer = |(message, other): (Json, Option<Text>)| {
            let mut message = message.into_object().unwrap_or_default();
            let own = message.get_mut("finish_reason").map(std::mem::take);
            let own = own.and_then(Json::into_text);
            let reason = own.filter(|reason| !reason.is_blank()).or(other);
            let is_message = !message.is_empty();
            // What is not a message has no role, by which it is counted as left out.
            let message = is_message.then(|| self.message(message, "assistant"));
            (message.unwrap_or_default(), reason)
        };
        messages.into_iter().zip(others).map(answer).collect()
    }

    /// Puts instructions before messages, unless these begin with the same.
    pub(in crate::otlp) fn instruct(&mut self, input: &mut Vec<Json>, parts: Vec<Json>) {
        let content = self.parts(parts);
        let message = message("system", content);
        let first = input.first().and_then(Json::as_object);
        let is_repeated = first.is_some_and(|first| {
            first.get("role").and_then(Json::as_str) == Some("system")
                && said(first) == said(&message)
        });
        let is_empty = message.get("content") == Some(&Json::Array(Vec::new()));
        if !is_repeated && !is_empty {
            input.insert(0, message.into());
        }
    }

    fn message(&mut self, mut sent: Object, role: &str) -> Object {
        let own = sent.get("role").and_then(Json::as_text);
        let own = own.filter(|own| !own.is_blank()).cloned();
        let role = match (own, self.dialect) {
            (Some(own), Dialect::Gemini) if own == "system" => "assistant".into(),
            (own, _) => own.unwrap_or_else(|| role.into()),
        };
        match sent.get_mut("parts").map(std::mem::take) {
            Some(Json::Array(parts)) => {
                let content = self.parts(parts);
                message(role, content)
            }
            Some(Json::Null) | None => {
                if let Some(text) = sent.get_mut("text").map(std::mem::take) {
                    let content = sent.get("content").filter(|content| !content.is_null());
                    if content.is_none() {
                        sent.insert("content", text);
                    }
                    sent.remove("text");
                }
                sent.insert("role", role);
                sent
            }
            Some(other) => message(role, other),
        }
    }

    fn parts(&mut self, parts: Vec<Json>) -> Json {
        parts.into_iter().map(|part| self.part(part)).collect()
    }

    fn part(&mut self, part: Json) -> Json {
        let Json::Object(mut part) = part else {
            return part;
        };
        let mut take = |names: &[&str]| {
            let mut values = names
                .iter()
                .filter_map(|name| part.get_mut(name).map(std::mem::take));
            values.find(|value| !value.is_null())
        };
        let kind = take(&["type"]);
        let kind = kind.as_ref().and_then(Json::as_str).unwrap_or_default();
        let members = match kind {
            "text" | "compaction" => vec![
                ("type", Some("text".into())),
                ("content", take(&["content"])),
            ],
            "reasoning" => vec![
                ("type", Some("reasoning".into())),
                ("content", take(&["content"])),
            ],
            "tool_call" | "server_tool_call" => vec![
                ("type", Some("tool_call".into())),
                ("id", take(&["id"])),
                ("name", take(&["name"])),
                ("arguments", take(&["arguments", "server_tool_call"])),
            ],
            "tool_call_response" | "server_tool_call_response" => vec![
                ("type", Some("tool_call_response".into())),
                ("id", take(&["id"])),
                (
                    "result",
                    take(&["response", "result", "server_tool_call_response"]),
                ),
            ],
            // A part of another kind stays without content, and is counted as left out.
            _ => Vec::new(),
        };
        let is_cut = |(_, value): &(&str, Option<Json>)| {
            let text = value.as_ref().and_then(Json::as_text);
            text.is_some_and(|text| text.as_bytes().ends_with(CUT.as_bytes()))
        };
        if self.dialect == Dialect::Gemini && members.iter().any(is_cut) {
            self.truncated += 1;
        }
        self.object(members).into()
    }

    fn object(&self, members: Vec<(&'static str, Option<Json>)>) -> Object {
        // A budget that is exhausted refuses the whole request in the end.
        if self.memory.object(members.len()).is_err() {
            return Object::new();
        }
        let present = members
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        present.collect()
    }
}

fn message(role: impl Into<Json>, content: Json) -> Object {
    Object::from_iter([("role", role.into()), ("content", content)])
}

/// Returns the text of a message, whatever its parts.
fn said(message: &Object) -> Vec<u8> {
    let content = message.get("content").unwrap_or(&Json::Null);
    let blocks = content.as_array().unwrap_or(std::slice::from_ref(content));
    let mut said = Vec::new();
    for block in blocks {
        let text = match block {
            Json::Object(block) => block.get("content").or_else(|| block.get("text")),
            other => Some(other),
        };
        if let Some(text) = text.and_then(Json::as_text) {
            said.extend_from_slice(text.as_bytes());
        }
    }
    said
}
