//! Own events: what the sender of an agent without usable telemetry reports about its edits.
//!
//! A hook or a shim beside an agent knows things that no model call shows: whether a person took an
//! edit, what a file looked like when the Session ended. It says so in records of `POST /v1/logs`.
//! The service passes over a record that lacks something, and its sender hears nothing of it; so the
//! types here cannot hold such a record, and a [`LogsRequest`](super::LogsRequest) is made of what
//! they do hold in the one form that the service reads back as exactly that.
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
