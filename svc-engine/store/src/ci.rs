//! CI outcomes: one per run and attempt, within the forge that the sender named.
//!
//! What a token reports of the forge's own run is not what the forge itself says, under its
//! signature. If the two differ, the signed one is stored beside the other and answers for the run.
//! A report that differs from a signed outcome is not stored.

use std::collections::HashSet;

use svc_engine_fact::CiOutcome;
use svc_model::json::Text;
use svc_model::problem::Code;
use svc_model::query::RunUrl;

use super::StoreError;
use super::append::{Appending, Outcome};
use super::claims::Place;
use super::column::{OrZero, Packed};
use super::connection::Lookup;
use super::fact::{self, Fact};
use super::identity;
use super::redelivery::{self, Key};
use super::row::NewRow;
use super::table::{Record as _, table};
use super::value::Value;

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
    "raw" = raw as Packed,
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
pub(super) fn url_hash(url: &str) -> Value<'static> {
    identity::of(&[RunUrl::page(url).as_bytes()])
}

/// One place for each result: the index by repository has the result before the time, for pages by
/// result. Eight steps in it cost less than a second index.
macro_rules! by_result {
    ($($result:literal),+) => {
        &[$(Place::of_repository(concat!("ci_outcomes.", $result)).only("result", $result)),+]
    };
}

impl Fact for CiOutcome {
    const NAMES: &'static [Place] = by_result!(
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
    const KEYS: &'static [Key] = &[
        Key::with(
            "repository_id",
            "provider, run_id, run_attempt, repository_provider, repository_host, signed",
        ),
        Key::without("repository_id", "provider, run_id, run_attempt, signed"),
    ];
    const IDENTITY: &'static str = "repository_id, repo, commit_sha, workflow_id, workflow_path";

    fn insert(
        appending: &mut Appending<'_, '_>,
        rows: &[&NewRow],
    ) -> Result<Vec<Outcome>, StoreError> {
        let mut outcomes = vec![None; rows.len()];
        // The signed ones come first: the others are compared with them.
        for signed in [1, 0] {
            let is_of_group = |row: &NewRow| row.integer(Self::TABLE, "signed") == Some(signed);
            let group: Vec<usize> = (0..rows.len())
                .filter(|place| is_of_group(rows[*place]))
                .collect();
            let runs = runs_with(
                appending,
                1 - signed,
                group.iter().map(|place| rows[*place]),
            )?;
            let mut inserting = Vec::with_capacity(group.len());
            for place in group {
                let row = rows[place];
                let run_id = row.text(Self::TABLE, "run_id");
                let beside = if run_id.is_some_and(|run_id| runs.contains(run_id)) {
                    beside(appending, signed, row)?
                } else {
                    Beside::Nothing
                };
                match beside {
                    Beside::Settled(outcome) => outcomes[place] = Some(outcome),
                    Beside::Nothing => inserting.push((place, false)),
                    Beside::Differing => inserting.push((place, true)),
                }
            }
            let new: Vec<&NewRow> = inserting.iter().map(|(place, _)| rows[*place]).collect();
            let inserted = fact::insert::<Self>(appending, &new)?;
            for ((place, differs), outcome) in inserting.into_iter().zip(inserted) {
                outcomes[place] = Some(match outcome {
                    Outcome::Stored(fact_id) if differs => Outcome::Superseding(fact_id),
                    outcome => outcome,
                });
            }
        }
        let outcomes: Option<Vec<Outcome>> = outcomes.into_iter().collect();
        outcomes.ok_or(StoreError::NotStored)
    }
}

/// The runs of stored outcomes that are signed or not.
const RUNS: Lookup<'_> = Lookup {
    select: "SELECT o.run_id FROM ci_outcomes o
        WHERE COALESCE(o.org_id, '') = $1 AND o.signed = $2 AND o.run_id",
    then: "",
};

/// Returns the run ids of these rows for which a signed outcome, or one that is not, is stored.
fn runs_with<'r>(
    appending: &mut Appending<'_, '_>,
    signed: i64,
    rows: impl Iterator<Item = &'r NewRow>,
) -> Result<HashSet<String>, StoreError> {
    let mut org_id = None;
    let mut run_ids = Vec::new();
    for row in rows {
        org_id = row.value(CiOutcome::TABLE, "org_id").cloned();
        run_ids.extend(row.value(CiOutcome::TABLE, "run_id").cloned());
    }
    let mut found = HashSet::new();
    let Some(org_id) = org_id else {
        return Ok(found);
    };
    let connection = &mut *appending.transaction.connection;
    connection.lookup(&RUNS, &[org_id, signed.into()], &run_ids, |row| {
        found.insert(row.text(0)?);
        Ok(())
    })?;
    Ok(found)
}

/// What is stored of a run beside a row: an outcome that is signed if the row is not, or the reverse.
enum Beside {
    /// Nothing that matters, or the row's own key is taken.
    Nothing,
    /// One that differs, and that the row supersedes.
    Differing,
    /// One that settles what becomes of the row. It is not stored.
    Settled(Outcome),
}

/// Compares a row with what is stored of its run beside it.
fn beside(
    appending: &mut Appending<'_, '_>,
    signed: i64,
    row: &NewRow,
) -> Result<Beside, StoreError> {
    let (table, keys) = (CiOutcome::TABLE, CiOutcome::KEYS);
    let connection = &mut *appending.transaction.connection;
    let mut stored = |signed: i64| {
        redelivery::counterpart(
            connection,
            table,
            keys,
            row,
            ("signed", &Value::Integer(signed)),
        )
    };
    if stored(signed)?.is_some() {
        return Ok(Beside::Nothing);
    }
    let Some(difference) = stored(1 - signed)? else {
        return Ok(Beside::Nothing);
    };
    let is_conflict = difference.is_conflict(table, CiOutcome::IDENTITY, row);
    let differs = is_conflict || difference.columns().contains(&"result");
    let fact_id = difference.fact_id();
    // They differ in whether they are signed.
    if difference.columns().len() > 1 {
        appending.afterwards.differences.push(difference);
    }
    Ok(match (signed, differs) {
        (1, true) => Beside::Differing,
        (_, false) => Beside::Settled(Outcome::Redelivered(fact_id)),
        _ if is_conflict => Beside::Settled(Outcome::Conflict(Code::RepositoryIdentityConflict)),
        _ => Beside::Settled(Outcome::Overruled(fact_id)),
    })
}
