//! How far the CI outcomes had come, and which commits the later ones concern.
//!
//! An organization's facts are committed one after another, each with a later capture time than the
//! facts of earlier transactions. So as long as a fact is stored, even after the database was set
//! back, so are all facts committed before it, and facts committed since were captured later. The
//! number of outcomes shows whether these are all.

use std::collections::BTreeSet;

use svc_model::id::FactId;
use svc_model::repository::CommitSha;
use svc_model::time::Instant;

use super::snapshot::Snapshot;
use crate::pack::column::Columns;
use crate::sql::connection::Lookup;
use crate::sql::error::StoreError;
use crate::sql::value::Value;

/// How far the CI outcomes and the quarantine log had come. As long as this is unchanged, so are
/// the visible outcomes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutcomesEnd {
    /// How many outcomes are stored, quarantined ones included.
    count: u64,
    /// One of the outcomes captured last.
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
/// The organization is an expression that no index has, as in the statements of reports.
const COMMITS: Lookup<'_> = Lookup {
    select: "SELECT o.commit_sha FROM ci_outcomes o
        WHERE COALESCE(o.org_id, '') = $1 AND o.run_id",
    then: "",
};

/// The maximum number of later outcomes that are examined.
const LATER_MAX: u64 = 2_000;

impl Snapshot<'_> {
    /// Returns how far the CI outcomes have come.
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

    /// Returns every commit of each run that got an outcome, visible or not, since an earlier end:
    /// a new outcome may also change what the run says of its other commits. `None` if anything
    /// else has changed, or too much.
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
