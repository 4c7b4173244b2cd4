//! The evidence of each commit.

use harness::server::Server;
use serde_json::{Value, json};

use super::history::Commits;
use super::{SIMILAR, read};

const IDENTITY: &str = "repository_provider=github&repository_host=github.com&repository_id=7";

/// Checks what the commit query says about each commit.
pub(super) fn check(server: &Server, commits: &Commits) {
    let evidence = |commit: &str| {
        read(
            server,
            &format!("/query/commit/{commit}?explain=true&{IDENTITY}"),
        )
    };
    let calls = |repository: &Value| -> Vec<(String, String, f64, u64)> {
        let calls = repository["inference_calls"].as_array().expect("calls");
        let mut calls: Vec<_> = calls
            .iter()
            .map(|call| {
                assert_eq!(call["relationship"], "inferred_call_to_file");
                let text = |name: &str| call[name].as_str().expect("a text").to_owned();
                (
                    text("session_id") + " " + call["model"].as_str().expect("a model"),
                    text("attribution_source"),
                    call["similarity_score"].as_f64().expect("a score"),
                    call["attributed_files"].as_u64().expect("a count"),
                )
            })
            .collect();
        // Calls are ordered by their ids, which mean nothing here.
        calls.sort_by(|left, right| left.0.cmp(&right.0).then(left.2.total_cmp(&right.2)));
        calls
    };
    let call = |who: &str, how: &str, score: f64| (who.to_owned(), how.to_owned(), score, 1);
    let (one, four) = ("s1 m1", "s3 m1");
    let of_s2 = "s2 m2";
    let (note, guess) = ("git_notes", "jaccard");
    // Each with its calls, the decisions about them, its observed Sessions, and the Sessions of
    // calls that were not observed at it. Only calls one, two and four have decisions that are
    // found.
    for (commit, found, decisions, observed, unobserved) in [
        (
            &commits.feature,
            vec![call(one, note, 1.0)],
            1,
            vec!["s1"],
            0,
        ),
        (
            &commits.first,
            vec![call(of_s2, note, 1.0)],
            1,
            vec!["s2"],
            0,
        ),
        // Call three, which has no decision.
        (&commits.second, vec![call(of_s2, guess, 1.0)], 0, vec![], 1),
        (
            &commits.forced,
            vec![call(of_s2, note, SIMILAR), call(of_s2, note, 1.0)],
            1,
            vec!["s2"],
            0,
        ),
        (&commits.squashed, vec![call(one, guess, 1.0)], 1, vec![], 1),
        (
            &commits.rebased,
            vec![call(of_s2, guess, SIMILAR), call(of_s2, guess, 1.0)],
            1,
            vec![],
            // Both calls belong to one Session.
            1,
        ),
        (
            &commits.fork_squashed,
            vec![call(four, note, 1.0)],
            1,
            vec!["s3"],
            0,
        ),
    ] {
        let evidence = evidence(commit);
        let repository = &evidence["repos"][0];
        assert_eq!(calls(repository), found, "{evidence:#}");
        assert_eq!(repository["decisions"], decisions, "{evidence:#}");
        let sessions = repository["observed_sessions"].as_array().expect("a list");
        let sessions: Vec<_> = sessions
            .iter()
            .map(|session| &session["session_id"])
            .collect();
        assert_eq!(sessions, observed, "{evidence:#}");
        assert_eq!(
            repository["session_commit_unobserved"], unobserved,
            "{evidence:#}"
        );
        assert_eq!(evidence["attributed"], !observed.is_empty(), "{evidence:#}");
        assert_eq!(repository["repo"], "own/app");
        assert_eq!(
            repository["observed_repo_slugs"],
            json!(["own/app", "own/new"])
        );
        // Every section of every diff was read.
        assert_eq!(evidence.get("inference_skipped"), None, "{evidence:#}");
    }
    // No push brought these two: the first was there before, and the second belongs to the fork.
    for commit in [&commits.base, &commits.fork_head] {
        let none = json!({"commit_sha": commit, "attributed": false});
        assert_eq!(evidence(commit), none);
    }
    // Without a selector, the repository is the one that pushed a branch to the commit.
    let anywhere = read(
        server,
        &format!("/query/commit/{}?explain=true", commits.rebased),
    );
    assert_eq!(anywhere, evidence(&commits.rebased));
}
