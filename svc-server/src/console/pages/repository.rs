//! Names of repositories and commits, and links to them.

use maud::{Markup, html};
use svc_model::query::LifetimeIdentity;
use svc_model::repository::CommitSha;

use crate::console::link::Link;
use crate::console::text::inert;

/// The characters that a commit id is shortened to.
const COMMIT_CHARACTERS: usize = 10;

/// Shows a repository by its name, and its identity if there is one.
pub(super) fn shown(name: &str, identity: Option<&LifetimeIdentity>) -> Markup {
    html! {
        (inert(name))
        @if let Some(identity) = identity {
            " " span.identity { (inert(&identity.to_string())) }
        }
    }
}

/// Adds the repository to a link: by its identity if it has one, because names change.
pub(super) fn selecting(link: Link, name: &str, identity: Option<&LifetimeIdentity>) -> Link {
    match identity {
        Some(identity) => link
            .with("repository_provider", identity.provider.as_str())
            .with("repository_host", identity.host.as_str())
            .with("repository_id", identity.repository_id.as_str()),
        None => link.with("repo", name),
    }
}

/// Links to a commit of a repository.
pub(super) fn commit(sha: &CommitSha, name: &str, identity: Option<&LifetimeIdentity>) -> Markup {
    let link = Link::to("/console/commit").with("sha", sha.as_str());
    let link = selecting(link, name, identity);
    html! { a href=(link) { (short(sha)) } }
}

/// Returns a shortened commit id.
pub(super) fn short(sha: &CommitSha) -> Markup {
    let begin: String = sha.as_str().chars().take(COMMIT_CHARACTERS).collect();
    html! { code title=(sha.as_str()) { (begin) } }
}
