//! What the rows of Sessions say.

use std::collections::HashMap;

use svc_model::id::{OrgId, SessionId};

use super::snapshot::Snapshot;
use crate::sql::connection::{Connection, Lookup};
use crate::sql::error::StoreError;
use crate::sql::value::Value;

const MARKS: Lookup<'_> = Lookup {
    select: "SELECT session_id, mark FROM sessions WHERE org_id = $1 AND session_id",
    then: "",
};

const LAST_OBSERVED: Lookup<'_> = Lookup {
    select: "SELECT session_id, last_observed_at_us FROM sessions WHERE org_id = $1 AND session_id",
    then: "",
};

const KNOWN: &str = "SELECT 1 FROM sessions WHERE org_id = $1 AND session_id = $2";

/// Returns the marks of these Sessions, except unknown ones.
pub(crate) fn marks(
    connection: &mut Connection,
    org_id: &OrgId,
    sessions: &[Value<'_>],
) -> Result<HashMap<String, i64>, StoreError> {
    let mut marks = HashMap::with_capacity(sessions.len());
    connection.lookup_many(&MARKS, &[org_id.as_str().into()], sessions, |row| {
        marks.insert(row.text(0)?, row.integer(1)?);
        Ok(())
    })?;
    Ok(marks)
}

impl Snapshot<'_> {
    /// Returns whether any fact names the Session.
    pub fn session_known(&mut self, session_id: &SessionId) -> Result<bool, StoreError> {
        let keys = [self.org_id.as_str().into(), session_id.as_str().into()];
        let known = self.connection()?.first(KNOWN, &keys, |_| Ok(()))?;
        Ok(known.is_some())
    }

    /// Returns those of these Sessions that a fact names, the one with the latest fact first, and
    /// Sessions of one moment by their ids.
    pub fn latest_first<'i>(
        &mut self,
        sessions: &'i [SessionId],
    ) -> Result<Vec<&'i SessionId>, StoreError> {
        let keys: Vec<Value<'_>> = sessions
            .iter()
            .map(|session| session.as_str().into())
            .collect();
        let mut times = HashMap::with_capacity(keys.len());
        let organization = [self.org_id.as_str().into()];
        self.connection()?
            .lookup_many(&LAST_OBSERVED, &organization, &keys, |row| {
                times.insert(row.text(0)?, row.integer(1)?);
                Ok(())
            })?;
        let known = sessions.iter();
        let known = known.filter_map(|session| Some((*times.get(session.as_str())?, session)));
        let mut known: Vec<(i64, &SessionId)> = known.collect();
        known.sort_unstable_by_key(|(time, session)| (std::cmp::Reverse(*time), *session));
        Ok(known.into_iter().map(|(_, session)| session).collect())
    }
}
