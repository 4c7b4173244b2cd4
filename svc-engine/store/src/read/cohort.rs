//! What reports read: an organization's calls in a range of time, the decisions and edits of their
//! Sessions, and repositories' facts in a range of capture. Each row is passed on as it is read, so
//! none is in memory twice.

use std::ops::Range;
use std::sync::Arc;

use svc_engine_fact::{Push, SessionCommitObservation};
use svc_model::facts::{AgentHarness, InteractionMode};
use svc_model::id::{FactId, SessionId};
use svc_model::time::Instant;

use super::snapshot::Snapshot;
use crate::pack::column::Columns;
use crate::pack::edit_texts::HeldText;
use crate::pack::id_list;
use crate::sql::connection::Lookup;
use crate::sql::error::StoreError;
use crate::sql::value::{Row, Value};
use crate::table::record::Record;

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
}

const EDIT_COLUMNS: [&str; 8] = [
    "observation_id",
    "session_id",
    "agent_harness",
    "call_id",
    "file_path",
    "external_lines_added",
    "external_lines_removed",
    "occurred_at_us",
];
const EDITS: Lookup<'_> = Lookup {
    select: "SELECT f.observation_id, f.session_id, f.agent_harness, f.call_id, f.file_path,
            f.external_lines_added, f.external_lines_removed, f.occurred_at_us
        FROM visible_edit_observations f
        WHERE f.org_id = $1 AND f.captured_at_us <= $2 AND f.session_id",
    then: "",
};

const RETRIES: Lookup<'_> = Lookup {
    select: "SELECT f.retry_linkage_id FROM visible_retry_linkages f
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
            })
        })
    }

    /// Passes on the visible retry linkages of Sessions, received by a boundary, in any order.
    pub fn retries_of_sessions(
        &mut self,
        sessions: &[SessionId],
        boundary: Instant,
        mut each: impl FnMut(FactId) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.of_sessions(&RETRIES, sessions, boundary, |row| {
            each(Columns::of(row, "retry_linkages", &["retry_linkage_id"]).next()?)
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

    /// Passes on the visible pushes captured in a range, in order of capture.
    pub fn pushes_captured(
        &mut self,
        captured: Range<Instant>,
        each: impl FnMut(Push) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.captured(captured, each)
    }

    /// Passes on the visible observations captured in a range, in order of capture.
    pub fn observations_captured(
        &mut self,
        captured: Range<Instant>,
        each: impl FnMut(SessionCommitObservation) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.captured(captured, each)
    }

    fn captured<F: Record>(
        &mut self,
        captured: Range<Instant>,
        mut each: impl FnMut(F) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let keys = [
            self.org_id.as_str().into(),
            captured.start.into(),
            captured.end.into(),
        ];
        let table = F::TABLE;
        let sql = format!("{}{CAPTURED}", table.select);
        self.connection()?.each(&sql, &keys, |row| {
            each(F::read(&mut Columns::of(row, table.name, table.members))?)
        })
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
