//! What facts say of a Session, each kept once: its users, models, harnesses and repositories.
//!
//! As a claim on the name of a repository, a claim only tells where to look: what counts is a visible
//! fact. It is written when its first fact is, never changed, and never removed.

use std::collections::BTreeMap;

use quick_cache::Equivalent;
use quick_cache::unsync::Cache;
use svc_model::id::{OrgId, SessionId};
use svc_model::limit::IDENTITY_BYTES_MAX;

use super::StoreError;
use super::connection::{Connection, Insert, Lookup};
use super::error::corrupt;
use super::value::Value;

/// Claims that are known to be stored, kept in memory: some 200 bytes each. They are of the Sessions
/// that go on, so they are few.
const KNOWN_MAX: usize = 20_000;

const INSERT: Insert = Insert {
    into: "INSERT INTO session_claims (org_id, session_id, kind, value, captured_at_us)",
    columns: 5,
    then: "ON CONFLICT DO NOTHING",
    returning: "CAST(0 AS BIGINT), session_id",
    unique: 1,
    is_row_number: true,
};

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

    /// Returns the word for it in the table.
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

    /// Returns the condition that a visible fact of a Session proves a value: `row` is what has the
    /// Session, `value` an expression.
    pub(super) fn proof(self, row: &str, value: &str) -> String {
        let (tables, column) = self.facts();
        let proofs = tables.iter().map(|table| {
            format!(
                "EXISTS (SELECT 1 FROM visible_{table} f WHERE f.org_id = {row}.org_id \
                AND f.session_id = {row}.session_id AND f.{column} = {value})"
            )
        });
        format!("({})", proofs.collect::<Vec<_>>().join(" OR "))
    }
}

/// That a fact says something of its Session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SessionClaim<'a> {
    pub(super) session_id: &'a str,
    pub(super) kind: ClaimKind,
    pub(super) value: &'a str,
    /// When the first fact of the Session was captured.
    pub(super) captured_at_us: i64,
}

/// A claim that is known to be stored.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct KnownSessionClaim {
    session_id: Box<str>,
    kind: ClaimKind,
    value: Box<str>,
}

/// A claim that is looked for. It is hashed as the known one is.
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
    let is_new = |claim: &&SessionClaim<'_>| {
        let sought = Sought {
            session_id: claim.session_id,
            kind: claim.kind,
            value: claim.value,
        };
        // Nobody can ask for what is longer.
        (1..=IDENTITY_BYTES_MAX).contains(&claim.value.len()) && known.0.peek(&sought).is_none()
    };
    let new: Vec<&SessionClaim<'_>> = claims.iter().filter(is_new).collect();
    let mut values = Vec::with_capacity(new.len() * INSERT.columns);
    for claim in &new {
        values.extend([
            org_id.as_str().into(),
            claim.session_id.into(),
            claim.kind.as_str().into(),
            claim.value.into(),
            claim.captured_at_us.into(),
        ]);
    }
    connection.put(&INSERT, values.chunks_exact(INSERT.columns))?;
    let known = new.into_iter().map(|claim| KnownSessionClaim {
        session_id: claim.session_id.into(),
        kind: claim.kind,
        value: claim.value.into(),
    });
    Ok(known.collect())
}

/// What visible facts say of Sessions, by Session and kind, sorted.
pub type SessionClaims = BTreeMap<(SessionId, ClaimKind), Vec<String>>;

/// Returns what visible facts say of Sessions.
pub(super) fn proven(
    connection: &mut Connection,
    org_id: &OrgId,
    sessions: &[SessionId],
) -> Result<SessionClaims, StoreError> {
    let mut select = "SELECT c.session_id, c.kind, c.value FROM session_claims c \
        WHERE c.org_id = $1 AND CASE c.kind"
        .to_owned();
    for kind in ClaimKind::ALL {
        let proof = kind.proof("c", "c.value");
        select.push_str(&[" WHEN '", kind.as_str(), "' THEN ", &proof].concat());
    }
    select.push_str(" END AND c.session_id");
    let lookup = Lookup {
        select: &select,
        then: "",
    };
    let shared = [org_id.as_str().into()];
    let keys: Vec<Value<'_>> = sessions.iter().map(|it| it.as_str().into()).collect();
    let mut proven = SessionClaims::new();
    connection.lookup(&lookup, &shared, &keys, |row| {
        let session_id = SessionId::new(&row.text(0)?);
        let session_id = session_id.map_err(|_| corrupt("session_claims", "session_id"))?;
        let word = row.text(1)?;
        let kind = ClaimKind::ALL.into_iter().find(|it| it.as_str() == word);
        let kind = kind.ok_or(corrupt("session_claims", "kind"))?;
        let values = proven.entry((session_id, kind)).or_default();
        values.push(row.text(2)?);
        Ok(())
    })?;
    for values in proven.values_mut() {
        values.sort_unstable();
        // A look-up may be told one key twice.
        values.dedup();
    }
    Ok(proven)
}
