//! The quarantine log.

use svc_engine_store::{LogEntry, Snapshot};
use svc_model::endpoint::QuarantineLogPage;
use svc_model::limit::QUARANTINE_LOG_MAX;
use svc_model::quarantine::{QuarantineLog, QuarantineLogEntry, QuarantineLogRequest};

use super::answer::{AdmissionKind, Answer, ReadContext};
use crate::error::Error;

/// Returns the latest rows of the log before the one in the request, oldest first.
///
/// # Errors
///
/// If the store does not answer.
pub fn quarantine_log(
    snapshot: &mut Snapshot<'_>,
    request: QuarantineLogRequest,
) -> Result<QuarantineLog, Error> {
    let limit = request.limit.min(QUARANTINE_LOG_MAX);
    // One more row than the page shows whether there are earlier ones.
    let (mut rows, length) = snapshot.quarantine_log(limit + 1, request.before)?;
    let more = rows.len() as u64 > limit;
    if more {
        rows.remove(0);
    }
    let next_before = rows.first().map(|row| row.revision).filter(|_| more);
    Ok(QuarantineLog {
        org_id: snapshot.org_id().clone(),
        quarantine_revision: snapshot.quarantine_revision()?,
        rows: length,
        entries: rows.into_iter().map(entry).collect(),
        next_before,
    })
}

fn entry(row: LogEntry) -> QuarantineLogEntry {
    QuarantineLogEntry {
        quarantine_revision: row.revision,
        recorded_at: row.recorded_at,
        client_id: row.client_id,
        action: row.action,
        table: row.fact_table,
        fact_id: row.fact_id,
        reason: row.reason,
    }
}

impl Answer for QuarantineLogPage {
    const ADMISSION: AdmissionKind = AdmissionKind::Short;

    fn answer(
        reading: &mut ReadContext<'_, '_>,
        request: Self::Request,
    ) -> Result<Self::Reply, Error> {
        quarantine_log(reading.snapshot, request)
    }
}
