//! Storage: facts become rows, and rows become facts. Nothing derived is stored, and nothing stored
//! is changed.
//!
//! There are two verbs. [`Store::append`] hands facts to the process's only writer, which commits
//! everything that waits in one transaction (group commit), and answers after the commit.
//! [`Store::snapshot`] opens one read transaction, from which everything in a reply comes.
//!
//! One SQL text with `$1` placeholders serves SQLite and PostgreSQL; only `connection` knows which
//! of them runs. Calls block, so they are made on a blocking thread.
//!
//! The folders read downward. A file uses files of its own folder and of those beneath it, and no
//! two files use each other:
//!
//! ```text
//! backup   copies all rows to files and back, and checks what must hold between them
//!   |
//! write    appends facts; quarantine, grants, erasure, jobs
//!   |
//! read     a snapshot, and a file for each question
//!   |
//! table    which column holds what, a file for each kind of fact
//!   |
//! pack     the stored forms of values
//!   |
//! sql      two drivers behind one connection
//! ```
//!
//! The store returns rows. Where a reply shows the columns as they are, it fills the published type
//! itself; as soon as a reply leaves out, adds or decides anything, it returns a row of its own.

pub mod backup;
mod pack;
mod read;
mod sql;
#[cfg(test)]
mod suite;
mod table;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod write;

pub use self::pack::edit_texts::HeldText;
pub use self::pack::id_list::IdList;
pub use self::read::calls::{CallContents, CallRow, CallScalars, CallSide, ScanMeasure};
pub use self::read::cohort::{CallAnswer, CohortCall, CohortDecision, CohortEdit};
pub use self::read::contents::written_message;
pub use self::read::deliveries::{NewestPush, ObservationRow, PullRequestHead};
pub use self::read::export::{StoredCall, StoredFact};
pub use self::read::halves::DueHalves;
pub use self::read::inferred::NamedCall;
pub use self::read::outcomes::{CiOutcomePage, CiOutcomeRow};
pub use self::read::owners::OwnedId;
pub use self::read::report::{CohortOutcome, OutcomePlace, OutcomeWorkflow, UnsurePullRequest};
pub use self::read::search::{
    FactPage, NamedFile, NextCalls, NumberedCall, NumberedSession, ObservedCommit,
    QuarantineChange, tables_with_files,
};
pub use self::read::session_claims::SessionClaims;
pub use self::read::session_pages::{ListedSession, SessionCondition, SessionPage};
pub use self::read::snapshot::{ErasureEnd, Revisions, Snapshot};
pub use self::read::usage::CallUsageRow;
pub use self::sql::check::{check_clock, check_writing, schema_state, upgrade};
pub use self::sql::clock_fault::ClockFault;
pub use self::sql::driver::Compaction;
pub use self::sql::error::{DriverError, Obstacle, SchemaState, StoreError};
pub use self::sql::url::DatabaseUrl;
pub use self::table::session_claims::ClaimKind;
pub use self::write::append::{Append, ArrivedHalf, Delivery, DeliveryCounts};
pub use self::write::bulk::{BulkChange, BulkReceipt, CallFilter, CallTally};
pub use self::write::commit_claims::SettledClaim;
#[cfg(any(test, feature = "testing"))]
pub use self::write::content::samples;
pub use self::write::content::{Encoded, Encoder};
pub use self::write::erasure::{
    ErasedAgain, ErasedContent, ErasedFacts, ErasureForecast, ErasureOrder, ErasurePlan,
    ErasureRow, ErasureSubject, KeptErasures,
};
pub use self::write::grants::{
    ChangedGrant, GrantCandidates, GrantChange, GrantMark, GrantRow, GrantRule, GrantTarget,
    NoGrant, ReachedSessions,
};
pub use self::write::halves::SettledHalves;
pub use self::write::jobs::{
    ClaimedJob, DeferredNote, JobChoice, JobEnd, JobState, MirrorJobs, MirrorStatus,
    RefreshRequest, WaitingPush,
};
pub use self::write::ledger::Ledger;
pub use self::write::outcome::Outcome;
pub use self::write::prices::{NewPriceTable, PriceLoad};
pub use self::write::quarantine::{
    LogEntry, NewEntry as NewQuarantineEntry, NoTarget, QuarantineAction, QuarantineReceipt,
    WhenAbsent,
};
pub use self::write::store::{Store, StoreConfig};
