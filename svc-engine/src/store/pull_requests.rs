//! Pull requests: a revision per pair of commits, a merge per pull request.

use svc_model::id::FactId;
use svc_model::repository::CommitSha;

use super::table::{Fact, IDENTIFIED, Key, NAMED, Table, table, triple};
use super::value::Value;
use crate::fact::{PullRequest, PullRequestMerge, PullRequestRevision};

/// Returns the columns that both kinds begin with after their ids.
fn pull_request<'a>(pull_request: &'a PullRequest, row: &mut Vec<Value<'a>>) {
    row.extend([
        pull_request.provider.as_str().into(),
        pull_request.repo.as_str().into(),
    ]);
    row.extend(triple(pull_request.repository.as_ref()));
    row.extend([
        pull_request.pr_number.into(),
        pull_request.head_repo.as_deref().into(),
    ]);
    row.extend(triple(pull_request.head_repository.as_ref()));
    row.extend([
        pull_request.head_ref.as_str().into(),
        pull_request.head_sha.as_str().into(),
        pull_request.base_ref.as_str().into(),
        pull_request.base_sha.as_str().into(),
    ]);
}

impl Fact for PullRequestRevision {
    const TABLE: Table = table!("pull_request_revisions":
        revision_id, org_id, provider, repo, repository_provider, repository_host, repository_id,
        pr_number, head_repo, head_repository_provider, head_repository_host, head_repository_id,
        head_ref, head_sha, base_ref, base_sha, previous_head_sha, source_event_id, captured_at_us,
    );
    const KEYS: &'static [Key] = &[
        Key {
            condition: IDENTIFIED,
            columns: &[
                "repository_provider",
                "repository_host",
                "repository_id",
                "pr_number",
                "head_sha",
                "base_sha",
            ],
        },
        Key {
            condition: NAMED,
            columns: &["provider", "repo", "pr_number", "head_sha", "base_sha"],
        },
    ];

    fn id(&self) -> FactId {
        self.revision_id
    }

    fn write<'a>(&'a self, org_id: &'a str, row: &mut Vec<Value<'a>>) {
        row.extend([self.revision_id.into(), org_id.into()]);
        pull_request(&self.pull_request, row);
        row.extend([
            self.previous_head_sha
                .as_ref()
                .map(CommitSha::as_str)
                .into(),
            self.source_event_id.as_deref().into(),
            self.captured_at.into(),
        ]);
    }

    fn key(&self) -> Option<&'static Key> {
        Some(&Self::KEYS[usize::from(self.pull_request.repository.is_none())])
    }

    fn identity(&self) -> &'static [&'static str] {
        // A name says nothing beside an identity.
        match self.pull_request.head_repository {
            Some(_) => &[
                "head_repository_provider",
                "head_repository_host",
                "head_repository_id",
            ],
            None => &["head_repository_id", "head_repo"],
        }
    }
}

impl Fact for PullRequestMerge {
    const TABLE: Table = table!("pull_request_merges":
        merge_id, org_id, provider, repo, repository_provider, repository_host, repository_id,
        pr_number, head_repo, head_repository_provider, head_repository_host, head_repository_id,
        head_ref, head_sha, base_ref, base_sha, merge_commit_sha, merged_at_us, source_event_id,
        captured_at_us,
    );
    const KEYS: &'static [Key] = &[
        Key {
            condition: IDENTIFIED,
            columns: &[
                "repository_provider",
                "repository_host",
                "repository_id",
                "pr_number",
            ],
        },
        Key {
            condition: NAMED,
            columns: &["provider", "repo", "pr_number"],
        },
    ];

    fn id(&self) -> FactId {
        self.merge_id
    }

    fn write<'a>(&'a self, org_id: &'a str, row: &mut Vec<Value<'a>>) {
        row.extend([self.merge_id.into(), org_id.into()]);
        pull_request(&self.pull_request, row);
        row.extend([
            self.merge_commit_sha.as_str().into(),
            self.merged_at.into(),
            self.source_event_id.as_deref().into(),
            self.captured_at.into(),
        ]);
    }

    fn key(&self) -> Option<&'static Key> {
        Some(&Self::KEYS[usize::from(self.pull_request.repository.is_none())])
    }

    fn identity(&self) -> &'static [&'static str] {
        match self.pull_request.head_repository {
            Some(_) => &[
                "head_repository_provider",
                "head_repository_host",
                "head_repository_id",
                "head_sha",
                "base_sha",
                "merge_commit_sha",
            ],
            None => &[
                "head_repository_id",
                "head_repo",
                "head_sha",
                "base_sha",
                "merge_commit_sha",
            ],
        }
    }
}
