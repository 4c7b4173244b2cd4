//! Erases halves of calls. They are no facts: nothing of them stays.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use svc_engine_fact::HalfKey;
use svc_model::id::{OrgId, UserId};

use super::ErasureSubject;
use crate::sql::connection::Connection;
use crate::sql::error::StoreError;
use crate::sql::value::{Row, Value};
use crate::table::halves::half_key;
use crate::table::session_claims::{self, ClaimKind};
use crate::write::halves;

/// What is left of a settled half is kept too, unless the whole Session is erased.
const OF_SESSION: &str = "SELECT half_key, session_id, user_id, state FROM call_halves
    WHERE session_id = $2 AND org_id = $1";
const OLDER: &str = "SELECT /* every row */ half_key, session_id, user_id, state FROM call_halves
    WHERE (org_id || '') = $1 AND captured_at_us < $2 AND state < 2";
const EVERY: &str = "SELECT /* every row */ half_key, session_id, user_id, state FROM call_halves
    WHERE (org_id || '') = $1 AND state < 2";
const CLAIMS: &str = "SELECT claims FROM sessions WHERE session_id = $2 AND org_id = $1";

/// The halves to erase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SelectedHalves {
    of_sessions: BTreeMap<String, Vec<HalfKey>>,
    /// Those that wait for their other half.
    open: HashSet<HalfKey>,
}

impl SelectedHalves {
    pub(crate) fn is_empty(&self) -> bool {
        self.of_sessions.is_empty()
    }

    pub(crate) fn len(&self) -> u64 {
        self.of_sessions
            .values()
            .map(|keys| keys.len() as u64)
            .sum()
    }

    /// Returns whether some of these were settled since, so that they may be facts now.
    pub(crate) fn may_be_facts(&self, now: &Self) -> bool {
        !self.open.is_subset(&now.open)
    }
}

/// A half: its key, its Session, the user that it names, and whether it waits for its other half.
type FoundHalf = (HalfKey, String, Option<String>, bool);

/// Returns the halves of an erasure.
pub(crate) fn select(
    connection: &mut Connection,
    org_id: &OrgId,
    subject: &ErasureSubject,
) -> Result<SelectedHalves, StoreError> {
    let org = Value::Text(org_id.as_str());
    let read = |row: &Row<'_>| {
        let is_open = row.integer(3)? == 0;
        Ok((
            half_key(row, 0)?,
            row.text(1)?,
            row.optional_text(2)?,
            is_open,
        ))
    };
    let found: Vec<FoundHalf> = match subject {
        ErasureSubject::Session(session_id) => {
            let keys = [org, session_id.as_str().into()];
            connection.all(OF_SESSION, &keys, read)?
        }
        ErasureSubject::OlderThan(moment) => {
            connection.all(OLDER, &[org, (*moment).into()], read)?
        }
        ErasureSubject::User(user_id) => {
            let found = connection.all(EVERY, &[org], read)?;
            of_user(connection, org_id, user_id, found)?
        }
    };
    let mut selected = SelectedHalves::default();
    for (key, session_id, _, is_open) in found {
        selected
            .of_sessions
            .entry(session_id)
            .or_default()
            .push(key);
        if is_open {
            selected.open.insert(key);
        }
    }
    Ok(selected)
}

/// Returns the halves that name a user, and those that name no user in a Session where only that
/// user is named.
fn of_user(
    connection: &mut Connection,
    org_id: &OrgId,
    user_id: &UserId,
    found: Vec<FoundHalf>,
) -> Result<Vec<FoundHalf>, StoreError> {
    let mut named: HashMap<String, BTreeSet<String>> = HashMap::new();
    for (_, session_id, user, _) in &found {
        let users = named.entry(session_id.clone()).or_default();
        users.extend(user.clone());
    }
    for (session_id, users) in &mut named {
        let keys = [org_id.as_str().into(), Value::Text(session_id)];
        let claims = connection.first(CLAIMS, &keys, |row| row.text(0))?;
        for (kind, value) in session_claims::read(&claims.unwrap_or_default())? {
            if kind == ClaimKind::User {
                users.insert(value.to_owned());
            }
        }
    }
    let own = user_id.as_str();
    let is_own = |(_, session_id, user, _): &FoundHalf| match user {
        Some(user) => user == own,
        None => named[session_id].iter().eq([own]),
    };
    Ok(found.into_iter().filter(is_own).collect())
}

/// Deletes halves, and returns how many and their stored bytes.
pub(crate) fn delete(
    connection: &mut Connection,
    org_id: &OrgId,
    selected: &SelectedHalves,
) -> Result<(u64, u64), StoreError> {
    let (mut count, mut bytes) = (0, 0);
    for (session_id, keys) in &selected.of_sessions {
        bytes += halves::delete(connection, org_id, session_id, keys)?;
        count += keys.len() as u64;
    }
    Ok((count, bytes))
}
