//! The commits that clients reported for Sessions. They are no facts, but their rows are written and
//! read as facts are.

use svc_engine_fact::{CommitClaim, NamedRepository};

use super::event::Event;
use super::record::{Fact, table};
use crate::pack::column::{Column as _, ColumnForm, Columns};
use crate::sql::error::StoreError;
use crate::sql::value::Value;

table! {
    CommitClaim in "session_commit_claims",
    "claim_id" = claim_id,
    "session_id" = session_id,
    "user_id" = user_id,
    "agent_harness" = agent_harness,
    "tool_use_id" = tool_use_id,
    "git_commit_id" = git_commit_id,
    "repository_provider" "repository_host" "repository_name" = repository as MaybeNamed,
    "occurred_at_us" = occurred_at,
    "captured_at_us" = captured_at,
}

impl Fact for CommitClaim {
    const CONTENT: &'static [&'static str] = &[];
    const EVENT: Option<&'static Event> = None;
}

/// A repository of which only the name is always there.
struct MaybeNamed;

impl ColumnForm<Option<NamedRepository>> for MaybeNamed {
    fn write(named: Option<NamedRepository>, row: &mut Vec<Value<'static>>) {
        let (provider, host, name) = match named {
            Some(NamedRepository {
                provider,
                host,
                name,
            }) => (provider, host, Some(name)),
            None => (None, None, None),
        };
        provider.write(row);
        host.write(row);
        name.write(row);
    }

    fn read(columns: &mut Columns<'_>) -> Result<Option<NamedRepository>, StoreError> {
        let (provider, host) = (columns.next()?, columns.next()?);
        let name: Option<_> = columns.next()?;
        Ok(name.map(|name| NamedRepository {
            provider,
            host,
            name,
        }))
    }
}
