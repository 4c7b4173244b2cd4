//! What facts may say of their Session, and the form that the row of the Session has of it.

use std::fmt::Write as _;

use svc_model::limit::IDENTITY_BYTES_MAX;

use super::{kind, sessions};
use crate::sql::connection::Lookup;
use crate::sql::error::{StoreError, corrupt};

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
    pub(crate) const fn letter(self) -> &'static str {
        match self {
            Self::User => "u",
            Self::Model => "m",
            Self::Harness => "h",
            Self::Repository => "r",
        }
    }

    /// Returns the kind of a letter.
    pub(crate) fn of_letter(letter: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.letter() == letter)
    }

    /// Returns the word for the kind.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Model => "model",
            Self::Harness => "harness",
            Self::Repository => "repository",
        }
    }

    /// Returns the column that holds the value.
    pub(crate) const fn column(self) -> &'static str {
        match self {
            Self::User => "user_id",
            Self::Model => "model",
            Self::Harness => "agent_harness",
            Self::Repository => "repo",
        }
    }

    /// Returns the tables whose facts make such claims: those of a Session with the column.
    pub(crate) fn tables(self) -> impl Iterator<Item = &'static str> {
        kind::tables()
            .filter(move |table| table.is_of_session() && table.has(self.column()))
            .map(|table| table.name)
    }

    /// Returns the condition that some visible fact of a Session proves a value. The organization,
    /// the Session and the value are expressions.
    pub(crate) fn proof(self, org_id: &str, session_id: &str, value: &str) -> String {
        let column = self.column();
        let proofs = self.tables().map(|table| {
            let condition = sessions::of_session(table, org_id, session_id);
            format!(
                "EXISTS (SELECT 1 FROM visible_{table} f WHERE {condition} \
                AND f.{column} = {value})"
            )
        });
        format!("({})", proofs.collect::<Vec<_>>().join(" OR "))
    }
}

/// The claims of Sessions, and their numbers.
pub(crate) const OF_SESSIONS: Lookup<'_> = Lookup {
    select: "SELECT session_id, claims, session_number FROM sessions
        WHERE org_id = $1 AND session_id",
    then: "",
};

/// Returns whether a claim is kept. An empty or longer value is not, because nobody can ask for it.
pub(crate) fn is_kept(value: &str) -> bool {
    (1..=IDENTITY_BYTES_MAX).contains(&value.len())
}

/// Appends a claim in the form that the row of a Session has: the kind, the length of the value in
/// bytes, the value.
pub(crate) fn write_into(text: &mut String, kind: ClaimKind, value: &str) {
    // Writing into a text cannot fail.
    let _ = write!(text, "{}:{}:{value}", kind.letter(), value.len());
}

/// Reads the claims of the row of a Session.
pub(crate) fn read(mut text: &str) -> Result<Vec<(ClaimKind, &str)>, StoreError> {
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
