use serde::{Deserialize, Serialize};
use svc_model::json;
use svc_model::time::Instant;
use svc_model::version::Version1;

use super::OutboxError;

/// The contents of a file: one line of JSON about the delivery, then its exact body.
#[derive(Debug, PartialEq)]
pub(super) struct DeliveryRecord {
    pub(super) header: RecordHeader,
    pub(super) body: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RecordHeader {
    /// The version of the file format.
    pub(super) version: Version1,
    /// The route of the body.
    pub(super) route: DeliveryRoute,
    /// When the delivery was added.
    pub(super) put_at: Instant,
    /// Deliveries with the same word here leave the outbox in the order in which they were put.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) order: Option<String>,
    /// What the keys of the outbox make of the rest of the header and the body, in hexadecimal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) signatures: Vec<String>,
}

/// The route of a body, as recorded in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DeliveryRoute {
    IngestGateway,
    IngestCalls,
    IngestCi,
    Logs,
    LogsInProtobuf,
}

impl DeliveryRecord {
    pub(super) fn encode(&self) -> Result<Vec<u8>, OutboxError> {
        self.header.encode(&self.body)
    }

    /// Returns the header of a file that begins with these bytes; nothing if it is not valid.
    pub(super) fn decode(mut bytes: Vec<u8>) -> Option<Self> {
        let header = RecordHeader::decode(&bytes)?;
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        Some(Self {
            header,
            body: bytes.split_off(end + 1),
        })
    }
}

impl RecordHeader {
    /// The maximum size of a header with its line break, in bytes.
    pub(super) const BYTES_MAX: usize = 1024;

    /// Writes the file of this header and a body.
    pub(super) fn encode(&self, body: &[u8]) -> Result<Vec<u8>, OutboxError> {
        let mut bytes = json::to_vec(self, usize::MAX)?;
        bytes.push(b'\n');
        bytes.extend_from_slice(body);
        Ok(bytes)
    }

    /// Returns the header of a file that begins with these bytes.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let line = bytes.iter().take(Self::BYTES_MAX);
        let end = line.into_iter().position(|byte| *byte == b'\n')?;
        json::from_slice(&bytes[..end]).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_back_unchanged() {
        let record = DeliveryRecord {
            header: RecordHeader {
                version: Version1,
                route: DeliveryRoute::IngestGateway,
                put_at: Instant::parse("2026-07-07T19:57:35Z").unwrap(),
                order: None,
                signatures: Vec::new(),
            },
            body: b"{\n}\n\xff".to_vec(),
        };
        let bytes = record.encode().unwrap();
        assert_eq!(
            bytes,
            b"{\"version\":1,\"route\":\"ingest_gateway\",\"put_at\":\"2026-07-07T19:57:35Z\"}\n{\n}\n\xff"
        );
        assert_eq!(DeliveryRecord::decode(bytes), Some(record));
    }

    #[test]
    fn malformed_records_are_rejected() {
        for bytes in [
            "",
            "{}",
            "{}\n",
            "{\"version\":2,\"route\":\"ingest_gateway\",\"put_at\":\"2026-07-07T19:57:35Z\"}\n",
            "{\"version\":1,\"route\":\"facts\",\"put_at\":\"2026-07-07T19:57:35Z\"}\n",
            "{\"version\":1,\"route\":\"ingest_gateway\",\"put_at\":\"2026-07-07T19:57:35Z\"}",
        ] {
            assert_eq!(DeliveryRecord::decode(bytes.into()), None, "{bytes}");
        }
    }
}
