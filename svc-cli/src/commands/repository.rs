//! Which repository a question is about.

use clap::Args;
use svc_model::query::{LifetimeIdentity, RepositorySelector};
use svc_model::repository::{
    RepositoryHost, RepositoryId, RepositoryIdentity, RepositoryName, RepositoryProvider,
};

use crate::error::CommandError;
use crate::output::{escape, quote};

/// Which repository is meant.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RepositoryOptions {
    /// The repository by its name, one that it has or had.
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,

    /// The repository by its identity: the kind of forge. All three are given, or none.
    #[arg(long, value_name = "PROVIDER")]
    repository_provider: Option<String>,

    /// The host of the forge.
    #[arg(long, value_name = "HOST")]
    repository_host: Option<String>,

    /// The forge's id of the repository.
    #[arg(long, value_name = "ID")]
    repository_id: Option<String>,
}

impl RepositoryOptions {
    /// Returns the selector.
    pub(crate) fn selector(&self) -> Result<RepositorySelector, CommandError> {
        let repo = option(
            "--repo",
            "must be OWNER/NAME",
            self.repo.as_ref(),
            RepositoryName::new,
        )?;
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
        Ok(RepositorySelector { repo, identity })
    }
}

/// Returns a repository as a person reads it: its name, and the identity when it has one.
pub(crate) fn named(repo: &str, identity: Option<&LifetimeIdentity>) -> String {
    let name = escape(repo);
    match identity {
        Some(identity) => format!(
            "{name} ({} {} {})",
            identity.provider, identity.host, identity.repository_id
        ),
        None => format!("{name} (known by its name alone)"),
    }
}

/// Returns the options that select a repository, each after a blank: by its identity, so that they
/// mean the same when its name has changed, else by its name. A fact may have neither.
pub(crate) fn flags(repo: &str, identity: Option<&LifetimeIdentity>) -> String {
    match identity {
        Some(identity) => format!(
            " --repository-provider {} --repository-host {} --repository-id {}",
            identity.provider,
            quote(identity.host.as_str()),
            quote(identity.repository_id.as_str())
        ),
        None if repo.is_empty() => String::new(),
        None => format!(" --repo {}", quote(repo)),
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
    fn an_identity_is_whole_or_absent() {
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
        for wrong in ["own", "", "a/b/c"] {
            let wrong = RepositoryOptions {
                repo: Some(wrong.to_owned()),
                ..RepositoryOptions::default()
            };
            assert!(wrong.selector().is_err());
        }
    }
}
