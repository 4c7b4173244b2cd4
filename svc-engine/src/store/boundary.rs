//! The time up to which the facts of repositories reach.

use std::sync::LazyLock;

use svc_model::time::Instant;

use super::column::Columns;
use super::{Snapshot, StoreError, kind};

/// When the latest visible fact of each kind that names a repository was received, one column per
/// kind. It is read from the end of an index that serves only this query, hence the expression;
/// only quarantined facts are skipped.
static LATEST: LazyLock<String> = LazyLock::new(|| {
    let kinds = kind::tables().filter(|table| !table.names.is_empty());
    let latest = kinds.map(|table| {
        format!(
            "(SELECT f.captured_at_us FROM visible_{} f WHERE f.org_id || '' = $1 \
            ORDER BY f.captured_at_us DESC LIMIT 1)",
            table.name
        )
    });
    format!("SELECT {}", latest.collect::<Vec<_>>().join(", "))
});

impl Snapshot<'_> {
    /// Returns when the latest visible fact that names a repository was received; nothing if there
    /// is none.
    pub fn latest_repository_fact(&mut self) -> Result<Option<Instant>, StoreError> {
        let keys = [self.org_id.as_str().into()];
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
}
