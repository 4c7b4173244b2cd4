//! The history of the repository, as its forge reports it.

use harness::forge::Forge;
use harness::git::git;
use serde_json::json;

use super::{LEXER, NET, PAGER, PARSER, SHORTER};

pub(super) struct Commits {
    pub(super) base: String,
    pub(super) feature: String,
    pub(super) first: String,
    pub(super) second: String,
    pub(super) forced: String,
    pub(super) squashed: String,
    pub(super) rebased: String,
    pub(super) fork_squashed: String,
    pub(super) fork_head: String,
}

/// Plays the history in the table of this module.
pub(super) fn play(forge: &Forge<'_>) -> Commits {
    let repository = &forge.repository;
    let base = forge.commit("base", &[("README", "read me")]);
    let zeros = "0".repeat(40);

    forge.checkout("feat", &base);
    let feature = forge.commit("a pager", &[("pager.py", PAGER)]);
    repository.stamp(&feature, &["s1"]);
    forge.push("own/app", "feat", (&zeros, &feature), false);
    forge.observed(1);

    forge.checkout("rework", &base);
    let first = forge.commit("a parser", &[("parser.py", PARSER)]);
    let second = forge.commit("a lexer", &[("lexer.py", LEXER)]);
    repository.stamp(&first, &["s2"]);
    forge.push("own/app", "rework", (&base, &second), false);
    forge.observed(2);
    forge.pull_request("opened", 2, (7, &second), &base, &json!({}));

    // The branch begins again, with a shorter parser.
    forge.checkout("rework", &base);
    let forced = forge.commit("both", &[("parser.py", SHORTER), ("lexer.py", LEXER)]);
    forge.push("own/app", "rework", (&second, &forced), true);
    let moved = json!({"before": second, "after": forced});
    forge.pull_request("synchronize", 2, (7, &forced), &base, &moved);

    // Pull request 1 is squashed, and its file has moved by then.
    forge.checkout("main", &base);
    let squashed = forge.commit("a pager (#1)", &[("src/pager.py", PAGER)]);
    forge.push("own/app", "main", (&base, &squashed), false);
    forge.merged(1, (7, &feature), &base, &squashed);

    // Pull request 2 is rebased.
    repository.run(&["cherry-pick", &forced]);
    let rebased = repository.run(&["rev-parse", "HEAD"]);
    forge.push("own/app", "main", (&squashed, &rebased), false);
    forge.merged(2, (7, &forced), &base, &rebased);

    let renamed = json!({
        "action": "renamed", "changes": {"repository": {"name": {"from": "app"}}},
        "repository": forge.described("own/new"),
    });
    forge.hook("repository", "repository", &renamed);

    // The head of pull request 3 exists, but no ref leads to it.
    forge.checkout("away", &base);
    let fork_head = forge.commit("net", &[("net.py", NET)]);
    // Not even for a moment, because a refresh at that time would fetch it along with the
    // branches, and it would no longer be requested.
    let work = repository.folder().join("work");
    let work = work.to_str().expect("a plain path");
    let fetch = ["fetch", "-q", "--no-write-fetch-head", work, "away"];
    git(&repository.bare(), &fetch, "");
    forge.checkout("main", &rebased);
    repository.run(&["branch", "-D", "away"]);
    let fork_squashed = forge.commit("net (#3)", &[("net.py", NET)]);
    // The first note that comes late.
    repository.stamp(&forced, &["s2"]);
    repository.push();
    let last = (rebased.as_str(), fork_squashed.as_str());
    forge.push("own/new", "main", last, false);
    forge.observed(3);
    // The second comes after its push, which is delivered again.
    repository.stamp(&fork_squashed, &["s3"]);
    assert!(!forge.push("own/new", "main", last, false).stored);
    forge.observed(4);
    Commits {
        base,
        feature,
        first,
        second,
        forced,
        squashed,
        rebased,
        fork_squashed,
        fork_head,
    }
}
