//! The time from a push to the Sessions that the notes on its commits name, for a real repository
//! that git's own daemon serves.
//!
//! A refresh reads at most 1,000 notes, so a repository with more of them takes several refreshes,
//! one after the other.

use std::thread;
use std::time::{Duration, Instant};

use harness::git::Repository;
use harness::git_server::Daemon;
use harness::player::{SIGNATURE_HEADER, signature};
use serde_json::json;

use crate::http::{Client, expect_stored};
use crate::report::{Goal, Report, median};
use crate::scenario::{Bench, OPERATOR_TOKEN, WEBHOOK_SECRET};
use crate::{Backend, Failure};

/// The commits of the repository. Each has a note with a different Session.
const COMMITS: usize = 5_000;
/// The number of further pushes, each of one more such commit.
const PUSHES: usize = 9;
const ROUTE: &str = "/ingest/forge/push";
const ZEROS: &str = "0000000000000000000000000000000000000000";
/// The pause between two checks of the service's progress.
const PAUSE: Duration = Duration::from_millis(2);
const PATIENCE: Duration = Duration::from_mins(2);

/// Pushes the whole repository at once, and then commit by commit.
pub(crate) fn measure(bench: &Bench, backend: Backend, report: &mut Report) -> Result<(), Failure> {
    report.begin("notes", backend.name());
    let mut whole = Vec::new();
    let mut single = Vec::new();
    for _ in 0..bench.arguments.repetitions {
        let repository = Repository::create();
        let commits = repository.add_stamped(COMMITS, "session");
        let daemon = Daemon::start(repository.folder());
        let mut stage = bench.stage("notes", backend, None)?;
        let hosts = "[\"127.0.0.1\"]".to_owned();
        stage.launch.settings.extend([
            ("SVC_ALLOWED_CLONE_HOSTS", hosts),
            // Only the reading is measured.
            ("SVC_MIRROR_SETTLE_SECONDS", "0".to_owned()),
        ]);
        let server = stage.start()?;
        let mut client = Client::connect(server.address)?;
        let url = daemon.url("forge.git");
        let mut head = commits.last().ok_or("no commit")?.clone();
        whole.push(observed(&mut client, &url, ZEROS, &head, COMMITS)?);
        for number in 1..=PUSHES {
            let next = repository.commit("one more");
            repository.stamp(&next, &[&format!("later-{number}")]);
            repository.push();
            single.push(observed(&mut client, &url, &head, &next, COMMITS + number)?);
            head = next;
        }
        drop(client);
        server.stop()?;
    }
    report.milliseconds(
        "5,000 noted commits, push to last observation",
        median(whole),
        Goal::AtMost(2_000.0),
    );
    report.milliseconds(
        "one more noted commit, push to observation",
        median(single),
        Goal::None,
    );
    Ok(())
}

/// Delivers a push and returns how long it takes until there are this many observations.
fn observed(
    client: &mut Client,
    url: &str,
    before: &str,
    after: &str,
    expected: usize,
) -> Result<Duration, Failure> {
    let push = json!({
        "ref": "refs/heads/main", "before": before, "after": after, "deleted": false, "forced": false,
        "repository": {"id": 7, "full_name": "own/repo", "clone_url": url},
    });
    let body = push.to_string();
    let head = format!(
        "POST {ROUTE} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nx-github-event: push\r\n\
         {SIGNATURE_HEADER}: {}\r\ncontent-length: {}\r\n\r\n",
        signature(WEBHOOK_SECRET, body.as_bytes()),
        body.len()
    );
    let begin = Instant::now();
    let reply = client.exchange((head + &body).as_bytes())?;
    expect_stored(reply.status, &reply.body)?;
    loop {
        let facts = client.get("/v1/facts", OPERATOR_TOKEN)?.json()?;
        let total = facts["tables"]["session_commit_observations"]["total"].as_u64();
        if total == Some(expected as u64) {
            return Ok(begin.elapsed());
        }
        if begin.elapsed() > PATIENCE {
            return Err(format!("{total:?} of {expected} observations after {PATIENCE:?}").into());
        }
        thread::sleep(PAUSE);
    }
}
