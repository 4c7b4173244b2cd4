//! What facts say of a Session, each value kept once: its users, models, harnesses and
//! repositories.
//!
//! Like a claim on the name of a repository, a claim only tells where to look: what counts is a
//! visible fact. A claim is written with its first fact, and never changed or removed. The table of
//! claims leads from a value to Sessions. The row of a Session has its claims too, because an index
//! for them would cost every new Session a page.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use quick_cache::Equivalent;
use quick_cache::unsync::Cache;
use svc_model::id::{OrgId, SessionId};
use svc_model::limit::IDENTITY_BYTES_MAX;

use super::connection::{Connection, Insert, Lookup};
use super::error::corrupt;
use super::value::Value;
use super::{StoreError, sessions};

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
const OF_SESSIONS: Lookup<'_> = Lookup {
    select: "SELECT session_id, claims, session_number FROM sessions
        WHERE org_id = $1 AND session_id",
    then: "",
};
const ADD: &str = "UPDATE sessions SET claims = claims || $1 WHERE session_number = $2";

/// Claims of one kind that one statement proves. Their count is rounded up to a power of two.
const PROOFS_MAX: usize = 16;

/// What a claim is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClaimKind {
    /// The user that a fact names.
    User,
    /// The model of a call.
    Model,
    /// The agent that a decision or an edit comes from.
    Harness,
    /// The name of the repository of an observed commit.
    Repository,
}

impl ClaimKind {
    const ALL: [Self; 4] = [Self::User, Self::Model, Self::Harness, Self::Repository];

    /// Returns the letter for the kind in the tables.
    pub(super) const fn letter(self) -> &'static str {
        match self {
            Self::User => "u",
            Self::Model => "m",
            Self::Harness => "h",
            Self::Repository => "r",
        }
    }

    /// Returns the kind of a letter.
    pub(super) fn of_letter(letter: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.letter() == letter)
    }

    /// Returns the word for the kind.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Model => "model",
            Self::Harness => "harness",
            Self::Repository => "repository",
        }
    }

    /// Returns the tables whose facts make such claims, and the column that holds the value.
    pub(super) const fn facts(self) -> (&'static [&'static str], &'static str) {
        match self {
            Self::User => (
                &[
                    "inference_calls",
                    "developer_decisions",
                    "edit_observations",
                    "rejected_edits",
                    "retry_linkages",
                ],
                "user_id",
            ),
            Self::Model => (&["inference_calls"], "model"),
            Self::Harness => (
                &[
                    "developer_decisions",
                    "edit_observations",
                    "rejected_edits",
                    "retry_linkages",
                ],
                "agent_harness",
            ),
            Self::Repository => (&["session_commit_observations"], "repo"),
        }
    }

    /// Returns the condition that some visible fact of a Session proves a value. The organization,
    /// the Session and the value are expressions.
    pub(super) fn proof(self, org_id: &str, session_id: &str, value: &str) -> String {
        let (tables, column) = self.facts();
        let proofs = tables.iter().map(|table| {
            let condition = sessions::of_session(table, org_id, session_id);
            format!(
                "EXISTS (SELECT 1 FROM visible_{table} f WHERE {condition} \
                AND f.{column} = {value})"
            )
        });
        format!("({})", proofs.collect::<Vec<_>>().join(" OR "))
    }
}

/// A fact says something of its Session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SessionClaim<'a> {
    pub(super) session_id: &'a str,
    pub(super) kind: ClaimKind,
    pub(super) value: &'a str,
    /// When the first fact of the Session was captured.
    pub(super) captured_at_us: i64,
    /// The number of the Session if its row was inserted in this transaction. The row already has
    /// the claim.
    pub(super) new_number: Option<i64>,
}

/// Returns whether a claim is kept. An empty or longer value is not, because nobody can ask for it.
pub(super) fn is_kept(value: &str) -> bool {
    (1..=IDENTITY_BYTES_MAX).contains(&value.len())
}

/// Appends a claim in the form that the row of a Session has: the kind, the length of the value in
/// bytes, the value.
pub(super) fn write_into(text: &mut String, kind: ClaimKind, value: &str) {
    // Writing into a text cannot fail.
    let _ = write!(text, "{}:{}:{value}", kind.letter(), value.len());
}

/// Reads the claims of the row of a Session.
pub(super) fn read(mut text: &str) -> Result<Vec<(ClaimKind, &str)>, StoreError> {
    let mut claims = Vec::new();
    while !text.is_empty() {
        let claim = (|| {
            let (letter, rest) = text.split_once(':')?;
            let kind = ClaimKind::of_letter(letter)?;
            let (length, rest) = rest.split_once(':')?;
            let (value, rest) = rest.split_at_checked(length.parse().ok()?)?;
            Some((kind, value, rest))
        })();
        let (kind, value, rest) = claim.ok_or(corrupt("sessions", "claims"))?;
        claims.push((kind, value));
        text = rest;
    }
    Ok(claims)
}

/// A claim that is known to be stored.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct KnownSessionClaim {
    session_id: Box<str>,
    kind: ClaimKind,
    value: Box<str>,
}

/// A claim to look for. Its hash equals that of the known claim.
#[derive(Hash)]
struct Sought<'a> {
    session_id: &'a str,
    kind: ClaimKind,
    value: &'a str,
}

impl Equivalent<KnownSessionClaim> for Sought<'_> {
    fn equivalent(&self, known: &KnownSessionClaim) -> bool {
        self.kind == known.kind
            && self.session_id == &*known.session_id
            && self.value == &*known.value
    }
}

/// The claims that this process knows to be stored.
#[derive(Debug)]
pub(super) struct KnownSessionClaims(Cache<KnownSessionClaim, ()>);

impl Default for KnownSessionClaims {
    fn default() -> Self {
        Self(Cache::new(KNOWN_MAX))
    }
}

impl KnownSessionClaims {
    /// Remembers what a committed transaction stored.
    pub(super) fn remember(&mut self, claim: KnownSessionClaim) {
        self.0.insert(claim, ());
    }
}

/// Stores the claims that are not known to be stored, and returns them.
pub(super) fn write(
    connection: &mut Connection,
    org_id: &OrgId,
    claims: &[SessionClaim<'_>],
    known: &KnownSessionClaims,
) -> Result<Vec<KnownSessionClaim>, StoreError> {
    let is_known = |claim: &SessionClaim<'_>| {
        let sought = Sought {
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
                write_into(&mut text, claim.kind, claim.value);
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
        for (kind, value) in read(&text)? {
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

/// What visible facts say of Sessions, by Session and kind, sorted.
pub type SessionClaims = BTreeMap<(SessionId, ClaimKind), Vec<String>>;

/// Returns what visible facts say of Sessions.
pub(super) fn proven(
    connection: &mut Connection,
    org_id: &OrgId,
    sessions: &[SessionId],
) -> Result<SessionClaims, StoreError> {
    let shared = [org_id.as_str().into()];
    let keys: Vec<Value<'_>> = sessions
        .iter()
        .map(|session| session.as_str().into())
        .collect();
    // A look-up may be given the same key twice.
    let mut claims: BTreeMap<ClaimKind, BTreeSet<(String, String)>> = BTreeMap::new();
    connection.lookup(&OF_SESSIONS, &shared, &keys, |row| {
        let (session_id, text) = (row.text(0)?, row.text(1)?);
        for (kind, value) in read(&text)? {
            let of_kind = claims.entry(kind).or_default();
            of_kind.insert((session_id.clone(), value.to_owned()));
        }
        Ok(())
    })?;
    let mut proven = SessionClaims::new();
    for (kind, claims) in claims {
        let claims: Vec<(String, String)> = claims.into_iter().collect();
        for some in claims.chunks(PROOFS_MAX) {
            for place in proven_places(connection, org_id, kind, some)? {
                let (session_id, value) = &some[place];
                let session_id = SessionId::new(session_id);
                let session_id = session_id.map_err(|_| corrupt("sessions", "session_id"))?;
                let values = proven.entry((session_id, kind)).or_default();
                values.push(value.clone());
            }
        }
    }
    Ok(proven)
}

/// Returns the indexes of the claims of one kind that a visible fact proves, in order.
fn proven_places(
    connection: &mut Connection,
    org_id: &OrgId,
    kind: ClaimKind,
    claims: &[(String, String)],
) -> Result<BTreeSet<usize>, StoreError> {
    let mut values = vec![org_id.as_str().into()];
    let mut selects = Vec::new();
    // A claim that is asked for twice is found once.
    let asked = (0..claims.len().next_power_of_two()).map(|place| place.min(claims.len() - 1));
    for place in asked {
        let (session_id, value) = &claims[place];
        let number = values.len();
        values.extend([
            session_id.as_str().into(),
            value.as_str().into(),
            Value::Integer(i64::try_from(place).unwrap_or(i64::MAX)),
        ]);
        let [session_id, value, place] = [1, 2, 3].map(|offset| format!("${}", number + offset));
        let proof = kind.proof("$1", &session_id, &value);
        selects.push(format!("SELECT CAST({place} AS BIGINT) WHERE {proof}"));
    }
    let mut places = BTreeSet::new();
    connection.each(&selects.join(" UNION ALL "), &values, |row| {
        let place = usize::try_from(row.integer(0)?).ok();
        places.extend(place.filter(|place| *place < claims.len()));
        Ok(())
    })?;
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_read_back_unchanged() {
        let claims = [
            (ClaimKind::User, "a:1:b"),
            (ClaimKind::Model, "zwölf\n"),
            (ClaimKind::Harness, "x"),
        ];
        let mut text = String::new();
        for (kind, value) in claims {
            write_into(&mut text, kind, value);
        }
        assert_eq!(read(&text).unwrap(), claims);
        assert_eq!(read("").unwrap(), []);
        for damaged in ["u", "u:", "u:2:a", "u:x:a", "n:1:a", "user:1:a", "u:1:ö"] {
            assert!(read(damaged).is_err(), "{damaged}");
        }
    }
}
