//! Refusals, and what an agent can do about them.

use std::time::Duration;

use rmcp::model::{CallToolResult, ContentBlock, ErrorData, MetaObject};
use serde_json::{Value, json};

/// The member of `_meta` that contains a refusal in structured form.
const REFUSAL: &str = "svc/refusal";

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// A closed word.
    pub code: String,
    /// The status of the HTTP route; nothing if no route was called.
    pub status: Option<u16>,
    /// A sentence for people, without anything from the request.
    pub message: String,
    /// How long to wait before asking the same question again.
    pub retry_after: Option<Duration>,
}

impl Refusal {
    /// Returns the refusal of invalid arguments.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self {
            code: "invalid".to_owned(),
            status: Some(422),
            message: message.into(),
            retry_after: None,
        }
    }

    /// Returns the refusal of a reply that is too large.
    pub(crate) fn oversize() -> Self {
        Self {
            code: "oversize".to_owned(),
            status: Some(409),
            message: format!("the reply exceeds {} bytes", crate::REPLY_BYTES_MAX),
            retry_after: None,
        }
    }

    /// Returns the refusal of an unreadable reply.
    pub(crate) fn unreadable() -> Self {
        Self {
            code: "unreadable".to_owned(),
            status: None,
            message: "the reply is not valid for the route".to_owned(),
            retry_after: None,
        }
    }

    /// Returns what to do next.
    fn hint(&self) -> &'static str {
        match self.code.as_str() {
            "invalid" => "Correct the named arguments and call the tool again.",
            "evidence_unavailable" => {
                "It is absent or hidden; which one is not disclosed. Call open_evidence with only \
                 the session_id to see what is available."
            }
            "evidence_part_absent" => {
                "Call open_evidence with session_id and inference_call_id: it lists the parts of \
                 that call."
            }
            "content_erased" => {
                "What was said in that call was erased for good. Go on without it; other calls of the \
                 Session may say the same: search_session."
            }
            "retrieval_grant_limit" => {
                "You may read more Sessions than one search accepts. Name one with search_session \
                 or open_evidence, or ask the person who set up this server for a narrower grant."
            }
            "evidence_inventory_limit"
            | "evidence_source_limit"
            | "retrieval_part_limit"
            | "retrieval_state_limit" => {
                "There is too much to search at once. Search one Session with search_session, or \
                 open a call that you know."
            }
            "evidence_response_limit" | "oversize" => {
                "Ask for less: fewer references, a smaller time range, or one page with limit. A \
                 person can read the whole with the svc command."
            }
            "outside_grant" => {
                "You may not read this Session, whether or not it exists. find_evidence names those \
                 that you may read."
            }
            "retrieval_disabled" => {
                "No Session is granted to agents here. Continue without earlier evidence, and tell \
                 the person who runs the service."
            }
            "unauthorized" | "forbidden" => {
                "The token does not allow this. Continue without it, and tell the person who set \
                 up this server."
            }
            "busy"
            | "deadline"
            | "database_unavailable"
            | "unavailable"
            | "unreachable"
            | "timed_out"
            | "transport" => "Wait a moment and ask again; if it persists, continue without it.",
            "session_bound" | "report_evidence" => {
                "There are no partial answers. Ask for less: another Session, or a smaller time range."
            }
            "repository_selector_ambiguous"
            | "incomplete_identity"
            | "selector_conflict"
            | "missing_selector" => {
                "Name the repository by repository_provider, repository_host and repository_id \
                 together."
            }
            "malformed_sha" => "Give the full commit id: git rev-parse COMMIT.",
            "cohort_too_long" | "cohort_reversed" | "cohort_after_boundary" => {
                "Give cohort_start before cohort_end, at most 31 days apart, and as_of not before \
                 cohort_end."
            }
            "cursor_mismatch" => "Ask for the first page again, without cursor.",
            _ => "Do not repeat the same call; continue without it.",
        }
    }

    fn parts(&self) -> Value {
        let mut parts = json!({
            "code": self.code,
            "message": self.message,
            "hint": self.hint(),
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
    /// It has only text and `_meta`, because structured content must match the tool's output
    /// schema.
    pub(crate) fn into_result(self) -> CallToolResult {
        let wait = self
            .retry_after
            .map(|pause| format!(" Wait {} s first.", pause.as_secs()));
        let text = format!(
            "refused: {}\n{}.\n{}{}",
            self.code,
            self.message,
            self.hint(),
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
            _ if self.code.starts_with("evidence_") => {
                ErrorData::resource_not_found(message, parts)
            }
            Some(422) => ErrorData::invalid_params(message, parts),
            _ => ErrorData::internal_error(message, parts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_its_code_what_to_do_and_when() {
        let refusal = Refusal {
            code: "busy".to_owned(),
            status: Some(503),
            message: "all read slots of the service are in use".to_owned(),
            retry_after: Some(Duration::from_secs(1)),
        };
        let result = refusal.into_result();
        assert_eq!(result.is_error, Some(true));
        assert_eq!(result.structured_content, None);
        let written = serde_json::to_value(&result).unwrap();
        let text = written["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("refused: busy\nall read slots"), "{text}");
        assert!(text.ends_with("Wait 1 s first."), "{text}");
        let parts = &written["_meta"][REFUSAL];
        assert_eq!(parts["status"], 503);
        assert_eq!(parts["retry_after_seconds"], 1);
    }

    #[test]
    fn a_resource_that_may_not_be_read_is_not_found() {
        let refusal = |code: &str, status| Refusal {
            code: code.to_owned(),
            status: Some(status),
            message: String::new(),
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
