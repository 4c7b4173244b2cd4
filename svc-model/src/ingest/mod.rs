//! What is captured: requests of the ingest routes and their receipts.

mod call;
mod ci;
pub mod event;
mod forge;
mod gateway;
mod logs;
mod receipt;

#[cfg(feature = "schema")]
pub use call::GatewayPayload;
pub use call::{GatewayCall, GatewayCallBuilder, GatewayCallError};
pub use ci::{CiProvider, CiResult, VendorCIRequest};
pub use forge::{DELIVERY_HEADERS, EVENT_HEADERS, ForgeDelivery, ForgeEvent};
pub use gateway::{
    Capture, GatewayBatchRequest, GatewayIngestRequest, GatewayProvider, RejectedPayload,
};
pub use logs::{LogEvent, LogSkip, LogsReceipt, LogsRequest, PROTOBUF, is_protobuf};
pub use receipt::{GatewayBatchReceipt, IngestReceipt, IngestResult, SkipReason, Skipped};
