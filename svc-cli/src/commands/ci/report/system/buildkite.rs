//! Buildkite.

use svc_model::ingest::CiResult;

use super::super::environment::Environment;
use super::super::repository::CloneUrl;
use super::{Found, RunDetails, Scope, Word};

pub(super) const WORDS: &[Word] = &[
    ("passed", CiResult::Passed),
    ("failed", CiResult::Failed),
    ("canceled", CiResult::Cancelled),
    ("skipped", CiResult::Skipped),
    ("not_run", CiResult::Skipped),
];

pub(super) fn read(environment: &Environment, scope: Scope) -> RunDetails {
    let get = |name| environment.get(name);
    let first = |names| environment.first(names);
    let clone_url = get("BUILDKITE_REPO").and_then(CloneUrl::parse);
    let (host, path) = clone_url.map_or((None, None), |url| (Some(url.host), Some(url.path)));
    // In the build of a tag, the branch is the tag too.
    let branch = match get("BUILDKITE_TAG") {
        Some(_) => Some(String::new()),
        None => first(&["BUILDKITE_BRANCH"]),
    };
    let (run_id, workflow_name, status) = match scope {
        Scope::Job => (
            Found::new(first(&["BUILDKITE_JOB_ID"]), "BUILDKITE_JOB_ID"),
            Found::new(
                first(&["BUILDKITE_LABEL", "BUILDKITE_STEP_KEY"]),
                "BUILDKITE_LABEL, BUILDKITE_STEP_KEY",
            ),
            Found::new(
                status(environment),
                "BUILDKITE_COMMAND_EXIT_STATUS, set in a hook that runs after the command",
            ),
        ),
        Scope::Run => (
            Found::new(first(&["BUILDKITE_BUILD_ID"]), "BUILDKITE_BUILD_ID"),
            Found::new(
                first(&["BUILDKITE_PIPELINE_SLUG"]),
                "BUILDKITE_PIPELINE_SLUG",
            ),
            Found::new(
                None,
                "no variable; Buildkite tells no job how its build ends",
            ),
        ),
    };
    RunDetails {
        run_id,
        repo: Found::new(path, "BUILDKITE_REPO"),
        repository_host: Found::new(host, "BUILDKITE_REPO"),
        commit: Found::new(first(&["BUILDKITE_COMMIT"]), "BUILDKITE_COMMIT"),
        branch: Found::new(branch, "BUILDKITE_BRANCH, BUILDKITE_TAG"),
        workflow_name,
        workflow_id: Found::new(first(&["BUILDKITE_PIPELINE_ID"]), "BUILDKITE_PIPELINE_ID"),
        run_url: Found::new(first(&["BUILDKITE_BUILD_URL"]), "BUILDKITE_BUILD_URL"),
        status,
        ..RunDetails::default()
    }
}

/// Returns the word for the exit status of the command.
fn status(environment: &Environment) -> Option<String> {
    if environment.get("BUILDKITE_JOB_CANCELLED") == Some("true") {
        return Some("canceled".to_owned());
    }
    let word = match environment.get("BUILDKITE_COMMAND_EXIT_STATUS")? {
        "0" => "passed",
        _ => "failed",
    };
    Some(word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::testing::known;
    use super::*;

    const JOB: &[(&str, &str)] = &[
        ("BUILDKITE", "true"),
        ("BUILDKITE_BRANCH", "main"),
        ("BUILDKITE_BUILD_ID", "4735ba57"),
        (
            "BUILDKITE_BUILD_URL",
            "https://buildkite.com/acme/shop/builds/1514",
        ),
        ("BUILDKITE_COMMAND_EXIT_STATUS", "2"),
        (
            "BUILDKITE_COMMIT",
            "83a20ec058e2fb00e7fa4558c4c6e81e2dcf253d",
        ),
        ("BUILDKITE_JOB_ID", "e44f9784"),
        ("BUILDKITE_LABEL", ":hammer: Specs"),
        ("BUILDKITE_PIPELINE_ID", "d18439cc"),
        ("BUILDKITE_PIPELINE_SLUG", "shop"),
        ("BUILDKITE_REPO", "git@github.com:acme/shop.git"),
    ];

    #[test]
    fn a_job_is_read_from_its_variables() {
        assert_eq!(
            known(&read(&Environment::of(JOB), Scope::Job)),
            [
                ("run_id", "e44f9784"),
                ("repo", "acme/shop"),
                ("repository_host", "github.com"),
                ("commit", "83a20ec058e2fb00e7fa4558c4c6e81e2dcf253d"),
                ("branch", "main"),
                ("workflow_name", ":hammer: Specs"),
                ("workflow_id", "d18439cc"),
                ("run_url", "https://buildkite.com/acme/shop/builds/1514"),
                ("status", "failed"),
            ]
        );
        let run = read(&Environment::of(JOB), Scope::Run);
        assert_eq!(run.run_id.value.unwrap(), "4735ba57");
        assert_eq!(run.workflow_name.value.unwrap(), "shop");
        assert_eq!(run.status.value, None);
    }

    #[test]
    fn the_exit_status_is_a_word_and_a_tag_is_not_a_branch() {
        for (more, word) in [
            (("BUILDKITE_COMMAND_EXIT_STATUS", "0"), "passed"),
            (("BUILDKITE_COMMAND_EXIT_STATUS", "-1"), "failed"),
            (("BUILDKITE_JOB_CANCELLED", "true"), "canceled"),
        ] {
            let environment = Environment::of(&[JOB, &[more]].concat());
            assert_eq!(read(&environment, Scope::Job).status.value.unwrap(), word);
        }
        let tag = Environment::of(&[JOB, &[("BUILDKITE_TAG", "v1")]].concat());
        assert_eq!(read(&tag, Scope::Job).branch.value.unwrap(), "");
    }
}
