//! Which Sessions a Session continues, and which continue it.

use svc_model::id::SessionId;
use svc_model::limit::SHOWN_CONTINUATIONS_MAX;
use svc_model::query::ContinuedSession;

use super::snapshot::Snapshot;
use crate::pack::column::Columns;
use crate::sql::error::{StoreError, corrupt};

/// A quarantined call is not named.
const CONTINUES: &str = "SELECT c.continues_session_id, f.inference_call_id, f.observed_at_us
    FROM session_continuations c
    LEFT JOIN visible_inference_calls f ON f.inference_call_id = c.inference_call_id
    WHERE c.session_id = $1 AND c.org_id = $2 ORDER BY c.continues_session_id LIMIT $3";
const CONTINUED_BY: &str = "SELECT session_id FROM session_continuations
    WHERE continues_session_id = $1 AND org_id = $2 ORDER BY session_id LIMIT $3";

impl Snapshot<'_> {
    /// Returns the Sessions that a Session continues, by id.
    pub fn continued_sessions(
        &mut self,
        session_id: &SessionId,
    ) -> Result<Vec<ContinuedSession>, StoreError> {
        let values = [
            session_id.as_str().into(),
            self.org_id.as_str().into(),
            SHOWN_CONTINUATIONS_MAX.into(),
        ];
        self.connection()?.all(CONTINUES, &values, |row| {
            let mut columns = Columns::of(row, "session_continuations", &[]);
            Ok(ContinuedSession {
                session_id: columns.next()?,
                inference_call_id: columns.next()?,
                occurred_at: columns.next()?,
            })
        })
    }

    /// Returns the Sessions that continue a Session, by id.
    pub fn continuing_sessions(
        &mut self,
        session_id: &SessionId,
    ) -> Result<Vec<SessionId>, StoreError> {
        let values = [
            session_id.as_str().into(),
            self.org_id.as_str().into(),
            SHOWN_CONTINUATIONS_MAX.into(),
        ];
        self.connection()?.all(CONTINUED_BY, &values, |row| {
            let session_id = SessionId::new(&row.text(0)?);
            session_id.map_err(|_| corrupt("session_continuations", "session_id"))
        })
    }
}
