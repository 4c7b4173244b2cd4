//! Rename receipts: one per delivery, where the forge names its deliveries.

use svc_model::id::FactId;

use super::table::{Fact, Key, Table, table, triple};
use super::value::Value;
use crate::fact::RepositoryRename;

impl Fact for RepositoryRename {
    const TABLE: Table = table!("repository_renames":
        rename_id, org_id, repository_provider, repository_host, repository_id, old_repo, new_repo,
        source_event_id, occurred_at_us, captured_at_us,
    );
    const KEYS: &'static [Key] = &[Key {
        condition: "source_event_id IS NOT NULL",
        columns: &["repository_provider", "repository_host", "source_event_id"],
    }];

    fn id(&self) -> FactId {
        self.rename_id
    }

    fn write<'a>(&'a self, org_id: &'a str, row: &mut Vec<Value<'a>>) {
        row.extend([self.rename_id.into(), org_id.into()]);
        row.extend(triple(Some(&self.repository)));
        row.extend([
            self.old_repo.as_str().into(),
            self.new_repo.as_str().into(),
            self.source_event_id.as_deref().into(),
            self.occurred_at.into(),
            self.captured_at.into(),
        ]);
    }

    fn key(&self) -> Option<&'static Key> {
        Some(&Self::KEYS[0])
    }

    fn identity(&self) -> &'static [&'static str] {
        &["repository_id", "old_repo", "new_repo", "occurred_at_us"]
    }
}
