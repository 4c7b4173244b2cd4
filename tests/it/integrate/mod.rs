//! Configuring the sources of evidence, as a user would: reports of pipelines, snippets, hooks, and
//! the commands in the guide.

mod guide;
mod install;
mod reports;

use std::collections::BTreeMap;
use std::process::Command;

use harness::process::{self, Output};
use harness::programs;
use harness::server::{INGEST_TOKEN, Server};
use svc_model::json::Number;
use tempfile::TempDir;

use crate::cli::{COMMAND_MAX, at};

const SHA: &str = "ffac537e6cbbf934b08745a378932722df287a53";

/// A CI job, which knows only its variables.
struct Job {
    home: TempDir,
    variables: BTreeMap<String, String>,
}

impl Job {
    fn new(variables: &[(&str, &str)]) -> Self {
        let job = Self {
            home: tempfile::tempdir().expect("a folder"),
            variables: BTreeMap::new(),
        };
        job.with(variables)
    }

    /// Returns a job with the same home and more variables.
    fn with(mut self, variables: &[(&str, &str)]) -> Self {
        let variables = variables.iter();
        let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        self.variables.extend(variables);
        self
    }

    fn of(self, server: &Server) -> Self {
        self.with(&[("SVC_URL", &server.base_url()), ("SVC_TOKEN", INGEST_TOKEN)])
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let programs = programs::path(programs::SHELL);
        let folder = programs.parent().expect("a folder of programs");
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", folder.display()))
            .env("HOME", self.home.path())
            .envs(&self.variables)
            .current_dir(self.home.path());
        command
    }

    fn svc(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(programs::path(programs::SHELL));
        process::run(command.args(arguments), b"", COMMAND_MAX).expect("the command ends")
    }

    /// Runs a script as a shell of the job would.
    fn bash(&self, script: &str) -> Output {
        let mut command = self.command("bash");
        command.args(["-eu", "-c", script]);
        process::run(&mut command, b"", COMMAND_MAX).expect("the script ends")
    }
}

/// A system's name on the wire, the variables of one of its jobs, and the arguments of its report.
type Example = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static [&'static str],
);

/// Returns a job of each system. All of them failed.
fn jobs() -> Vec<Example> {
    vec![
        (
            "forge_actions",
            &[
                ("GITHUB_ACTIONS", "true"),
                ("GITHUB_EVENT_NAME", "push"),
                ("GITHUB_JOB", "test"),
                ("GITHUB_REF", "refs/heads/main"),
                ("GITHUB_REF_NAME", "main"),
                ("GITHUB_REF_TYPE", "branch"),
                ("GITHUB_REPOSITORY", "Acme/Shop"),
                ("GITHUB_REPOSITORY_ID", "514200317"),
                ("GITHUB_RUN_ATTEMPT", "1"),
                ("GITHUB_RUN_ID", "1658821493"),
                ("GITHUB_SERVER_URL", "https://github.com"),
                ("GITHUB_SHA", SHA),
                ("GITHUB_WORKFLOW", "CI"),
                (
                    "GITHUB_WORKFLOW_REF",
                    "Acme/Shop/.github/workflows/ci.yml@refs/heads/main",
                ),
            ],
            &["--status", "failure"],
        ),
        (
            "ci_b",
            &[
                ("GITLAB_CI", "true"),
                ("CI_COMMIT_BRANCH", "main"),
                ("CI_COMMIT_SHA", SHA),
                ("CI_CONFIG_PATH", ".gitlab-ci.yml"),
                ("CI_JOB_ID", "9001"),
                ("CI_JOB_NAME", "test"),
                ("CI_JOB_STATUS", "failed"),
                ("CI_JOB_URL", "https://gitlab.example/acme/shop/-/jobs/9001"),
                ("CI_PIPELINE_ID", "500"),
                ("CI_PROJECT_PATH", "acme/shop"),
            ],
            &[],
        ),
        (
            "ci_a",
            &[
                ("JENKINS_URL", "https://jenkins.example/"),
                ("BRANCH_NAME", "main"),
                ("BUILD_NUMBER", "153"),
                (
                    "BUILD_URL",
                    "https://jenkins.example/job/shop/job/main/153/",
                ),
                ("GIT_COMMIT", SHA),
                ("GIT_URL", "git@github.com:acme/shop.git"),
                ("JOB_NAME", "shop/main"),
            ],
            &["--status", "UNSTABLE", "--repository-id", "514200317"],
        ),
        (
            "ci_c",
            &[
                ("CIRCLECI", "true"),
                ("CIRCLE_BRANCH", "main"),
                ("CIRCLE_JOB", "test"),
                ("CIRCLE_PROJECT_REPONAME", "shop"),
                ("CIRCLE_PROJECT_USERNAME", "acme"),
                ("CIRCLE_SHA1", SHA),
                ("CIRCLE_WORKFLOW_ID", "1c6e0a5c"),
                ("CIRCLE_WORKFLOW_JOB_ID", "7a1d93f0"),
            ],
            &["--status", "failed"],
        ),
        (
            "ci_d",
            &[
                ("BUILDKITE", "true"),
                ("BUILDKITE_BRANCH", "main"),
                ("BUILDKITE_BUILD_ID", "4735ba57"),
                ("BUILDKITE_COMMAND_EXIT_STATUS", "2"),
                ("BUILDKITE_COMMIT", SHA),
                ("BUILDKITE_JOB_ID", "e44f9784"),
                ("BUILDKITE_LABEL", ":hammer: Specs"),
                ("BUILDKITE_PIPELINE_ID", "d18439cc"),
                ("BUILDKITE_REPO", "git@github.com:acme/shop.git"),
            ],
            &[],
        ),
    ]
}

fn ci_outcomes(server: &Server) -> u64 {
    let facts = server.read_json("/v1/facts");
    let count = at(&facts, &["tables", "ci_outcomes", "visible"]);
    let count = count.as_number().and_then(Number::as_i64);
    count
        .and_then(|count| count.try_into().ok())
        .expect("a count")
}
