//! Pushes: one per branch and pair of commits of a repository. A push never conflicts.

use svc_engine_fact::Push;

use super::event::Event;
use super::record::{Fact, NamingColumns, NaturalKey, table};

table! {
    Push in "pushes",
    "push_id" = push_id,
    "provider" = provider,
    "repo" = repo,
    "repository_provider" "repository_host" "repository_id" = repository,
    "clone_url" = clone_url,
    "ref" = r#ref,
    "before_sha" = before_sha,
    "after_sha" = after_sha,
    "forced" = forced,
    "captured_at_us" = captured_at,
}

impl Fact for Push {
    const CONTENT: &'static [&'static str] = &[];
    const EVENT: Option<&'static Event> = None;
    const NAMES: &'static [NamingColumns] = &[NamingColumns::of_repository("pushes")];
    const KEYS: &'static [NaturalKey] = &[
        NaturalKey::with(
            "repository_id",
            "repository_provider, repository_host, repository_id, ref, before_sha, after_sha",
        ),
        NaturalKey::without("repository_id", "repo, ref, before_sha, after_sha"),
    ];
}
