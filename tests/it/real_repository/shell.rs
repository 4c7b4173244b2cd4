//! What the shell shows of the same evidence.

use harness::http::Request;
use harness::server::{OPERATOR_TOKEN, Server};

use super::history::Commits;
use super::{SIMILAR, read};
use crate::cli::{done, svc};

/// Checks that the shell shows guesses separately, and passes on the service's bytes.
pub(super) fn check(server: &Server, commits: &Commits) {
    let shown = done(&svc(server, &["commit", &commits.rebased]));
    let evidence = read(
        server,
        &format!("/query/commit/{}?explain=true", commits.rebased),
    );
    let id = |score: f64| {
        let calls = evidence["repos"][0]["inference_calls"]
            .as_array()
            .expect("calls");
        let call = calls.iter().find(|call| call["similarity_score"] == score);
        call.expect("a call")["inference_call_id"]
            .as_str()
            .expect("an id")
            .to_owned()
    };
    let line = |score: f64| {
        format!(
            "    call {}  litellm/openai/m2  session=s2  attribution=jaccard score={score:.2} \
             files=1 (inferred call/file)\n",
            id(score)
        )
    };
    let (mut first, mut second) = (line(SIMILAR), line(1.0));
    if id(1.0) < id(SIMILAR) {
        std::mem::swap(&mut first, &mut second);
    }
    assert_eq!(
        shown,
        format!(
            "{}: no Session observed at it; 1 at a commit whose work it has\n\
             \nown/app (github/github.com/7)\n\
             \x20 also named own/new\n\
             \x20 through pull request 2 (rebase, merged 2026-02-03)\n\
             \x20   session s2 at {}  (1 observed)\n\
             \x20 inferred from what calls wrote; a guess, not an observation:\n\
             {first}{second}\
             \x20   session_commit_unobserved: 1\n\
             \x20   decisions: 1\n\
             \nnext:\n  svc session s2\n",
            commits.rebased, commits.forced
        )
    );
    for commit in [&commits.feature, &commits.rebased, &commits.base] {
        let path = format!("/query/commit/{commit}?explain=true");
        let answer = server.try_send(&Request::get(path).bearer(OPERATOR_TOKEN));
        let answer = answer.expect("an answer").text();
        let passed_on = done(&svc(server, &["commit", commit, "--json"]));
        assert_eq!(passed_on.trim_end(), answer.trim_end());
    }
    let investigated = done(&svc(server, &["investigate", "run-2"]));
    let mut lines = investigated.lines();
    let observed = lines.any(|line| line.split_whitespace().eq(["Sessions", "1", "observed"]));
    assert!(observed, "{investigated}");
    assert!(
        investigated
            .contains("  inferred from what calls wrote; a guess, not an observation:\n    call "),
        "{investigated}"
    );
    assert_eq!(
        investigated.matches("attribution=git_notes score=").count(),
        2
    );
}
