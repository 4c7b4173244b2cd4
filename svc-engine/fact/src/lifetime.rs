use std::fmt;

use svc_model::repository::{
    RepositoryHost, RepositoryId, RepositoryIdentity, RepositoryName, RepositoryProvider,
};

/// One repository of an organization: an identity or, for facts from a forge that sends none, the
/// bare name. A repository that is deleted and created again under its name is another lifetime.
/// Lifetimes are ordered as in answers: identities as texts, then names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lifetime {
    /// One identity, with all its names.
    Identified(RepositoryIdentity),
    /// The facts without an identity under one name.
    Named(RepositoryName),
}

impl Lifetime {
    /// Returns the lifetime of a fact.
    pub fn of(repository: Option<&RepositoryIdentity>, repo: &RepositoryName) -> Self {
        repository.map_or_else(
            || Self::Named(repo.clone()),
            |repository| Self::Identified(repository.clone()),
        )
    }

    /// Parses the text of a lifetime.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let (first, second) = (parts.next()?, parts.next()?);
        let Some(third) = parts.next() else {
            return RepositoryName::new(text)
                .filter(|name| name.as_str() == text)
                .map(Self::Named);
        };
        let identity = RepositoryIdentity {
            repository_provider: RepositoryProvider::from_wire(first)?,
            repository_host: RepositoryHost::new(second)?,
            repository_id: RepositoryId::new(third)?,
        };
        parts
            .next()
            .is_none()
            .then_some(Self::Identified(identity))
            .filter(|lifetime| lifetime.to_string() == text)
    }

    /// Returns the identity, if there is one.
    pub fn identity(&self) -> Option<&RepositoryIdentity> {
        match self {
            Self::Identified(identity) => Some(identity),
            Self::Named(_) => None,
        }
    }
}

/// `provider/host/id`, or `owner/name`: no name has two slashes.
impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identified(identity) => write!(
                f,
                "{}/{}/{}",
                identity.repository_provider, identity.repository_host, identity.repository_id
            ),
            Self::Named(name) => name.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_has_one_spelling() {
        for text in ["github/github.com/7", "own/name", "o w n/n\u{e9}.git"] {
            assert_eq!(Lifetime::parse(text).unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "name",
            "Own/Name",
            " own/name",
            "github/github.com/07",
            "github/GitHub.com/7",
            "other/github.com/7",
            "github/github.com/7/8",
            "github//7",
        ] {
            assert_eq!(Lifetime::parse(wrong), None, "{wrong:?}");
        }
    }
}
