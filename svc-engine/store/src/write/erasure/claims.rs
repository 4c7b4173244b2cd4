//! Erases what clients reported besides facts: commits, and which Sessions continue which. Nothing of it
//! stays.

use svc_model::id::OrgId;
use svc_model::time::Instant;

use super::ErasureSubject;
use crate::sql::connection::Connection;
use crate::sql::error::StoreError;
use crate::sql::value::Value;
use crate::table::session_claims::ClaimKind;

const OF_SESSION: &str = "WHERE session_id = $2 AND org_id = $1 AND captured_at_us <= $3";
/// The claims that name a user, and those that name no user in a Session where nobody else is named.
const OF_USER: &str = "WHERE org_id = $1 AND captured_at_us <= $3
    AND (user_id = $2 OR user_id IS NULL AND NOT EXISTS (SELECT 1 FROM sessions s
        WHERE s.session_id = session_commit_claims.session_id AND s.org_id = $1
            AND s.user_id_conflict = 1))
    AND session_id IN (SELECT s.session_id FROM session_claims c
        JOIN sessions s ON s.session_number = c.session_number
        WHERE c.value = $2 AND c.kind = $4 AND c.org_id = $1)";
const OLDER: &str = "WHERE org_id = $1 AND captured_at_us < $2 AND captured_at_us <= $3";

const CLAIMS: Reported = Reported {
    table: "session_commit_claims",
    of_session: OF_SESSION,
    of_user: OF_USER,
};

/// Sessions that continue each other go with either.
const CONTINUATIONS: Reported = Reported {
    table: "session_continuations",
    of_session: "WHERE (session_id = $2 OR continues_session_id = $2) AND org_id = $1
        AND captured_at_us <= $3",
    of_user: "WHERE org_id = $1 AND captured_at_us <= $3 AND EXISTS (SELECT 1 FROM session_claims c
        JOIN sessions s ON s.session_number = c.session_number
        WHERE c.value = $2 AND c.kind = $4 AND c.org_id = $1 AND s.user_id_conflict = 0
            AND s.session_id IN (session_continuations.session_id,
                session_continuations.continues_session_id))",
};

/// What clients reported of Sessions that is no fact: its table, and which of it an erasure is about.
struct Reported {
    table: &'static str,
    of_session: &'static str,
    of_user: &'static str,
}

impl Reported {
    /// Returns the condition for what an erasure is about that was captured by a moment, and its
    /// values.
    fn condition<'s>(
        &self,
        org_id: &'s OrgId,
        subject: &'s ErasureSubject,
        captured_by: Option<Instant>,
    ) -> (&'static str, Vec<Value<'s>>) {
        let captured_by = captured_by.map_or(i64::MAX, Instant::microseconds);
        let values = |key: Value<'s>| vec![org_id.as_str().into(), key, captured_by.into()];
        match subject {
            ErasureSubject::Session(session_id) => {
                (self.of_session, values(session_id.as_str().into()))
            }
            ErasureSubject::User(user_id) => {
                let mut values = values(user_id.as_str().into());
                values.push(ClaimKind::User.letter().into());
                (self.of_user, values)
            }
            ErasureSubject::OlderThan(moment) => (OLDER, values((*moment).into())),
        }
    }
}

/// Returns how much of what clients reported there is to erase.
pub(crate) fn count(
    connection: &mut Connection,
    org_id: &OrgId,
    subject: &ErasureSubject,
) -> Result<u64, StoreError> {
    let mut count = 0;
    for reported in [CLAIMS, CONTINUATIONS] {
        let (condition, values) = reported.condition(org_id, subject, None);
        let table = reported.table;
        let text =
            format!("SELECT /* every row */ CAST(COUNT(*) AS BIGINT) FROM {table} {condition}");
        let found = connection.first(&text, &values, |row| row.count(0))?;
        count += found.unwrap_or_default();
    }
    Ok(count)
}

/// Deletes what clients reported and an erasure is about, as far as it was captured by a moment; all of
/// it without one.
pub(crate) fn erase(
    connection: &mut Connection,
    org_id: &OrgId,
    subject: &ErasureSubject,
    captured_by: Option<Instant>,
) -> Result<(), StoreError> {
    for reported in [CLAIMS, CONTINUATIONS] {
        let (condition, values) = reported.condition(org_id, subject, captured_by);
        let text = format!("DELETE /* every row */ FROM {} {condition}", reported.table);
        connection.execute(&text, &values)?;
    }
    Ok(())
}
