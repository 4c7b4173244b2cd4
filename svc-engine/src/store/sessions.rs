//! Sessions: metadata that every stored fact of a Session moves. They are no facts.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use svc_model::id::{OrgId, SessionId};
use svc_model::time::Instant;

use super::StoreError;
use super::connection::{Connection, Insert};
use super::value::Value;

const TOUCH: Insert = Insert {
    into: "INSERT INTO sessions
        (org_id, session_id, user_id, user_id_conflict, first_observed_at_us, last_observed_at_us,
         touch_count)",
    columns: 7,
    // The first user stays; a second, different one makes the user unknown for ever.
    then: "ON CONFLICT (org_id, session_id) DO UPDATE SET
        user_id_conflict = CASE
            WHEN sessions.user_id_conflict = 1 OR excluded.user_id_conflict = 1
                OR sessions.user_id <> excluded.user_id THEN 1 ELSE 0 END,
        user_id = CASE
            WHEN sessions.user_id_conflict = 1 OR excluded.user_id_conflict = 1
                OR sessions.user_id <> excluded.user_id THEN NULL
            ELSE COALESCE(sessions.user_id, excluded.user_id) END,
        first_observed_at_us = CASE
            WHEN excluded.first_observed_at_us < sessions.first_observed_at_us
            THEN excluded.first_observed_at_us ELSE sessions.first_observed_at_us END,
        last_observed_at_us = CASE
            WHEN excluded.last_observed_at_us > sessions.last_observed_at_us
            THEN excluded.last_observed_at_us ELSE sessions.last_observed_at_us END,
        touch_count = sessions.touch_count + 1",
    returning: "touch_count, session_id",
    unique: 1,
    is_row_number: false,
};
const KNOWN: &str = "SELECT 1 FROM sessions WHERE org_id = $1 AND session_id = $2";

/// What the facts of one transaction say of their Sessions. It is written once a Session, in the
/// order of their ids: servers that touch the same Sessions at once wait for each other in one
/// order.
#[derive(Debug, Default)]
pub(super) struct Touched<'a>(BTreeMap<&'a str, Touch<'a>>);

#[derive(Debug)]
struct Touch<'a> {
    user_id: Option<&'a str>,
    conflict: bool,
    first: Instant,
    last: Instant,
}

impl<'a> Touched<'a> {
    /// Adds what one stored fact says.
    pub(super) fn add(
        &mut self,
        session_id: &'a str,
        user_id: Option<&'a str>,
        observed_at: Instant,
    ) {
        match self.0.entry(session_id) {
            Entry::Vacant(vacant) => {
                vacant.insert(Touch {
                    user_id,
                    conflict: false,
                    first: observed_at,
                    last: observed_at,
                });
            }
            Entry::Occupied(mut occupied) => {
                let touch = occupied.get_mut();
                touch.first = touch.first.min(observed_at);
                touch.last = touch.last.max(observed_at);
                match (touch.user_id, user_id) {
                    (Some(known), Some(other)) if known != other => touch.conflict = true,
                    (None, Some(other)) => touch.user_id = Some(other),
                    _ => {}
                }
            }
        }
    }

    /// Writes it, and returns how many of the Sessions were not known before: those that were
    /// touched for the first time.
    pub(super) fn write(
        &self,
        connection: &mut Connection,
        org_id: &OrgId,
    ) -> Result<i64, StoreError> {
        let mut values = Vec::with_capacity(self.0.len() * TOUCH.columns);
        for (session_id, touch) in &self.0 {
            let user_id = touch.user_id.filter(|_| !touch.conflict);
            values.extend([
                Value::Text(org_id.as_str()),
                Value::Text(session_id),
                user_id.into(),
                Value::Integer(i64::from(touch.conflict)),
                Value::Integer(touch.first.microseconds()),
                Value::Integer(touch.last.microseconds()),
                Value::Integer(1),
            ]);
        }
        let rows = values.chunks_exact(TOUCH.columns);
        let touched = connection.insert(&TOUCH, rows)?;
        let new = touched.iter().filter(|count| **count == Some(1));
        Ok(i64::try_from(new.count()).unwrap_or(i64::MAX))
    }
}

pub(super) fn known(
    connection: &mut Connection,
    org_id: &OrgId,
    session_id: &SessionId,
) -> Result<bool, StoreError> {
    let keys = [org_id.as_str().into(), session_id.as_str().into()];
    Ok(connection.first(KNOWN, &keys, |_| Ok(()))?.is_some())
}
