//! Capture: requests of the ingest routes, and their receipts.

mod call;
mod calls;
mod ci;
pub mod event;
mod forge;
mod gateway;
mod logs;
#[cfg(feature = "schema")]
mod payload;
mod receipt;
mod traces;

pub use call::{GatewayCall, GatewayCallBuilder, GatewayCallError};
pub use calls::{
    AgentName, AgentNameError, CallInput, CallOrigin, CallOriginKind, CallsReceipt, CallsRequest,
    CallsRequestBuilder, CallsRequestError, ContinuedCall, Conversation, ReaderReport,
    RejectedCall, SentCall, SentCallBuilder, SentCallError, SkippedCall,
};
pub use ci::{CiProvider, CiResult, VendorCIRequest};
#[cfg(feature = "schema")]
pub(crate) use forge::UNNAMED_EVENT;
pub use forge::{DELIVERY_HEADERS, EVENT_HEADERS, ForgeDelivery, ForgeEvent};
pub use gateway::{
    Capture, GatewayBatchRequest, GatewayIngestRequest, GatewayProvider, RejectedPayload,
};
pub use logs::{LogEvent, LogSkip, LogsReceipt, LogsRequest, PROTOBUF, is_protobuf};
#[cfg(feature = "schema")]
pub use payload::GatewayPayload;
pub use receipt::{
    CallMember, GatewayBatchReceipt, IngestReceipt, IngestResult, SkipReason, Skipped,
};
pub use traces::{TracesReceipt, TracesRequest};
