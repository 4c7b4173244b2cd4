//! Jenkins.
//!
//! A build has no jobs of its own, so a report is always about the build.

use super::super::environment::Environment;
use super::field::{SystemFields, always, rows};

/// The word of the Git plugin for a checkout of a commit.
const DETACHED: &str = "detached";

pub(super) const SYSTEM: SystemFields = SystemFields {
    known_by: "JENKINS_URL",
    words: &["SUCCESS", "FAILURE", "UNSTABLE", "ABORTED", "NOT_BUILT"],
    rows: rows! {
        always RunId = Joined, "JOB_NAME, BUILD_NUMBER";
        always Repo = Path, "GIT_URL, GIT_URL_1";
        always RepositoryHost = Host, "GIT_URL, GIT_URL_1";
        always Commit = First, "GIT_COMMIT";
        always Branch = With(branch), "CHANGE_BRANCH, TAG_NAME, BRANCH_NAME, GIT_LOCAL_BRANCH, GIT_BRANCH";
        always WorkflowName = With(pipeline), "JOB_NAME";
        always RunUrl = First, "BUILD_URL";
        always Status = Nowhere, "currentBuild.currentResult; no variable has it";
    },
};

fn branch(environment: &Environment) -> Option<String> {
    if let Some(head) = environment.get("CHANGE_BRANCH") {
        return Some(head.to_owned());
    }
    if environment.get("TAG_NAME").is_some() {
        return Some(String::new());
    }
    if let Some(branch) = environment.first(["BRANCH_NAME", "GIT_LOCAL_BRANCH"]) {
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
    use super::super::Field::*;
    use super::super::testing::known;
    use super::super::{RunDetails, RunScope, System};
    use super::*;

    fn read(environment: &Environment) -> RunDetails {
        System::Jenkins.read(environment, RunScope::Job)
    }

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
                (RunId, "team/shop/PR-24/153"),
                (Repo, "acme/shop"),
                (RepositoryHost, "github.com"),
                (Commit, "ce9a3c1404e8c91be604088670e93434c4253f03"),
                (Branch, "fix"),
                (WorkflowName, "team/shop"),
                (RunUrl, "https://jenkins.example/job/shop/job/PR-24/153/"),
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
        assert_eq!(details.text(Branch), "release/2");
        assert_eq!(details.text(WorkflowName), "team/shop");
        let tag = Environment::of(&[("TAG_NAME", "v1"), ("BRANCH_NAME", "v1")]);
        assert_eq!(read(&tag).text(Branch), "");
        let commit = Environment::of(&[("GIT_BRANCH", "detached")]);
        assert_eq!(read(&commit).text(Branch), "");
        let named = Environment::of(&[("GIT_BRANCH", "origin/detached")]);
        assert_eq!(read(&named).text(Branch), "detached");
    }
}
