//! Observed links between Sessions and commits.

use svc_engine_fact::SessionCommitObservation;

use super::event::Event;
use super::record::{Fact, NamingColumns, table};

table! {
    SessionCommitObservation in "session_commit_observations",
    "observation_id" = observation_id,
    "session_id" = session_id,
    "repo" = repo,
    "repository_provider" "repository_host" "repository_id" = repository,
    "commit_sha" = commit_sha,
    "source_push_id" = source_push_id,
    "notes_ref" = notes_ref,
    "captured_at_us" = captured_at,
}

impl Fact for SessionCommitObservation {
    const CONTENT: &'static [&'static str] = &[];
    const EVENT: Option<&'static Event> = None;
    const NAMES: &'static [NamingColumns] = &[NamingColumns::of_repository("observations")];
}
