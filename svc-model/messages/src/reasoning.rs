//! A model's readable reasoning, which interfaces put in several places.

use svc_model::json::{Json, Object, Text};

use crate::MessagesError;
use crate::identity::usable;
use crate::message::{Draft, Normaliser};

/// The content of a reasoning item.
enum Reasoning {
    Readable(Vec<Draft>),
    Opaque,
}

impl Reasoning {
    /// Reads the summaries of a reasoning item, or the reasoning itself if there are none.
    fn of_item(normaliser: &Normaliser, item: &Object) -> Result<Self, MessagesError> {
        let texts = |member: &str| -> Result<Vec<Draft>, MessagesError> {
            let blocks = item
                .get(member)
                .and_then(Json::as_array)
                .unwrap_or_default();
            let mut drafts = Vec::new();
            for block in blocks.iter().filter_map(Json::as_object) {
                if let Some(text) = usable(block.get("text")) {
                    normaliser.add(Draft::reasoning(text), &mut drafts)?;
                }
            }
            Ok(drafts)
        };
        let mut drafts = texts("summary")?;
        if drafts.is_empty() {
            drafts = texts("content")?;
        }
        Ok(if drafts.is_empty() {
            Self::Opaque
        } else {
            Self::Readable(drafts)
        })
    }
}

/// Returns the reasoning of a content block, untrimmed: its first member that is present, if that
/// is a string and not blank.
pub(crate) fn of_block(block: &Object) -> Option<&Text> {
    usable(
        ["thinking", "text", "content"]
            .iter()
            .find_map(|member| block.get(member)),
    )
}

impl Normaliser {
    /// Returns the reasoning beside the content of an assistant's message: blocks, or else plain
    /// text.
    pub(crate) fn sibling_reasoning(
        &mut self,
        message: &Object,
    ) -> Result<Vec<Draft>, MessagesError> {
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
                (Some("thinking" | "reasoning"), Some(text)) => {
                    self.add(Draft::reasoning(text), &mut drafts)?;
                }
                _ => self.degradation.opaque_reasoning += 1,
            }
        }
        if drafts.is_empty() {
            let flat = ["reasoning_content", "reasoning"];
            let flat = flat.iter().find_map(|member| usable(message.get(member)));
            drafts.extend(flat.map(Draft::reasoning));
        }
        Ok(drafts)
    }

    /// Returns the texts of a reasoning item; `None` if it is opaque.
    pub(crate) fn item_reasoning(
        &mut self,
        item: &Object,
    ) -> Result<Option<Vec<Draft>>, MessagesError> {
        match Reasoning::of_item(self, item)? {
            Reasoning::Readable(drafts) => Ok(Some(drafts)),
            Reasoning::Opaque => {
                self.degradation.opaque_reasoning += 1;
                Ok(None)
            }
        }
    }
}
