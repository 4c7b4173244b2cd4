//! The history of the repository, as its forge reports it.

use std::collections::BTreeMap;

use harness::forge::{Forge, REPOSITORY};
use serde_json::json;

use super::code;

/// The commits that the checks name.
pub(super) struct Commits {
    /// The last commit of each pull request.
    pub(super) heads: BTreeMap<u32, String>,
    /// The squashed pull request 16 on `main`.
    pub(super) squashed: String,
}

/// The name of the repository.
pub(super) const NAME: &str = "own/app";

struct History<'f, 's> {
    forge: &'f Forge<'s>,
    heads: BTreeMap<u32, String>,
    runs: u32,
}

impl History<'_, '_> {
    /// Writes what a call wrote on a new branch, perhaps with a note, and pushes it.
    fn work(
        &mut self,
        number: u32,
        branch: &str,
        at: &str,
        call: u32,
        note: Option<&str>,
    ) -> String {
        self.forge.checkout(branch, at);
        let file = format!("f{call}.py");
        let text = code(call);
        let made = self
            .forge
            .commit(&format!("Work {call}"), &[(&file, &text)]);
        if let Some(session) = note {
            self.forge.repository.stamp(&made, &[session]);
        }
        self.push_new(branch, &made);
        self.heads.insert(number, made.clone());
        made
    }

    fn push_new(&self, branch: &str, head: &str) {
        self.forge
            .push(NAME, branch, (&"0".repeat(40), head), false);
    }

    fn run(&mut self, commit: &str, conclusion: &str) {
        self.runs += 1;
        self.forge.ran(self.runs, commit, conclusion);
    }

    /// Runs git on `main`, and returns its new commit.
    fn on_main(&self, arguments: &[&str]) -> String {
        let repository = &self.forge.repository;
        repository.run(&["checkout", "-q", "main"]);
        repository.run(arguments);
        repository.run(&["rev-parse", "HEAD"])
    }

    fn merge(&self, number: u32, branch: &str) -> String {
        let title = format!("Merge pull request #{number} from own/{branch}");
        self.on_main(&["merge", "-q", "--no-ff", "-m", &title, branch])
    }

    /// Pushes `main`, and reports the pull requests that were merged by it: each with its base and
    /// the commit that holds its work.
    fn landed(&self, before: &str, merged: &[(u32, &str, &str)]) {
        let after = self.forge.repository.run(&["rev-parse", "main"]);
        self.forge.push(NAME, "main", (before, &after), false);
        for (number, base, commit) in merged {
            let head = (REPOSITORY, self.heads[number].as_str());
            self.forge.merged(*number, head, base, commit);
        }
    }
}

/// Plays the history of the week.
pub(super) fn play(forge: &Forge<'_>) -> Commits {
    let mut history = History {
        forge,
        heads: BTreeMap::new(),
        runs: 0,
    };
    let base = forge.commit("base", &[("README", "read me")]);

    let one = history.work(16, "squash", &base, 1, Some("squash"));
    history.run(&one, "success");
    history.on_main(&["merge", "-q", "--squash", "squash"]);
    let squashed = history.on_main(&["commit", "-q", "-m", "Work 1 (#16)"]);
    history.landed(&base, &[(16, &base, &squashed)]);
    history.run(&squashed, "failure");

    let two = history.work(17, "rebase", &base, 2, Some("rebase"));
    history.run(&two, "success");
    let rebased = history.on_main(&["cherry-pick", &two]);
    history.landed(&squashed, &[(17, &base, &rebased)]);

    history.work(18, "queue3", &rebased, 3, Some("queue"));
    history.work(19, "queue4", &rebased, 4, Some("queue"));
    let third = history.merge(18, "queue3");
    let fourth = history.merge(19, "queue4");
    history.landed(&rebased, &[(18, &rebased, &third), (19, &rebased, &fourth)]);
    history.run(&third, "success");

    let five = history.work(20, "reverted", &fourth, 5, None);
    history.run(&five, "success");
    let twenty = history.merge(20, "reverted");
    history.landed(&fourth, &[(20, &fourth, &twenty)]);
    forge.checkout("undo", "main");
    let undone = ["revert", "--no-edit", "-m", "1", &twenty];
    forge.repository.run(&undone);
    let undo = forge.repository.run(&["rev-parse", "HEAD"]);
    history.push_new("undo", &undo);
    history.heads.insert(21, undo);
    let main = history.merge(21, "undo");
    history.landed(&twenty, &[(21, &twenty, &main)]);

    let six = history.work(22, "open", &main, 6, None);
    forge.pull_request("opened", 22, (REPOSITORY, &six), &main, &json!({}));
    history.run(&six, "success");

    // The last note comes late. Once it was read, everything that was pushed before is known.
    forge.repository.stamp(&five, &["revert"]);
    forge.push(NAME, "reverted", (&"0".repeat(40), &five), false);
    forge.observed(5);
    Commits {
        heads: history.heads,
        squashed,
    }
}
