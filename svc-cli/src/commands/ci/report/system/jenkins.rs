//! Jenkins.
//!
//! A build has no jobs of its own, so a report is always about the build.

use svc_model::ingest::CiResult;

use super::super::environment::Environment;
use super::super::repository::CloneUrl;
use super::{Found, RunDetails, Word, joined};

pub(super) const WORDS: &[Word] = &[
    ("SUCCESS", CiResult::Passed),
    ("FAILURE", CiResult::Failed),
    ("UNSTABLE", CiResult::Failed),
    ("ABORTED", CiResult::Cancelled),
    ("NOT_BUILT", CiResult::Skipped),
];

/// The word of the Git plugin for a checkout of a commit.
const DETACHED: &str = "detached";

pub(super) fn read(environment: &Environment) -> RunDetails {
    let get = |name| environment.get(name);
    let first = |names| environment.first(names);
    let clone_url = first(&["GIT_URL", "GIT_URL_1"]).and_then(|url| CloneUrl::parse(&url));
    let (host, path) = clone_url.map_or((None, None), |url| (Some(url.host), Some(url.path)));
    RunDetails {
        run_id: Found::new(
            joined([get("JOB_NAME"), get("BUILD_NUMBER")]),
            "JOB_NAME, BUILD_NUMBER",
        ),
        repo: Found::new(path, "GIT_URL, GIT_URL_1"),
        repository_host: Found::new(host, "GIT_URL, GIT_URL_1"),
        commit: Found::new(first(&["GIT_COMMIT"]), "GIT_COMMIT"),
        branch: Found::new(
            branch(environment),
            "CHANGE_BRANCH, TAG_NAME, BRANCH_NAME, GIT_LOCAL_BRANCH, GIT_BRANCH",
        ),
        workflow_name: Found::new(pipeline(environment), "JOB_NAME"),
        run_url: Found::new(first(&["BUILD_URL"]), "BUILD_URL"),
        status: Found::new(None, "currentBuild.currentResult; no variable has it"),
        ..RunDetails::default()
    }
}

fn branch(environment: &Environment) -> Option<String> {
    if let Some(head) = environment.get("CHANGE_BRANCH") {
        return Some(head.to_owned());
    }
    if environment.get("TAG_NAME").is_some() {
        return Some(String::new());
    }
    if let Some(branch) = environment.first(&["BRANCH_NAME", "GIT_LOCAL_BRANCH"]) {
        return Some(branch);
    }
    // The branch is prefixed with the name of the remote.
    let remote = environment.get("GIT_BRANCH")?;
    if remote == DETACHED {
        return Some(String::new());
    }
    Some(remote.strip_prefix("origin/").unwrap_or(remote).to_owned())
}

/// Returns the name of the pipeline. In a multibranch project, the last part of a job's name is the
/// branch.
fn pipeline(environment: &Environment) -> Option<String> {
    let name = environment.get("JOB_NAME")?;
    let multibranch = environment.get("BRANCH_NAME").and(name.rsplit_once('/'));
    Some(
        multibranch
            .map_or(name, |(pipeline, _)| pipeline)
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::known;
    use super::*;

    const BUILD: &[(&str, &str)] = &[
        ("JENKINS_URL", "https://jenkins.example/"),
        ("BRANCH_NAME", "PR-24"),
        ("BUILD_NUMBER", "153"),
        (
            "BUILD_URL",
            "https://jenkins.example/job/shop/job/PR-24/153/",
        ),
        ("CHANGE_BRANCH", "fix"),
        ("GIT_BRANCH", "PR-24"),
        ("GIT_COMMIT", "ce9a3c1404e8c91be604088670e93434c4253f03"),
        ("GIT_URL", "https://user:secret@github.com/acme/shop.git"),
        ("JOB_NAME", "team/shop/PR-24"),
    ];

    #[test]
    fn a_build_is_read_from_its_variables() {
        assert_eq!(
            known(&read(&Environment::of(BUILD))),
            [
                ("run_id", "team/shop/PR-24/153"),
                ("repo", "acme/shop"),
                ("repository_host", "github.com"),
                ("commit", "ce9a3c1404e8c91be604088670e93434c4253f03"),
                ("branch", "fix"),
                ("workflow_name", "team/shop"),
                ("run_url", "https://jenkins.example/job/shop/job/PR-24/153/"),
            ]
        );
    }

    #[test]
    fn the_remote_is_cut_off_the_branch_of_a_single_branch_job() {
        let environment = Environment::of(&[
            ("JOB_NAME", "team/shop"),
            ("BUILD_NUMBER", "1"),
            ("GIT_BRANCH", "origin/release/2"),
        ]);
        let details = read(&environment);
        assert_eq!(details.branch.value.unwrap(), "release/2");
        assert_eq!(details.workflow_name.value.unwrap(), "team/shop");
        let tag = Environment::of(&[("TAG_NAME", "v1"), ("BRANCH_NAME", "v1")]);
        assert_eq!(read(&tag).branch.value.unwrap(), "");
        let commit = Environment::of(&[("GIT_BRANCH", "detached")]);
        assert_eq!(read(&commit).branch.value.unwrap(), "");
        let named = Environment::of(&[("GIT_BRANCH", "origin/detached")]);
        assert_eq!(read(&named).branch.value.unwrap(), "detached");
    }
}
