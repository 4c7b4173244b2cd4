//! The outcome to report, from the flags or else from the CI system's variables.

use std::fmt::Display;

use svc_model::id::{ForeignId, RunId};
use svc_model::ingest::{CiResult, VendorCIRequest};
use svc_model::json::Text;
use svc_model::limit::PATH_BYTES_MAX;
use svc_model::repository::{
    Branch, CommitSha, RepositoryHost, RepositoryId, RepositoryName, RepositoryProvider,
};

use super::environment::Environment;
use super::flags::Flags;
use super::system::{Field, RunDetails, RunScope, System};
use crate::error::CommandError;

/// Returns the outcome.
///
/// # Errors
///
/// Lists everything that is missing or wrong, each with its flag and the variables that were tried.
pub(super) fn outcome(
    flags: &Flags,
    environment: &Environment,
) -> Result<VendorCIRequest, CommandError> {
    let system = system(flags, environment)?;
    let scope = if flags.whole_run {
        RunScope::Run
    } else {
        RunScope::Job
    };
    let details = system.read(environment, scope).completed(environment);
    let mut fields = RunFields {
        details: &details,
        mistakes: Vec::new(),
    };
    let run_id = fields.required(Field::RunId, flags.run_id.as_deref(), RunId::new);
    let run_attempt = fields.optional(Field::RunAttempt, flags.run_attempt.as_deref(), attempt);
    let name = rule(RepositoryName::new, "must be owner/name");
    let repo = fields.required(Field::Repo, flags.repo.as_deref(), name);
    let identity = fields.identity(flags);
    let sha = rule(CommitSha::new, "must be 40 or 64 hexadecimal digits");
    let commit_sha = fields.required(Field::Commit, flags.commit.as_deref(), sha);
    let name = rule(Branch::new, "must be a branch name");
    let branch = fields.required(Field::Branch, flags.branch.as_deref(), name);
    let workflow_id = fields.optional(
        Field::WorkflowId,
        flags.workflow_id.as_deref(),
        ForeignId::new,
    );
    let workflow_path = fields.optional(Field::WorkflowPath, flags.workflow_path.as_deref(), path);
    let is_run_of_github = run_id.as_ref().is_some_and(|id| is_number(id.as_str()));
    if system == System::GithubActions && is_run_of_github && workflow_id.is_none() {
        // Without it, the service would refuse what GitHub's own webhook says about the run.
        fields.missing(Field::WorkflowId);
    }
    let (result, word) = fields.result(system, flags);
    let (repository_id, repository_host) = identity.unzip();
    let value = |field| details.of(field).value.as_ref();
    let text = |flag: &Option<String>, details: Option<&String>| {
        let given = flag.as_ref().or(details).map(|text| text.trim());
        given.filter(|text| !text.is_empty()).map(Text::from)
    };
    let is_nested = flags.repo.is_none() && value(Field::Repo).is_some_and(|repo| is_nested(repo));
    let outcome = fields.finish(|| {
        Some(VendorCIRequest {
            provider: system.provider(),
            run_id: run_id?,
            run_attempt,
            repo: repo?,
            repository_provider: repository_id
                .is_some()
                .then_some(RepositoryProvider::Github),
            repository_host,
            repository_id,
            commit_sha: commit_sha?,
            branch: branch?,
            workflow_name: text(&flags.workflow_name, value(Field::WorkflowName))
                .unwrap_or_default(),
            workflow_id,
            workflow_path,
            result: result?,
            run_url: text(&flags.run_url, value(Field::RunUrl)),
            provider_result: text(&flags.provider_result, word.as_ref()),
            error_type: text(&flags.error_type, None),
            reason: flags.reason.as_deref().map(Text::from),
            source_event_type: None,
            source_spec_version: None,
            source_event_id: None,
            compare: true,
        })
    });
    if !is_nested {
        return outcome;
    }
    outcome.map_err(|error| {
        error.hint(format!(
            "choose two parts that name no other repository, such as --repo {}",
            system.two_parts()
        ))
    })
}

/// Returns the CI system that the flag gives, or else the one that is detected.
fn system(flags: &Flags, environment: &Environment) -> Result<System, CommandError> {
    if let Some(system) = flags.system {
        return Ok(system);
    }
    match System::detect(environment)[..] {
        [system] => Ok(system),
        [] => Err(CommandError::refused(
            "unknown_system",
            format!("no CI system detected (looked for {})", System::variables()),
        )
        .hint("name it with --system SYSTEM; for any other system: --system other")),
        ref several => {
            let names: Vec<_> = several.iter().map(|system| system.name()).collect();
            let message = format!("several CI systems detected: {}", names.join(", "));
            Err(CommandError::refused("unknown_system", message)
                .hint("choose one with --system SYSTEM"))
        }
    }
}

/// Reads fields and collects errors.
struct RunFields<'d> {
    details: &'d RunDetails,
    mistakes: Vec<String>,
}

/// Returns a field for people, and the flag that gives it.
const fn shown(field: Field) -> (&'static str, &'static str) {
    match field {
        Field::RunId => ("run id", "--run-id"),
        Field::RunAttempt => ("attempt", "--run-attempt"),
        Field::Repo => ("repository", "--repo"),
        Field::RepositoryHost => ("host of the forge", "--repository-host"),
        Field::RepositoryId => ("number of the repository", "--repository-id"),
        Field::Commit => ("commit", "--commit"),
        Field::Branch => ("branch", "--branch"),
        Field::WorkflowName => ("workflow name", "--workflow-name"),
        Field::WorkflowId => ("workflow id", "--workflow-id"),
        Field::WorkflowPath => ("workflow path", "--workflow-path"),
        Field::RunUrl => ("URL of the run", "--run-url"),
        Field::Status => ("result", "--result or --status"),
    }
}

impl RunFields<'_> {
    fn missing(&mut self, field: Field) {
        let (what, flag) = shown(field);
        let looked_at = match self.details.of(field).looked_at {
            "" => String::new(),
            looked_at => format!(" (looked at {looked_at})"),
        };
        self.mistakes
            .push(format!("no {what}: give {flag}{looked_at}"));
    }

    fn required<T, E: Display>(
        &mut self,
        field: Field,
        given: Option<&str>,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        if given.is_none() && self.details.of(field).value.is_none() {
            self.missing(field);
            return None;
        }
        self.optional(field, given, read)
    }

    fn optional<T, E: Display>(
        &mut self,
        field: Field,
        given: Option<&str>,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        let (what, flag) = shown(field);
        let found = self.details.of(field);
        let text = given.or(found.value.as_deref())?;
        let mistake = match read(text) {
            Ok(value) => return Some(value),
            Err(rule) if given.is_some() => format!("{flag} {rule}"),
            Err(rule) => format!(
                "the {what} {text:?} of {} {rule}: give {flag}",
                found.looked_at
            ),
        };
        self.mistakes.push(mistake);
        None
    }

    /// Returns the repository's number and host if both are known. A host alone identifies nothing.
    fn identity(&mut self, flags: &Flags) -> Option<(RepositoryId, RepositoryHost)> {
        let read = rule(RepositoryHost::new, "must be a DNS host name");
        let host = flags.repository_host.as_deref();
        let host = self.optional(Field::RepositoryHost, host, read);
        let read = rule(RepositoryId::new, "must be a decimal number");
        let id = self.optional(Field::RepositoryId, flags.repository_id.as_deref(), read);
        if id.is_some() && host.is_none() {
            self.missing(Field::RepositoryHost);
        }
        id.zip(host)
    }

    /// Returns the result, and the system's own word for it.
    fn result(&mut self, system: System, flags: &Flags) -> (Option<CiResult>, Option<String>) {
        let found = &self.details.of(Field::Status).value;
        let word = flags.status.clone().or_else(|| found.clone());
        if let Some(result) = flags.result {
            return (Some(result), word);
        }
        let Some(word) = word else {
            self.missing(Field::Status);
            return (None, None);
        };
        let result = system.result(word.trim());
        if result.is_none() {
            let words = system.words();
            self.mistakes.push(if words.is_empty() {
                "the status words of this system are not known: give --result".to_owned()
            } else {
                let (name, words) = (system.name(), words.join(", "));
                format!("{word:?} is not a status of {name} ({words}): give --result")
            });
        }
        (result, Some(word))
    }

    fn finish<T>(self, build: impl FnOnce() -> Option<T>) -> Result<T, CommandError> {
        let incomplete = |mistakes: &[String]| {
            let message = format!("the report is incomplete\n{}", mistakes.join("\n"));
            CommandError::refused("incomplete_report", message)
        };
        match build() {
            Some(built) if self.mistakes.is_empty() => Ok(built),
            _ => Err(incomplete(&self.mistakes)),
        }
    }
}

fn rule<T>(
    read: impl Fn(&str) -> Option<T>,
    rule: &'static str,
) -> impl Fn(&str) -> Result<T, &'static str> {
    move |text| read(text).ok_or(rule)
}

fn attempt(text: &str) -> Result<i64, &'static str> {
    let attempt = text.trim().parse().ok().filter(|attempt| *attempt > 0);
    attempt.ok_or("must be a whole number from 1")
}

fn path(text: &str) -> Result<String, &'static str> {
    let path = text.trim();
    if path.is_empty() || path.len() > PATH_BYTES_MAX {
        return Err("must have 1 to 4096 bytes");
    }
    Ok(path.to_owned())
}

/// Returns whether a path has more parts than owner and name.
fn is_nested(path: &str) -> bool {
    path.split('/').count() > 2
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use svc_model::json;

    use super::*;

    const SHA: &str = "ffac537e6cbbf934b08745a378932722df287a53";

    const GITHUB: &[(&str, &str)] = &[
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_JOB", "test"),
        ("GITHUB_REF_NAME", "main"),
        ("GITHUB_REPOSITORY", "Acme/Shop"),
        ("GITHUB_REPOSITORY_ID", "514200317"),
        ("GITHUB_RUN_ATTEMPT", "2"),
        ("GITHUB_RUN_ID", "99"),
        ("GITHUB_SERVER_URL", "https://GitHub.com"),
        ("GITHUB_SHA", SHA),
        ("GITHUB_WORKFLOW", "CI"),
    ];

    fn flags(set: impl FnOnce(&mut Flags)) -> Flags {
        let mut flags = Flags::default();
        set(&mut flags);
        flags
    }

    fn status(word: &str) -> Flags {
        flags(|flags| flags.status = Some(word.to_owned()))
    }

    fn written(flags: &Flags, variables: &[(&str, &str)]) -> String {
        let outcome = outcome(flags, &Environment::of(variables)).unwrap();
        String::from_utf8(json::to_vec(&outcome, usize::MAX).unwrap()).unwrap()
    }

    fn mistakes(flags: &Flags, variables: &[(&str, &str)]) -> Vec<String> {
        let error = outcome(flags, &Environment::of(variables)).unwrap_err();
        assert_eq!(error.code(), "incomplete_report");
        error.message().lines().skip(1).map(str::to_owned).collect()
    }

    #[test]
    fn the_report_is_filled_from_the_variables_of_the_system() {
        assert_eq!(
            written(&status("failure"), GITHUB),
            format!(
                r#"{{"provider":"forge_actions","run_id":"99/test","run_attempt":2,"repo":"acme/shop","repository_provider":"github","repository_host":"github.com","repository_id":"514200317","commit_sha":"{SHA}","branch":"main","workflow_name":"CI","result":"failed","run_url":"https://GitHub.com/Acme/Shop/actions/runs/99","provider_result":"failure"}}"#
            )
        );
    }

    #[test]
    fn every_flag_overrides_the_environment() {
        let text = |text: &str| Some(text.to_owned());
        let flags = Flags {
            result: Some(CiResult::TimedOut),
            reason: text("slow"),
            run_id: text("r"),
            run_attempt: text("3"),
            repo: text("Own/Name"),
            repository_id: text("7"),
            repository_host: text("git.example"),
            commit: text(&"B".repeat(40)),
            branch: text(""),
            workflow_name: text("W"),
            workflow_id: text("w"),
            workflow_path: text("w.yml"),
            run_url: text("https://u"),
            provider_result: text("killed"),
            error_type: text("oom"),
            ..Flags::default()
        };
        assert_eq!(
            written(&flags, GITHUB),
            format!(
                r#"{{"provider":"forge_actions","run_id":"r","run_attempt":3,"repo":"own/name","repository_provider":"github","repository_host":"git.example","repository_id":"7","commit_sha":"{}","branch":"","workflow_name":"W","workflow_id":"w","workflow_path":"w.yml","result":"timed_out","run_url":"https://u","provider_result":"killed","error_type":"oom","reason":"slow"}}"#,
                "b".repeat(40)
            )
        );
    }

    #[test]
    fn an_unknown_system_is_reported_with_flags_only() {
        let text = |text: &str| Some(text.to_owned());
        let flags = Flags {
            result: Some(CiResult::Passed),
            system: Some(System::Other),
            run_id: text("r"),
            repo: text("own/name"),
            commit: text(SHA),
            branch: text("main"),
            ..Flags::default()
        };
        assert_eq!(
            written(&flags, GITHUB),
            format!(
                r#"{{"provider":"other","run_id":"r","repo":"own/name","commit_sha":"{SHA}","branch":"main","workflow_name":"","result":"passed"}}"#
            )
        );
    }

    #[test]
    fn every_missing_value_is_named_with_its_flag_and_variables() {
        assert_eq!(
            mistakes(&Flags::default(), &[("GITLAB_CI", "true")]),
            [
                "no run id: give --run-id (looked at CI_PIPELINE_ID, CI_JOB_NAME)",
                "no repository: give --repo (looked at CI_PROJECT_PATH)",
                "no commit: give --commit (looked at CI_MERGE_REQUEST_SOURCE_BRANCH_SHA, CI_COMMIT_SHA)",
                "no branch: give --branch (looked at CI_MERGE_REQUEST_SOURCE_BRANCH_NAME, CI_COMMIT_BRANCH, CI_COMMIT_TAG)",
                "no result: give --result or --status (looked at CI_JOB_STATUS, set in after_script)",
            ]
        );
    }

    #[test]
    fn invalid_values_of_a_system_are_refused_and_not_corrected() {
        let gitlab = [
            ("GITLAB_CI", "true"),
            ("CI_COMMIT_BRANCH", "main"),
            ("CI_COMMIT_SHA", SHA),
            ("CI_JOB_ID", "1"),
            ("CI_JOB_NAME", "test"),
            ("CI_JOB_STATUS", "running"),
            ("CI_PIPELINE_ID", "2"),
            ("CI_PROJECT_PATH", "group/sub/shop"),
        ];
        assert_eq!(
            mistakes(&Flags::default(), &gitlab),
            [
                r#"the repository "group/sub/shop" of CI_PROJECT_PATH must be owner/name: give --repo"#,
                r#""running" is not a status of gitlab-ci (success, failed, canceled, skipped, manual): give --result"#,
            ]
        );
        let refused = outcome(&Flags::default(), &Environment::of(&gitlab)).unwrap_err();
        assert!(refused.hints()[0].contains("--repo \"$CI_PROJECT_ROOT_NAMESPACE/"));
        let jenkins = [
            ("JENKINS_URL", "https://j/"),
            ("GIT_URL", "https://git.example/scm/acme/shop.git"),
        ];
        let refused = outcome(&Flags::default(), &Environment::of(&jenkins)).unwrap_err();
        assert!(refused.hints()[0].ends_with("--repo OWNER/NAME"));
        let symbolic = [("BUILDKITE", "true"), ("BUILDKITE_COMMIT", "HEAD")];
        assert!(mistakes(&status("passed"), &symbolic).iter().any(|mistake| mistake
            == r#"the commit "HEAD" of BUILDKITE_COMMIT must be 40 or 64 hexadecimal digits: give --commit"#));
        let wrong = flags(|flags| {
            flags.result = Some(CiResult::Passed);
            flags.commit = Some("abc".to_owned());
            flags.run_attempt = Some("0".to_owned());
        });
        assert_eq!(
            mistakes(&wrong, GITHUB),
            [
                "--run-attempt must be a whole number from 1",
                "--commit must be 40 or 64 hexadecimal digits",
            ]
        );
    }

    #[test]
    fn a_whole_github_run_needs_the_workflow_that_its_webhook_reports() {
        let whole_run = flags(|flags| {
            flags.status = Some("success".to_owned());
            flags.whole_run = true;
        });
        assert_eq!(
            mistakes(&whole_run, GITHUB),
            [
                "no workflow id: give --workflow-id (looked at the event workflow_run; a step is not details)"
            ]
        );
        let details = Flags {
            workflow_id: Some("159038".to_owned()),
            ..whole_run
        };
        assert!(written(&details, GITHUB).contains(r#""run_id":"99","#));
    }

    #[test]
    fn a_repository_identity_needs_both_a_host_and_an_id() {
        let jenkins = [
            ("JENKINS_URL", "https://j/"),
            ("BUILD_NUMBER", "1"),
            ("BRANCH_NAME", "main"),
            ("GIT_COMMIT", SHA),
            ("GIT_URL", "https://x:secret@github.com/acme/shop.git"),
            ("JOB_NAME", "shop/main"),
        ];
        let without = written(&status("UNSTABLE"), &jenkins);
        assert!(without.contains(r#""result":"failed","provider_result":"UNSTABLE""#));
        assert!(!without.contains("repository_") && !without.contains("secret"));
        let numbered = |word| {
            flags(|flags| {
                flags.status = Some(word);
                flags.repository_id = Some("7".to_owned());
            })
        };
        let with = written(&numbered("SUCCESS".to_owned()), &jenkins);
        assert!(with.contains(r#""repository_host":"github.com","repository_id":"7""#));
        let nowhere = [&jenkins[..4], &jenkins[5..]].concat();
        assert!(
            mistakes(&numbered("SUCCESS".to_owned()), &nowhere)
                .iter()
                .any(|mistake| mistake
                    == "no host of the forge: give --repository-host (looked at GIT_URL, GIT_URL_1)")
        );
    }

    #[test]
    fn a_system_must_be_given_if_none_or_several_are_detected() {
        let refused = |variables: &[(&str, &str)]| {
            outcome(&Flags::default(), &Environment::of(variables)).unwrap_err()
        };
        let none = refused(&[]);
        assert!(none.message().contains("GITHUB_ACTIONS, GITLAB_CI"));
        let several = refused(&[("GITLAB_CI", "true"), ("BUILDKITE", "true")]);
        assert!(several.message().ends_with("gitlab-ci, buildkite"));
        assert!(several.hints()[0].contains("--system"));
    }
}
