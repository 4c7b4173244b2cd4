//! GitHub Actions, and the forges that run its workflows.
//!
//! A run of GitHub Actions is identified by its workflow's number, which a step does not know: only
//! GitHub's webhook and the `workflow_run` event contain it. So a step reports its own job, under
//! an id that no run has. A workflow that `workflow_run` starts reports the completed run exactly
//! as the webhook would, so each is a redelivery of the other.

use super::super::environment::Environment;
use super::field::{RunScope, SystemFields, always, job, joined, rows, run};

pub(super) const SYSTEM: SystemFields = SystemFields {
    known_by: "GITHUB_ACTIONS",
    words: &[
        "success",
        "failure",
        "cancelled",
        "timed_out",
        "skipped",
        "neutral",
        "action_required",
        "stale",
        "startup_failure",
    ],
    rows: rows! {
        job RunId = Joined, "GITHUB_RUN_ID, GITHUB_JOB";
        run RunId = With(|of| of.first(["GITHUB_RUN_ID"])), "GITHUB_RUN_ID, GITHUB_JOB";
        always RunAttempt = First, "GITHUB_RUN_ATTEMPT";
        always Repo = First, "GITHUB_REPOSITORY";
        always RepositoryHost = Server, "GITHUB_SERVER_URL";
        always RepositoryId = First, "GITHUB_REPOSITORY_ID";
        always Commit = First, "GITHUB_SHA";
        always Branch = With(branch), "GITHUB_HEAD_REF, GITHUB_REF_NAME";
        always WorkflowName = First, "GITHUB_WORKFLOW";
        always WorkflowId = Nowhere, "the event workflow_run; a step is not details";
        always WorkflowPath = With(workflow_path), "GITHUB_WORKFLOW_REF";
        always RunUrl = With(run_url), "GITHUB_SERVER_URL, GITHUB_REPOSITORY, GITHUB_RUN_ID";
        always Status = Nowhere, "the context job.status; no variable has it";
        // What differs for a pull request: GITHUB_SHA is a merge commit that GitHub creates, and
        // it is on no branch.
        pull_request Commit = Event, "pull_request.head.sha of GITHUB_EVENT_PATH";
        pull_request Branch = With(head_branch), "GITHUB_HEAD_REF, GITHUB_REF_NAME";
        // What the event says about the completed run, in the words of GitHub's webhook.
        ended_run RunId = Event, "workflow_run.id of GITHUB_EVENT_PATH";
        ended_run RunAttempt = Event, "workflow_run.run_attempt of GITHUB_EVENT_PATH";
        ended_run Commit = Event, "workflow_run.head_sha of GITHUB_EVENT_PATH";
        ended_run Branch = With(ended_branch), "workflow_run.head_branch of GITHUB_EVENT_PATH";
        ended_run WorkflowName = Event, "workflow_run.name of GITHUB_EVENT_PATH";
        ended_run WorkflowId = Event, "workflow_run.workflow_id of GITHUB_EVENT_PATH";
        ended_run WorkflowPath = Event, "workflow_run.path of GITHUB_EVENT_PATH";
        ended_run RunUrl = Event, "workflow_run.html_url of GITHUB_EVENT_PATH";
        ended_run Status = Event, "workflow_run.conclusion of GITHUB_EVENT_PATH";
    },
};

const EVENT: &str = "GITHUB_EVENT_PATH";

fn ended_run(environment: &Environment, _: RunScope) -> bool {
    environment.get("GITHUB_EVENT_NAME") == Some("workflow_run")
}

fn pull_request(environment: &Environment, _: RunScope) -> bool {
    let reference = environment.get("GITHUB_REF").unwrap_or_default();
    environment.get("GITHUB_HEAD_REF").is_some() || reference.starts_with("refs/pull/")
}

fn run_url(environment: &Environment) -> Option<String> {
    let run = joined(environment, ["GITHUB_SERVER_URL", "GITHUB_REPOSITORY"])?;
    Some(format!(
        "{run}/actions/runs/{}",
        environment.get("GITHUB_RUN_ID")?
    ))
}

fn branch(environment: &Environment) -> Option<String> {
    match environment.get("GITHUB_REF_TYPE") {
        Some("tag") => Some(String::new()),
        _ => environment.first(["GITHUB_REF_NAME"]),
    }
}

fn head_branch(environment: &Environment) -> Option<String> {
    let head = environment.first(["GITHUB_HEAD_REF"]);
    head.or_else(|| environment.at("pull_request.head.ref", EVENT))
}

/// The branch is null for a run without one.
fn ended_branch(environment: &Environment) -> Option<String> {
    let at = |path| environment.at(path, EVENT);
    at("workflow_run.head_branch").or_else(|| at("workflow_run.id").map(|_| String::new()))
}

/// Returns the path in `owner/name/path@ref`.
fn workflow_path(environment: &Environment) -> Option<String> {
    path_in(environment.get("GITHUB_WORKFLOW_REF")?)
}

fn path_in(reference: &str) -> Option<String> {
    let (path, _) = reference.split_once('@').unwrap_or((reference, ""));
    let path = path.splitn(3, '/').nth(2)?;
    Some(path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::Field::*;
    use super::super::testing::known;
    use super::super::{RunDetails, System};
    use super::*;

    fn read(environment: &Environment, scope: RunScope) -> RunDetails {
        System::GithubActions.read(environment, scope)
    }

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
            known(&read(&with(&[]), RunScope::Job)),
            [
                (RunId, "1658821493/test"),
                (RunAttempt, "2"),
                (Repo, "Acme/Shop"),
                (RepositoryHost, "github.com"),
                (RepositoryId, "514200317"),
                (Commit, "ffac537e6cbbf934b08745a378932722df287a53"),
                (Branch, "main"),
                (WorkflowName, "CI"),
                (WorkflowPath, ".github/workflows/ci.yml"),
                (
                    RunUrl,
                    "https://github.com/Acme/Shop/actions/runs/1658821493"
                ),
            ]
        );
        let run = read(&with(&[]), RunScope::Run);
        assert_eq!(run.text(RunId), "1658821493");
        assert_eq!(run.of(WorkflowId).value, None, "a step is not details");
    }

    #[test]
    fn a_tag_is_not_a_branch() {
        let environment = with(&[("GITHUB_REF_TYPE", "tag"), ("GITHUB_REF_NAME", "v1")]);
        assert_eq!(read(&environment, RunScope::Job).text(Branch), "");
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
        let without = read(&with(&pull_request), RunScope::Job);
        assert_eq!(without.of(Commit).value, None);
        assert_eq!(without.text(Branch), "fix");
        let event = [("GITHUB_EVENT_PATH", path.to_str().unwrap())];
        let read = read(&with(&[&pull_request[..3], &event].concat()), RunScope::Job);
        assert_eq!(read.text(Commit), head);
        assert_eq!(read.text(Branch), "fix");
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
        for scope in [RunScope::Job, RunScope::Run] {
            assert_eq!(
                known(&read(&environment, scope)),
                [
                    (RunId, "30433642"),
                    (RunAttempt, "1"),
                    (Repo, "Acme/Shop"),
                    (RepositoryHost, "github.com"),
                    (RepositoryId, "514200317"),
                    (Commit, "acb5820ced9479c074f688cc328bf03f341a511d"),
                    (Branch, ""),
                    (WorkflowName, "CI"),
                    (WorkflowId, "159038"),
                    (WorkflowPath, ".github/workflows/ci.yml"),
                    (RunUrl, "https://github.com/acme/shop/actions/runs/30433642"),
                    (Status, "failure"),
                ]
            );
        }
    }

    #[test]
    fn a_workflow_is_named_by_its_path() {
        assert_eq!(
            path_in("o/r/.github/workflows/a.yml@refs/heads/x@y").unwrap(),
            ".github/workflows/a.yml"
        );
        assert_eq!(path_in("o/r"), None);
    }
}
