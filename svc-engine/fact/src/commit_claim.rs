use std::fmt;
use std::sync::Arc;

use svc_model::facts::AgentHarness;
use svc_model::id::{FactId, SessionId, UserId, is_trimmed};
use svc_model::limit::COMMIT_CLAIM_DAYS_MAX;
use svc_model::repository::{
    RepositoryHost, RepositoryIdentity, RepositoryName, RepositoryProvider,
};
use svc_model::time::Instant;

/// A client's report that a Session made a commit. It proves nothing and is no fact: the mirrors
/// must have exactly one such commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitClaim {
    /// Its id.
    pub claim_id: FactId,
    /// The Session.
    pub session_id: SessionId,
    /// The user, if known.
    pub user_id: Option<UserId>,
    /// The agent.
    pub agent_harness: AgentHarness,
    /// The tool call that made the commit, if known.
    pub tool_use_id: Option<String>,
    /// The commit, as far as it was named.
    pub git_commit_id: GitCommitId,
    /// The repository, if it was named.
    pub repository: Option<NamedRepository>,
    /// When it happened, by the client's clock.
    pub occurred_at: Instant,
    /// When the service received it.
    pub captured_at: Instant,
}

impl CommitClaim {
    /// Returns the last moment whose open claims are too old now.
    pub fn too_old(now: Instant) -> Instant {
        const DAY: i64 = 24 * 60 * 60 * 1_000_000;
        let moment = now.microseconds() - COMMIT_CLAIM_DAYS_MAX * DAY;
        Instant::from_microseconds(moment).unwrap_or(now)
    }
}

/// The id of a commit as git prints it, whole or abbreviated: 7 to 40 or exactly 64 hexadecimal
/// digits, in lower case, not all of them zero.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GitCommitId(Arc<str>);

impl GitCommitId {
    /// Reads an id, in any letter case and with blanks around it.
    pub fn new(text: &str) -> Option<Self> {
        let digits = text.trim_matches(is_trimmed).to_ascii_lowercase();
        let is_id = matches!(digits.len(), 7..=40 | 64)
            && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
            && digits.bytes().any(|digit| digit != b'0');
        is_id.then(|| Self(digits.into()))
    }

    /// Returns the digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether nothing is left out, in a repository of either kind of id.
    pub fn is_whole(&self) -> bool {
        matches!(self.0.len(), 40 | 64)
    }
}

impl fmt::Display for GitCommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<GitCommitId> for String {
    fn from(id: GitCommitId) -> Self {
        id.as_str().to_owned()
    }
}

/// A repository, as far as a client named it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedRepository {
    /// The kind of forge, if it was named.
    pub provider: Option<RepositoryProvider>,
    /// The host, if it was named.
    pub host: Option<RepositoryHost>,
    /// The name.
    pub name: RepositoryName,
}

impl NamedRepository {
    /// Returns whether a repository that has this name may be meant.
    pub fn may_be(&self, repository: &RepositoryIdentity) -> bool {
        let RepositoryIdentity {
            repository_provider,
            repository_host,
            ..
        } = repository;
        let is_provider = self
            .provider
            .is_none_or(|named| named == *repository_provider);
        let is_host = |named: &RepositoryHost| named == repository_host;
        is_provider && self.host.as_ref().is_none_or(is_host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_id_is_whole_or_abbreviated() {
        for (text, digits) in [
            ("abcdef1", "abcdef1"),
            (" ABCDEF1\n", "abcdef1"),
            (&"A0".repeat(20), &"a0".repeat(20)),
            (&"0f".repeat(32), &"0f".repeat(32)),
            ("0000001", "0000001"),
        ] {
            assert_eq!(GitCommitId::new(text).unwrap().as_str(), digits);
        }
        for wrong in [
            "",
            "abcdef",
            "abcdefg",
            "abc def1",
            "0000000",
            &"0".repeat(40),
            &"0".repeat(64),
            &"a".repeat(41),
            &"a".repeat(63),
            &"a".repeat(65),
            "\u{ff11}abcdef1",
        ] {
            assert_eq!(GitCommitId::new(wrong), None, "{wrong:?}");
        }
    }
}
