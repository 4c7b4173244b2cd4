use super::{Access, Explanation};
use crate::ingest::{TracesReceipt, TracesRequest};
use crate::problem::Problem;

endpoint! {
    Traces: POST "/v1/traces" as "traces" for Access::Ingest,
    TracesRequest => TracesReceipt,
    "Store the calls of models that programs trace over OTLP, in JSON or protobuf." {
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
