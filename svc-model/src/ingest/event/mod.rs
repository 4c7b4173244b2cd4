//! Own events: reports about the edits of an agent whose telemetry says too little.
//!
//! A hook or a shim next to an agent knows things that no model call shows: whether a person
//! accepted an edit, what a file looked like when the Session ended. It reports them as records of
//! `POST /v1/logs`. The service skips an incomplete record, and its answer does not say so.
//! Therefore the types here cannot represent an incomplete record, and they convert to a
//! [`LogsRequest`](super::LogsRequest) in exactly the form that the service reads.
//!
//! ```
//! use std::time::SystemTime;
//!
//! use svc_model::facts::AgentHarness;
//! use svc_model::id::{ForeignId, SessionId};
//! use svc_model::ingest::LogsRequest;
//! use svc_model::ingest::event::{Event, FilePath, ToolDecision};
//!
//! let event = Event {
//!     agent: AgentHarness::Pi,
//!     session_id: SessionId::new("session-1")?,
//!     user_id: None,
//!     occurred_at: SystemTime::now().try_into()?,
//!     kind: ToolDecision {
//!         call_id: ForeignId::new("call-1")?,
//!         file_path: Some(FilePath::new("src/pager.rs")?),
//!         accepted: true,
//!         explicit: true,
//!         tool_name: None,
//!     }
//!     .into(),
//! };
//! let request = LogsRequest::from(&event);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod kind;
mod otlp;
#[cfg(feature = "schema")]
mod schema;
mod value;

pub use kind::{
    EditObservation, Event, EventKind, RejectedEdit, RetriedTool, RetryLinkage, SameCall,
    ToolDecision,
};
#[cfg(feature = "schema")]
pub use schema::OwnLogRecord;
pub use value::{EditText, EditTextError, EventTime, EventTimeError, FilePath, FilePathError};
