//! Calls of Copilot Chat, which follow the conventions but for their identities.
//!
//! The id of the response and of the conversation are those of one request of a person, which
//! several calls share. So only the span identifies a call, and the Session has names of its own.

use svc_model::json::Text;
use svc_model::usage::UsageSource;

use super::attribute::Attributes;
use super::operation::{CallReport, Operation};
use super::usage::CallIds;

const SESSIONS: [&str; 3] = [
    "copilot_chat.chat_session_id",
    "copilot_chat.parent_chat_session_id",
    "copilot_chat.session_id",
];

/// Returns whether attributes are those of Copilot Chat.
pub(super) fn is_of_copilot(attributes: &Attributes<'_>) -> bool {
    let starts = ["copilot_chat.", "github.copilot."];
    attributes.members().any(|(name, _)| {
        let name = name.as_bytes();
        starts
            .iter()
            .any(|start| name.starts_with(start.as_bytes()))
    })
}

/// Returns the Session that an operation names.
pub(super) fn session<'r>(operation: &Operation<'r>) -> Option<&'r Text> {
    operation.either(&SESSIONS)
}

/// Turns a report by the conventions into one of Copilot Chat.
pub(super) fn claim<'r>(report: &mut CallReport<'r>, session: Option<&'r Text>) {
    report.source = UsageSource::Copilot;
    report.session = session;
    report.ids = CallIds::default();
}
