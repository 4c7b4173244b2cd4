//! CircleCI.

use svc_model::ingest::CiResult;

use super::super::environment::Environment;
use super::super::repository::CloneUrl;
use super::{Found, RunDetails, Scope, Word, joined};

pub(super) const WORDS: &[Word] = &[
    ("success", CiResult::Passed),
    ("failed", CiResult::Failed),
    ("error", CiResult::Error),
    ("canceled", CiResult::Cancelled),
    ("unauthorized", CiResult::Error),
];

pub(super) fn read(environment: &Environment, scope: Scope) -> RunDetails {
    let get = |name| environment.get(name);
    let first = |names| environment.first(names);
    let clone_url = get("CIRCLE_REPOSITORY_URL").and_then(CloneUrl::parse);
    let (host, path) = clone_url.map_or((None, None), |url| (Some(url.host), Some(url.path)));
    let named = joined([
        get("CIRCLE_PROJECT_USERNAME"),
        get("CIRCLE_PROJECT_REPONAME"),
    ]);
    let branch = first(&["CIRCLE_BRANCH"]).or_else(|| get("CIRCLE_TAG").map(|_| String::new()));
    let (run_id, workflow_name) = match scope {
        Scope::Job => (
            Found::new(job_id(environment), "CIRCLE_WORKFLOW_JOB_ID"),
            Found::new(first(&["CIRCLE_JOB"]), "CIRCLE_JOB"),
        ),
        Scope::Run => (
            Found::new(first(&["CIRCLE_WORKFLOW_ID"]), "CIRCLE_WORKFLOW_ID"),
            Found::new(
                None,
                "no variable; CircleCI tells no job its workflow's name",
            ),
        ),
    };
    RunDetails {
        run_id,
        repo: Found::new(
            named.or(path),
            "CIRCLE_PROJECT_USERNAME, CIRCLE_PROJECT_REPONAME, CIRCLE_REPOSITORY_URL",
        ),
        repository_host: Found::new(host, "CIRCLE_REPOSITORY_URL"),
        commit: Found::new(first(&["CIRCLE_SHA1"]), "CIRCLE_SHA1"),
        branch: Found::new(branch, "CIRCLE_BRANCH, CIRCLE_TAG"),
        workflow_name,
        run_url: Found::new(first(&["CIRCLE_BUILD_URL"]), "CIRCLE_BUILD_URL"),
        status: Found::new(
            None,
            "no variable; a step runs with when: on_fail or on_success",
        ),
        ..RunDetails::default()
    }
}

/// Returns the id of the job. Parallel executions of a job share its id and differ in their index.
fn job_id(environment: &Environment) -> Option<String> {
    let id = environment.get("CIRCLE_WORKFLOW_JOB_ID")?;
    match environment.get("CIRCLE_NODE_TOTAL") {
        None | Some("1") => Some(id.to_owned()),
        Some(_) => joined([Some(id), environment.get("CIRCLE_NODE_INDEX")]),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::known;
    use super::*;

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
            known(&read(Scope::Job)),
            [
                ("run_id", "7a1d93f0"),
                ("repo", "acme/shop"),
                ("repository_host", "github.com"),
                ("commit", "6ab1fb2ac13ef8e8b3cf5a4a5f3d0b2c1e9a7f44"),
                ("branch", "main"),
                ("workflow_name", "test"),
                ("run_url", "https://circleci.com/gh/acme/shop/33"),
            ]
        );
        let run = read(Scope::Run);
        assert_eq!(run.run_id.value.unwrap(), "1c6e0a5c");
        assert_eq!(run.workflow_name.value, None);
    }

    #[test]
    fn parallel_executions_are_separate_runs() {
        let more = [("CIRCLE_NODE_TOTAL", "4"), ("CIRCLE_NODE_INDEX", "3")];
        let read = read(&Environment::of(&[JOB, &more].concat()), Scope::Job);
        assert_eq!(read.run_id.value.unwrap(), "7a1d93f0/3");
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
        let read = read(&environment, Scope::Job);
        assert_eq!(read.repo.value.unwrap(), "group/sub/shop");
        assert_eq!(read.branch.value.unwrap(), "");
    }
}
