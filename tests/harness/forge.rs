//! A forge with one repository: real commits that git's daemon serves, and signed webhooks.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use svc_engine::testing::git::Repository;
use svc_engine::testing::git_server::Daemon;
use svc_model::json::Json;

use crate::delivery::{Receipt, Webhook, workflow_run};
use crate::pattern::dig;
use crate::server::Server;

/// How long the service may take to read what was pushed.
const PATIENCE: Duration = Duration::from_mins(1);

/// The number of the repository.
pub const REPOSITORY: u32 = 7;

/// A forge with one repository, and the service that it reports to.
#[derive(Debug)]
pub struct Forge<'s> {
    server: &'s Server,
    /// The repository, with the work tree of somebody who pushes to it.
    pub repository: Repository,
    daemon: Daemon,
}

impl<'s> Forge<'s> {
    /// Starts a forge with an empty repository.
    pub fn start(server: &'s Server) -> Self {
        let repository = Repository::create();
        Self {
            server,
            daemon: Daemon::start(repository.folder()),
            repository,
        }
    }

    /// Writes files of one line each and commits them on the current branch. Returns the commit.
    pub fn commit(&self, message: &str, files: &[(&str, &str)]) -> String {
        let work = self.repository.folder().join("work");
        for (path, text) in files {
            let path = work.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, format!("{text}\n")).expect("a file");
        }
        self.repository.run(&["add", "-A"]);
        self.repository.commit(message)
    }

    /// Begins a branch at a commit, or moves it there.
    pub fn checkout(&self, branch: &str, at: &str) {
        self.repository.run(&["checkout", "-q", "-B", branch, at]);
    }

    /// Returns what webhooks say of the repository under a name.
    pub fn described(&self, name: &str) -> Value {
        let url = self.daemon.url("forge.git");
        json!({"id": REPOSITORY, "full_name": name, "clone_url": url})
    }

    /// Delivers an event.
    pub fn hook(&self, event: &str, route: &str, body: &Value) -> Receipt {
        let route = format!("/ingest/forge/{route}");
        Receipt::of(&self.server.send(&Webhook::new(event, body).to(&route)))
    }

    /// Pushes everything, and reports one branch of it.
    pub fn push(
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

    /// Reports a pull request against `main` at `base` of `own/app`. Its head is a commit of the
    /// repository with a number.
    pub fn pull_request(
        &self,
        action: &str,
        number: u32,
        (head_repository, head): (u32, &str),
        base: &str,
        more: &Value,
    ) {
        let mut body = json!({
            "action": action,
            "pull_request": {
                "number": number,
                "head": {"ref": "topic", "sha": head,
                    "repo": {"id": head_repository, "full_name": format!("any/r{head_repository}")}},
                "base": {"ref": "main", "sha": base},
            },
            "repository": self.described("own/app"),
        });
        if head_repository == REPOSITORY {
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

    /// Reports that a pull request was merged as a commit.
    pub fn merged(&self, number: u32, head: (u32, &str), base: &str, commit: &str) {
        let merge = json!({"pull_request": {
            "merged": true, "merged_at": "2026-02-03T04:05:06Z", "merge_commit_sha": commit,
        }});
        self.pull_request("closed", number, head, base, &merge);
    }

    /// Reports how a run of the workflow `CI` of `own/app` ended at a commit.
    pub fn ran(&self, run: u32, commit: &str, conclusion: &str) {
        let mut body = workflow_run(run, conclusion);
        body["workflow_run"]["head_sha"] = json!(commit);
        body["workflow_run"]["pull_requests"] = json!([]);
        body["repository"] = self.described("own/app");
        self.hook("workflow_run", "ci", &body);
    }

    /// Waits until something holds.
    pub fn eventually(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let start = Instant::now();
        while !holds() {
            assert!(start.elapsed() < PATIENCE, "{what}\n{}", self.server.log());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until this many Sessions have been observed at commits.
    pub fn observed(&self, count: u64) {
        self.eventually(&format!("{count} observations"), || {
            let facts = self.server.read_json("/v1/facts");
            let observations = dig(&facts, "tables.session_commit_observations.total");
            observations == Some(&Json::from(count))
        });
    }
}
