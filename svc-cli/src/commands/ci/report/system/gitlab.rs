//! GitLab CI.
//!
//! GitLab does not number attempts. Its job ids only grow, so the id of the reporting job serves as
//! the attempt: after a retry, the last report counts.

use super::field::{SystemFields, always, job, rows, run};

pub(super) const SYSTEM: SystemFields = SystemFields {
    known_by: "GITLAB_CI",
    words: &["success", "failed", "canceled", "skipped", "manual"],
    rows: rows! {
        job RunId = Joined, "CI_PIPELINE_ID, CI_JOB_NAME";
        run RunId = First, "CI_PIPELINE_ID";
        always RunAttempt = First, "CI_JOB_ID";
        always Repo = First, "CI_PROJECT_PATH";
        // In a merged results pipeline, CI_COMMIT_SHA is a merge commit that GitLab creates.
        always Commit = First, "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA, CI_COMMIT_SHA";
        // The pipeline of a merge request has no CI_COMMIT_BRANCH, and that of a tag has no branch.
        always Branch = BranchOrTag, "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME, CI_COMMIT_BRANCH, CI_COMMIT_TAG";
        job WorkflowName = First, "CI_JOB_NAME";
        run WorkflowName = First, "CI_PIPELINE_NAME";
        always WorkflowPath = First, "CI_CONFIG_PATH";
        job RunUrl = First, "CI_JOB_URL";
        run RunUrl = First, "CI_PIPELINE_URL";
        job Status = First, "CI_JOB_STATUS, set in after_script";
        run Status = Nowhere, "no variable; GitLab tells no job how its pipeline ends";
    },
};

#[cfg(test)]
mod tests {
    use super::super::super::environment::Environment;
    use super::super::Field::*;
    use super::super::testing::known;
    use super::super::{RunDetails, RunScope, System};

    fn read(environment: &Environment, scope: RunScope) -> RunDetails {
        System::GitlabCi.read(environment, scope)
    }

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
            known(&read(&with(&[]), RunScope::Job)),
            [
                (RunId, "500/test 1/3"),
                (RunAttempt, "9001"),
                (Repo, "acme/shop"),
                (Commit, "1ecfd275763eff1d6b4844ea3168962458c9f27a"),
                (Branch, "main"),
                (WorkflowName, "test 1/3"),
                (WorkflowPath, ".gitlab-ci.yml"),
                (RunUrl, "https://gitlab.example/acme/shop/-/jobs/9001"),
                (Status, "failed"),
            ]
        );
    }

    #[test]
    fn a_last_job_describes_its_pipeline_but_not_the_result() {
        assert_eq!(
            known(&read(&with(&[]), RunScope::Run)),
            [
                (RunId, "500"),
                (RunAttempt, "9001"),
                (Repo, "acme/shop"),
                (Commit, "1ecfd275763eff1d6b4844ea3168962458c9f27a"),
                (Branch, "main"),
                (WorkflowName, "nightly"),
                (WorkflowPath, ".gitlab-ci.yml"),
                (RunUrl, "https://gitlab.example/acme/shop/-/pipelines/500"),
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
        let details = read(&merge_request, RunScope::Job);
        assert_eq!(details.text(Branch), "fix");
        assert_eq!(details.text(Commit), source);
        let tag = with(&[("CI_COMMIT_BRANCH", ""), ("CI_COMMIT_TAG", "v1")]);
        assert_eq!(read(&tag, RunScope::Job).text(Branch), "");
    }
}
