//! The commits that clients reported for Sessions: which are open, and how many are in each state.

use std::sync::LazyLock;

use svc_engine_fact::CommitClaim;
use svc_model::capture::CommitClaimCounts;
use svc_model::id::FactId;
use svc_model::limit::OPEN_COMMIT_CLAIMS_MAX;
use svc_model::time::Instant;

use super::snapshot::Snapshot;
use crate::pack::column::Columns;
use crate::sql::connection::Lookup;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::{Row, Value};
use crate::table::record::Record as _;

/// Selects open claims, up to further conditions.
static OPEN: LazyLock<String> = LazyLock::new(|| {
    let members = CommitClaim::TABLE.members.join(", ");
    format!("SELECT {members} FROM session_commit_claims WHERE org_id = $1 AND state = 'open'")
});
/// An open claim that is too old is expired, whether or not its row says so yet.
const COUNTS: &str = "SELECT state, CAST(COUNT(*) AS BIGINT),
        CAST(SUM(CASE WHEN captured_at_us <= $2 THEN 1 ELSE 0 END) AS BIGINT)
    FROM session_commit_claims WHERE org_id = $1 GROUP BY state";

fn claim(row: &Row<'_>) -> Result<CommitClaim, StoreError> {
    let table = CommitClaim::TABLE;
    CommitClaim::read(&mut Columns::of(row, table.name, table.members))
}

impl Snapshot<'_> {
    /// Returns the open claims, oldest first. Some may be too old.
    pub fn open_commit_claims(&mut self) -> Result<Vec<CommitClaim>, StoreError> {
        let text = format!("{} ORDER BY captured_at_us, claim_id LIMIT $2", *OPEN);
        let values = [self.org_id.as_str().into(), OPEN_COMMIT_CLAIMS_MAX.into()];
        self.connection()?.all(&text, &values, claim)
    }

    /// Returns which of these claims are stored and open.
    pub fn open_commit_claims_of(
        &mut self,
        claim_ids: &[FactId],
    ) -> Result<Vec<CommitClaim>, StoreError> {
        let text = format!("{} AND claim_id", *OPEN);
        let lookup = Lookup {
            select: &text,
            then: "",
        };
        let shared = [self.org_id.as_str().into()];
        let keys: Vec<Value<'_>> = claim_ids.iter().copied().map(Value::from).collect();
        let mut claims = Vec::new();
        self.connection()?.lookup(&lookup, &shared, &keys, |row| {
            claims.push(claim(row)?);
            Ok(())
        })?;
        Ok(claims)
    }

    /// Returns how many claims are in each state at a moment; nothing while there are none.
    pub fn commit_claim_counts(
        &mut self,
        now: Instant,
    ) -> Result<Option<CommitClaimCounts>, StoreError> {
        let oldest = CommitClaim::too_old(now);
        let values = [self.org_id.as_str().into(), oldest.into()];
        let mut counts = None;
        self.connection()?.each(COUNTS, &values, |row| {
            let (total, old) = (row.count(1)?, row.count(2)?);
            let counts: &mut CommitClaimCounts = counts.get_or_insert_default();
            match &*row.text(0)? {
                "open" => {
                    counts.open += total - old;
                    counts.expired += old;
                }
                "resolved" => counts.resolved += total,
                "ambiguous" => counts.ambiguous += total,
                "expired" => counts.expired += total,
                _ => return Err(corrupt("session_commit_claims", "state")),
            }
            Ok(())
        })?;
        Ok(counts)
    }
}
