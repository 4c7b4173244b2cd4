//! Which mirrors are to be refreshed: durable, shared by every server, one row a mirror. Jobs are no
//! facts: their rows change.
//!
//! A stored push leaves its delivery and makes its mirror due, in the transaction that stores it. A
//! server claims a due job for a limited time, so that the job of a server that died is taken again;
//! whoever claims it looks at every delivery that came since the last success, so that pushes which
//! come faster than a refresh share one. A job ends in one transaction that also forgets the
//! deliveries it looked at, unless they came again in the meantime.

mod claim;
mod end;
mod list;
mod schedule;
mod waiting;

pub use claim::{ClaimedJob, JobChoice, MirrorJobs};
pub use end::JobEnd;
pub use list::{JobState, MirrorStatus};
pub use schedule::RefreshRequest;
pub use waiting::{DeferredNote, WaitingPush};

pub(super) use end::forget;
pub(super) use list::{last_push_at, list};
pub(super) use schedule::request;
