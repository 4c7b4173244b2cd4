//! The content of a message: text, or blocks of several kinds.

use svc_model::json::{Json, Object};

use crate::MessagesError;
use crate::identity::identity;
use crate::message::{Draft, Normaliser};
use crate::reasoning;

impl Normaliser {
    /// Appends the parts of a content. A content that is not a list is treated as a list of one.
    pub(crate) fn content(
        &mut self,
        content: &Json,
        drafts: &mut Vec<Draft>,
    ) -> Result<(), MessagesError> {
        let elements = content.as_array().unwrap_or(std::slice::from_ref(content));
        for element in elements {
            match element {
                Json::Null => {}
                Json::String(text) => self.add(Draft::text(text), drafts)?,
                Json::Object(block) => self.block(block, drafts)?,
                Json::Bool(_) | Json::Number(_) | Json::Array(_) => {
                    self.degradation.unsupported_content += 1;
                }
            }
        }
        Ok(())
    }

    fn block(&mut self, block: &Object, drafts: &mut Vec<Draft>) -> Result<(), MessagesError> {
        let either = |first, second| block.get(first).or_else(|| block.get(second));
        let kind = block.get("type").and_then(Json::as_str).unwrap_or_default();
        let text = match kind {
            // A `text` that is present but not a string hides the `content`.
            "text" | "input_text" | "output_text" => either("text", "content"),
            "refusal" => block.get("refusal"),
            "thinking" | "reasoning" => {
                let draft = reasoning::of_block(block).map(Draft::reasoning);
                self.degradation.opaque_reasoning += u64::from(draft.is_none());
                return self.add_any(draft, drafts);
            }
            "redacted_thinking" => {
                self.degradation.opaque_reasoning += 1;
                return Ok(());
            }
            "tool_call" => return self.called_block(block, drafts),
            "tool_call_response" => return self.result_block(block, drafts),
            "search_result" => return self.texts_of(block.get("content"), drafts),
            "document" => return self.texts_of(text_of_document(block), drafts),
            // The tools of the model's provider have names of their own.
            _ if kind.ends_with("tool_use") => return self.called_block(block, drafts),
            _ if kind.ends_with("tool_result") => return self.result_block(block, drafts),
            _ => None,
        };
        let draft = text.and_then(Json::as_text).map(Draft::text);
        self.degradation.unsupported_content += u64::from(draft.is_none());
        self.add_any(draft, drafts)
    }

    fn called_block(
        &mut self,
        block: &Object,
        drafts: &mut Vec<Draft>,
    ) -> Result<(), MessagesError> {
        let id = identity(block.get("id"))?;
        let arguments = block.get("input").or_else(|| block.get("arguments"));
        let arguments = self.arguments(arguments);
        let draft = self.tool_call(id, block.get("name"), arguments);
        self.add_any(draft, drafts)
    }

    fn result_block(
        &mut self,
        block: &Object,
        drafts: &mut Vec<Draft>,
    ) -> Result<(), MessagesError> {
        let either = |first, second| block.get(first).or_else(|| block.get(second));
        let id = identity(either("tool_use_id", "id"))?;
        let draft = self.tool_result(id, either("result", "content"));
        self.add_any(draft, drafts)
    }

    /// Appends the texts of a document: a text, or blocks.
    fn texts_of(
        &mut self,
        content: Option<&Json>,
        drafts: &mut Vec<Draft>,
    ) -> Result<(), MessagesError> {
        if let Some(content @ (Json::String(_) | Json::Array(_))) = content {
            return self.content(content, drafts);
        }
        self.degradation.unsupported_content += 1;
        Ok(())
    }

    fn add_any(&self, draft: Option<Draft>, drafts: &mut Vec<Draft>) -> Result<(), MessagesError> {
        draft.map_or(Ok(()), |draft| self.add(draft, drafts))
    }
}

/// Returns the text of a document, or its blocks. A file has none.
fn text_of_document(block: &Object) -> Option<&Json> {
    let source = block.get("source")?.as_object()?;
    match source.get("type")?.as_str()? {
        "text" => source.get("data"),
        "content" => source.get("content"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::degradation::Degradation;
    use super::*;
    use crate::testing::{json, parts_json};

    fn read(content: &str) -> (String, Degradation) {
        let mut normaliser = Normaliser::default();
        let mut drafts = Vec::new();
        normaliser.content(&json(content), &mut drafts).unwrap();
        let message = normaliser.message("r".into(), drafts, None);
        (parts_json(&message)[2..].to_owned(), normaliser.degradation)
    }

    #[test]
    fn each_kind_of_content_becomes_its_kind_of_part() {
        let text = |text: &str| format!(r#"[{{"type":"text","content":"{text}"}}]"#);
        for (content, expected) in [
            (r#""s""#, text("s")),
            (r#""""#, text("")),
            (r#"["a",null]"#, text("a")),
            (r#"{"type":"text","text":"a"}"#, text("a")),
            (r#"{"type":"input_text","text":"a"}"#, text("a")),
            (r#"{"type":"output_text","text":"a"}"#, text("a")),
            (r#"{"type":"text","content":"a"}"#, text("a")),
            (r#"{"type":"text","text":"","content":"a"}"#, text("")),
            (r#"{"type":"refusal","refusal":"no"}"#, text("no")),
            (
                r#"{"type":"thinking","thinking":" p ","signature":"s"}"#,
                r#"[{"type":"reasoning","content":" p "}]"#.to_owned(),
            ),
            (
                r#"{"type":"reasoning","content":"p"}"#,
                r#"[{"type":"reasoning","content":"p"}]"#.to_owned(),
            ),
            (
                r#"{"type":"tool_use","id":" t ","name":"f","input":{"a":1}}"#,
                r#"[{"type":"tool_call","id":"t","name":"f","arguments":{"a":1}}]"#.to_owned(),
            ),
            (
                r#"{"type":"server_tool_use","id":"t","name":"bash","input":{"a":1}}"#,
                r#"[{"type":"tool_call","id":"t","name":"bash","arguments":{"a":1}}]"#.to_owned(),
            ),
            (
                r#"{"type":"mcp_tool_use","id":"t","name":"f","server_name":"m","input":{}}"#,
                r#"[{"type":"tool_call","id":"t","name":"f","arguments":{}}]"#.to_owned(),
            ),
            (
                r#"{"type":"bash_code_execution_tool_result","tool_use_id":"t","content":{"stdout":"x"}}"#,
                r#"[{"type":"tool_call_response","id":"t","result":{"stdout":"x"}}]"#.to_owned(),
            ),
            (
                r#"{"type":"mcp_tool_result","tool_use_id":"t","content":[{"type":"text","text":"x"}]}"#,
                r#"[{"type":"tool_call_response","id":"t","result":[{"type":"text","text":"x"}]}]"#
                    .to_owned(),
            ),
            (
                r#"{"type":"search_result","source":"wiki","title":"T","content":[{"type":"text","text":"a"}]}"#,
                text("a"),
            ),
            (
                r#"{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a"}}"#,
                text("a"),
            ),
            (
                r#"{"type":"document","source":{"type":"content","content":[{"type":"text","text":"a"}]}}"#,
                text("a"),
            ),
            (
                r#"{"type":"tool_call","id":"t","arguments":"{\"a\":1}"}"#,
                r#"[{"type":"tool_call","id":"t","name":"","arguments":{"a":1}}]"#.to_owned(),
            ),
            (
                r#"{"type":"tool_use","id":"t","name":5,"input":null,"arguments":{"a":1}}"#,
                r#"[{"type":"tool_call","id":"t","name":"5","arguments":{}}]"#.to_owned(),
            ),
            (
                r#"{"type":"tool_result","tool_use_id":"t","content":"{\"j\":1}"}"#,
                r#"[{"type":"tool_call_response","id":"t","result":{"j":1}}]"#.to_owned(),
            ),
            (
                r#"{"type":"tool_call_response","id":"t","result":null,"content":"x"}"#,
                r#"[{"type":"tool_call_response","id":"t","result":null}]"#.to_owned(),
            ),
            (
                r#"{"type":"tool_result","tool_use_id":"t"}"#,
                r#"[{"type":"tool_call_response","id":"t","result":null}]"#.to_owned(),
            ),
        ] {
            let (parts, left_out) = read(content);
            assert_eq!(parts, expected, "{content}");
            assert!(left_out.is_empty(), "{content}");
        }
    }

    #[test]
    fn content_that_becomes_no_part_is_counted() {
        let unsupported = Degradation {
            unsupported_content: 1,
            ..Degradation::default()
        };
        let opaque = Degradation {
            opaque_reasoning: 1,
            ..Degradation::default()
        };
        let missing = Degradation {
            missing_id: 1,
            ..Degradation::default()
        };
        for (content, expected) in [
            ("null", Degradation::default()),
            ("[]", Degradation::default()),
            ("5", unsupported),
            ("true", unsupported),
            (r#"[["nested"]]"#, unsupported),
            ("{}", unsupported),
            (r#"{"text":"untyped"}"#, unsupported),
            (
                r#"{"type":"text","text":5,"content":"hidden"}"#,
                unsupported,
            ),
            (
                r#"{"type":"text","text":null,"content":"hidden"}"#,
                unsupported,
            ),
            (
                r#"{"type":"image_url","image_url":{"url":"data:x"}}"#,
                unsupported,
            ),
            (r#"{"type":"document","source":{}}"#, unsupported),
            (
                r#"{"type":"document","source":{"type":"base64","data":"aGk="}}"#,
                unsupported,
            ),
            (r#"{"type":"search_result"}"#, unsupported),
            (r#"{"type":"refusal"}"#, unsupported),
            (r#"{"type":"thinking","thinking":"  "}"#, opaque),
            (
                r#"{"type":"thinking","thinking":5,"text":"hidden"}"#,
                opaque,
            ),
            (r#"{"type":"redacted_thinking","data":"zz"}"#, opaque),
            (r#"{"type":"tool_use","name":"noid","input":{}}"#, missing),
            (r#"{"type":"tool_use","id":" ","input":{}}"#, missing),
            (r#"{"type":"tool_result","content":"noid"}"#, missing),
            (
                r#"{"type":"tool_result","tool_use_id":null,"id":"hidden"}"#,
                missing,
            ),
        ] {
            assert_eq!(read(content), ("[]".to_owned(), expected), "{content}");
        }
    }
}
