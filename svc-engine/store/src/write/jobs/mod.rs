//! Which mirrors to refresh. The jobs are durable and shared by all servers. Each mirror has one
//! row. Jobs are not facts: their rows change.
//!
//! A push records its delivery and makes its mirror due in the transaction that stores it. A server
//! claims a due job for a limited time, so that another server takes the job if the first one dies.
//! A claimed job covers every delivery since the last success, so pushes that arrive faster than a
//! refresh share one. A job ends in one transaction, which also deletes the deliveries that the job
//! handled, unless they were delivered again meanwhile.

mod claim;
mod end;
mod list;
mod schedule;
mod waiting;

pub use claim::{ClaimedJob, JobChoice, MirrorJobs};
pub use end::JobEnd;
pub use list::{JobState, MirrorStatus};
pub use schedule::RefreshRequest;
pub(crate) use schedule::request;
pub use waiting::{DeferredNote, WaitingPush};
