//! A cohort in a database, its repositories, and the mirrors that a server creates of them.

use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use harness::git_server::Daemon;
use harness::player::{SIGNATURE_HEADER, signature};
use serde_json::json;
use svc_model::repository::CommitSha;

use crate::cohort::{Cohort, Forge};
use crate::http::{Client, Reply, expect_stored};
use crate::process::Server;
use crate::report::{Report, grouped};
use crate::scenario::{Bench, OPERATOR_TOKEN, Stage, WEBHOOK_SECRET};
use crate::{Backend, Failure};

const ROUTE: &str = "/ingest/forge/push";
const ZEROS: &str = "0000000000000000000000000000000000000000";
/// How long the mirrors may take.
const PATIENCE: Duration = Duration::from_mins(5);

/// A cohort that reports can cover.
pub(super) struct ReportedCohort<'b> {
    pub(super) cohort: Cohort,
    pub(super) stage: Stage<'b>,
    forge: Forge,
}

impl<'b> ReportedCohort<'b> {
    /// Creates the repositories and writes the facts.
    pub(super) fn write(
        bench: &'b Bench,
        backend: Backend,
        cohort: Cohort,
        report: &Report,
    ) -> Result<Self, Failure> {
        let all = cohort.shape.all_pull_requests();
        Self::write_some(bench, backend, cohort, all, report)
    }

    /// Creates the repositories and writes the facts about the first pull requests.
    pub(super) fn write_some(
        bench: &'b Bench,
        backend: Backend,
        cohort: Cohort,
        pull_requests: u64,
        report: &Report,
    ) -> Result<Self, Failure> {
        let mut stage = bench.stage("reports", backend, None)?;
        stage.launch.settings.extend([
            ("SVC_ALLOWED_CLONE_HOSTS", "[\"127.0.0.1\"]".to_owned()),
            ("SVC_MIRROR_SETTLE_SECONDS", "0".to_owned()),
        ]);
        let begin = Instant::now();
        let forge = Forge::create(&cohort, bench.folder("forge")?)?;
        let imported = begin.elapsed();
        let took = cohort.write(&forge, &stage.store.url(), 0..pull_requests)?;
        report.note(&format!(
            "{} calls and {} commits in {} repositories; made in {:.0} s, facts written in {:.0} s",
            grouped(cohort.shape.all_calls() as f64),
            grouped(cohort.shape.all_commits() as f64),
            cohort.shape.repositories,
            imported.as_secs_f64(),
            took.as_secs_f64(),
        ));
        Ok(Self {
            cohort,
            stage,
            forge,
        })
    }

    /// Writes the facts about further pull requests.
    pub(super) fn write_more(&self, numbers: Range<u64>) -> Result<(), Failure> {
        let url = self.stage.store.url();
        self.cohort.write(&self.forge, &url, numbers).map(drop)
    }

    /// Lets a server fetch the mirrors. It receives a push to each repository, and has the mirror
    /// once it has observed the note of the first commit.
    pub(super) fn mirror(&mut self, bench: &Bench, report: &Report) -> Result<(), Failure> {
        let begin = Instant::now();
        let daemon = Daemon::start(self.forge.folder());
        let server = self.stage.start()?;
        let mut client = Client::connect(server.address)?;
        let observed = |client: &mut Client| -> Result<u64, Failure> {
            let facts = client.get("/v1/facts", OPERATOR_TOKEN)?.json()?;
            let total = facts["tables"]["session_commit_observations"]["total"].as_u64();
            total.ok_or_else(|| "no count of observations".into())
        };
        let before = observed(&mut client)?;
        for (repository, merged) in (0..).zip(&self.forge.merged) {
            let last = merged.last().ok_or("no pull request")?;
            let body = json!({
                "ref": "refs/heads/main", "before": ZEROS, "after": last.merge.as_str(),
                "deleted": false, "forced": false,
                "repository": {
                    "id": Cohort::id(repository), "full_name": Cohort::name(repository).as_str(),
                    "clone_url": daemon.url(&Forge::name(repository)),
                },
            })
            .to_string();
            let head = format!(
                "POST {ROUTE} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
                 x-github-event: push\r\n{SIGNATURE_HEADER}: {}\r\ncontent-length: {}\r\n\r\n",
                signature(WEBHOOK_SECRET, body.as_bytes()),
                body.len()
            );
            let reply = client.exchange((head + &body).as_bytes())?;
            expect_stored(reply.status, &reply.body)?;
        }
        let wanted = before + self.cohort.shape.repositories;
        while observed(&mut client)? < wanted {
            if begin.elapsed() > PATIENCE {
                return Err("the mirrors are not there".into());
            }
            thread::sleep(Duration::from_millis(50));
        }
        drop(client);
        server.stop()?;
        report.note(&format!(
            "mirrors fetched in {:.0} s, {}",
            begin.elapsed().as_secs_f64(),
            bench
                .arguments
                .server
                .as_ref()
                .map_or("", |_| "by the given server")
        ));
        Ok(())
    }

    /// Asks for a report and checks that the answer is one.
    pub(super) fn ask(&self, server: &Server, name: &str) -> Result<Reply, Failure> {
        Self::ask_about(server, name, &self.cohort.query())
    }

    /// Asks for a report over a part of the cohort and checks that the answer is one.
    pub(super) fn ask_about(server: &Server, name: &str, query: &str) -> Result<Reply, Failure> {
        let reply = Self::try_ask_about(server, name, query)?;
        if reply.status != 200 {
            return Err(format!("{name}: {}", reply.describe()).into());
        }
        Ok(reply)
    }

    /// Asks for a report.
    pub(super) fn try_ask(&self, server: &Server, name: &str) -> Result<Reply, Failure> {
        Self::try_ask_about(server, name, &self.cohort.query())
    }

    fn try_ask_about(server: &Server, name: &str, query: &str) -> Result<Reply, Failure> {
        let path = format!("/v1/reports/{name}?{query}");
        Client::connect(server.address)?.get(&path, OPERATOR_TOKEN)
    }

    /// Asks for a report several times.
    pub(super) fn several(
        &self,
        server: &Server,
        name: &str,
        times: usize,
    ) -> Result<Vec<Duration>, Failure> {
        (0..times)
            .map(|_| Ok(self.ask(server, name)?.elapsed))
            .collect()
    }

    /// Returns commits of the mirrors.
    pub(super) fn some_commits(&self, count: usize) -> Vec<CommitSha> {
        let all = self.forge.merged.iter().flatten();
        let commits: Vec<&CommitSha> = all.flat_map(|pull_request| &pull_request.commits).collect();
        let step = commits.len().div_ceil(count).max(1);
        commits.into_iter().step_by(step).cloned().collect()
    }

    /// Asks about each of these commits.
    pub(super) fn commits(
        server: &Server,
        commits: &[CommitSha],
    ) -> Result<Vec<Duration>, Failure> {
        let mut client = Client::connect(server.address)?;
        let mut times = Vec::new();
        for commit in commits {
            let reply = client.get(&format!("/query/commit/{commit}"), OPERATOR_TOKEN)?;
            if reply.status != 200 {
                return Err(format!("commit: {}", reply.describe()).into());
            }
            times.push(reply.elapsed);
        }
        Ok(times)
    }
}
