//! How far the outcomes of CI had come, and which commits the later ones concern.
//!
//! Facts of an organization are committed one after another, and each has a later capture time than those of
//! the transactions before it. So as long as one fact is stored, also after the database was set back, all
//! that were committed before it are; and what was committed since was captured later. The number of
//! outcomes tells whether that is all.

use std::collections::BTreeSet;

use svc_model::id::FactId;
use svc_model::repository::CommitSha;
use svc_model::time::Instant;

use super::column::Columns;
use super::connection::Lookup;
use super::value::Value;
use super::{Snapshot, StoreError};

/// How far the outcomes of CI and the quarantine log had come. As long as it is the same, so is what is
/// visible of the outcomes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutcomesEnd {
    /// How many are stored, quarantined ones included.
    count: u64,
    /// One of those that were captured last.
    last: Option<(FactId, Instant)>,
    /// The id of the last row of the quarantine log.
    quarantine: Option<String>,
}

const LAST: &str = "SELECT
    (SELECT o.outcome_id FROM ci_outcomes o WHERE (o.org_id || '') = $1
        ORDER BY o.captured_at_us DESC LIMIT 1),
    (SELECT o.captured_at_us FROM ci_outcomes o WHERE (o.org_id || '') = $1
        ORDER BY o.captured_at_us DESC LIMIT 1)";
const LAST_COLUMNS: [&str; 2] = ["outcome_id", "captured_at_us"];
const IS_STORED: &str = "SELECT 1 FROM ci_outcomes o WHERE o.outcome_id = $2 AND o.org_id = $1";
const LATER: &str = "SELECT o.run_id FROM ci_outcomes o WHERE (o.org_id || '') = $1
    AND o.captured_at_us > $2 ORDER BY o.captured_at_us LIMIT $3";
/// The organization is an expression that no index has, as in what reports read of outcomes.
const COMMITS: Lookup<'_> = Lookup {
    select: "SELECT o.commit_sha FROM ci_outcomes o
        WHERE COALESCE(o.org_id, '') = $1 AND o.run_id",
    then: "",
};

/// Later outcomes that are looked at.
const LATER_MAX: u64 = 2_000;

impl Snapshot<'_> {
    /// Returns how far the outcomes of CI have come.
    pub fn outcomes_end(&mut self) -> Result<OutcomesEnd, StoreError> {
        let quarantine = self.quarantine_log_end()?;
        let count = self.fact_counts()?.ci_outcomes.total;
        let keys = [self.org_id.as_str().into()];
        let last = self.connection()?.first(LAST, &keys, |row| {
            let mut columns = Columns::of(row, "ci_outcomes", &LAST_COLUMNS);
            let outcome_id: Option<FactId> = columns.next()?;
            let captured_at: Option<Instant> = columns.next()?;
            Ok(outcome_id.zip(captured_at))
        })?;
        Ok(OutcomesEnd {
            count,
            last: last.flatten(),
            quarantine,
        })
    }

    /// Returns the commits of the runs of the outcomes, visible or not, that were stored since an earlier end:
    /// all that may have changed of other commits too. Nothing when more than that has changed, or too much.
    pub fn commits_of_outcomes_since(
        &mut self,
        earlier: &OutcomesEnd,
        end: &OutcomesEnd,
    ) -> Result<Option<BTreeSet<CommitSha>>, StoreError> {
        let org_id = self.org_id.as_str();
        let Some((last_id, last_at)) = earlier.last else {
            return Ok(None);
        };
        let later = end.count.checked_sub(earlier.count);
        let Some(later) = later.filter(|later| *later <= LATER_MAX) else {
            return Ok(None);
        };
        let keys = [org_id.into(), last_id.into()];
        let is_stored = self.connection()?.first(IS_STORED, &keys, |_| Ok(()))?;
        if is_stored.is_none() || earlier.quarantine != end.quarantine {
            return Ok(None);
        }
        let rows_max = i64::try_from(LATER_MAX + 1).unwrap_or(i64::MAX);
        let keys = [org_id.into(), last_at.into(), rows_max.into()];
        let runs = self.connection()?.all(LATER, &keys, |row| row.text(0))?;
        if runs.len() as u64 != later {
            return Ok(None);
        }
        let runs: BTreeSet<String> = runs.into_iter().collect();
        let runs: Vec<Value<'_>> = runs.iter().map(Value::from).collect();
        let mut commits = BTreeSet::new();
        self.connection()?
            .lookup(&COMMITS, &[org_id.into()], &runs, |row| {
                let mut columns = Columns::of(row, "ci_outcomes", &["commit_sha"]);
                commits.insert(columns.next()?);
                Ok(())
            })?;
        Ok(Some(commits))
    }
}
