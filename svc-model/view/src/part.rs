//! One captured part of a message.

use svc_model::evidence::{EvidenceReadItem, Part};
use svc_model::json::{Json, Text};
use svc_model::open::Open;

use crate::surface::Surface;

/// The characters of a tool's name that are shown.
const NAME_CHARACTERS_MAX: usize = 80;

impl Surface {
    /// Says what kind of part it is.
    pub fn kind(self, part: &Open<Part>) -> String {
        match part {
            Open::Known(Part::Text { .. }) => "text".to_owned(),
            Open::Known(Part::Reasoning { .. }) => "reasoning".to_owned(),
            Open::Known(Part::ToolCall { id, name, .. }) => {
                let name = self.or_none(self.line(name, NAME_CHARACTERS_MAX));
                format!("calls {name} (tool call {})", self.escape(id))
            }
            Open::Known(Part::ToolCallResponse { id, .. }) => {
                format!("result of tool call {}", self.escape(id))
            }
            Open::Unknown(newer) => self.escape(newer.word()),
        }
    }

    /// Returns the whole content of a part.
    pub fn content(self, part: &Open<Part>) -> String {
        match part {
            Open::Known(Part::Text { content } | Part::Reasoning { content }) => {
                self.escape_text(content)
            }
            Open::Known(Part::ToolCall { arguments, .. }) => {
                self.canonical(&Json::Object(arguments.clone()))
            }
            Open::Known(Part::ToolCallResponse { result, .. }) => match result {
                Json::String(text) => self.escape_text(text),
                other => self.canonical(other),
            },
            Open::Unknown(newer) => self.canonical(newer.value()),
        }
    }

    /// Returns the whole content of a part that was read, and how its arguments were sent if that
    /// was not as JSON.
    pub fn content_as_sent(self, item: &EvidenceReadItem) -> String {
        let content = self.content(&item.part);
        match &item.sent_arguments {
            Some(sent) => format!("{content}\nsent as: {}", self.escape_text(sent)),
            None => content,
        }
    }

    fn canonical(self, value: &Json) -> String {
        let text = String::from_utf8_lossy(&value.to_canonical()).into_owned();
        self.escape_text(&Text::from(text))
    }
}
