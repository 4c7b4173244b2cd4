//! Sessions: metadata that every stored fact of a Session updates. They are not facts.
//!
//! A Session has a number, given by the transaction that stores its first fact while the row of the
//! organization is locked. The index of its calls is by the number, so it grows at its end; by the
//! id it cost a new Session a page more. Every transaction that stores a fact of a Session changes
//! its mark, and no two states have the same mark.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use svc_engine_fact::clock::Ids;
use svc_model::id::OrgId;
use svc_model::time::Instant;

use super::session_claims::SessionClaim;
use super::witness::Epoch;
use crate::sql::connection::{Connection, Insert, Lookup};
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::Value;
use crate::table::session_claims::{self, ClaimKind};

const TOUCH: Insert = Insert {
    into: "INSERT INTO sessions
        (org_id, session_id, user_id, user_id_conflict, first_observed_at_us, last_observed_at_us,
         captured_at_us, mark, claims, session_number)",
    columns: 10,
    // The first user is kept; a second, different one makes the user unknown forever.
    then: "ON CONFLICT (session_id, org_id) DO UPDATE SET
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
        mark = sessions.mark + excluded.mark + 2147483648",
    // Nothing is returned: for that, SQLite would keep a journal of the statement.
    returning: "CAST(0 AS BIGINT), session_id",
    unique: 1,
    is_row_number: true,
};
/// The first mark of a Session is below this, and takes four bytes. Every later one is above.
const FIRST_MARK_END: i64 = 1 << 31;
const NUMBERS: Lookup<'_> = Lookup {
    select: "SELECT session_id, session_number, captured_at_us FROM sessions
        WHERE org_id = $1 AND session_id",
    then: "",
};

/// The numbers of the Sessions that a transaction touches.
#[derive(Debug, Default)]
pub(crate) struct Numbers(HashMap<String, Numbered>);

#[derive(Clone, Copy, Debug)]
struct Numbered {
    number: i64,
    /// When the first fact of the Session was captured; `None` if the Session is new.
    captured_at_us: Option<i64>,
}

impl Numbers {
    /// Finds the numbers of more Sessions, and gives one to each new Session. The row of the
    /// organization is locked, so nobody else adds a Session of it.
    pub(crate) fn add<'s>(
        &mut self,
        connection: &mut Connection,
        org_id: &OrgId,
        epoch: &mut Epoch,
        sessions: impl Iterator<Item = &'s str>,
    ) -> Result<(), StoreError> {
        let sessions = sessions.filter(|session_id| !self.0.contains_key(*session_id));
        let sessions: BTreeSet<&str> = sessions.collect();
        let keys: Vec<Value<'_>> = sessions.iter().copied().map(Value::Text).collect();
        connection.lookup(&NUMBERS, &[org_id.as_str().into()], &keys, |row| {
            let numbered = Numbered {
                number: row.integer(1)?,
                captured_at_us: Some(row.integer(2)?),
            };
            self.0.insert(row.text(0)?, numbered);
            Ok(())
        })?;
        for session_id in sessions {
            if !self.0.contains_key(session_id) {
                let numbered = Numbered {
                    number: epoch.next_id()?,
                    captured_at_us: None,
                };
                self.0.insert(session_id.to_owned(), numbered);
            }
        }
        Ok(())
    }

    /// Returns the number of one of the Sessions.
    pub(crate) fn get(&self, session_id: &str) -> Option<i64> {
        Some(self.0.get(session_id)?.number)
    }
}

/// What the facts of one transaction state about their Sessions. It is written once per Session, in
/// the order of the ids, so servers that touch the same Sessions at once wait for each other in one
/// order.
#[derive(Debug, Default)]
pub(crate) struct Touched<'a>(BTreeMap<&'a str, Touch<'a>>);

#[derive(Debug)]
struct Touch<'a> {
    user_id: Option<&'a str>,
    conflict: bool,
    first: Instant,
    last: Instant,
    claims: BTreeSet<(ClaimKind, &'a str)>,
}

impl Touch<'_> {
    /// Returns the claims for the row of a new Session.
    fn written_claims(&self) -> String {
        let mut text = String::new();
        for (kind, value) in &self.claims {
            session_claims::write_into(&mut text, *kind, value);
        }
        text
    }
}

/// What one stored fact states about its Session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sighting<'a> {
    pub(crate) session_id: &'a str,
    pub(crate) user_id: Option<&'a str>,
    pub(crate) observed_at: Instant,
    pub(crate) model: Option<&'a str>,
    pub(crate) agent_harness: Option<&'a str>,
    pub(crate) repo: Option<&'a str>,
}

/// The Sessions that a transaction touched.
#[derive(Debug, Default)]
pub(crate) struct TouchedSessions<'a> {
    /// The step of their marks.
    pub(crate) step: i64,
    /// The new Sessions.
    pub(crate) new: Vec<&'a str>,
    /// The claims about all of them.
    pub(crate) claims: Vec<SessionClaim<'a>>,
}

impl<'a> Touched<'a> {
    /// Adds a stored fact.
    pub(crate) fn add(&mut self, sighting: &Sighting<'a>) {
        let Sighting {
            user_id,
            observed_at,
            ..
        } = *sighting;
        let touch = match self.0.entry(sighting.session_id) {
            Entry::Vacant(vacant) => vacant.insert(Touch {
                user_id,
                conflict: false,
                first: observed_at,
                last: observed_at,
                claims: BTreeSet::new(),
            }),
            Entry::Occupied(occupied) => {
                let touch = occupied.into_mut();
                touch.first = touch.first.min(observed_at);
                touch.last = touch.last.max(observed_at);
                match (touch.user_id, user_id) {
                    (Some(known), Some(other)) if known != other => touch.conflict = true,
                    (None, Some(other)) => touch.user_id = Some(other),
                    _ => {}
                }
                touch
            }
        };
        let claims = [
            (ClaimKind::User, user_id),
            (ClaimKind::Model, sighting.model),
            (ClaimKind::Harness, sighting.agent_harness),
            (ClaimKind::Repository, sighting.repo),
        ];
        for (kind, value) in claims {
            let value = value.filter(|value| session_claims::is_kept(value));
            touch.claims.extend(value.map(|value| (kind, value)));
        }
    }

    /// Returns the Sessions.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = &'a str> {
        self.0.keys().copied()
    }

    /// Returns the Sessions, each with the claims about it.
    pub(crate) fn claims(
        &self,
    ) -> impl Iterator<Item = (&'a str, &BTreeSet<(ClaimKind, &'a str)>)> {
        let touched = self.0.iter();
        touched.map(|(session_id, touch)| (*session_id, &touch.claims))
    }

    /// Writes the Sessions. New ones get the time of the transaction, so that every later one has a
    /// later time. `numbers` are the Session numbers under which calls were stored; those of the
    /// other Sessions are added.
    pub(crate) fn write(
        &self,
        connection: &mut Connection,
        org_id: &OrgId,
        captured_at: Instant,
        numbers: &mut Numbers,
        epoch: &mut Epoch,
    ) -> Result<TouchedSessions<'a>, StoreError> {
        numbers.add(connection, org_id, epoch, self.sessions())?;
        let numbered = self.sessions().map(|session_id| numbers.0.get(session_id));
        let numbered: Option<Vec<&Numbered>> = numbered.collect();
        let numbered = numbered.ok_or(corrupt("sessions", "a number is absent"))?;
        let claims: Vec<String> = self.0.values().map(Touch::written_claims).collect();
        let mut touched = TouchedSessions {
            step: step(),
            ..TouchedSessions::default()
        };
        let mut values = Vec::with_capacity(self.0.len() * TOUCH.columns);
        for (((session_id, touch), claims), numbered) in self.0.iter().zip(&claims).zip(&numbered) {
            let user_id = touch.user_id.filter(|_| !touch.conflict);
            values.extend([
                Value::Text(org_id.as_str()),
                Value::Text(session_id),
                user_id.into(),
                Value::Integer(i64::from(touch.conflict)),
                Value::Integer(touch.first.microseconds()),
                Value::Integer(touch.last.microseconds()),
                Value::Integer(captured_at.microseconds()),
                Value::Integer(touched.step),
                Value::Text(claims),
                Value::Integer(numbered.number),
            ]);
        }
        connection.put(&TOUCH, values.chunks_exact(TOUCH.columns))?;
        for ((session_id, touch), numbered) in self.0.iter().zip(numbered) {
            let is_new = numbered.captured_at_us.is_none();
            if is_new {
                touched.new.push(session_id);
            }
            let first = numbered.captured_at_us;
            let claims = touch.claims.iter().map(|(kind, value)| SessionClaim {
                session_id,
                kind: *kind,
                value,
                captured_at_us: first.unwrap_or(captured_at.microseconds()),
                new_number: is_new.then_some(numbered.number),
            });
            touched.claims.extend(claims);
        }
        Ok(touched)
    }
}

/// Returns the step by which a transaction changes the marks of the Sessions that it touches. The
/// step is random, so that a Session that was set back does not reach a mark of the lost state
/// again.
fn step() -> i64 {
    let random = Ids::random().fresh().as_u128() % u128::from((FIRST_MARK_END - 1).unsigned_abs());
    1 + i64::try_from(random).unwrap_or_default()
}

/// Returns the mark of a Session after a step. Without a mark, the Session is new.
pub(crate) fn next_mark(mark: Option<i64>, step: i64) -> i64 {
    mark.map_or(step, |mark| mark + step + FIRST_MARK_END)
}
