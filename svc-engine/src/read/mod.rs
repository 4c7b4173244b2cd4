//! Answers queries: one snapshot, one derivation, one reply. Every bound is checked before the
//! bounded data is read, and no answer is partial.
//!
//! The functions block; [`crate::engine::Engine`] runs them on a blocking thread, with a slot and a
//! deadline.

mod answer;
mod ci;
mod commit;
mod content;
mod context;
mod cursor;
mod discovery;
mod earlier_cost;
mod evidence;
mod export;
mod facts;
mod grant;
mod links;
mod occurrence;
mod quarantine;
mod remembered;
mod reports;
mod repository;
mod resources;
mod runs;
mod search;
mod session;
mod session_cursor;
mod sessions;
mod spend;
#[cfg(test)]
mod suite;
mod title;

pub use answer::{AdmissionKind, Answer, ReadContext};
pub use ci::{ci_failures, ci_outcome};
pub use commit::commit_evidence;
pub use content::{ContentCache, MessageContent};
pub use context::selected;
pub use cursor::CursorKey;
pub use discovery::discover;
pub use evidence::{inventory, manifest, read};
pub use export::{Export, export};
pub use facts::{compatibility_evidence, facts, session_facts, session_inference_calls};
pub use grant::{
    Reach, SeenGrants, TokenGrants, check_reach, explain_enforced_grant, explain_grant,
    few_reached, grant_entry, grant_reach, grant_target, grants, lost_revocation, reached,
    token_grants,
};
pub use occurrence::{Repeats, ScanBounds, ScanLimits};
pub use quarantine::quarantine_log;
pub use reports::{
    Extent, MemoryUse, ReportMemory, ReportSources, abandonment, accepted_work_lifecycle,
    attribution_share, attributions_of_pushes, lifecycle_report, merge_retention, model_outcomes,
    model_report,
};
pub(crate) use resources::{ReportResources, Resources};
pub use runs::ci_runs;
pub use session::session_dossier;
pub use sessions::sessions;
