//! CI outcomes: unique per run and attempt, within the forge that the sender named.

use svc_model::id::FactId;

use super::table::{Fact, IDENTIFIED, Key, NAMED, Table, table, triple};
use super::value::Value;
use crate::fact::CiOutcome;

impl Fact for CiOutcome {
    const TABLE: Table = table!("ci_outcomes":
        outcome_id, org_id, provider, run_id, run_attempt, repo, repository_provider,
        repository_host, repository_id, commit_sha, branch, workflow_name, workflow_id,
        workflow_path, result, run_url, provider_result, error_type, reason, source_event_type,
        source_spec_version, source_event_id, pr_number, captured_at_us, raw,
    );
    // Another repository of the same forge with the same run is a conflict, so it is no part of the
    // key.
    const KEYS: &'static [Key] = &[
        Key {
            condition: IDENTIFIED,
            columns: &[
                "repository_provider",
                "repository_host",
                "provider",
                "run_id",
                "run_attempt",
            ],
        },
        Key {
            condition: NAMED,
            columns: &["provider", "run_id", "run_attempt"],
        },
    ];

    fn id(&self) -> FactId {
        self.outcome_id
    }

    fn write<'a>(&'a self, org_id: &'a str, row: &mut Vec<Value<'a>>) {
        row.extend([
            self.outcome_id.into(),
            org_id.into(),
            self.provider.as_str().into(),
            self.run_id.as_str().into(),
            // Attempts count from 1; 0 is a run without one.
            self.run_attempt.unwrap_or(0).into(),
            self.repo.as_str().into(),
        ]);
        row.extend(triple(self.repository.as_ref()));
        row.extend([
            self.commit_sha.as_str().into(),
            self.branch.as_str().into(),
            (&self.workflow_name).into(),
            self.workflow_id.as_deref().into(),
            self.workflow_path.as_deref().into(),
            self.result.as_str().into(),
            self.run_url.as_ref().into(),
            self.provider_result.as_ref().into(),
            self.error_type.as_ref().into(),
            self.reason.as_ref().into(),
            self.source_event_type.as_ref().into(),
            self.source_spec_version.as_ref().into(),
            self.source_event_id.as_deref().into(),
            self.pr_number.into(),
            self.captured_at.into(),
            (&self.raw).into(),
        ]);
    }

    fn key(&self) -> Option<&'static Key> {
        Some(&Self::KEYS[usize::from(self.repository.is_none())])
    }

    fn identity(&self) -> &'static [&'static str] {
        match self.repository {
            Some(_) => &[
                "repository_id",
                "commit_sha",
                "workflow_id",
                "workflow_path",
            ],
            None => &["repo", "commit_sha", "workflow_id", "workflow_path"],
        }
    }
}
