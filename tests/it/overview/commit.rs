//! The Sessions behind a commit of the week.

use harness::server::Server;

use super::history::Commits;
use super::read;
use crate::cli::{done, svc};

/// Checks that the squashed commit leads to the Session of its pull request.
pub(super) fn check(server: &Server, commits: &Commits) {
    let squashed = &commits.squashed;
    let evidence = read(server, &format!("/query/commit/{squashed}"));
    let link = &evidence["repos"][0]["through_pull_requests"][0];
    assert_eq!(link["pr_number"], 16, "{evidence:#}");
    assert_eq!(link["merge_method"], "squash");
    assert_eq!(link["commits"][0]["commit_sha"], commits.heads[&16]);
    let sessions = &link["commits"][0]["observed_sessions"];
    assert_eq!(sessions[0]["session_id"], "squash");
    let shown = done(&svc(server, &["commit", squashed]));
    let expected = format!(
        "\n  through pull request 16 (squash, merged 2026-02-03)\n    session squash at {}  (1 observed)\n",
        commits.heads[&16]
    );
    assert!(shown.contains(&expected), "{shown}");
}
