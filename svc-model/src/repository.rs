//! Names and identities of repositories, commits and branches.

use std::fmt;
use std::sync::Arc;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::closed_set;
use crate::field::{FieldKind, Fields, FromField, Violation, Violations};
use crate::id::{identity, is_trimmed};
use crate::json::Json;
#[cfg(feature = "schema")]
use crate::limit::IDENTITY_BYTES_MAX;

closed_set! {
    /// The kind of forge that hosts a repository.
    pub enum RepositoryProvider {
        /// Every forge whose webhooks the service reads: GitHub, Forgejo and Gitea.
        Github = "github",
    }
}

macro_rules! checked_string {
    ($(#[$meta:meta])* $name:ident, $read:path, $expected:literal, $schema:meta) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(JsonSchema))]
        #[serde(try_from = "String", into = "String")]
        #[cfg_attr(feature = "schema", $schema)]
        pub struct $name(
            // As with identities, copies share the text.
            Arc<str>,
        );

        impl $name {
            /// Returns the normalised value of `text`, if it is valid.
            pub fn new(text: &str) -> Option<Self> {
                $read(text).map(|text| Self(text.into()))
            }

            /// Returns the normalised text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = &'static str;
            fn try_from(text: String) -> Result<Self, &'static str> {
                Self::new(&text).ok_or($expected)
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.as_str().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl crate::parameter::ParameterValue for $name {
            fn to_parameter(&self) -> String {
                self.as_str().to_owned()
            }
        }

        impl FromField for $name {
            fn from_field(value: &Json) -> Result<Self, Violation> {
                let Json::String(text) = value else {
                    return Err(Violation::new(FieldKind::StringType, "must be a string"));
                };
                text.as_str().and_then(Self::new).ok_or(Violation::rule($expected))
            }
        }
    };
}

checked_string! {
    /// A host name: DNS labels joined by dots, at most 253 characters, without a port. Accepted in
    /// any letter case, and kept in lower case.
    RepositoryHost, read_host, "must be a DNS host name",
    schemars(extend(
        "pattern" = r"^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$",
        "maxLength" = 253,
        "examples" = ["github.com"],
    ))
}
checked_string! {
    /// The id that the forge gave a repository: decimal text of 1 to 20 digits, without a leading
    /// zero.
    RepositoryId, read_repository_id, "must be decimal text without a leading zero",
    schemars(extend("pattern" = "^[1-9][0-9]{0,19}$", "examples" = ["514200317"]))
}
checked_string! {
    /// The name of a repository: `owner/name`, at most 1,024 bytes. Accepted in any letter case,
    /// and kept in lower case.
    RepositoryName, read_name, "must be owner/name",
    schemars(extend(
        "pattern" = "^[^/]+/[^/]+$",
        "maxLength" = IDENTITY_BYTES_MAX,
        "examples" = ["acme/shop"],
    ))
}
checked_string! {
    /// A full commit id: 40 or 64 hexadecimal digits. Accepted in any letter case and with
    /// surrounding white space, and kept in lower case without it.
    CommitSha, read_sha, "must be 40 or 64 hexadecimal digits",
    schemars(extend(
        "pattern" = r"^\s*([0-9A-Fa-f]{40}|[0-9A-Fa-f]{64})\s*$",
        "examples" = ["9b2f3a6c1d4e5f708192a3b4c5d6e7f8091a2b3c"],
    ))
}
checked_string! {
    /// The name of a branch, without `refs/heads/`; at most 1,024 bytes, and may be empty.
    Branch, read_branch, "must be a branch name of at most 1024 bytes",
    schemars(extend("maxLength" = IDENTITY_BYTES_MAX, "examples" = ["main"]))
}

fn read_host(text: &str) -> Option<String> {
    let host = text.to_ascii_lowercase();
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    (host.len() <= 253 && host.split('.').all(label)).then_some(host)
}

fn read_repository_id(text: &str) -> Option<String> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    ((1..=20).contains(&text.len()) && digits && !text.starts_with('0')).then(|| text.to_owned())
}

fn read_name(text: &str) -> Option<String> {
    let name = identity(text).ok()?.to_lowercase();
    let (owner, repository) = name.split_once('/')?;
    let whole = !owner.is_empty() && !repository.is_empty() && !repository.contains('/');
    whole.then(|| name.clone())
}

fn read_sha(text: &str) -> Option<String> {
    let sha = text.trim_matches(is_trimmed).to_ascii_lowercase();
    (matches!(sha.len(), 40 | 64) && sha.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .then_some(sha)
}

fn read_branch(text: &str) -> Option<String> {
    let mut branch = text.trim_matches(is_trimmed);
    while let Some(rest) = branch.strip_prefix("refs/heads/") {
        branch = rest.trim_matches(is_trimmed);
    }
    if branch.is_empty() {
        return Some(String::new());
    }
    identity(branch).ok().map(str::to_owned)
}

/// The identity of a repository. A rename does not change it; a repository that is deleted and
/// created again under the same name has another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RepositoryIdentity {
    /// The kind of forge.
    pub repository_provider: RepositoryProvider,
    /// The host of the forge.
    pub repository_host: RepositoryHost,
    /// The id that the forge gave the repository.
    pub repository_id: RepositoryId,
}

impl RepositoryIdentity {
    /// Reads the three members, which must be given together or not at all.
    pub fn read(fields: &Fields<'_>, violations: &mut Violations) -> Option<Self> {
        let provider = fields.nullable("repository_provider", violations);
        let host = fields.nullable("repository_host", violations);
        let id = fields.nullable("repository_id", violations);
        let given = ["repository_provider", "repository_host", "repository_id"]
            .iter()
            .filter(|name| fields.get(name).is_some_and(|value| !value.is_null()))
            .count();
        if given == 1 || given == 2 {
            violations.push(
                Violation::rule("repository identity requires all three components")
                    .at(fields.place()),
            );
        }
        Some(Self {
            repository_provider: provider?,
            repository_host: host?,
            repository_id: id?,
        })
    }
}

closed_set! {
    /// Why a fact is not assigned to a repository.
    pub enum RepositoryDecline {
        /// The fact names no repository.
        IdentityAbsent = "repository_identity_absent",
        /// An observation and the push that led to it belong to different repositories.
        IdentityConflict = "repository_identity_conflict",
        /// The fact has no identity of a repository, and its name belongs to a repository that has
        /// one; or a push has no identity, but an observation that it led to has one.
        IdentityUnresolved = "repository_identity_unresolved",
        /// The name on the push does not lead to exactly one mirror.
        MirrorIdentityUnresolved = "repository_mirror_identity_unresolved",
        /// The push that led to the observation is absent, quarantined or later than the boundary.
        SourceAbsent = "repository_source_absent",
    }
}

/// One commit of one repository.
///
/// Anchors are closed: they never get another member, in replies too, so that each can be sent back.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(deny_unknown_fields))]
pub struct CommitAnchor {
    /// The kind of forge.
    pub repository_provider: RepositoryProvider,
    /// The host of the forge.
    pub repository_host: RepositoryHost,
    /// The id that the forge gave the repository.
    pub repository_id: RepositoryId,
    /// The full id of the commit.
    pub commit_sha: CommitSha,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_normalised_or_refused() {
        assert_eq!(
            RepositoryName::new(" Own/Repo ").unwrap().as_str(),
            "own/repo"
        );
        for wrong in ["", "own", "own/", "/repo", "a/b/c", "a/\0"] {
            assert_eq!(RepositoryName::new(wrong), None, "{wrong:?}");
        }
        assert_eq!(
            RepositoryHost::new("GitHub.com").unwrap().as_str(),
            "github.com"
        );
        for wrong in [
            "",
            "a..b",
            "-a.b",
            "a.b.",
            "a:1",
            " a",
            "a_b",
            &"a".repeat(64),
        ] {
            assert_eq!(RepositoryHost::new(wrong), None, "{wrong:?}");
        }
        assert!(RepositoryId::new("10014425983").is_some());
        for wrong in ["", "0", "01", "1a", "123456789012345678901", " 1"] {
            assert_eq!(RepositoryId::new(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn every_repetition_of_the_branch_prefix_is_removed() {
        assert_eq!(
            Branch::new(" refs/heads/ refs/heads/Main ")
                .unwrap()
                .as_str(),
            "Main"
        );
        assert_eq!(Branch::new("refs/heads/").unwrap().as_str(), "");
        assert_eq!(Branch::new("a\0"), None);
    }

    #[test]
    fn only_a_full_commit_id_is_accepted() {
        assert_eq!(CommitSha::new(" A"), None);
        assert_eq!(
            CommitSha::new(&format!(" {} ", "A".repeat(40)))
                .unwrap()
                .as_str(),
            "a".repeat(40)
        );
        assert_eq!(CommitSha::new(&"a".repeat(41)), None);
    }
}
