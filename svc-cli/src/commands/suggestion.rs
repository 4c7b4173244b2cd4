//! The commands that others suggest to run next.

use svc_engine::store::{ErasureOrder, ErasureSubject};
use svc_model::id::{OrgId, SessionId};
use svc_model::query::LifetimeIdentity;
use svc_model::repository::CommitSha;

use super::repository;
use crate::output::{long_option, positional};

/// Returns the command that shows a Session.
pub(crate) fn session(session_id: &SessionId) -> String {
    format!("svc session {}", positional(session_id.as_str()))
}

/// Returns the command that shows a commit of a repository.
pub(crate) fn commit(
    commit_sha: &CommitSha,
    repo: &str,
    identity: Option<&LifetimeIdentity>,
) -> String {
    format!(
        "svc commit {commit_sha}{}",
        repository::flags(repo, identity)
    )
}

/// Returns the command that carries out an erasure once more.
pub(crate) fn erase(org_id: &OrgId, order: &ErasureOrder) -> String {
    let what = match &order.subject {
        ErasureSubject::Session(id) => format!("erase{}", long_option("session", id.as_str())),
        ErasureSubject::User(id) => format!("erase{}", long_option("user", id.as_str())),
        ErasureSubject::OlderThan(moment) => format!("gc --older-than {moment}"),
    };
    let (org_id, reason) = (
        long_option("org", org_id.as_str()),
        long_option("reason", &order.reason),
    );
    format!("svc {what}{org_id}{reason} --apply")
}
