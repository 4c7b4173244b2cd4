//! The options that select a repository.

use clap::Args;
use svc_engine::fact::Lifetime;
use svc_model::query::{LifetimeIdentity, RepositorySelector};
use svc_model::repository::{
    RepositoryHost, RepositoryId, RepositoryIdentity, RepositoryName, RepositoryProvider,
};

use crate::error::CommandError;
use crate::output::{escape, long_option, quote};

/// The options that select a repository.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RepositoryOptions {
    /// The repository: OWNER/NAME, by a name that it has or had; or PROVIDER/HOST/ID, by its number
    /// at the forge, such as github/github.com/42.
    #[arg(long, value_name = "REPOSITORY")]
    repo: Option<String>,

    /// The identity as three options: the kind of forge.
    #[arg(long, value_name = "PROVIDER", hide_short_help = true)]
    repository_provider: Option<String>,

    /// The identity as three options: the host of the forge.
    #[arg(long, value_name = "HOST", hide_short_help = true)]
    repository_host: Option<String>,

    /// The identity as three options: the forge's number of the repository.
    #[arg(long, value_name = "ID", hide_short_help = true)]
    repository_id: Option<String>,
}

impl RepositoryOptions {
    /// Returns the selector.
    pub(crate) fn selector(&self) -> Result<RepositorySelector, CommandError> {
        let named = option("--repo", RULE, self.repo.as_ref(), read)?;
        let provider = option(
            "--repository-provider",
            "must be github",
            self.repository_provider.as_ref(),
            RepositoryProvider::from_wire,
        )?;
        let host = option(
            "--repository-host",
            "must be a DNS host name",
            self.repository_host.as_ref(),
            RepositoryHost::new,
        )?;
        let id = option(
            "--repository-id",
            "must be decimal text without a leading zero",
            self.repository_id.as_ref(),
            RepositoryId::new,
        )?;
        let identity = match (provider, host, id) {
            (Some(repository_provider), Some(repository_host), Some(repository_id)) => {
                Some(RepositoryIdentity {
                    repository_provider,
                    repository_host,
                    repository_id,
                })
            }
            (None, None, None) => None,
            _ => {
                return Err(CommandError::argument(
                    "the identity of a repository",
                    "needs --repository-provider, --repository-host and --repository-id",
                ));
            }
        };
        match (named, identity) {
            (Some(Lifetime::Identified(_)), Some(_)) => Err(CommandError::argument(
                "--repo",
                "already names the identity: omit --repository-provider, --repository-host and \
                 --repository-id",
            )),
            (Some(Lifetime::Identified(identity)), None) => {
                Ok(RepositorySelector::identified(identity))
            }
            (Some(Lifetime::Named(repo)), identity) => Ok(RepositorySelector {
                repo: Some(repo),
                identity,
            }),
            (None, identity) => Ok(RepositorySelector {
                repo: None,
                identity,
            }),
        }
    }
}

/// The accepted forms of a repository.
pub(crate) const RULE: &str =
    "must be OWNER/NAME or PROVIDER/HOST/ID, such as github/github.com/42";

/// Parses a repository: `OWNER/NAME` or `PROVIDER/HOST/ID`.
pub(crate) fn read(text: &str) -> Option<Lifetime> {
    let parts: Vec<&str> = text.trim().split('/').collect();
    let [provider, host, id] = parts[..] else {
        return RepositoryName::new(text).map(Lifetime::Named);
    };
    Some(Lifetime::Identified(RepositoryIdentity {
        repository_provider: RepositoryProvider::from_wire(provider)?,
        repository_host: RepositoryHost::new(host)?,
        repository_id: RepositoryId::new(id)?,
    }))
}

/// Returns a repository for people: its name, and its identity if it has one.
pub(crate) fn named(repo: &str, identity: Option<&LifetimeIdentity>) -> String {
    let name = escape(repo);
    match identity {
        Some(identity) => format!("{name} ({identity})"),
        None => format!("{name} (known by name only)"),
    }
}

/// Returns the option that selects a repository, after a space: by its identity, which survives a
/// rename, or else by its name. A fact may have neither.
pub(crate) fn flags(repo: &str, identity: Option<&LifetimeIdentity>) -> String {
    match identity {
        Some(identity) => long_option("repo", &identity.to_string()),
        None if repo.is_empty() => String::new(),
        None => long_option("repo", repo),
    }
}

/// Returns the options for this selector, each after a space.
pub(crate) fn selecting(selector: &RepositorySelector) -> String {
    match (&selector.repo, &selector.identity) {
        (None, None) => String::new(),
        (Some(name), None) => flags(name.as_str(), None),
        (None, Some(identity)) => flags("", Some(&identity.clone().into())),
        (Some(name), Some(identity)) => format!(
            "{} --repository-provider {} --repository-host {} --repository-id {}",
            flags(name.as_str(), None),
            identity.repository_provider,
            quote(identity.repository_host.as_str()),
            quote(identity.repository_id.as_str())
        ),
    }
}

fn option<T>(
    name: &str,
    rule: &str,
    given: Option<&String>,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, CommandError> {
    given
        .map(|text| read(text).ok_or_else(|| CommandError::argument(name, rule)))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_option_names_a_repository_or_its_identity() {
        let given = |repo: &str| RepositoryOptions {
            repo: Some(repo.to_owned()),
            ..RepositoryOptions::default()
        };
        for (text, option) in [
            ("Own/App", " --repo own/app"),
            ("github/GitHub.com/9", " --repo github/github.com/9"),
        ] {
            let selector = given(text).selector().unwrap();
            assert_eq!(selecting(&selector), option);
            let again = given(option.trim_start_matches(" --repo ")).selector();
            assert_eq!(again.unwrap(), selector);
        }
        let twice = RepositoryOptions {
            repository_provider: Some("github".to_owned()),
            repository_host: Some("github.com".to_owned()),
            repository_id: Some("9".to_owned()),
            ..given("github/github.com/9")
        };
        assert_eq!(twice.selector().unwrap_err().code(), "invalid_argument");
    }

    #[test]
    fn an_incomplete_identity_is_refused() {
        let whole = RepositoryOptions {
            repo: Some("Own/App".to_owned()),
            repository_provider: Some("github".to_owned()),
            repository_host: Some("GitHub.com".to_owned()),
            repository_id: Some("9".to_owned()),
        };
        let selector = whole.selector().unwrap();
        assert_eq!(selector.repo.unwrap().as_str(), "own/app");
        assert_eq!(
            selector.identity.unwrap().repository_host.as_str(),
            "github.com"
        );
        let part = RepositoryOptions {
            repository_id: Some("9".to_owned()),
            ..RepositoryOptions::default()
        };
        assert_eq!(part.selector().unwrap_err().code(), "invalid_argument");
        assert!(RepositoryOptions::default().selector().unwrap().is_empty());
        for wrong in [
            "own",
            "",
            "a/b/c",
            "github/github.com/x",
            "github/github.com/9/1",
        ] {
            let wrong = RepositoryOptions {
                repo: Some(wrong.to_owned()),
                ..RepositoryOptions::default()
            };
            assert!(wrong.selector().is_err());
        }
    }
}
