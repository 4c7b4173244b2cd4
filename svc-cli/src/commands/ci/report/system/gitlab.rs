//! GitLab CI.
//!
//! GitLab does not number attempts. Its job ids only grow, so the id of the reporting job serves as
//! the attempt: after a retry, the last report counts.

use svc_model::ingest::CiResult;

use super::super::environment::Environment;
use super::{Found, RunDetails, Scope, Word, joined};

pub(super) const WORDS: &[Word] = &[
    ("success", CiResult::Passed),
    ("failed", CiResult::Failed),
    ("canceled", CiResult::Cancelled),
    ("skipped", CiResult::Skipped),
    ("manual", CiResult::Neutral),
];

pub(super) fn read(environment: &Environment, scope: Scope) -> RunDetails {
    let get = |name| environment.get(name);
    let first = |names| environment.first(names);
    // The pipeline of a merge request has no CI_COMMIT_BRANCH, and the pipeline of a tag has no
    // branch.
    let branch = first(&["CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "CI_COMMIT_BRANCH"])
        .or_else(|| get("CI_COMMIT_TAG").map(|_| String::new()));
    let of_scope = |job: Found, run: Found| match scope {
        Scope::Job => job,
        Scope::Run => run,
    };
    RunDetails {
        run_id: of_scope(
            Found::new(
                joined([get("CI_PIPELINE_ID"), get("CI_JOB_NAME")]),
                "CI_PIPELINE_ID, CI_JOB_NAME",
            ),
            Found::new(first(&["CI_PIPELINE_ID"]), "CI_PIPELINE_ID"),
        ),
        run_attempt: Found::new(first(&["CI_JOB_ID"]), "CI_JOB_ID"),
        repo: Found::new(first(&["CI_PROJECT_PATH"]), "CI_PROJECT_PATH"),
        // In a merged results pipeline, CI_COMMIT_SHA is a merge commit that GitLab creates.
        commit: Found::new(
            first(&["CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", "CI_COMMIT_SHA"]),
            "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA, CI_COMMIT_SHA",
        ),
        branch: Found::new(
            branch,
            "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME, CI_COMMIT_BRANCH, CI_COMMIT_TAG",
        ),
        workflow_name: of_scope(
            Found::new(first(&["CI_JOB_NAME"]), "CI_JOB_NAME"),
            Found::new(first(&["CI_PIPELINE_NAME"]), "CI_PIPELINE_NAME"),
        ),
        workflow_path: Found::new(first(&["CI_CONFIG_PATH"]), "CI_CONFIG_PATH"),
        run_url: of_scope(
            Found::new(first(&["CI_JOB_URL"]), "CI_JOB_URL"),
            Found::new(first(&["CI_PIPELINE_URL"]), "CI_PIPELINE_URL"),
        ),
        status: of_scope(
            Found::new(
                first(&["CI_JOB_STATUS"]),
                "CI_JOB_STATUS, set in after_script",
            ),
            Found::new(
                None,
                "no variable; GitLab tells no job how its pipeline ends",
            ),
        ),
        ..RunDetails::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::known;
    use super::*;

    const JOB: &[(&str, &str)] = &[
        ("GITLAB_CI", "true"),
        ("CI_COMMIT_BRANCH", "main"),
        ("CI_COMMIT_SHA", "1ecfd275763eff1d6b4844ea3168962458c9f27a"),
        ("CI_CONFIG_PATH", ".gitlab-ci.yml"),
        ("CI_JOB_ID", "9001"),
        ("CI_JOB_NAME", "test 1/3"),
        ("CI_JOB_STATUS", "failed"),
        ("CI_JOB_URL", "https://gitlab.example/acme/shop/-/jobs/9001"),
        ("CI_PIPELINE_ID", "500"),
        ("CI_PIPELINE_NAME", "nightly"),
        (
            "CI_PIPELINE_URL",
            "https://gitlab.example/acme/shop/-/pipelines/500",
        ),
        ("CI_PROJECT_PATH", "acme/shop"),
    ];

    fn with(more: &[(&str, &str)]) -> Environment {
        Environment::of(&[JOB, more].concat())
    }

    #[test]
    fn a_job_is_read_from_its_variables() {
        assert_eq!(
            known(&read(&with(&[]), Scope::Job)),
            [
                ("run_id", "500/test 1/3"),
                ("run_attempt", "9001"),
                ("repo", "acme/shop"),
                ("commit", "1ecfd275763eff1d6b4844ea3168962458c9f27a"),
                ("branch", "main"),
                ("workflow_name", "test 1/3"),
                ("workflow_path", ".gitlab-ci.yml"),
                ("run_url", "https://gitlab.example/acme/shop/-/jobs/9001"),
                ("status", "failed"),
            ]
        );
    }

    #[test]
    fn a_last_job_describes_its_pipeline_but_not_the_result() {
        assert_eq!(
            known(&read(&with(&[]), Scope::Run)),
            [
                ("run_id", "500"),
                ("run_attempt", "9001"),
                ("repo", "acme/shop"),
                ("commit", "1ecfd275763eff1d6b4844ea3168962458c9f27a"),
                ("branch", "main"),
                ("workflow_name", "nightly"),
                ("workflow_path", ".gitlab-ci.yml"),
                (
                    "run_url",
                    "https://gitlab.example/acme/shop/-/pipelines/500"
                ),
            ]
        );
    }

    #[test]
    fn a_merge_request_is_reported_at_its_source_and_a_tag_has_no_branch() {
        let source = "b".repeat(40);
        let merge_request = with(&[
            ("CI_COMMIT_BRANCH", ""),
            ("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "fix"),
            ("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", &source),
        ]);
        let details = read(&merge_request, Scope::Job);
        assert_eq!(details.branch.value.unwrap(), "fix");
        assert_eq!(details.commit.value.unwrap(), source);
        let tag = with(&[("CI_COMMIT_BRANCH", ""), ("CI_COMMIT_TAG", "v1")]);
        assert_eq!(read(&tag, Scope::Job).branch.value.unwrap(), "");
    }
}
