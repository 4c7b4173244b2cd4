//! When the latest visible facts were received or observed.

use std::ops::Range;
use std::sync::LazyLock;

use svc_model::time::Instant;

use super::snapshot::Snapshot;
use crate::pack::column::Columns;
use crate::sql::error::StoreError;
use crate::table::kind;

/// When the latest visible fact of each kind that names a repository was received, up to a
/// boundary, one column per kind. The expression makes the database read it from the end of the
/// index by capture, skipping only quarantined facts.
static LATEST: LazyLock<String> = LazyLock::new(|| {
    let kinds = kind::tables().filter(|table| !table.names.is_empty());
    let latest = kinds.map(|table| {
        format!(
            "(SELECT f.captured_at_us FROM visible_{} f WHERE f.org_id || '' = $1 \
            AND f.captured_at_us <= $2 ORDER BY f.captured_at_us DESC LIMIT 1)",
            table.name
        )
    });
    format!("SELECT {}", latest.collect::<Vec<_>>().join(", "))
});

/// When the latest visible call in a range was observed.
const LATEST_CALL: &str = "SELECT f.observed_at_us FROM visible_inference_calls f
    WHERE f.org_id || '' = $1 AND f.observed_at_us >= $2 AND f.observed_at_us < $3 ORDER BY f.observed_at_us DESC
    LIMIT 1";

impl Snapshot<'_> {
    /// Returns when the latest visible fact that names a repository was received, up to a boundary;
    /// nothing if there is none.
    pub fn latest_repository_fact(
        &mut self,
        boundary: Instant,
    ) -> Result<Option<Instant>, StoreError> {
        let keys = [self.org_id.as_str().into(), boundary.into()];
        let latest = self.connection()?.first(&LATEST, &keys, |row| {
            let mut columns = Columns::of(row, "a fact of a repository", &[]);
            let mut latest: Option<Instant> = None;
            for _ in kind::tables().filter(|table| !table.names.is_empty()) {
                latest = latest.max(columns.next()?);
            }
            Ok(latest)
        })?;
        Ok(latest.flatten())
    }

    /// Returns when the latest visible call in a range was observed; nothing if there is none.
    pub fn latest_call(&mut self, observed: Range<Instant>) -> Result<Option<Instant>, StoreError> {
        let keys = [
            self.org_id.as_str().into(),
            observed.start.into(),
            observed.end.into(),
        ];
        let latest = self.connection()?.first(LATEST_CALL, &keys, |row| {
            Columns::of(row, "inference_calls", &["observed_at_us"]).next()
        })?;
        Ok(latest)
    }
}
