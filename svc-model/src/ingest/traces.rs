#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::logs::{document, in_protobuf, speaks_protobuf};
use crate::json::{Object, WriteError};
use crate::request::{Incoming, Outgoing, Refusal, Request};

/// One export of spans by OTLP over HTTP, in either of its encodings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TracesRequest {
    /// `ExportTraceServiceRequest` in OTLP/JSON. Any object is accepted; what cannot be read is
    /// skipped.
    Json(Object),
    /// `ExportTraceServiceRequest` in protobuf, not decoded yet.
    Protobuf(Vec<u8>),
}

impl Request for TracesRequest {
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

/// An export of spans as OTLP/JSON.
#[cfg(feature = "schema")]
impl JsonSchema for TracesRequest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TracesRequest".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An ExportTraceServiceRequest of OTLP as JSON. Unreadable content is skipped, so any object is accepted.",
            "type": "object",
            "properties": {
                "resourceSpans": {
                    "description": "The spans, by resource and scope.",
                },
            },
        })
    }
}

/// The success of an export, whatever became of its spans: an empty `ExportTraceServiceResponse`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct TracesReceipt {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::PROTOBUF;
    use crate::json::{Json, NodeBudget};
    use crate::limit::BODY_BYTES_MAX;

    fn read(content_type: Option<&str>, body: &[u8]) -> Result<TracesRequest, Refusal> {
        let mut headers = Object::new();
        if let Some(content_type) = content_type {
            headers.insert("content-type", content_type);
        }
        let nothing = Object::new();
        TracesRequest::read(&Incoming {
            path: &nothing,
            query: &nothing,
            headers: &headers,
            body,
            memory: &NodeBudget::unlimited(),
        })
    }

    #[test]
    fn the_content_type_selects_the_encoding() {
        let protobuf = read(Some("application/x-protobuf"), b"{}");
        assert_eq!(protobuf, Ok(TracesRequest::Protobuf(b"{}".to_vec())));
        for content_type in [None, Some("application/json"), Some("text/plain")] {
            let json = read(content_type, b"{}");
            assert_eq!(json, Ok(TracesRequest::Json(Object::new())));
        }
        let refusal = read(None, b"").unwrap_err();
        assert!(matches!(refusal, Refusal::Malformed { .. }));
        assert_eq!(read(None, b"[]"), Err(Refusal::LogsNotAnObject));
    }

    #[test]
    fn a_request_is_written_in_its_encoding() {
        let json = TracesRequest::Json(Object::from_iter([("resourceSpans", Json::Array(vec![]))]));
        let outgoing = json.write().unwrap();
        assert_eq!(outgoing.body.unwrap(), br#"{"resourceSpans":[]}"#);
        let outgoing = TracesRequest::Protobuf(vec![10, 0]).write().unwrap();
        assert_eq!(outgoing.body.unwrap(), [10, 0]);
        assert_eq!(outgoing.headers, [("content-type", PROTOBUF.to_owned())]);
        let large = TracesRequest::Protobuf(vec![0; BODY_BYTES_MAX + 1]);
        assert_eq!(large.write().unwrap_err(), WriteError::Budget);
    }
}
