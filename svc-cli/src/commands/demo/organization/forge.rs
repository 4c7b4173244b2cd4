//! What the forge and its CI report about the repository.

use svc_engine::capture::notes::NotesRef;
use svc_model::ingest::{ForgeDelivery, VendorCIRequest};
use svc_model::json::{self, Json, Object};
use svc_model::repository::CommitSha;
use svc_model::time::Instant;

use super::change::{CHANGES, Change, Oddity};
use super::repository::{ChangeCommits, Commits, Refs};
use super::{REPOSITORY, Timeline, pr_number};
use crate::error::CommandError;

/// The forge's number of the repository.
const NUMBER: u32 = 4_242;
const ZEROS: &str = "0000000000000000000000000000000000000000";
/// The number of the first run.
const FIRST_RUN: usize = 70_001;
const WORKFLOWS: [&str; 2] = ["tests", "lint"];

/// A delivery of the forge, and the refs that moved before it.
#[derive(Debug)]
pub(in super::super) struct Webhook {
    pub(in super::super) delivery: ForgeDelivery,
    pub(in super::super) pushed: Refs,
}

struct Forge {
    webhooks: Vec<(Instant, Webhook)>,
    repository: String,
    /// When the next delivery is sent, and the refs that move before.
    at: Instant,
    pushed: Refs,
}

impl Forge {
    fn send(&mut self, event: &str, payload: &str) -> Result<(), CommandError> {
        let payload = Json::parse(payload.as_bytes())
            .ok()
            .and_then(Json::into_object);
        let payload =
            payload.ok_or_else(|| CommandError::refused("demo", "a webhook is no object"))?;
        // A delivery has the same number each time, and so the same delivery id.
        let delivery_id = Some(format!("svc-demo-{}", self.webhooks.len()));
        let delivery = ForgeDelivery {
            event: event.to_owned(),
            delivery_id,
            payload,
        };
        let pushed = std::mem::take(&mut self.pushed);
        self.webhooks.push((self.at, Webhook { delivery, pushed }));
        Ok(())
    }

    fn push(&mut self, branch: &str, before: &str, after: &CommitSha) -> Result<(), CommandError> {
        let repository = &self.repository;
        self.pushed
            .push((format!("refs/heads/{branch}"), after.clone()));
        let payload = format!(
            r#"{{"ref": "refs/heads/{branch}", "before": "{before}", "after": "{after}",
                "deleted": false, "forced": false, "repository": {repository}}}"#
        );
        self.send("push", &payload)
    }

    fn pull_request(
        &mut self,
        action: &str,
        number: usize,
        (branch, head, base): (&str, &CommitSha, &CommitSha),
        more: &str,
    ) -> Result<(), CommandError> {
        let repository = &self.repository;
        let number = pr_number(number);
        let payload = format!(
            r#"{{"action": "{action}", "pull_request": {{"number": {number}{more},
                "head": {{"ref": "{branch}", "sha": "{head}", "repo": {repository}}},
                "base": {{"ref": "main", "sha": "{base}"}}}}, "repository": {repository}}}"#
        );
        self.send("pull_request", &payload)
    }
}

/// Returns what the forge sends and when, in the order of events.
pub(super) fn webhooks(
    timeline: Timeline,
    commits: &Commits,
    clone_url: &str,
) -> Result<Vec<(Instant, Webhook)>, CommandError> {
    let described = Object::from_iter([
        ("id", Json::from(NUMBER)),
        ("full_name", Json::from(REPOSITORY)),
        ("clone_url", Json::from(clone_url)),
    ]);
    let described = Json::Object(described).to_canonical();
    let mut forge = Forge {
        webhooks: Vec::new(),
        repository: String::from_utf8_lossy(&described).into_owned(),
        at: timeline.begin(),
        pushed: Vec::new(),
    };
    forge.push("main", ZEROS, &commits.base)?;
    let mut main = commits.base.clone();
    for (number, change, made) in made(commits) {
        let branch = change.branch();
        let at = |minutes| timeline.change(number, minutes);
        // Each commit is pushed when it is made, and the notes with the second one.
        forge.at = at(15);
        forge.push(&branch, ZEROS, &made.code)?;
        forge.at = at(28);
        let notes = made.notes.iter();
        let notes = notes.map(|notes| (NotesRef::Svc.as_str().to_owned(), notes.clone()));
        forge.pushed.extend(notes);
        forge.push(&branch, made.code.as_str(), &made.tests)?;
        forge.at = at(29);
        let base = made
            .merge
            .as_ref()
            .map_or(&main, |(before, _)| before)
            .clone();
        let ends = (branch.as_str(), &made.tests, &base);
        forge.pull_request("opened", number, ends, "")?;
        let Some((before, after)) = &made.merge else {
            continue;
        };
        forge.at = at(39);
        if *before != main {
            forge.push("main", main.as_str(), before)?;
        }
        forge.at = at(40);
        forge.push("main", before.as_str(), after)?;
        let merged_at = at(40);
        let merged = format!(
            r#", "merged": true, "merged_at": "{merged_at}", "merge_commit_sha": "{after}""#
        );
        forge.pull_request("closed", number, ends, &merged)?;
        main = after.clone();
    }
    Ok(forge.webhooks)
}

fn made(commits: &Commits) -> impl Iterator<Item = (usize, &'static Change, &ChangeCommits)> {
    let changes = CHANGES.iter().zip(&commits.changes).enumerate();
    changes.filter_map(|(number, (change, made))| Some((number, change, made.as_ref()?)))
}

/// Returns the CI outcomes for the head of each pull request and for each merge, and when they are
/// reported.
pub(super) fn outcomes(
    timeline: Timeline,
    commits: &Commits,
) -> Result<Vec<(Instant, VendorCIRequest)>, CommandError> {
    let mut outcomes = Vec::new();
    let mut run = FIRST_RUN;
    for (number, change, made) in made(commits) {
        let at = |minutes| timeline.change(number, minutes);
        let branch = change.branch();
        for workflow in WORKFLOWS {
            let of = (branch.as_str(), &made.code);
            outcomes.push((at(18), outcome(run, 1, workflow, of, "passed")?));
            run += 1;
            let mut of_head = |attempt, result| -> Result<(), CommandError> {
                let of = (branch.as_str(), &made.tests);
                let outcome = outcome(run, attempt, workflow, of, result)?;
                outcomes.push((at(30 + 3 * i64::from(attempt)), outcome));
                Ok(())
            };
            match (workflow, change.oddity) {
                ("tests", Oddity::Flaky) => {
                    of_head(1, "failed")?;
                    of_head(2, "passed")?;
                }
                ("tests", Oddity::Broken) => of_head(1, "failed")?,
                _ => of_head(1, "passed")?,
            }
            run += 1;
        }
        if let Some((_, after)) = &made.merge {
            let of = ("main", after);
            outcomes.push((at(43), outcome(run, 1, "tests", of, "passed")?));
            run += 1;
        }
    }
    Ok(outcomes)
}

fn outcome(
    run: usize,
    attempt: u32,
    workflow: &str,
    (branch, commit): (&str, &CommitSha),
    result: &str,
) -> Result<VendorCIRequest, CommandError> {
    let document = format!(
        r#"{{"provider": "forge_actions", "run_id": "{run}", "run_attempt": {attempt},
            "repo": "{REPOSITORY}", "repository_provider": "github",
            "repository_host": "github.com", "repository_id": "{NUMBER}",
            "commit_sha": "{commit}", "branch": "{branch}", "workflow_name": "{workflow}",
            "workflow_path": ".github/workflows/{workflow}.yml", "result": "{result}",
            "run_url": "https://github.com/{REPOSITORY}/actions/runs/{run}"}}"#
    );
    json::from_slice(document.as_bytes())
        .map_err(|error| CommandError::refused("demo", format!("an outcome of CI: {error}")))
}
