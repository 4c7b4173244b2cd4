//! Rename receipts: one per delivery, if the forge gives its deliveries ids.

use svc_engine_fact::RepositoryRename;

use super::event::Event;
use super::record::{Fact, NamingColumns, NaturalKey, table};

table! {
    RepositoryRename in "repository_renames",
    "rename_id" = rename_id,
    "repository_provider" "repository_host" "repository_id" = repository,
    "old_repo" = old_repo,
    "new_repo" = new_repo,
    "source_event_id" = source_event_id,
    "occurred_at_us" = occurred_at,
    "captured_at_us" = captured_at,
}

impl Fact for RepositoryRename {
    const CONTENT: &'static [&'static str] = &[];
    const EVENT: Option<&'static Event> = None;
    const NAMES: &'static [NamingColumns] = &[
        NamingColumns::given_up("renames_from", "old_repo"),
        NamingColumns::named("renames_to", "new_repo"),
    ];
    const KEYS: &'static [NaturalKey] = &[NaturalKey::with(
        "source_event_id",
        "repository_provider, repository_host, source_event_id",
    )];
    const IDENTITY: &'static str = "repository_id, old_repo, new_repo, occurred_at_us";
}
