//! The forge: its repository, its webhooks, and the history of the repository.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use harness::delivery::{Receipt, Webhook};
use harness::git::{Repository, git};
use harness::git_server::Daemon;
use harness::server::Server;
use serde_json::{Value, json};

use super::{LEXER, NET, PAGER, PARSER, SHORTER, read};

/// How long the service may take to read what was pushed.
const PATIENCE: Duration = Duration::from_mins(1);

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

/// A forge with one repository, and the service that it reports to.
pub(super) struct Forge<'s> {
    pub(super) server: &'s Server,
    pub(super) repository: Repository,
    pub(super) daemon: Daemon,
}

impl Forge<'_> {
    /// Writes files and commits them.
    fn commit(&self, message: &str, files: &[(&str, &str)]) -> String {
        let work = self.repository.folder().join("work");
        for (path, text) in files {
            let path = work.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, format!("{text}\n")).expect("a file");
        }
        self.repository.run(&["add", "-A"]);
        self.repository.commit(message)
    }

    fn checkout(&self, branch: &str, at: &str) {
        self.repository.run(&["checkout", "-q", "-B", branch, at]);
    }

    fn described(&self, name: &str) -> Value {
        json!({"id": 7, "full_name": name, "clone_url": self.daemon.url("forge.git")})
    }

    fn hook(&self, event: &str, route: &str, body: &Value) -> Receipt {
        let route = format!("/ingest/forge/{route}");
        Receipt::of(&self.server.send(&Webhook::new(event, body).to(&route)))
    }

    /// Pushes everything, and reports one branch of it.
    fn push(
        &self,
        name: &str,
        branch: &str,
        (before, after): (&str, &str),
        forced: bool,
    ) -> Receipt {
        self.repository.push();
        let body = json!({
            "ref": format!("refs/heads/{branch}"), "before": before, "after": after,
            "deleted": false, "forced": forced, "repository": self.described(name),
        });
        self.hook("push", "push", &body)
    }

    /// Reports a pull request against `main` at `base`. Its head is in a repository with this
    /// number.
    fn pull_request(&self, action: &str, number: u32, head: (u32, &str), more: &Value) {
        let (head_number, head_sha) = head;
        let base = self.repository.run(&["rev-parse", "base"]);
        let mut body = json!({
            "action": action,
            "pull_request": {
                "number": number,
                "head": {"ref": "topic", "sha": head_sha,
                    "repo": {"id": head_number, "full_name": format!("any/r{head_number}")}},
                "base": {"ref": "main", "sha": base},
            },
            "repository": self.described("own/app"),
        });
        if head_number == 7 {
            body["pull_request"]["head"]["repo"] = self.described("own/app");
        }
        for (name, value) in more.as_object().expect("members") {
            match value {
                Value::Object(members) => {
                    for (name, value) in members {
                        body["pull_request"][name] = value.clone();
                    }
                }
                value => body[name] = value.clone(),
            }
        }
        self.hook("pull_request", "pull-request", &body);
    }

    pub(super) fn merged(&self, number: u32, head: (u32, &str), commit: &str) {
        let merge = json!({"pull_request": {
            "merged": true, "merged_at": "2026-02-03T04:05:06Z", "merge_commit_sha": commit,
        }});
        self.pull_request("closed", number, head, &merge);
    }

    pub(super) fn eventually(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let start = Instant::now();
        while !holds() {
            assert!(start.elapsed() < PATIENCE, "{what}\n{}", self.server.log());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until this many Sessions have been observed at commits.
    fn observed(&self, count: u64) {
        self.eventually(&format!("{count} observations"), || {
            let facts = read(self.server, "/v1/facts");
            facts["tables"]["session_commit_observations"]["total"] == count
        });
    }

    /// Plays the history in the table of this module.
    pub(super) fn play(&self) -> Commits {
        let repository = &self.repository;
        let base = self.commit("base", &[("README", "read me")]);
        repository.run(&["tag", "base"]);
        let zeros = "0".repeat(40);

        self.checkout("feat", &base);
        let feature = self.commit("a pager", &[("pager.py", PAGER)]);
        repository.stamp(&feature, &["s1"]);
        self.push("own/app", "feat", (&zeros, &feature), false);
        self.observed(1);

        self.checkout("rework", &base);
        let first = self.commit("a parser", &[("parser.py", PARSER)]);
        let second = self.commit("a lexer", &[("lexer.py", LEXER)]);
        repository.stamp(&first, &["s2"]);
        self.push("own/app", "rework", (&base, &second), false);
        self.observed(2);
        self.pull_request("opened", 2, (7, &second), &json!({}));

        // The branch begins again, with a shorter parser.
        self.checkout("rework", &base);
        let forced = self.commit("both", &[("parser.py", SHORTER), ("lexer.py", LEXER)]);
        self.push("own/app", "rework", (&second, &forced), true);
        let moved = json!({"before": second, "after": forced});
        self.pull_request("synchronize", 2, (7, &forced), &moved);

        // Pull request 1 is squashed, and its file has moved by then.
        self.checkout("main", &base);
        let squashed = self.commit("a pager (#1)", &[("src/pager.py", PAGER)]);
        self.push("own/app", "main", (&base, &squashed), false);
        self.merged(1, (7, &feature), &squashed);

        // Pull request 2 is rebased.
        repository.run(&["cherry-pick", &forced]);
        let rebased = repository.run(&["rev-parse", "HEAD"]);
        self.push("own/app", "main", (&squashed, &rebased), false);
        self.merged(2, (7, &forced), &rebased);

        let renamed = json!({
            "action": "renamed", "changes": {"repository": {"name": {"from": "app"}}},
            "repository": self.described("own/new"),
        });
        self.hook("repository", "repository", &renamed);

        // The head of pull request 3 exists, but no ref leads to it.
        self.checkout("away", &base);
        let fork_head = self.commit("net", &[("net.py", NET)]);
        // Not even for a moment, because a refresh at that time would fetch it along with the
        // branches, and it would no longer be requested.
        let work = repository.folder().join("work");
        let work = work.to_str().expect("a plain path");
        let fetch = ["fetch", "-q", "--no-write-fetch-head", work, "away"];
        git(&repository.bare(), &fetch, "");
        self.checkout("main", &rebased);
        repository.run(&["branch", "-D", "away"]);
        let fork_squashed = self.commit("net (#3)", &[("net.py", NET)]);
        // The first note that comes late.
        repository.stamp(&forced, &["s2"]);
        repository.push();
        let last = (rebased.as_str(), fork_squashed.as_str());
        self.push("own/new", "main", last, false);
        self.observed(3);
        // The second comes after its push, which is delivered again.
        repository.stamp(&fork_squashed, &["s3"]);
        assert!(!self.push("own/new", "main", last, false).stored);
        self.observed(4);
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
}
