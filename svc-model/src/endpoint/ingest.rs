use super::{Access, Explanation, Repeat, Tally};
use crate::ingest::{
    CallsReceipt, CallsRequest,
    GatewayBatchReceipt, GatewayBatchRequest, GatewayIngestRequest, GatewayProvider, IngestReceipt,
    IngestResult, VendorCIRequest,
};
use crate::open::Open;
use crate::problem::{Code, Problem};

const NO_ADAPTER: Explanation = Explanation {
    description: "The body is not JSON, or does not match its `Content-Encoding`, or the gateway has no \
                  adapter. Nothing was stored.",
    problems: &[
        ("malformed", Problem::MalformedJson),
        ("provider", Problem::UnsupportedProvider(GatewayProvider::GatewayB)),
    ],
};

const ENCODING: Explanation = Explanation {
    description: "The body does not match its `Content-Encoding`. Nothing was stored.",
    problems: &[],
};

pub(super) const ANOTHER_REPOSITORY: Explanation = Explanation {
    description: "A fact with the same key is stored with another repository identity.",
    problems: &[("identity", Problem::Conflict(Code::RepositoryIdentityConflict))],
};

endpoint! {
    IngestGateway: POST "/ingest/gateway" as "ingestGateway" for Access::Ingest,
    GatewayIngestRequest => Open<IngestReceipt>,
    "Store one model call, as its gateway describes it." {
        const REPEAT: Repeat = Repeat::WhenNamed;
        const UNREADABLE: Explanation = NO_ADAPTER;
        const CONFLICT: Option<Explanation> = Some(Explanation {
            description: "The ids of the delivery belong to another fact. No id of that fact is disclosed.",
            problems: &[("identity", Problem::Conflict(Code::InferenceCallIdentityConflict))],
        });
    }
}

endpoint! {
    IngestGatewayBatch: POST "/ingest/gateway/{provider}" as "ingestGatewayBatch" for Access::Ingest,
    GatewayBatchRequest => GatewayBatchReceipt,
    "Store what a gateway's own webhook logger sends: one payload, an array, or NDJSON." {
        const REPEAT: Repeat = Repeat::WhenNamed;
        const UNREADABLE: Explanation = NO_ADAPTER;

        fn tally(request: &GatewayBatchRequest, reply: &GatewayBatchReceipt) -> Option<Tally> {
            Some(Tally {
                // A rejected item is not a JSON object, so it is not sent.
                requested: request.payloads.iter().flatten().count(),
                returned: usize::try_from(reply.total()).unwrap_or(usize::MAX),
            })
        }
    }
}

endpoint! {
    IngestCi: POST "/ingest/ci" as "ingestCi" for Access::Ingest,
    VendorCIRequest => IngestResult,
    "Store the outcome of one run of any CI system." {
        const UNREADABLE: Explanation = ENCODING;
        const CONFLICT: Option<Explanation> = Some(ANOTHER_REPOSITORY);
    }
}

endpoint! {
    IngestCalls: POST "/ingest/calls" as "ingestCalls" for Access::Ingest,
    CallsRequest => CallsReceipt,
    "Store calls of models that a program or the reader of a transcript sends." {
        const UNREADABLE: Explanation = ENCODING;

        fn tally(request: &CallsRequest, reply: &CallsReceipt) -> Option<Tally> {
            Some(Tally {
                requested: request.calls.len(),
                returned: usize::try_from(reply.total()).unwrap_or(usize::MAX),
            })
        }
    }
}
