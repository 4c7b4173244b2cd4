//! Readable reasoning of a model, which interfaces put in several places.

use svc_model::json::{Json, Object, Text};

use super::identity::usable;
use super::message::{Draft, Normaliser};

/// What an item holds that is nothing but reasoning.
pub(super) enum Reasoning {
    Readable(Vec<Draft>),
    Opaque,
}

impl Reasoning {
    /// Returns the summaries of a reasoning item, or the reasoning itself where it is given.
    pub(super) fn of_item(item: &Object) -> Self {
        let texts = |member: &str| {
            let blocks = item
                .get(member)
                .and_then(Json::as_array)
                .unwrap_or_default();
            let text = |block: &Json| usable(block.as_object()?.get("text")).map(Draft::reasoning);
            blocks.iter().filter_map(text).collect::<Vec<_>>()
        };
        let mut drafts = texts("summary");
        if drafts.is_empty() {
            drafts = texts("content");
        }
        if drafts.is_empty() {
            Self::Opaque
        } else {
            Self::Readable(drafts)
        }
    }
}

/// Returns the reasoning of a content block: its first present text, when that is a string and not
/// blank. It is not trimmed.
pub(super) fn of_block(block: &Object) -> Option<&Text> {
    usable(
        ["thinking", "text", "content"]
            .iter()
            .find_map(|member| block.get(member)),
    )
}

impl Normaliser {
    /// Returns the reasoning beside the content of a message of the assistant: blocks, else flat
    /// text.
    pub(super) fn sibling_reasoning(&mut self, message: &Object) -> Vec<Draft> {
        let blocks = message
            .get("thinking_blocks")
            .and_then(Json::as_array)
            .or_else(|| {
                message
                    .get("provider_specific_fields")?
                    .as_object()?
                    .get("thinking_blocks")?
                    .as_array()
            });
        let mut drafts = Vec::new();
        for block in blocks
            .unwrap_or_default()
            .iter()
            .filter_map(Json::as_object)
        {
            let kind = block.get("type").and_then(Json::as_str);
            match (kind, of_block(block)) {
                (Some("thinking" | "reasoning"), Some(text)) => drafts.push(Draft::reasoning(text)),
                _ => self.degradation.opaque_reasoning += 1,
            }
        }
        if drafts.is_empty() {
            drafts.extend(usable(message.get("reasoning_content")).map(Draft::reasoning));
        }
        drafts
    }
}
