//! CircleCI.

use super::super::environment::Environment;
use super::super::repository::RepositoryUrl;
use super::field::{SystemFields, always, job, joined, rows, run};

pub(super) const SYSTEM: SystemFields = SystemFields {
    known_by: "CIRCLECI",
    words: &["success", "failed", "error", "canceled", "unauthorized"],
    rows: rows! {
        job RunId = With(job_id), "CIRCLE_WORKFLOW_JOB_ID";
        run RunId = First, "CIRCLE_WORKFLOW_ID";
        always Repo = With(repo), "CIRCLE_PROJECT_USERNAME, CIRCLE_PROJECT_REPONAME, CIRCLE_REPOSITORY_URL";
        always RepositoryHost = Host, "CIRCLE_REPOSITORY_URL";
        always Commit = First, "CIRCLE_SHA1";
        always Branch = BranchOrTag, "CIRCLE_BRANCH, CIRCLE_TAG";
        job WorkflowName = First, "CIRCLE_JOB";
        run WorkflowName = Nowhere, "no variable; CircleCI tells no job its workflow's name";
        always RunUrl = First, "CIRCLE_BUILD_URL";
        always Status = Nowhere, "no variable; a step runs with when: on_fail or on_success";
    },
};

/// Returns the id of the job. Parallel executions of a job share its id and differ in their index.
fn job_id(environment: &Environment) -> Option<String> {
    match environment.get("CIRCLE_NODE_TOTAL") {
        None | Some("1") => joined(environment, ["CIRCLE_WORKFLOW_JOB_ID"]),
        Some(_) => joined(environment, ["CIRCLE_WORKFLOW_JOB_ID", "CIRCLE_NODE_INDEX"]),
    }
}

fn repo(environment: &Environment) -> Option<String> {
    let named = joined(
        environment,
        ["CIRCLE_PROJECT_USERNAME", "CIRCLE_PROJECT_REPONAME"],
    );
    let url = environment.get("CIRCLE_REPOSITORY_URL");
    named.or_else(|| Some(RepositoryUrl::parse(url?)?.path))
}

#[cfg(test)]
mod tests {
    use super::super::Field::*;
    use super::super::testing::known;
    use super::super::{RunDetails, RunScope, System};
    use super::*;

    fn read(environment: &Environment, scope: RunScope) -> RunDetails {
        System::CircleCi.read(environment, scope)
    }

    const JOB: &[(&str, &str)] = &[
        ("CIRCLECI", "true"),
        ("CIRCLE_BRANCH", "main"),
        ("CIRCLE_BUILD_URL", "https://circleci.com/gh/acme/shop/33"),
        ("CIRCLE_JOB", "test"),
        ("CIRCLE_NODE_INDEX", "0"),
        ("CIRCLE_NODE_TOTAL", "1"),
        ("CIRCLE_PROJECT_REPONAME", "shop"),
        ("CIRCLE_PROJECT_USERNAME", "acme"),
        ("CIRCLE_REPOSITORY_URL", "git@github.com:acme/shop.git"),
        ("CIRCLE_SHA1", "6ab1fb2ac13ef8e8b3cf5a4a5f3d0b2c1e9a7f44"),
        ("CIRCLE_WORKFLOW_ID", "1c6e0a5c"),
        ("CIRCLE_WORKFLOW_JOB_ID", "7a1d93f0"),
    ];

    #[test]
    fn a_job_and_its_workflow_are_read_from_its_variables() {
        let read = |scope| read(&Environment::of(JOB), scope);
        assert_eq!(
            known(&read(RunScope::Job)),
            [
                (RunId, "7a1d93f0"),
                (Repo, "acme/shop"),
                (RepositoryHost, "github.com"),
                (Commit, "6ab1fb2ac13ef8e8b3cf5a4a5f3d0b2c1e9a7f44"),
                (Branch, "main"),
                (WorkflowName, "test"),
                (RunUrl, "https://circleci.com/gh/acme/shop/33"),
            ]
        );
        let run = read(RunScope::Run);
        assert_eq!(run.text(RunId), "1c6e0a5c");
        assert_eq!(run.of(WorkflowName).value, None);
    }

    #[test]
    fn parallel_executions_are_separate_runs() {
        let more = [("CIRCLE_NODE_TOTAL", "4"), ("CIRCLE_NODE_INDEX", "3")];
        let read = read(&Environment::of(&[JOB, &more].concat()), RunScope::Job);
        assert_eq!(read.text(RunId), "7a1d93f0/3");
    }

    #[test]
    fn a_project_without_an_owner_is_named_by_its_url_and_a_tag_has_no_branch() {
        let environment = Environment::of(&[
            (
                "CIRCLE_REPOSITORY_URL",
                "https://gitlab.example/group/sub/shop.git",
            ),
            ("CIRCLE_TAG", "v1"),
        ]);
        let read = read(&environment, RunScope::Job);
        assert_eq!(read.text(Repo), "group/sub/shop");
        assert_eq!(read.text(Branch), "");
    }
}
