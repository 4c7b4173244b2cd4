//! CI outcomes: one per run and attempt, within the forge that the sender named.

use svc_engine_fact::CiOutcome;
use svc_model::json::Text;
use svc_model::query::RunUrl;

use super::event::Event;
use super::record::{Fact, NamingColumns, NaturalKey, table};
use crate::pack::column::{OrZero, PackedColumn};
use crate::pack::identity;
use crate::sql::value::Value;

table! {
    CiOutcome in "ci_outcomes",
    "outcome_id" = outcome_id,
    "provider" = provider,
    "run_id" = run_id,
    "run_attempt" = run_attempt as OrZero,
    "repo" = repo,
    "repository_provider" "repository_host" "repository_id" = repository,
    "commit_sha" = commit_sha,
    "branch" = branch,
    "workflow_name" = workflow_name,
    "workflow_id" = workflow_id,
    "workflow_path" = workflow_path,
    "result" = result,
    "run_url" = run_url,
    "provider_result" = provider_result,
    "error_type" = error_type,
    "reason" = reason,
    "source_event_type" = source_event_type,
    "source_spec_version" = source_spec_version,
    "source_event_id" = source_event_id,
    "pr_number" = pr_number,
    "signed" = signed,
    "captured_at_us" = captured_at,
    "raw" = raw as PackedColumn,
    derived "run_url_hash" = run_url_hash,
}

/// The key for finding a run by its URL.
fn run_url_hash(outcome: &CiOutcome) -> Value<'static> {
    let url = outcome.run_url.as_ref().and_then(Text::as_str);
    // No URL is empty, so nobody looks up an empty hash.
    url.map_or(Value::OwnBlob(Vec::new()), url_hash)
}

/// Returns the hash of the part of a URL that names the run. The rest only leads to a place on its
/// page.
pub(crate) fn url_hash(url: &str) -> Value<'static> {
    identity::of(&[RunUrl::page(url).as_bytes()])
}

/// One place for each result: the index by repository has the result before the time, for pages by
/// result. Eight steps in it cost less than a second index.
macro_rules! by_result {
    ($($result:literal),+) => {
        &[$(NamingColumns::of_repository(concat!("ci_outcomes.", $result)).only("result", $result)),+]
    };
}

impl Fact for CiOutcome {
    const CONTENT: &'static [&'static str] = &[];
    const EVENT: Option<&'static Event> = None;
    const NAMES: &'static [NamingColumns] = by_result!(
        "passed",
        "failed",
        "error",
        "timed_out",
        "cancelled",
        "skipped",
        "neutral",
        "unknown"
    );
    // A run belongs to one forge: the same run with another repository is a conflict.
    const KEYS: &'static [NaturalKey] = &[
        NaturalKey::with(
            "repository_id",
            "provider, run_id, run_attempt, repository_provider, repository_host, signed",
        ),
        NaturalKey::without("repository_id", "provider, run_id, run_attempt, signed"),
    ];
    const IDENTITY: &'static str = "repository_id, repo, commit_sha, workflow_id, workflow_path";
    const SIGNED: bool = true;
}
