use svc_model::id::{IdentityError, identity_text};
use svc_model::ingest::SkipReason;
use svc_model::json::{Json, Object};
use svc_model::repository::{
    RepositoryHost, RepositoryId, RepositoryIdentity, RepositoryName, RepositoryProvider,
};

use super::value::{given, text};

/// Why a repository has no identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityDecline {
    /// The payload contains no id.
    Absent,
    /// Its id is not a positive decimal number of at most twenty digits.
    Invalid,
}

impl IdentityDecline {
    /// Returns the reason's word, from a closed set.
    pub const fn as_str(self) -> &'static str {
        self.skip_reason().as_str()
    }

    /// Returns the skip reason for a fact that needs the identity.
    pub(super) const fn skip_reason(self) -> SkipReason {
        match self {
            Self::Absent => SkipReason::RepositoryIdentityAbsent,
            Self::Invalid => SkipReason::RepositoryIdentityInvalid,
        }
    }
}

/// Returns the identity of a repository: the forge's number, never a name.
pub(super) fn identity(
    repository: Option<&Object>,
    host: &RepositoryHost,
) -> Result<RepositoryIdentity, IdentityDecline> {
    let id = given(repository, "id").ok_or(IdentityDecline::Absent)?;
    let id = match id {
        Json::Number(number) => RepositoryId::new(number.as_str()),
        Json::String(text) => text.as_str().and_then(RepositoryId::new),
        Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => None,
    };
    Ok(RepositoryIdentity {
        repository_provider: RepositoryProvider::Github,
        repository_host: host.clone(),
        repository_id: id.ok_or(IdentityDecline::Invalid)?,
    })
}

/// Returns the name of a repository.
pub(super) fn name(repository: Option<&Object>) -> Option<RepositoryName> {
    RepositoryName::new(text(repository, "full_name")?.as_str()?)
}

/// Returns the name of a repository for a fact that does not need one; empty if the name is
/// unusable.
///
/// # Errors
///
/// If the name is too long: without it, the fact could be mistaken for another one.
pub(super) fn name_or_empty(repository: Option<&Object>) -> Result<String, SkipReason> {
    let too_long = text(repository, "full_name")
        .is_some_and(|name| identity_text(name) == Err(IdentityError::TooLong));
    if too_long {
        return Err(SkipReason::InvalidRepositoryName);
    }
    Ok(name(repository).map(Into::into).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> Object {
        Json::parse(text.as_bytes()).unwrap().into_object().unwrap()
    }

    #[test]
    fn a_repository_is_identified_by_its_number() {
        let host = RepositoryHost::new("git.example").unwrap();
        let read = |id: &str| identity(Some(&object(&format!(r#"{{"id":{id}}}"#))), &host);
        for (id, expected) in [
            ("1", "1"),
            ("7300000001", "7300000001"),
            ("\"301\"", "301"),
            ("99999999999999999999", "99999999999999999999"),
        ] {
            let found = read(id).unwrap();
            assert_eq!(found.repository_id.as_str(), expected);
            assert_eq!(found.repository_host, host);
        }
        assert_eq!(read("null"), Err(IdentityDecline::Absent));
        let host = &host;
        assert_eq!(
            identity(Some(&object("{}")), host),
            Err(IdentityDecline::Absent)
        );
        assert_eq!(identity(None, host), Err(IdentityDecline::Absent));
        for wrong in [
            "0",
            "-0",
            "-1",
            "1.0",
            "1e3",
            "NaN",
            "true",
            "\"\"",
            "\" 1\"",
            "\"01\"",
            "\"+1\"",
            "\"\u{661}\"",
            "\"x1\"",
            "\"\\ud800\"",
            "[1]",
            "{}",
            "100000000000000000000",
        ] {
            assert_eq!(read(wrong), Err(IdentityDecline::Invalid), "{wrong}");
        }
    }

    #[test]
    fn a_repository_name_is_normalised_or_dropped() {
        let read = |name: &str| name_or_empty(Some(&object(&format!(r#"{{"full_name":{name}}}"#))));
        assert_eq!(
            read("\" Own/Re po\u{e9} \""),
            Ok("own/re po\u{e9}".to_owned())
        );
        for none in [
            "\"\"",
            "\"own\"",
            "\"own/\"",
            "\"a/b/c\"",
            "\"a/b\\u0000\"",
            "\"a/\\ud800\"",
            "5",
            "null",
        ] {
            assert_eq!(read(none), Ok(String::new()), "{none}");
        }
        assert_eq!(name_or_empty(None), Ok(String::new()));
        let longest = format!("a/{}", "b".repeat(1_022));
        assert_eq!(read(&format!("\"{longest}\"")), Ok(longest.clone()));
        assert_eq!(
            read(&format!("\"{longest}c\"")),
            Err(SkipReason::InvalidRepositoryName)
        );
    }

    #[test]
    fn each_decline_has_its_own_word() {
        assert_eq!(
            IdentityDecline::Absent.as_str(),
            "repository_identity_absent"
        );
        assert_eq!(
            IdentityDecline::Invalid.as_str(),
            "repository_identity_invalid"
        );
    }
}
