//! Pushes: one per branch and pair of commits of a repository. A push never conflicts.

use svc_model::id::FactId;

use super::table::{Fact, IDENTIFIED, Key, NAMED, Table, table, triple};
use super::value::Value;
use crate::fact::Push;

impl Fact for Push {
    const TABLE: Table = table!("pushes":
        push_id, org_id, provider, repo, repository_provider, repository_host, repository_id,
        clone_url, ref, before_sha, after_sha, forced, captured_at_us,
    );
    const KEYS: &'static [Key] = &[
        Key {
            condition: IDENTIFIED,
            columns: &[
                "repository_provider",
                "repository_host",
                "repository_id",
                "ref",
                "before_sha",
                "after_sha",
            ],
        },
        Key {
            condition: NAMED,
            columns: &["repo", "ref", "before_sha", "after_sha"],
        },
    ];

    fn id(&self) -> FactId {
        self.push_id
    }

    fn write<'a>(&'a self, org_id: &'a str, row: &mut Vec<Value<'a>>) {
        row.extend([
            self.push_id.into(),
            org_id.into(),
            self.provider.as_str().into(),
            self.repo.as_str().into(),
        ]);
        row.extend(triple(self.repository.as_ref()));
        row.extend([
            self.clone_url.as_str().into(),
            self.r#ref.as_str().into(),
            self.before_sha.as_str().into(),
            self.after_sha.as_str().into(),
            self.forced.into(),
            self.captured_at.into(),
        ]);
    }

    fn key(&self) -> Option<&'static Key> {
        Some(&Self::KEYS[usize::from(self.repository.is_none())])
    }
}
