//! What facts say of a Session, each value kept once: its users, models, harnesses and
//! repositories.
//!
//! Like a claim on the name of a repository, a claim only tells where to look: what counts is a
//! visible fact. A claim is written with its first fact, and never changed or removed. The table of
//! claims leads from a value to Sessions. The row of a Session has its claims too, because an index
//! for them would cost every new Session a page.

use std::collections::{BTreeMap, BTreeSet};

use quick_cache::Equivalent;
use quick_cache::unsync::Cache;
use svc_model::id::OrgId;

use crate::sql::connection::{Connection, Insert};
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::Value;
use crate::table::session_claims::{self, ClaimKind, OF_SESSIONS};

/// Claims that are known to be stored, kept in memory: some 200 bytes each. Only Sessions that are
/// still active need them, so there are few.
const KNOWN_MAX: usize = 20_000;

const INSERT: Insert = Insert {
    into: "INSERT INTO session_claims (org_id, session_number, kind, value, captured_at_us)",
    columns: 5,
    then: "ON CONFLICT DO NOTHING",
    returning: "CAST(0 AS BIGINT), value",
    unique: 3,
    is_row_number: true,
};
const ADD: &str = "UPDATE sessions SET claims = claims || $1 WHERE session_number = $2";

/// A fact says something of its Session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionClaim<'a> {
    pub(crate) session_id: &'a str,
    pub(crate) kind: ClaimKind,
    pub(crate) value: &'a str,
    /// When the first fact of the Session was captured.
    pub(crate) captured_at_us: i64,
    /// The number of the Session if its row was inserted in this transaction. The row already has
    /// the claim.
    pub(crate) new_number: Option<i64>,
}

/// A claim that is known to be stored.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct KnownSessionClaim {
    session_id: Box<str>,
    kind: ClaimKind,
    value: Box<str>,
}

/// A claim to look for. Its hash equals that of the known claim.
#[derive(Hash)]
struct SoughtClaim<'a> {
    session_id: &'a str,
    kind: ClaimKind,
    value: &'a str,
}

impl Equivalent<KnownSessionClaim> for SoughtClaim<'_> {
    fn equivalent(&self, known: &KnownSessionClaim) -> bool {
        self.kind == known.kind
            && self.session_id == &*known.session_id
            && self.value == &*known.value
    }
}

/// The claims that this process knows to be stored.
#[derive(Debug)]
pub(crate) struct KnownSessionClaims(Cache<KnownSessionClaim, ()>);

impl Default for KnownSessionClaims {
    fn default() -> Self {
        Self(Cache::new(KNOWN_MAX))
    }
}

impl KnownSessionClaims {
    /// Remembers what a committed transaction stored.
    pub(crate) fn remember(&mut self, claim: KnownSessionClaim) {
        self.0.insert(claim, ());
    }
}

/// Stores the claims that are not known to be stored, and returns them.
pub(crate) fn write(
    connection: &mut Connection,
    org_id: &OrgId,
    claims: &[SessionClaim<'_>],
    known: &KnownSessionClaims,
) -> Result<Vec<KnownSessionClaim>, StoreError> {
    let is_known = |claim: &SessionClaim<'_>| {
        let sought = SoughtClaim {
            session_id: claim.session_id,
            kind: claim.kind,
            value: claim.value,
        };
        claim.new_number.is_none() && known.0.peek(&sought).is_some()
    };
    let unknown: Vec<&SessionClaim<'_>> = claims.iter().filter(|claim| !is_known(claim)).collect();
    let new = without_stored(connection, org_id, &unknown)?;

    let mut values = Vec::with_capacity(new.len() * INSERT.columns);
    for (claim, number) in &new {
        values.extend([
            org_id.as_str().into(),
            Value::Integer(*number),
            claim.kind.letter().into(),
            claim.value.into(),
            claim.captured_at_us.into(),
        ]);
    }
    connection.put(&INSERT, values.chunks_exact(INSERT.columns))?;
    for of_session in new.chunk_by(|(_, one), (_, other)| one == other) {
        let mut text = String::new();
        for (claim, _) in of_session {
            if claim.new_number.is_none() {
                session_claims::write_into(&mut text, claim.kind, claim.value);
            }
        }
        if !text.is_empty() {
            let number = of_session[0].1;
            connection.execute(ADD, &[text.as_str().into(), Value::Integer(number)])?;
        }
    }
    let known = unknown.into_iter().map(|claim| KnownSessionClaim {
        session_id: claim.session_id.into(),
        kind: claim.kind,
        value: claim.value.into(),
    });
    Ok(known.collect())
}

/// Returns the claims that are not stored yet, each with the number of its Session. For a Session
/// that already existed, its row tells both.
fn without_stored<'c, 'a>(
    connection: &mut Connection,
    org_id: &OrgId,
    claims: &[&'c SessionClaim<'a>],
) -> Result<Vec<(&'c SessionClaim<'a>, i64)>, StoreError> {
    let earlier = claims.iter().filter(|claim| claim.new_number.is_none());
    let earlier: BTreeSet<&str> = earlier.map(|claim| claim.session_id).collect();
    let keys: Vec<Value<'_>> = earlier.into_iter().map(Value::Text).collect();
    let shared = [org_id.as_str().into()];
    let mut stored = BTreeSet::new();
    let mut numbers = BTreeMap::new();
    connection.lookup(&OF_SESSIONS, &shared, &keys, |row| {
        let (session_id, text) = (row.text(0)?, row.text(1)?);
        numbers.insert(session_id.clone(), row.integer(2)?);
        for (kind, value) in session_claims::read(&text)? {
            stored.insert((session_id.clone(), kind, value.to_owned()));
        }
        Ok(())
    })?;
    let mut new = Vec::new();
    for claim in claims {
        if let Some(number) = claim.new_number {
            new.push((*claim, number));
            continue;
        }
        let number = numbers.get(claim.session_id).copied();
        let number = number.ok_or(corrupt("sessions", "it is absent"))?;
        let (session_id, value) = (claim.session_id.to_owned(), claim.value.to_owned());
        if !stored.contains(&(session_id, claim.kind, value)) {
            new.push((*claim, number));
        }
    }
    Ok(new)
}
