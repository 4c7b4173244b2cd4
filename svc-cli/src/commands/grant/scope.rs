//! What a grant reaches, and why it does not reach a Session, for people.

use svc_model::grant::{GrantObstacle, GrantScope};
use svc_model::open::Open;

use crate::commands::repository;
use crate::output::{clock, escape};

/// Returns what a grant reaches.
pub(super) fn text(scope: &GrantScope) -> String {
    let mut parts = Vec::new();
    if let Some(session_id) = &scope.session_id {
        parts.push(format!("Session {}", escape(session_id.as_str())));
    }
    if let Some(user_id) = &scope.user_id {
        parts.push(format!("user {}", escape(user_id.as_str())));
    }
    if let Some(agent_harness) = &scope.agent_harness {
        parts.push(format!("agent {agent_harness}"));
    }
    match (&scope.repo, &scope.repository) {
        (None, None) => {}
        (Some(repo), identity) => parts.push(format!(
            "repository {}",
            repository::named(repo.as_str(), identity.as_ref())
        )),
        (None, Some(identity)) => parts.push(format!("repository {identity}")),
    }
    if let Some(since) = scope.since {
        parts.push(format!("since {}", clock(since)));
    }
    parts.join(", ")
}

/// Returns why a grant does not reach a Session.
pub(super) fn obstacle(obstacle: &Open<GrantObstacle>) -> String {
    let text = match obstacle {
        Open::Known(obstacle) => match obstacle {
            GrantObstacle::OtherSession => "the grant is for another Session",
            GrantObstacle::NothingVisible => "no visible fact belongs to the Session",
            GrantObstacle::UserNotNamed => "no visible fact names the user",
            GrantObstacle::OtherUser => "a visible fact names another user",
            GrantObstacle::HarnessNotNamed => "no visible fact is from the agent",
            GrantObstacle::OtherHarness => "a visible fact is from another agent",
            GrantObstacle::RepositoryNotNamed => {
                "no visible note links the Session to the repository"
            }
            GrantObstacle::OtherRepository => {
                "a visible note links the Session to another repository, or to one that cannot be determined"
            }
            GrantObstacle::BeforeSince => "the Session began earlier",
        },
        Open::Unknown(word) => return word.to_string(),
    };
    text.to_owned()
}
