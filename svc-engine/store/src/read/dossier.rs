//! The events of a Session as metadata. Their content and users are not even read.

use svc_model::id::SessionId;
use svc_model::ingest::GatewayProvider;
use svc_model::open::Open;
use svc_model::query::{RetryTool, TimelineEvent};
use svc_model::time::Instant;

use super::snapshot::Snapshot;
use crate::pack::column::Columns;
use crate::pack::model_call_id::ModelCallId;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::Row;
use crate::table::sessions::calls_of_session;

const SPAN: &str = "SELECT first_observed_at_us, last_observed_at_us FROM sessions
    WHERE org_id = $1 AND session_id = $2";

/// Selects columns of the visible facts of a Session.
macro_rules! events {
    ($table:literal, $id:literal, $columns:literal) => {
        events!($table, $id, $columns, "f.org_id = $1 AND f.session_id = $2")
    };
    ($table:literal, $id:literal, $columns:literal, $condition:expr) => {
        concat!(
            "SELECT f.",
            $id,
            ", ",
            $columns,
            " FROM visible_",
            $table,
            " f WHERE ",
            $condition
        )
    };
}

const CALLS: &str = events!(
    "inference_calls",
    "inference_call_id",
    "f.observed_at_us, f.gateway_provider, f.model_provider, f.model, f.input_tokens,
    f.output_tokens, f.duration_ms, f.model_call_id",
    calls_of_session!("$1", "$2")
);
const DECISIONS: &str = events!(
    "developer_decisions",
    "decision_id",
    "f.occurred_at_us, f.agent_harness, f.accepted, f.explicit, f.interaction_mode,
    f.file_path, f.call_id,
    f.commit_sha"
);
const EDITS: &str = events!(
    "edit_observations",
    "observation_id",
    "f.occurred_at_us, f.agent_harness,
    f.file_path, f.call_id,
    f.external_lines_added, f.external_lines_removed"
);
const REJECTIONS: &str = events!(
    "rejected_edits",
    "rejection_id",
    "f.occurred_at_us, f.agent_harness,
    f.file_path, f.call_id"
);
const RETRIES: &str = events!(
    "retry_linkages",
    "retry_linkage_id",
    "f.occurred_at_us, f.agent_harness,
    f.file_path, f.tool_name,
    f.rejected_call_id, f.accepted_call_id"
);

impl Snapshot<'_> {
    /// Returns the first and the last time of a Session; nothing if no fact names it.
    pub fn session_span(
        &mut self,
        session_id: &SessionId,
    ) -> Result<Option<(Instant, Instant)>, StoreError> {
        let keys = [self.org_id.as_str().into(), session_id.as_str().into()];
        self.connection()?.first(SPAN, &keys, |row| {
            let mut columns = columns(row, "sessions");
            Ok((columns.next()?, columns.next()?))
        })
    }

    /// Returns the visible events of a Session, in any order. The caller has checked their number.
    pub fn session_events(
        &mut self,
        session_id: &SessionId,
    ) -> Result<Vec<TimelineEvent>, StoreError> {
        let keys = [self.org_id.as_str().into(), session_id.as_str().into()];
        let kinds: [(&str, Read); 5] = [
            (CALLS, call),
            (DECISIONS, decision),
            (EDITS, edit),
            (REJECTIONS, rejection),
            (RETRIES, retry),
        ];
        let mut events = Vec::new();
        for (sql, read) in kinds {
            self.connection()?.each(sql, &keys, |row| {
                events.push(read(row)?);
                Ok(())
            })?;
        }
        Ok(events)
    }
}

type Read = fn(&Row<'_>) -> Result<TimelineEvent, StoreError>;

/// Starts reading an event.
fn columns<'r>(row: &'r Row<'r>, table: &'static str) -> Columns<'r> {
    // An error names only the table; the value shows which column it was.
    Columns::of(row, table, &[])
}

/// Reads the path of a file; an empty one counts as absent.
fn path(columns: &mut Columns<'_>) -> Result<Option<String>, StoreError> {
    let path: String = columns.next()?;
    Ok(Some(path).filter(|path| !path.is_empty()))
}

fn call(row: &Row<'_>) -> Result<TimelineEvent, StoreError> {
    const TABLE: &str = "inference_calls";
    let mut columns = columns(row, TABLE);
    Ok(TimelineEvent::InferenceCall {
        fact_id: columns.next()?,
        occurred_at: columns.next()?,
        gateway_provider: columns.next::<GatewayProvider>()?.into(),
        model_provider: columns.next()?,
        model: columns.next()?,
        input_tokens: columns.next()?,
        output_tokens: columns.next()?,
        duration_ms: columns.next()?,
        model_call_id: columns.next::<Option<ModelCallId>>()?.map(|id| id.0),
    })
}

fn decision(row: &Row<'_>) -> Result<TimelineEvent, StoreError> {
    let mut columns = columns(row, "developer_decisions");
    let (fact_id, occurred_at, agent_harness) = (columns.next()?, columns.next()?, columns.next()?);
    let (accepted, explicit, interaction_mode) =
        (columns.next()?, columns.next()?, columns.next()?);
    let file_path = path(&mut columns)?;
    Ok(TimelineEvent::DeveloperDecision {
        fact_id,
        occurred_at,
        agent_harness: Open::Known(agent_harness),
        accepted,
        explicit,
        interaction_mode: Open::Known(interaction_mode),
        has_file_path: file_path.is_some(),
        file_path,
        call_id: columns.next()?,
        commit_sha: columns.next()?,
    })
}

fn edit(row: &Row<'_>) -> Result<TimelineEvent, StoreError> {
    let mut columns = columns(row, "edit_observations");
    let (fact_id, occurred_at, agent_harness) = (columns.next()?, columns.next()?, columns.next()?);
    let (file_path, call_id) = (path(&mut columns)?, columns.next()?);
    let external_lines_added: Option<i64> = columns.next()?;
    let external_lines_removed: Option<i64> = columns.next()?;
    Ok(TimelineEvent::EditObservation {
        fact_id,
        occurred_at,
        agent_harness: Open::Known(agent_harness),
        has_file_path: file_path.is_some(),
        file_path,
        call_id,
        external_lines_added_present: external_lines_added.is_some(),
        external_lines_removed_present: external_lines_removed.is_some(),
        external_lines_added,
        external_lines_removed,
    })
}

fn rejection(row: &Row<'_>) -> Result<TimelineEvent, StoreError> {
    let mut columns = columns(row, "rejected_edits");
    let (fact_id, occurred_at, agent_harness) = (columns.next()?, columns.next()?, columns.next()?);
    let file_path = path(&mut columns)?;
    Ok(TimelineEvent::RejectedEdit {
        fact_id,
        occurred_at,
        agent_harness: Open::Known(agent_harness),
        has_file_path: file_path.is_some(),
        file_path,
        call_id: columns.next()?,
    })
}

fn retry(row: &Row<'_>) -> Result<TimelineEvent, StoreError> {
    const TABLE: &str = "retry_linkages";
    let mut columns = columns(row, TABLE);
    let (fact_id, occurred_at, agent_harness) = (columns.next()?, columns.next()?, columns.next()?);
    let file_path = path(&mut columns)?;
    Ok(TimelineEvent::RetryLinkage {
        fact_id,
        occurred_at,
        agent_harness: Open::Known(agent_harness),
        has_file_path: file_path.is_some(),
        file_path,
        tool_name: {
            let tool: String = columns.next()?;
            RetryTool::from_wire(&tool)
                .ok_or(corrupt(TABLE, "tool_name"))?
                .into()
        },
        rejected_call_id: columns.next()?,
        accepted_call_id: columns.next()?,
    })
}
