//! Buildkite.

use super::super::environment::Environment;
use super::field::{SystemFields, always, job, rows, run};

pub(super) const SYSTEM: SystemFields = SystemFields {
    known_by: "BUILDKITE",
    words: &["passed", "failed", "canceled", "skipped", "not_run"],
    rows: rows! {
        job RunId = First, "BUILDKITE_JOB_ID";
        run RunId = First, "BUILDKITE_BUILD_ID";
        always Repo = Path, "BUILDKITE_REPO";
        always RepositoryHost = Host, "BUILDKITE_REPO";
        always Commit = First, "BUILDKITE_COMMIT";
        always Branch = With(branch), "BUILDKITE_BRANCH, BUILDKITE_TAG";
        job WorkflowName = First, "BUILDKITE_LABEL, BUILDKITE_STEP_KEY";
        run WorkflowName = First, "BUILDKITE_PIPELINE_SLUG";
        always WorkflowId = First, "BUILDKITE_PIPELINE_ID";
        always RunUrl = First, "BUILDKITE_BUILD_URL";
        job Status = With(status), "BUILDKITE_COMMAND_EXIT_STATUS, set in a hook that runs after the command";
        run Status = Nowhere, "no variable; Buildkite tells no job how its build ends";
    },
};

/// In the build of a tag, the branch is the tag too.
fn branch(environment: &Environment) -> Option<String> {
    match environment.get("BUILDKITE_TAG") {
        Some(_) => Some(String::new()),
        None => environment.get("BUILDKITE_BRANCH").map(str::to_owned),
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
    use super::super::Field::*;
    use super::super::testing::known;
    use super::super::{RunDetails, RunScope, System};
    use super::*;

    fn read(environment: &Environment, scope: RunScope) -> RunDetails {
        System::Buildkite.read(environment, scope)
    }

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
            known(&read(&Environment::of(JOB), RunScope::Job)),
            [
                (RunId, "e44f9784"),
                (Repo, "acme/shop"),
                (RepositoryHost, "github.com"),
                (Commit, "83a20ec058e2fb00e7fa4558c4c6e81e2dcf253d"),
                (Branch, "main"),
                (WorkflowName, ":hammer: Specs"),
                (WorkflowId, "d18439cc"),
                (RunUrl, "https://buildkite.com/acme/shop/builds/1514"),
                (Status, "failed"),
            ]
        );
        let run = read(&Environment::of(JOB), RunScope::Run);
        assert_eq!(run.text(RunId), "4735ba57");
        assert_eq!(run.text(WorkflowName), "shop");
        assert_eq!(run.of(Status).value, None);
    }

    #[test]
    fn the_exit_status_is_a_word_and_a_tag_is_not_a_branch() {
        for (more, word) in [
            (("BUILDKITE_COMMAND_EXIT_STATUS", "0"), "passed"),
            (("BUILDKITE_COMMAND_EXIT_STATUS", "-1"), "failed"),
            (("BUILDKITE_JOB_CANCELLED", "true"), "canceled"),
        ] {
            let environment = Environment::of(&[JOB, &[more]].concat());
            assert_eq!(read(&environment, RunScope::Job).text(Status), word);
        }
        let tag = Environment::of(&[JOB, &[("BUILDKITE_TAG", "v1")]].concat());
        assert_eq!(read(&tag, RunScope::Job).text(Branch), "");
    }
}
