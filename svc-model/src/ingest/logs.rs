#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::closed_set;
use crate::json::{Json, Object, WriteError};
use crate::limit::BODY_BYTES_MAX;
use crate::request::{Incoming, Outgoing, Refusal, Request};

/// The content type of OTLP in protobuf, for requests and replies.
pub const PROTOBUF: &str = "application/x-protobuf";

/// Returns whether a content type is that of OTLP in protobuf. Parameters and letter case do not
/// matter. Every other type is read as JSON.
pub fn is_protobuf(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(PROTOBUF)
}

/// One export of log records by OTLP over HTTP, in either of its encodings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogsRequest {
    /// `ExportLogsServiceRequest` in OTLP/JSON. Any object is accepted; what cannot be read is
    /// skipped.
    Json(Object),
    /// `ExportLogsServiceRequest` in protobuf, not decoded yet.
    Protobuf(Vec<u8>),
}

impl Request for LogsRequest {
    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        if speaks_protobuf(incoming) {
            return Ok(Self::Protobuf(incoming.body.to_vec()));
        }
        document(incoming).map(Self::Json)
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        match self {
            Self::Json(object) => Outgoing::body(object),
            Self::Protobuf(bytes) => in_protobuf(bytes),
        }
    }
}

/// Returns whether an export is in protobuf.
pub(super) fn speaks_protobuf(incoming: &Incoming<'_>) -> bool {
    let content_type = incoming.headers.get("content-type").and_then(Json::as_str);
    content_type.is_some_and(is_protobuf)
}

/// Reads an export in JSON. Exporters and their users know the body by the name of its protocol, so
/// its refusal has a text of its own.
pub(super) fn document(incoming: &Incoming<'_>) -> Result<Object, Refusal> {
    incoming.document().map_err(|refusal| match refusal {
        Refusal::NotAnObject => Refusal::LogsNotAnObject,
        other => other,
    })
}

/// Writes an export in protobuf.
pub(super) fn in_protobuf(message: &[u8]) -> Result<Outgoing, WriteError> {
    if message.len() > BODY_BYTES_MAX {
        return Err(WriteError::Budget);
    }
    let outgoing = Outgoing {
        body: Some(message.to_vec()),
        ..Outgoing::default()
    };
    Ok(outgoing.with_header("content-type", PROTOBUF))
}

/// An export of log records as OTLP/JSON.
#[cfg(feature = "schema")]
impl JsonSchema for LogsRequest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "LogsRequest".into()
    }

    #[cfg(feature = "schema")]
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An ExportLogsServiceRequest of OTLP as JSON. Unreadable content is skipped, so any object is accepted.",
            "type": "object",
            "properties": {
                "resourceLogs": {
                    "description": "The log records, by resource and scope.",
                },
            },
        })
    }
}

/// The success of an export, whatever became of its records: an empty `ExportLogsServiceResponse`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct LogsReceipt {}

closed_set! {
    /// The events that become facts, by their full names.
    pub enum LogEvent {
        /// A tool call of Claude Code was accepted or refused.
        ClaudeCodeToolDecision = "claude_code.tool_decision",
        /// A tool call of Codex was accepted or refused.
        CodexToolDecision = "codex.tool_decision",
        /// Copilot Chat's edits to a file were accepted or refused.
        CopilotEditFeedback = "copilot_chat.edit.feedback",
        /// An inline proposal of Copilot Chat was accepted or refused.
        CopilotInlineDone = "copilot_chat.inline.done",
        /// How much of a Copilot Chat edit was still present at a later check.
        CopilotEditSurvival = "copilot_chat.edit.survival",
        /// A decision about a tool call, reported by a hook or a shim.
        OwnToolDecision = "svc.tool_decision",
        /// An applied edit and its file at a later check, reported by a hook or a shim.
        OwnEditObservation = "svc.edit_observation",
        /// The text of an edit that a person refused, reported by a hook or a shim.
        OwnRejectedEdit = "svc.rejected_edit",
        /// A refused edit and the accepted edit that followed a correction, reported by a hook or a
        /// shim.
        OwnRetryLinkage = "svc.retry_linkage",
        /// Claude Code called a model.
        ClaudeCodeApiRequest = "claude_code.api_request",
        /// The body of a request of Claude Code to a model.
        ClaudeCodeApiRequestBody = "claude_code.api_request_body",
        /// The body of a response of a model to Claude Code.
        ClaudeCodeApiResponseBody = "claude_code.api_response_body",
        /// The result of a tool call of Claude Code, which may name a commit.
        ClaudeCodeToolResult = "claude_code.tool_result",
        /// An event of the stream in which a model answered Codex.
        CodexSseEvent = "codex.sse_event",
        /// A model answered Gemini CLI.
        GeminiCliApiResponse = "gemini_cli.api_response",
        /// A program called a model, by OpenTelemetry's conventions for generative AI.
        GenAiInference = "gen_ai.client.inference.operation.details",
    }
}

closed_set! {
    /// Why a record of a known event became no fact. Other records are not affected.
    pub enum LogSkip {
        /// The attributes are not a list.
        MalformedAttributes = "malformed_attributes",
        /// Neither the record nor, where applicable, its resource names a Session.
        MissingSession = "missing_session",
        /// The agent is not named.
        MissingAgentHarness = "missing_agent_harness",
        /// The file is not named.
        MissingFilePath = "missing_file_path",
        /// The tool is not named.
        MissingToolName = "missing_tool_name",
        /// The refused call is not named.
        MissingRejectedCallId = "missing_rejected_call_id",
        /// The accepted call is not named.
        MissingAcceptedCallId = "missing_accepted_call_id",
        /// There is no event time, or it is not from 1970 to 2261.
        MissingEventTime = "missing_event_time",
        /// The agent is not in the closed set.
        InvalidAgentHarness = "invalid_agent_harness",
        /// The event cannot be about this tool.
        InvalidToolName = "invalid_tool_name",
        /// An identity is blank or too long, or contains NUL or a surrogate; or two identities that
        /// must differ are equal.
        InvalidFact = "invalid_fact",
        /// The tool does not edit files.
        NotAnEditTool = "not_an_edit_tool",
        /// The decision is absent or unknown.
        UnknownDecision = "unknown_decision",
        /// The record does not say whether a person decided.
        MissingExplicit = "missing_explicit",
        /// The tool call is not named.
        MissingCallId = "missing_call_id",
        /// A required text is absent.
        MissingText = "missing_text",
        /// A text is too long.
        TextTooLong = "text_too_long",
        /// Only the result of the tool call would show whether it edits files, and the export does
        /// not contain that result.
        MissingResult = "missing_result",
        /// The patches in the export name too many files.
        TooManyFiles = "too_many_files",
        /// The branch changed before the edit was checked, so nothing is known of the edit.
        BranchChanged = "branch_changed",
        /// A report of usage has no tokens, no cost and no duration.
        EmptyUsage = "empty_usage",
        /// The numbers of a report of usage contradict each other. The report is kept without those
        /// that do.
        InconsistentUsage = "inconsistent_usage",
        /// The body of a request or response is in a file on the client, which is never opened.
        BodyNotInline = "body_not_inline",
        /// The client cut the body of a request or response.
        BodyTruncated = "body_truncated",
        /// The body of a request or response is not what a model's interface sends.
        MalformedBody = "malformed_body",
        /// The request of a response never arrived. The call is kept without its input.
        RequestUnpaired = "request_unpaired",
        /// A request got no response: an attempt that failed or was repeated.
        AttemptWithoutResponse = "attempt_without_response",
        /// More requests and responses of a Session or organization waited for each other than may.
        HalvesEvicted = "halves_evicted",
        /// The record has only what was asked.
        RequestOnly = "request_only",
        /// The operation is not a call of a model, such as a run of an agent or of a tool.
        NotAModelCall = "not_a_model_call",
        /// The client logs the same call, with more.
        CoveredByLogs = "covered_by_logs",
        /// The span has the tokens of a whole turn, which are the sum of its calls.
        TurnTotal = "turn_total",
        /// Another call has the id of the response. The call is kept without that id.
        SharedResponseId = "shared_response_id",
        /// What is said to be the id of a commit cannot be one.
        InvalidGitCommitId = "invalid_git_commit_id",
        /// The messages are neither a list nor the JSON text of one.
        MalformedMessages = "malformed_messages",
        /// The name begins with `svc.`, but there is no such event.
        UnknownEvent = "unknown_event",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::NodeBudget;

    fn read(content_type: Option<&str>, body: &[u8]) -> Result<LogsRequest, Refusal> {
        let mut headers = Object::new();
        if let Some(content_type) = content_type {
            headers.insert("content-type", content_type);
        }
        let nothing = Object::new();
        LogsRequest::read(&Incoming {
            path: &nothing,
            query: &nothing,
            headers: &headers,
            body,
            memory: &NodeBudget::unlimited(),
        })
    }

    #[test]
    fn only_the_content_type_selects_protobuf() {
        for content_type in [
            "application/x-protobuf",
            "Application/X-Protobuf; charset=utf-8",
            " application/x-protobuf ;a=b",
        ] {
            assert_eq!(
                read(Some(content_type), b"{}"),
                Ok(LogsRequest::Protobuf(b"{}".to_vec())),
                "{content_type}"
            );
        }
        for content_type in [
            None,
            Some(""),
            Some("application/json"),
            Some("text/plain; x=application/x-protobuf"),
            Some("application/x-protobuffer"),
            Some("application/protobuf"),
        ] {
            assert_eq!(
                read(content_type, b"{}"),
                Ok(LogsRequest::Json(Object::new())),
                "{content_type:?}"
            );
        }
    }

    #[test]
    fn a_body_that_is_not_an_object_is_refused() {
        for body in ["", " ", "{bad", "{} {}", "\u{1f}\u{8b}"] {
            let refusal = read(None, body.as_bytes()).unwrap_err();
            assert!(matches!(refusal, Refusal::Malformed { .. }), "{body:?}");
        }
        for body in ["[]", "5", "null", "\"x\"", "NaN"] {
            assert_eq!(
                read(None, body.as_bytes()),
                Err(Refusal::LogsNotAnObject),
                "{body}"
            );
        }
    }

    #[test]
    fn a_request_is_written_in_its_encoding() {
        let json = LogsRequest::Json(Object::from_iter([("resourceLogs", Json::Array(vec![]))]));
        let outgoing = json.write().unwrap();
        assert_eq!(outgoing.body.unwrap(), br#"{"resourceLogs":[]}"#);
        assert!(outgoing.headers.is_empty());
        let outgoing = LogsRequest::Protobuf(vec![10, 0]).write().unwrap();
        assert_eq!(outgoing.body.unwrap(), [10, 0]);
        assert_eq!(outgoing.headers, [("content-type", PROTOBUF.to_owned())]);
        let large = LogsRequest::Protobuf(vec![0; BODY_BYTES_MAX + 1]);
        assert_eq!(large.write().unwrap_err(), WriteError::Budget);
    }
}
