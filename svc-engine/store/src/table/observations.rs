//! Observed links between Sessions and commits.

use svc_engine_fact::{ObservationOrigin, SessionCommitObservation};
use svc_model::query::ObservationSource;

use super::event::Event;
use super::record::{Fact, NamingColumns, table};
use crate::pack::column::{Column, Columns};
use crate::sql::error::StoreError;
use crate::sql::value::Value;

/// The notes ref, which is empty without a note, and the source, which is NULL for a note.
impl Column for ObservationOrigin {
    const WIDTH: usize = 2;

    fn write(self, row: &mut Vec<Value<'static>>) {
        let (notes_ref, source) = match self {
            Self::Note(notes_ref) => (notes_ref, None),
            Self::Telemetry => (String::new(), Some(ObservationSource::Telemetry)),
        };
        notes_ref.write(row);
        source.write(row);
    }

    fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError> {
        let notes_ref: String = columns.next()?;
        let source: Option<ObservationSource> = columns.next()?;
        Ok(match source {
            None => Self::Note(notes_ref),
            Some(ObservationSource::Telemetry) => Self::Telemetry,
        })
    }
}

table! {
    SessionCommitObservation in "session_commit_observations",
    "observation_id" = observation_id,
    "session_id" = session_id,
    "repo" = repo,
    "repository_provider" "repository_host" "repository_id" = repository,
    "commit_sha" = commit_sha,
    "source_push_id" = source_push_id,
    "notes_ref" "source" = origin,
    "captured_at_us" = captured_at,
}

impl Fact for SessionCommitObservation {
    const CONTENT: &'static [&'static str] = &[];
    const EVENT: Option<&'static Event> = None;
    const NAMES: &'static [NamingColumns] = &[NamingColumns::of_repository("observations")];
}
