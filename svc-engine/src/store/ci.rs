//! CI outcomes: unique per run and attempt, within the forge that the sender named.

use svc_model::id::{FactId, OrgId};
use svc_model::json::Text;
use svc_model::problem::Code;

use super::StoreError;
use super::connection::{Connection, Insert};
use super::error::corrupt;
use super::value::Value;
use super::writer::Outcome;
use crate::fact::CiOutcome;

const INSERT: Insert = Insert {
    into: "INSERT INTO ci_outcomes
        (outcome_id, org_id, provider, run_id, run_attempt, repo, repository_provider,
         repository_host, repository_id, commit_sha, branch, workflow_name, workflow_id,
         workflow_path, result, run_url, provider_result, error_type, reason, source_event_type,
         source_spec_version, source_event_id, pr_number, captured_at_us, raw)",
    columns: 25,
    then: "ON CONFLICT DO NOTHING",
    returning: "CAST(0 AS BIGINT), outcome_id",
    unique: 0,
};
const RETAINED: &str =
    "SELECT outcome_id, repository_id, repo, commit_sha, workflow_id, workflow_path
    FROM ci_outcomes
    WHERE org_id = $1 AND repository_provider = $2 AND repository_host = $3
        AND repository_id IS NOT NULL AND provider = $4 AND run_id = $5
        AND COALESCE(run_attempt, 0) = $6";
const RETAINED_BY_NAME: &str =
    "SELECT outcome_id, repository_id, repo, commit_sha, workflow_id, workflow_path
    FROM ci_outcomes
    WHERE org_id = $1 AND repository_id IS NULL AND provider = $2 AND run_id = $3
        AND COALESCE(run_attempt, 0) = $4";

/// The statements of this module, for the test that prepares each of them.
#[cfg(test)]
pub(super) fn statements() -> Vec<String> {
    vec![
        INSERT.text(2),
        RETAINED.to_owned(),
        RETAINED_BY_NAME.to_owned(),
    ]
}

/// A text that may hold NUL or a surrogate is kept as its escaped JSON string.
fn escaped(text: &Text) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    text.write_escaped(&mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// The texts of an outcome that are not kept as they are.
struct Escaped {
    outcome_id: String,
    workflow_name: String,
    run_url: Option<String>,
    provider_result: Option<String>,
    error_type: Option<String>,
    reason: Option<String>,
    source_event_type: Option<String>,
    source_spec_version: Option<String>,
    raw: String,
}

impl Escaped {
    fn of(outcome: &CiOutcome) -> Self {
        let optional = |text: &Option<Text>| text.as_ref().map(escaped);
        Self {
            outcome_id: outcome.outcome_id.to_string(),
            workflow_name: escaped(&outcome.workflow_name),
            run_url: optional(&outcome.run_url),
            provider_result: optional(&outcome.provider_result),
            error_type: optional(&outcome.error_type),
            reason: optional(&outcome.reason),
            source_event_type: optional(&outcome.source_event_type),
            source_spec_version: optional(&outcome.source_spec_version),
            raw: String::from_utf8(outcome.raw.to_canonical()).unwrap_or_default(),
        }
    }
}

/// Stores outcomes and says what became of each.
pub(super) fn store(
    connection: &mut Connection,
    org_id: &OrgId,
    outcomes: &[&CiOutcome],
) -> Result<Vec<Outcome>, StoreError> {
    let texts: Vec<Escaped> = outcomes
        .iter()
        .map(|outcome| Escaped::of(outcome))
        .collect();
    let mut values = Vec::with_capacity(outcomes.len() * INSERT.columns);
    for (outcome, text) in outcomes.iter().zip(&texts) {
        let repository = outcome.repository.as_ref();
        values.extend([
            Value::Text(&text.outcome_id),
            org_id.as_str().into(),
            outcome.provider.as_str().into(),
            Value::Text(&outcome.run_id),
            outcome.run_attempt.into(),
            Value::Text(&outcome.repo),
            repository.map(|it| it.repository_provider.as_str()).into(),
            repository.map(|it| it.repository_host.as_str()).into(),
            repository.map(|it| it.repository_id.as_str()).into(),
            outcome.commit_sha.as_str().into(),
            outcome.branch.as_str().into(),
            Value::Text(&text.workflow_name),
            outcome.workflow_id.as_deref().into(),
            outcome.workflow_path.as_deref().into(),
            outcome.result.as_str().into(),
            text.run_url.as_deref().into(),
            text.provider_result.as_deref().into(),
            text.error_type.as_deref().into(),
            text.reason.as_deref().into(),
            text.source_event_type.as_deref().into(),
            text.source_spec_version.as_deref().into(),
            outcome.source_event_id.as_deref().into(),
            outcome.pr_number.into(),
            Value::Integer(outcome.captured_at.microseconds()),
            Value::Text(&text.raw),
        ]);
    }
    let inserted = connection.insert(&INSERT, &values)?;
    outcomes
        .iter()
        .zip(inserted)
        .map(|(outcome, inserted)| match inserted {
            Some(_) => Ok(Outcome::Stored(outcome.outcome_id)),
            None => retained(connection, org_id, outcome),
        })
        .collect()
}

/// Tells a redelivery from a conflict: the retained outcome decides.
fn retained(
    connection: &mut Connection,
    org_id: &OrgId,
    outcome: &CiOutcome,
) -> Result<Outcome, StoreError> {
    let attempt = Value::Integer(outcome.run_attempt.unwrap_or(0));
    let run = [
        outcome.provider.as_str().into(),
        Value::Text(&outcome.run_id),
        attempt,
    ];
    let org: Value<'_> = org_id.as_str().into();
    let (sql, keys) = match &outcome.repository {
        Some(repository) => (
            RETAINED,
            vec![
                org,
                repository.repository_provider.as_str().into(),
                repository.repository_host.as_str().into(),
                run[0],
                run[1],
                run[2],
            ],
        ),
        None => (RETAINED_BY_NAME, vec![org, run[0], run[1], run[2]]),
    };
    connection
        .first(sql, &keys, |row| {
            let repository_id = outcome
                .repository
                .as_ref()
                .map(|it| it.repository_id.as_str());
            let same = row.optional_text(1)?.as_deref() == repository_id
                && (repository_id.is_some() || row.text(2)? == outcome.repo)
                && row.text(3)? == outcome.commit_sha.as_str()
                && row.optional_text(4)? == outcome.workflow_id
                && row.optional_text(5)? == outcome.workflow_path;
            if !same {
                return Ok(Outcome::Conflict(Code::RepositoryIdentityConflict));
            }
            let id = FactId::parse(&row.text(0)?).ok_or(corrupt("ci_outcomes", "its id"))?;
            Ok(Outcome::Redelivered(id))
        })?
        .ok_or(corrupt("ci_outcomes", "a retained outcome is absent"))
}
