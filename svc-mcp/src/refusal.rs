//! Refusals, and what an agent can do about them.

use std::time::Duration;

use rmcp::model::{CallToolResult, ContentBlock, ErrorData, MetaObject};
use serde_json::{Value, json};
use svc_model::field::Violations;
use svc_model::problem::{Advice, Problem};

/// The member of `_meta` that contains a refusal in structured form.
const REFUSAL: &str = "svc/refusal";
/// The codes for evidence that does not exist.
const ABSENT: [&str; 3] = [
    "evidence_unavailable",
    "evidence_part_absent",
    "content_erased",
];

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRefusal {
    /// The reason's closed word.
    pub code: String,
    /// The status of the HTTP route, or `None` if no route was called.
    pub status: Option<u16>,
    /// A sentence for people, which repeats nothing from the request.
    pub message: String,
    /// What to do next, for an agent.
    pub advice: String,
    /// How long to wait before asking the same question again.
    pub retry_after: Option<Duration>,
}

impl ToolRefusal {
    /// Returns the refusal of invalid arguments.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self {
            code: "invalid".to_owned(),
            status: Some(422),
            message: message.into(),
            advice: Problem::Invalid(Violations::default()).advice().agent(),
            retry_after: None,
        }
    }

    /// Returns the refusal of a reply that is too large.
    pub(crate) fn oversize() -> Self {
        Self {
            code: "oversize".to_owned(),
            status: Some(409),
            message: format!("the reply exceeds {} bytes", crate::REPLY_BYTES_MAX),
            advice: Problem::ReplyTooLarge.advice().agent(),
            retry_after: None,
        }
    }

    /// Returns the refusal of an unreadable reply.
    pub(crate) fn unreadable() -> Self {
        Self {
            code: "unreadable".to_owned(),
            status: None,
            message: "the reply is not valid for the route".to_owned(),
            advice: Advice::NONE.agent(),
            retry_after: None,
        }
    }

    fn parts(&self) -> Value {
        let mut parts = json!({
            "code": self.code,
            "message": self.message,
            "hint": self.advice,
        });
        if let Some(status) = self.status {
            parts["status"] = status.into();
        }
        if let Some(pause) = self.retry_after {
            parts["retry_after_seconds"] = pause.as_secs().into();
        }
        parts
    }

    /// Returns the result of a refused tool call, which the agent can read and react to.
    ///
    /// The result has only text and `_meta`, because structured content must match the tool's
    /// output schema.
    pub(crate) fn into_result(self) -> CallToolResult {
        let wait = self
            .retry_after
            .map(|pause| format!(" Wait {} s first.", pause.as_secs()));
        let text = format!(
            "refused: {}\n{}.\n{}{}",
            self.code,
            self.message,
            self.advice,
            wait.unwrap_or_default()
        );
        let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
        let mut meta = MetaObject::new();
        meta.0.insert(REFUSAL.to_owned(), self.parts());
        result.meta = Some(meta);
        result
    }

    /// Returns the error of a refused resource, for which the protocol has no other form.
    pub(crate) fn into_error(self, uri: &str) -> ErrorData {
        let mut parts = self.parts();
        parts["uri"] = uri.into();
        let parts = Some(parts);
        let message = format!("{}: {}", self.code, self.message);
        match self.status {
            Some(403 | 404) => ErrorData::resource_not_found(message, parts),
            _ if ABSENT.contains(&&*self.code) => ErrorData::resource_not_found(message, parts),
            // It exists, but is too much for one answer.
            Some(409) => ErrorData::invalid_request(message, parts),
            Some(422) => ErrorData::invalid_params(message, parts),
            _ => ErrorData::internal_error(message, parts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_contains_its_code_advice_and_wait() {
        let refusal = ToolRefusal {
            code: "busy".to_owned(),
            status: Some(503),
            message: "the service has too much to do at the moment".to_owned(),
            advice: Problem::CapacityExceeded.advice().agent(),
            retry_after: Some(Duration::from_secs(1)),
        };
        let result = refusal.into_result();
        assert_eq!(result.is_error, Some(true));
        assert_eq!(result.structured_content, None);
        let written = serde_json::to_value(&result).unwrap();
        let text = written["content"][0]["text"].as_str().unwrap();
        assert!(
            text.starts_with("refused: busy\nthe service has too much to do"),
            "{text}"
        );
        assert!(text.ends_with("Wait 1 s first."), "{text}");
        let parts = &written["_meta"][REFUSAL];
        assert_eq!(parts["status"], 503);
        assert_eq!(parts["retry_after_seconds"], 1);
    }

    #[test]
    fn a_forbidden_resource_is_reported_as_not_found() {
        let refusal = |code: &str, status| ToolRefusal {
            code: code.to_owned(),
            status: Some(status),
            message: String::new(),
            advice: Advice::NONE.agent(),
            retry_after: None,
        };
        for (code, status, expected) in [
            ("outside_grant", 403, -32002),
            ("evidence_unavailable", 409, -32002),
            ("invalid", 422, -32602),
            ("busy", 503, -32603),
        ] {
            let error = refusal(code, status).into_error("svc://session/s");
            assert_eq!(error.data.unwrap()["uri"], "svc://session/s");
            assert_eq!(error.code.0, expected, "{code}");
        }
    }
}
