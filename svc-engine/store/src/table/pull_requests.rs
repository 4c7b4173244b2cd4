//! Pull requests: one revision per pair of commits, one merge per pull request.

use svc_engine_fact::{PullRequest, PullRequestMerge, PullRequestRevision};

use super::event::Event;
use super::record::{Fact, NamingColumns, NaturalKey, table};
use crate::pack::column::structure;

structure!(PullRequest: 14,
    provider, repo, repository, pr_number, head_repo, head_repository, head_ref, head_sha, base_ref,
    base_sha,
);

table! {
    PullRequestRevision in "pull_request_revisions",
    "revision_id" = revision_id,
    "provider" "repo" "repository_provider" "repository_host" "repository_id" "pr_number"
    "head_repo" "head_repository_provider" "head_repository_host" "head_repository_id"
    "head_ref" "head_sha" "base_ref" "base_sha" = pull_request,
    "previous_head_sha" = previous_head_sha,
    "source_event_id" = source_event_id,
    "captured_at_us" = captured_at,
}

impl Fact for PullRequestRevision {
    const CONTENT: &'static [&'static str] = &[];
    const EVENT: Option<&'static Event> = None;
    const NAMES: &'static [NamingColumns] = &[
        NamingColumns::of_repository("revisions"),
        NamingColumns::of_head("revision_heads"),
    ];
    const KEYS: &'static [NaturalKey] = &[
        NaturalKey::with(
            "repository_id",
            "repository_provider, repository_host, repository_id, pr_number, head_sha, base_sha",
        ),
        NaturalKey::without(
            "repository_id",
            "provider, repo, pr_number, head_sha, base_sha",
        ),
    ];
    const IDENTITY: &'static str =
        "head_repository_provider, head_repository_host, head_repository_id, head_repo";
}

table! {
    PullRequestMerge in "pull_request_merges",
    "merge_id" = merge_id,
    "provider" "repo" "repository_provider" "repository_host" "repository_id" "pr_number"
    "head_repo" "head_repository_provider" "head_repository_host" "head_repository_id"
    "head_ref" "head_sha" "base_ref" "base_sha" = pull_request,
    "merge_commit_sha" = merge_commit_sha,
    "merged_at_us" = merged_at,
    "source_event_id" = source_event_id,
    "captured_at_us" = captured_at,
}

impl Fact for PullRequestMerge {
    const CONTENT: &'static [&'static str] = &[];
    const EVENT: Option<&'static Event> = None;
    const NAMES: &'static [NamingColumns] = &[
        NamingColumns::of_repository("merges"),
        NamingColumns::of_head("merge_heads"),
    ];
    const KEYS: &'static [NaturalKey] = &[
        NaturalKey::with(
            "repository_id",
            "repository_provider, repository_host, repository_id, pr_number",
        ),
        NaturalKey::without("repository_id", "provider, repo, pr_number"),
    ];
    const IDENTITY: &'static str = "head_repository_provider, head_repository_host, \
        head_repository_id, head_repo, head_sha, base_sha, merge_commit_sha";
}
