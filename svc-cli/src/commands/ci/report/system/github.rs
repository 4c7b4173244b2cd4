//! GitHub Actions, and the forges that run its workflows.
//!
//! A run of GitHub Actions is identified by its workflow's number, which a step does not know: only
//! GitHub's webhook and the `workflow_run` event contain it. So a step reports its own job, under
//! an id that no run has. A workflow that `workflow_run` starts reports the completed run exactly
//! as the webhook would, so each is a redelivery of the other.

use svc_model::ingest::CiResult;
use svc_model::json::Object;

use super::super::environment::{Environment, text_at};
use super::super::repository;
use super::{Found, RunDetails, Scope, Word, joined};

pub(super) const WORDS: &[Word] = &[
    ("success", CiResult::Passed),
    ("failure", CiResult::Failed),
    ("cancelled", CiResult::Cancelled),
    ("timed_out", CiResult::TimedOut),
    ("skipped", CiResult::Skipped),
    ("neutral", CiResult::Neutral),
    ("action_required", CiResult::Unknown),
    ("stale", CiResult::Unknown),
    ("startup_failure", CiResult::Unknown),
];

const EVENT: &str = "GITHUB_EVENT_PATH";

pub(super) fn read(environment: &Environment, scope: Scope) -> RunDetails {
    let event = environment.event(EVENT).unwrap_or_default();
    if environment.get("GITHUB_EVENT_NAME") == Some("workflow_run") {
        return ended_run(environment, &event);
    }
    let get = |name| environment.get(name);
    let run_id = match scope {
        Scope::Job => joined([get("GITHUB_RUN_ID"), get("GITHUB_JOB")]),
        Scope::Run => environment.first(&["GITHUB_RUN_ID"]),
    };
    let run_url = joined([
        get("GITHUB_SERVER_URL"),
        get("GITHUB_REPOSITORY"),
        Some("actions/runs"),
        get("GITHUB_RUN_ID"),
    ]);
    RunDetails {
        run_id: Found::new(run_id, "GITHUB_RUN_ID, GITHUB_JOB"),
        run_attempt: variable(environment, "GITHUB_RUN_ATTEMPT"),
        commit: commit(environment, &event),
        branch: branch(environment, &event),
        workflow_name: variable(environment, "GITHUB_WORKFLOW"),
        workflow_id: Found::new(None, "the event workflow_run; a step is not details"),
        workflow_path: Found::new(
            get("GITHUB_WORKFLOW_REF").and_then(workflow_path),
            "GITHUB_WORKFLOW_REF",
        ),
        run_url: Found::new(
            run_url,
            "GITHUB_SERVER_URL, GITHUB_REPOSITORY, GITHUB_RUN_ID",
        ),
        status: Found::new(None, "the context job.status; no variable has it"),
        ..repository(environment)
    }
}

/// Returns what the event says about the completed run, in the words of GitHub's webhook.
fn ended_run(environment: &Environment, event: &Object) -> RunDetails {
    let at = |member| text_at(event, &["workflow_run", member]);
    let found = |member, looked_at| Found::new(at(member), looked_at);
    RunDetails {
        run_id: found("id", "workflow_run.id of GITHUB_EVENT_PATH"),
        run_attempt: found(
            "run_attempt",
            "workflow_run.run_attempt of GITHUB_EVENT_PATH",
        ),
        commit: found("head_sha", "workflow_run.head_sha of GITHUB_EVENT_PATH"),
        branch: Found::new(
            // It is null for a run without a branch.
            at("head_branch").or_else(|| at("id").map(|_| String::new())),
            "workflow_run.head_branch of GITHUB_EVENT_PATH",
        ),
        workflow_name: found("name", "workflow_run.name of GITHUB_EVENT_PATH"),
        workflow_id: found(
            "workflow_id",
            "workflow_run.workflow_id of GITHUB_EVENT_PATH",
        ),
        workflow_path: found("path", "workflow_run.path of GITHUB_EVENT_PATH"),
        run_url: found("html_url", "workflow_run.html_url of GITHUB_EVENT_PATH"),
        status: found("conclusion", "workflow_run.conclusion of GITHUB_EVENT_PATH"),
        ..repository(environment)
    }
}

fn repository(environment: &Environment) -> RunDetails {
    let host = environment
        .get("GITHUB_SERVER_URL")
        .and_then(repository::host);
    RunDetails {
        repo: variable(environment, "GITHUB_REPOSITORY"),
        repository_host: Found::new(host, "GITHUB_SERVER_URL"),
        repository_id: variable(environment, "GITHUB_REPOSITORY_ID"),
        ..RunDetails::default()
    }
}

fn variable(environment: &Environment, name: &'static str) -> Found {
    Found::new(environment.first(&[name]), name)
}

/// Returns the commit that was pushed. For a pull request, `GITHUB_SHA` is a merge commit that
/// GitHub creates and that is on no branch.
fn commit(environment: &Environment, event: &Object) -> Found {
    if of_pull_request(environment) {
        let head = text_at(event, &["pull_request", "head", "sha"]);
        return Found::new(head, "pull_request.head.sha of GITHUB_EVENT_PATH");
    }
    variable(environment, "GITHUB_SHA")
}

fn branch(environment: &Environment, event: &Object) -> Found {
    let looked_at = "GITHUB_HEAD_REF, GITHUB_REF_NAME";
    let branch = if of_pull_request(environment) {
        let head = environment.first(&["GITHUB_HEAD_REF"]);
        head.or_else(|| text_at(event, &["pull_request", "head", "ref"]))
    } else if environment.get("GITHUB_REF_TYPE") == Some("tag") {
        Some(String::new())
    } else {
        environment.first(&["GITHUB_REF_NAME"])
    };
    Found::new(branch, looked_at)
}

fn of_pull_request(environment: &Environment) -> bool {
    let reference = environment.get("GITHUB_REF").unwrap_or_default();
    environment.get("GITHUB_HEAD_REF").is_some() || reference.starts_with("refs/pull/")
}

/// Returns the path in `owner/name/path@ref`.
fn workflow_path(reference: &str) -> Option<String> {
    let (path, _) = reference.split_once('@').unwrap_or((reference, ""));
    let path = path.splitn(3, '/').nth(2)?;
    Some(path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::testing::known;
    use super::*;

    const STEP: &[(&str, &str)] = &[
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_EVENT_NAME", "push"),
        ("GITHUB_JOB", "test"),
        ("GITHUB_REF", "refs/heads/main"),
        ("GITHUB_REF_NAME", "main"),
        ("GITHUB_REF_TYPE", "branch"),
        ("GITHUB_REPOSITORY", "Acme/Shop"),
        ("GITHUB_REPOSITORY_ID", "514200317"),
        ("GITHUB_RUN_ATTEMPT", "2"),
        ("GITHUB_RUN_ID", "1658821493"),
        ("GITHUB_SERVER_URL", "https://github.com"),
        ("GITHUB_SHA", "ffac537e6cbbf934b08745a378932722df287a53"),
        ("GITHUB_WORKFLOW", "CI"),
        (
            "GITHUB_WORKFLOW_REF",
            "Acme/Shop/.github/workflows/ci.yml@refs/heads/main",
        ),
    ];

    fn with(more: &[(&str, &str)]) -> Environment {
        Environment::of(&[STEP, more].concat())
    }

    #[test]
    fn a_job_is_read_from_the_variables_of_a_step() {
        assert_eq!(
            known(&read(&with(&[]), Scope::Job)),
            [
                ("run_id", "1658821493/test"),
                ("run_attempt", "2"),
                ("repo", "Acme/Shop"),
                ("repository_host", "github.com"),
                ("repository_id", "514200317"),
                ("commit", "ffac537e6cbbf934b08745a378932722df287a53"),
                ("branch", "main"),
                ("workflow_name", "CI"),
                ("workflow_path", ".github/workflows/ci.yml"),
                (
                    "run_url",
                    "https://github.com/Acme/Shop/actions/runs/1658821493"
                ),
            ]
        );
        let run = read(&with(&[]), Scope::Run);
        assert_eq!(run.run_id.value.unwrap(), "1658821493");
        assert_eq!(run.workflow_id.value, None, "a step is not details");
    }

    #[test]
    fn a_tag_is_not_a_branch() {
        let environment = with(&[("GITHUB_REF_TYPE", "tag"), ("GITHUB_REF_NAME", "v1")]);
        assert_eq!(read(&environment, Scope::Job).branch.value.unwrap(), "");
    }

    #[test]
    fn a_pull_request_is_reported_at_its_head_and_never_at_the_merge_of_github() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("event.json");
        let head = "a".repeat(40);
        let event = format!(r#"{{"pull_request":{{"head":{{"sha":"{head}","ref":"fix"}}}}}}"#);
        fs::write(&path, event).unwrap();
        let pull_request = [
            ("GITHUB_EVENT_NAME", "pull_request"),
            ("GITHUB_REF", "refs/pull/7/merge"),
            ("GITHUB_REF_NAME", "7/merge"),
            ("GITHUB_HEAD_REF", "fix"),
        ];
        let without = read(&with(&pull_request), Scope::Job);
        assert_eq!(without.commit.value, None);
        assert_eq!(without.branch.value.unwrap(), "fix");
        let event = [("GITHUB_EVENT_PATH", path.to_str().unwrap())];
        let read = read(&with(&[&pull_request[..3], &event].concat()), Scope::Job);
        assert_eq!(read.commit.value.unwrap(), head);
        assert_eq!(read.branch.value.unwrap(), "fix");
    }

    #[test]
    fn a_workflow_run_event_describes_the_finished_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("event.json");
        fs::write(
            &path,
            r#"{"action":"completed","workflow_run":{"id":30433642,"run_attempt":1,"name":"CI",
                "head_branch":null,"head_sha":"acb5820ced9479c074f688cc328bf03f341a511d",
                "conclusion":"failure","workflow_id":159038,"path":".github/workflows/ci.yml",
                "html_url":"https://github.com/acme/shop/actions/runs/30433642"}}"#,
        )
        .unwrap();
        let environment = with(&[
            ("GITHUB_EVENT_NAME", "workflow_run"),
            ("GITHUB_EVENT_PATH", path.to_str().unwrap()),
            ("GITHUB_WORKFLOW", "Report"),
        ]);
        for scope in [Scope::Job, Scope::Run] {
            assert_eq!(
                known(&read(&environment, scope)),
                [
                    ("run_id", "30433642"),
                    ("run_attempt", "1"),
                    ("repo", "Acme/Shop"),
                    ("repository_host", "github.com"),
                    ("repository_id", "514200317"),
                    ("commit", "acb5820ced9479c074f688cc328bf03f341a511d"),
                    ("branch", ""),
                    ("workflow_name", "CI"),
                    ("workflow_id", "159038"),
                    ("workflow_path", ".github/workflows/ci.yml"),
                    (
                        "run_url",
                        "https://github.com/acme/shop/actions/runs/30433642"
                    ),
                    ("status", "failure"),
                ]
            );
        }
    }

    #[test]
    fn a_workflow_is_named_by_its_path() {
        assert_eq!(
            workflow_path("o/r/.github/workflows/a.yml@refs/heads/x@y").unwrap(),
            ".github/workflows/a.yml"
        );
        assert_eq!(workflow_path("o/r"), None);
    }
}
