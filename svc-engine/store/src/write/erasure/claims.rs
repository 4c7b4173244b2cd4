//! Erases what clients reported of commits. A claim is no fact, so nothing of it stays.

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

/// Returns the condition for the claims of an erasure that were captured by a moment, and its
/// values.
fn condition<'s>(
    org_id: &'s OrgId,
    subject: &'s ErasureSubject,
    captured_by: Option<Instant>,
) -> (&'static str, Vec<Value<'s>>) {
    let captured_by = captured_by.map_or(i64::MAX, Instant::microseconds);
    let values = |key: Value<'s>| vec![org_id.as_str().into(), key, captured_by.into()];
    match subject {
        ErasureSubject::Session(session_id) => (OF_SESSION, values(session_id.as_str().into())),
        ErasureSubject::User(user_id) => {
            let mut values = values(user_id.as_str().into());
            values.push(ClaimKind::User.letter().into());
            (OF_USER, values)
        }
        ErasureSubject::OlderThan(moment) => (OLDER, values((*moment).into())),
    }
}

/// Returns how many claims there are to erase.
pub(crate) fn count(
    connection: &mut Connection,
    org_id: &OrgId,
    subject: &ErasureSubject,
) -> Result<u64, StoreError> {
    let (condition, values) = condition(org_id, subject, None);
    let text = format!(
        "SELECT /* every row */ CAST(COUNT(*) AS BIGINT) FROM session_commit_claims {condition}"
    );
    let count = connection.first(&text, &values, |row| row.count(0))?;
    Ok(count.unwrap_or_default())
}

/// Deletes the claims of an erasure that were captured by a moment; all of them without one.
pub(crate) fn erase(
    connection: &mut Connection,
    org_id: &OrgId,
    subject: &ErasureSubject,
    captured_by: Option<Instant>,
) -> Result<(), StoreError> {
    let (condition, values) = condition(org_id, subject, captured_by);
    let text = format!("DELETE /* every row */ FROM session_commit_claims {condition}");
    connection.execute(&text, &values).map(drop)
}
