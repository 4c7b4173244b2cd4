//! The row of a spend report that an item belongs to.

use svc_engine_fact::Lifetime;
use svc_model::id::{SessionId, UserId};
use svc_model::repository::CommitSha;
use svc_model::spend::{SpendBy, SpendKey, SpendRowWithoutKey};

use super::{Item, Work};
use crate::call_outcome::ReachedCommit;
use crate::place::RepositoryLabel;
use crate::repository::Repositories;

/// What a row stands for, borrowed from what it is told by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key<'k> {
    Without(SpendRowWithoutKey),
    Model(Option<&'k str>, &'k str),
    Session(&'k SessionId),
    User(&'k UserId),
    Agent(&'k str),
    Repository(&'k Lifetime),
    Commit(&'k Lifetime, &'k CommitSha),
    /// A pull request: its repository, its number, and whether it is merged.
    PullRequest(&'k Lifetime, i64, bool),
}

impl<'k> Key<'k> {
    /// Returns the key of an item's row, and whether the item is attributed to it.
    pub(super) fn of(item: &'k Item, by: SpendBy, work: Option<&Work<'k>>) -> (Self, bool) {
        let or = |key: Option<Self>, without| (key.unwrap_or(Self::Without(without)), false);
        match by {
            SpendBy::Model => {
                let model = item.model.as_ref();
                let key = model.map(|model| Self::Model(model.provider.as_deref(), &model.name));
                or(key, SpendRowWithoutKey::NoModel)
            }
            SpendBy::Session => (Self::Session(&item.session_id), false),
            SpendBy::User => or(
                item.user_id.as_ref().map(Self::User),
                SpendRowWithoutKey::NoUser,
            ),
            SpendBy::Agent => or(
                item.agent.as_deref().map(Self::Agent),
                SpendRowWithoutKey::NoAgent,
            ),
            SpendBy::Repository => Self::reached(item, work, Self::repository),
            SpendBy::Commit => Self::reached(item, work, Self::commit),
            SpendBy::PullRequest => Self::reached(item, work, Self::pull_request),
        }
    }

    /// Returns the key of what the work of an item reached: the commit that has it, or else what all
    /// commits of its Session have in common.
    fn reached(
        item: &'k Item,
        work: Option<&Work<'k>>,
        key: fn(&'k ReachedCommit) -> Self,
    ) -> (Self, bool) {
        if let Some(commit) = work.and_then(|work| work.commit_of(item)) {
            return (key(commit), true);
        }
        let mut keys = work
            .into_iter()
            .flat_map(|work| work.commits_of_session(item))
            .map(key);
        let Some(first) = keys.next() else {
            return (Self::Without(SpendRowWithoutKey::NoCommitEvidence), false);
        };
        if keys.all(|key| key == first) {
            (first, false)
        } else {
            (Self::Without(SpendRowWithoutKey::Shared), false)
        }
    }

    fn repository(commit: &'k ReachedCommit) -> Self {
        Self::Repository(&commit.repository)
    }

    fn commit(commit: &'k ReachedCommit) -> Self {
        Self::Commit(&commit.repository, &commit.commit_sha)
    }

    fn pull_request(commit: &'k ReachedCommit) -> Self {
        match &commit.pull_request {
            Some(found) => Self::PullRequest(&commit.repository, found.pr_number, found.is_merged),
            None => Self::Without(SpendRowWithoutKey::NoPullRequest),
        }
    }

    /// Returns the key as a report says it.
    pub(super) fn written(self, repositories: Option<&Repositories>) -> SpendKey {
        let text = |text: &str| text.to_owned();
        let unnamed = Repositories::default();
        let known = repositories.unwrap_or(&unnamed);
        let place = |repository: &Lifetime| {
            let label = RepositoryLabel::of(known, repository);
            (label.identity, label.repo)
        };
        match self {
            Self::Without(row) => SpendKey::Without { row: row.into() },
            Self::Model(provider, model) => SpendKey::Model {
                model_provider: provider.map(text),
                model: text(model),
            },
            Self::Session(session_id) => SpendKey::Session {
                session_id: session_id.clone(),
            },
            Self::User(user_id) => SpendKey::User {
                user_id: user_id.clone(),
            },
            Self::Agent(agent) => SpendKey::Agent { agent: text(agent) },
            Self::Repository(repository) => {
                let (repository, repo) = place(repository);
                SpendKey::Repository { repository, repo }
            }
            Self::Commit(lifetime, commit_sha) => {
                let (repository, repo) = place(lifetime);
                SpendKey::Commit {
                    repository,
                    repo,
                    commit_sha: commit_sha.clone(),
                }
            }
            Self::PullRequest(lifetime, pr_number, merged) => {
                let (repository, repo) = place(lifetime);
                SpendKey::PullRequest {
                    repository,
                    repo,
                    pr_number,
                    merged,
                }
            }
        }
    }
}
