use super::{Access, Explanation};
use crate::ingest::{LogsReceipt, LogsRequest};
use crate::problem::Problem;

endpoint! {
    Logs: POST "/v1/logs" as "logs" for Access::Ingest,
    LogsRequest => LogsReceipt,
    "Store the decisions and edits that coding agents log over OTLP, in JSON or protobuf." {
        const UNREADABLE: Explanation = Explanation {
            description: "The body is not a JSON object, or not the protobuf message, or does not match its \
                          `Content-Encoding`. Nothing was stored, and sending it again does not help.",
            problems: &[
                ("malformed", Problem::MalformedJson),
                ("object", Problem::LogsNotObject),
                ("protobuf", Problem::MalformedProtobuf),
            ],
        };
    }
}
