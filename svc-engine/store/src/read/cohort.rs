//! What reports read: an organization's calls in a range of time, the decisions and edits of their
//! Sessions, and repositories' facts in a range of capture. Each row is passed on as it is read, so
//! none is in memory twice.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use svc_engine_fact::{
    PullRequestMerge, PullRequestRevision, Push, RepositoryRename, SessionCommitObservation,
};
use svc_model::facts::{AgentHarness, InteractionMode};
use svc_model::id::{FactId, SessionId};
use svc_model::time::Instant;

use super::outcomes::{CiOutcomeRow, OUTCOMES};
use super::snapshot::Snapshot;
use crate::pack::column::Columns;
use crate::pack::edit_texts::HeldText;
use crate::pack::id_list;
use crate::sql::connection::Lookup;
use crate::sql::error::StoreError;
use crate::sql::value::{Row, Value};
use crate::table::record::{Record, Table};

/// A call, as counted by reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CohortCall {
    /// The id of the fact.
    pub inference_call_id: FactId,
    /// The Session.
    pub session_id: SessionId,
    /// When it was observed.
    pub observed_at: Instant,
    /// The model.
    pub model: Option<String>,
    /// What it answered.
    pub answer: CallAnswer,
}

/// The contents of a call's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallAnswer {
    /// Canonical bytes of its output messages.
    pub byte_count: u64,
    /// The content ids of its output messages, in order.
    pub contents: Box<[i64]>,
}

impl CohortCall {
    /// Reads the columns of [`CALL_COLUMNS`].
    pub(crate) fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        let mut columns = Columns::of(row, "inference_calls", &CALL_COLUMNS);
        Ok(Self {
            inference_call_id: columns.next()?,
            session_id: columns.next()?,
            observed_at: columns.next()?,
            model: columns.next()?,
            answer: CallAnswer {
                byte_count: row.count(4)?,
                contents: row.with_blob(5, id_list::read_ids)??.into(),
            },
        })
    }
}

const CALL_COLUMNS: [&str; 4] = ["inference_call_id", "session_id", "observed_at_us", "model"];
/// Selects [`CALL_COLUMNS`] and the answers of visible calls.
macro_rules! calls {
    ($condition:literal) => {
        concat!(
            "SELECT f.inference_call_id, f.session_id, f.observed_at_us, f.model,
            f.output_byte_count, f.output_contents
            FROM visible_inference_calls f WHERE ",
            $condition
        )
    };
}
pub(crate) use calls;

/// The organization is an expression, so that the index on this expression is used.
const CALLS: &str = calls!(
    "f.org_id || '' = $1 AND f.observed_at_us >= $2 AND f.observed_at_us < $3
    ORDER BY f.observed_at_us"
);

/// The unit in which calls are counted over time.
pub const HOUR_MICROSECONDS: i64 = 3_600_000_000;
/// Counts quarantined calls too. The divisor is [`HOUR_MICROSECONDS`].
const CALLS_BY_HOUR: &str = "SELECT f.hour, COUNT(*) FROM
    (SELECT f.observed_at_us / 3600000000 AS hour FROM inference_calls f
        WHERE f.org_id || '' = $1 AND f.observed_at_us >= $2 AND f.observed_at_us < $3
        ORDER BY f.observed_at_us LIMIT $4) f
    GROUP BY f.hour";

const SESSIONS: &str = "SELECT session_id FROM sessions WHERE org_id = $1";

/// A decision, as counted by reports, without the sender's payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CohortDecision {
    /// The id of the fact.
    pub decision_id: FactId,
    /// The Session.
    pub session_id: SessionId,
    /// The agent.
    pub agent_harness: AgentHarness,
    /// The path of the file; empty if unknown.
    pub file_path: String,
    /// Whether the edit was accepted.
    pub accepted: bool,
    /// Whether a person decided, rather than a rule.
    pub explicit: bool,
    /// Where the edit was proposed.
    pub interaction_mode: InteractionMode,
    /// The agent's id of the tool call.
    pub call_id: Option<Arc<str>>,
    /// When it was decided, by the sender's clock.
    pub occurred_at: Instant,
    /// When it was captured.
    pub captured_at: Instant,
}

const DECISION_COLUMNS: [&str; 10] = [
    "decision_id",
    "session_id",
    "agent_harness",
    "file_path",
    "accepted",
    "explicit",
    "interaction_mode",
    "call_id",
    "occurred_at_us",
    "captured_at_us",
];
const DECISIONS: Lookup<'_> = Lookup {
    select: "SELECT f.decision_id, f.session_id, f.agent_harness, f.file_path, f.accepted,
            f.explicit, f.interaction_mode, f.call_id, f.occurred_at_us, f.captured_at_us
        FROM visible_developer_decisions f
        WHERE f.org_id = $1 AND f.captured_at_us <= $2 AND f.session_id",
    then: "",
};

/// An edit observation, as counted by reports, without its texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CohortEdit {
    /// The id of the fact.
    pub observation_id: FactId,
    /// The Session.
    pub session_id: SessionId,
    /// The agent.
    pub agent_harness: AgentHarness,
    /// The agent's id of the tool call.
    pub call_id: Arc<str>,
    /// The path of the file, as the agent wrote it.
    pub file_path: Arc<str>,
    /// Lines added by something other than the agent.
    pub external_lines_added: Option<i64>,
    /// Lines removed by something other than the agent.
    pub external_lines_removed: Option<i64>,
    /// When it was observed, by the sender's clock.
    pub occurred_at: Instant,
    /// When it was captured.
    pub captured_at: Instant,
}

const EDIT_COLUMNS: [&str; 9] = [
    "observation_id",
    "session_id",
    "agent_harness",
    "call_id",
    "file_path",
    "external_lines_added",
    "external_lines_removed",
    "occurred_at_us",
    "captured_at_us",
];
const EDITS: Lookup<'_> = Lookup {
    select: "SELECT f.observation_id, f.session_id, f.agent_harness, f.call_id, f.file_path,
            f.external_lines_added, f.external_lines_removed, f.occurred_at_us, f.captured_at_us
        FROM visible_edit_observations f
        WHERE f.org_id = $1 AND f.captured_at_us <= $2 AND f.session_id",
    then: "",
};

/// A retry linkage, as counted by reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CohortRetry {
    /// The id of the fact.
    pub retry_linkage_id: FactId,
    /// The Session.
    pub session_id: SessionId,
    /// When it was captured.
    pub captured_at: Instant,
}

const RETRY_COLUMNS: [&str; 3] = ["retry_linkage_id", "session_id", "captured_at_us"];
const RETRIES: Lookup<'_> = Lookup {
    select: "SELECT f.retry_linkage_id, f.session_id, f.captured_at_us
        FROM visible_retry_linkages f
        WHERE f.org_id = $1 AND f.captured_at_us <= $2 AND f.session_id",
    then: "",
};

const EDIT_TEXTS: Lookup<'_> = Lookup {
    select: "SELECT f.observation_id, f.observed_file_text, f.applied_text
        FROM visible_edit_observations f
        WHERE COALESCE(f.org_id, '') = $1 AND f.observation_id",
    then: "",
};
const EDIT_TEXT_COLUMNS: [&str; 3] = ["observation_id", "observed_file_text", "applied_text"];

/// Restricts the selected visible facts to a range of capture.
const CAPTURED: &str = " AND f.org_id || '' = $1 AND f.captured_at_us >= $2
    AND f.captured_at_us < $3 ORDER BY f.captured_at_us";
fn read_all<F: Record>(row: &Row<'_>) -> Result<F, StoreError> {
    F::read(&mut Columns::of(row, F::TABLE.name, F::TABLE.members))
}

/// Declares the methods that pass on the facts of a range.
macro_rules! captured {
    ($($(#[$doc:meta])* $name:ident: $fact:ty;)+) => {
        impl Snapshot<'_> {
            $(
                $(#[$doc])*
                pub fn $name(
                    &mut self,
                    captured: Range<Instant>,
                    mut each: impl FnMut($fact) -> Result<(), StoreError>,
                ) -> Result<(), StoreError> {
                    let table: &Table = <$fact as Record>::TABLE;
                    self.captured(table.select, captured, |row| each(read_all(row)?))
                }
            )+
        }
    };
}

captured! {
    /// Passes on the visible pushes captured in a range, in order of capture.
    pushes_captured: Push;
    /// Passes on the visible merges captured in a range, in order of capture.
    merges_captured: PullRequestMerge;
    /// Passes on the visible revisions captured in a range, in order of capture.
    revisions_captured: PullRequestRevision;
    /// Passes on the visible renames captured in a range, in order of capture.
    renames_captured: RepositoryRename;
    /// Passes on the visible observations captured in a range, in order of capture.
    observations_captured: SessionCommitObservation;
}

impl Snapshot<'_> {
    /// Passes on the visible calls observed in a range, in order of observation.
    pub fn calls_observed(
        &mut self,
        observed: Range<Instant>,
        mut each: impl FnMut(CohortCall) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let keys = [
            self.org_id.as_str().into(),
            observed.start.into(),
            observed.end.into(),
        ];
        self.connection()?
            .each(CALLS, &keys, |row| each(CohortCall::read(row)?))
    }

    /// Returns how many stored calls were observed in a range, by hours since the Unix epoch.
    /// Quarantined calls count too. Hours without a call are absent. Nothing if there are more than
    /// `calls_max`, beyond which calls are not counted.
    pub fn calls_by_hour(
        &mut self,
        observed: Range<Instant>,
        calls_max: u64,
    ) -> Result<Option<HashMap<i64, u64>>, StoreError> {
        let keys = [
            self.org_id.as_str().into(),
            observed.start.into(),
            observed.end.into(),
            i64::try_from(calls_max + 1).unwrap_or(i64::MAX).into(),
        ];
        let mut counts = HashMap::new();
        self.connection()?.each(CALLS_BY_HOUR, &keys, |row| {
            counts.insert(row.integer(0)?, row.count(1)?);
            Ok(())
        })?;
        let calls: u64 = counts.values().sum();
        Ok((calls <= calls_max).then_some(counts))
    }

    /// Passes on every Session of the organization, in any order.
    pub fn sessions(
        &mut self,
        mut each: impl FnMut(SessionId) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let keys = [self.org_id.as_str().into()];
        self.connection()?.each(SESSIONS, &keys, |row| {
            each(Columns::of(row, "sessions", &["session_id"]).next()?)
        })
    }

    /// Passes on the visible decisions of Sessions, received by a boundary, in any order.
    pub fn decisions_of_sessions(
        &mut self,
        sessions: &[SessionId],
        boundary: Instant,
        mut each: impl FnMut(CohortDecision) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.of_sessions(&DECISIONS, sessions, boundary, |row| {
            let mut columns = Columns::of(row, "developer_decisions", &DECISION_COLUMNS);
            each(CohortDecision {
                decision_id: columns.next()?,
                session_id: columns.next()?,
                agent_harness: columns.next()?,
                file_path: columns.next()?,
                accepted: columns.next()?,
                explicit: columns.next()?,
                interaction_mode: columns.next()?,
                call_id: columns.next()?,
                occurred_at: columns.next()?,
                captured_at: columns.next()?,
            })
        })
    }

    /// Passes on the visible edit observations of Sessions, received by a boundary, in any order.
    pub fn edits_of_sessions(
        &mut self,
        sessions: &[SessionId],
        boundary: Instant,
        mut each: impl FnMut(CohortEdit) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.of_sessions(&EDITS, sessions, boundary, |row| {
            let mut columns = Columns::of(row, "edit_observations", &EDIT_COLUMNS);
            each(CohortEdit {
                observation_id: columns.next()?,
                session_id: columns.next()?,
                agent_harness: columns.next()?,
                call_id: columns.next()?,
                file_path: columns.next()?,
                external_lines_added: columns.next()?,
                external_lines_removed: columns.next()?,
                occurred_at: columns.next()?,
                captured_at: columns.next()?,
            })
        })
    }

    /// Passes on the visible retry linkages of Sessions, received by a boundary, in any order.
    pub fn retries_of_sessions(
        &mut self,
        sessions: &[SessionId],
        boundary: Instant,
        mut each: impl FnMut(CohortRetry) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.of_sessions(&RETRIES, sessions, boundary, |row| {
            let mut columns = Columns::of(row, "retry_linkages", &RETRY_COLUMNS);
            each(CohortRetry {
                retry_linkage_id: columns.next()?,
                session_id: columns.next()?,
                captured_at: columns.next()?,
            })
        })
    }

    /// Passes on what the files of visible edit observations held of the applied texts, in any
    /// order.
    pub fn texts_of_edits(
        &mut self,
        observations: &[FactId],
        mut each: impl FnMut(FactId, &HeldText) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let shared = [self.org_id.as_str().into()];
        let keys: Vec<Value<'_>> = observations.iter().copied().map(Value::from).collect();
        self.connection()?
            .lookup_many(&EDIT_TEXTS, &shared, &keys, |row| {
                let mut columns = Columns::of(row, "edit_observations", &EDIT_TEXT_COLUMNS);
                let observation_id = columns.next()?;
                each(observation_id, &HeldText::read(&mut columns)?)
            })
    }

    /// Passes on the visible CI outcomes captured in a range, in order of capture.
    pub fn ci_outcomes_captured(
        &mut self,
        captured: Range<Instant>,
        mut each: impl FnMut(CiOutcomeRow) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.captured(OUTCOMES, captured, |row| each(CiOutcomeRow::read(row)?))
    }

    fn captured(
        &mut self,
        select: &str,
        captured: Range<Instant>,
        each: impl FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let keys = [
            self.org_id.as_str().into(),
            captured.start.into(),
            captured.end.into(),
        ];
        let sql = format!("{select}{CAPTURED}");
        self.connection()?.each(&sql, &keys, each)
    }

    fn of_sessions(
        &mut self,
        lookup: &Lookup<'_>,
        sessions: &[SessionId],
        boundary: Instant,
        each: impl FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let shared = [self.org_id.as_str().into(), boundary.into()];
        let keys: Vec<Value<'_>> = sessions
            .iter()
            .map(|session| session.as_str().into())
            .collect();
        self.connection()?.lookup_many(lookup, &shared, &keys, each)
    }
}
