//! The CI systems: how each is detected, what its variables say about a run, and its words for a
//! result.

mod buildkite;
mod circleci;
mod github;
mod gitlab;
mod jenkins;

use clap::ValueEnum;
use svc_model::ingest::{CiProvider, CiResult};

use super::environment::Environment;

/// A CI system whose variables are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum System {
    /// GitHub Actions, and its relatives in Gitea and Forgejo.
    #[value(alias = "forge_actions")]
    GithubActions,
    /// GitLab CI.
    #[value(alias = "ci_b")]
    GitlabCi,
    /// Jenkins.
    #[value(alias = "ci_a")]
    Jenkins,
    /// CircleCI.
    #[value(name = "circleci", alias = "ci_c")]
    CircleCi,
    /// Buildkite.
    #[value(alias = "ci_d")]
    Buildkite,
    /// Another system: every field is given by a flag.
    Other,
}

/// What a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// The job that sends it.
    Job,
    /// The whole run that the job belongs to.
    Run,
}

/// A value, and the variables that were tried for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) value: Option<String>,
    /// Where the value was looked for, for the error message when there is none: variables, or
    /// members of an event.
    pub(super) looked_at: &'static str,
}

/// What a system's variables say about a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RunDetails {
    pub(super) run_id: Found,
    pub(super) run_attempt: Found,
    pub(super) repo: Found,
    pub(super) repository_host: Found,
    pub(super) repository_id: Found,
    pub(super) commit: Found,
    pub(super) branch: Found,
    pub(super) workflow_name: Found,
    pub(super) workflow_id: Found,
    pub(super) workflow_path: Found,
    pub(super) run_url: Found,
    /// The system's word for the result.
    pub(super) status: Found,
}

/// A system's word for a result, and that result.
type Word = (&'static str, CiResult);

impl RunDetails {
    /// Fills in the repository's identity from the variables that the pipeline itself defines,
    /// because most systems have no variable for the forge's number of a repository.
    pub(super) fn completed(mut self, environment: &Environment) -> Self {
        for (found, variable) in [
            (&mut self.repository_id, REPOSITORY_ID),
            (&mut self.repository_host, REPOSITORY_HOST),
        ] {
            if let Some(value) = environment.first(&[variable]) {
                *found = Found::new(Some(value), variable);
            } else if found.looked_at.is_empty() {
                found.looked_at = variable;
            }
        }
        self
    }
}

impl Found {
    fn new(value: Option<String>, looked_at: &'static str) -> Self {
        Self { value, looked_at }
    }
}

/// The forge's number of the repository, for pipelines that know it from elsewhere.
const REPOSITORY_ID: &str = "SVC_REPOSITORY_ID";
/// The host of the forge.
const REPOSITORY_HOST: &str = "SVC_REPOSITORY_HOST";

impl System {
    /// The systems that can be detected, each with the variable that identifies it.
    const KNOWN_BY: [(Self, &'static str); 5] = [
        (Self::GithubActions, "GITHUB_ACTIONS"),
        (Self::GitlabCi, "GITLAB_CI"),
        (Self::Jenkins, "JENKINS_URL"),
        (Self::CircleCi, "CIRCLECI"),
        (Self::Buildkite, "BUILDKITE"),
    ];

    /// Returns the systems whose variables are set.
    pub(super) fn detect(environment: &Environment) -> Vec<Self> {
        let known = Self::KNOWN_BY.into_iter();
        known
            .filter(|(_, variable)| environment.get(variable).is_some())
            .map(|(system, _)| system)
            .collect()
    }

    /// Lists the variables that identify systems.
    pub(super) fn variables() -> String {
        Self::KNOWN_BY.map(|(_, variable)| variable).join(", ")
    }

    /// Returns the system's name, as `--system` takes it.
    pub(super) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Returns the system's value on the wire.
    pub(super) const fn provider(self) -> CiProvider {
        match self {
            Self::GithubActions => CiProvider::ForgeActions,
            Self::Jenkins => CiProvider::CiA,
            Self::GitlabCi => CiProvider::CiB,
            Self::CircleCi => CiProvider::CiC,
            Self::Buildkite => CiProvider::CiD,
            Self::Other => CiProvider::Other,
        }
    }

    /// Reads the variables.
    pub(super) fn read(self, environment: &Environment, scope: Scope) -> RunDetails {
        match self {
            Self::GithubActions => github::read(environment, scope),
            Self::GitlabCi => gitlab::read(environment, scope),
            Self::Jenkins => jenkins::read(environment),
            Self::CircleCi => circleci::read(environment, scope),
            Self::Buildkite => buildkite::read(environment, scope),
            Self::Other => RunDetails::default(),
        }
    }

    /// Returns how to name a repository whose path has more than two parts.
    pub(super) const fn two_parts(self) -> &'static str {
        match self {
            Self::GitlabCi => "\"$CI_PROJECT_ROOT_NAMESPACE/$CI_PROJECT_NAME\"",
            _ => "OWNER/NAME",
        }
    }

    /// Returns the system's words for results.
    pub(super) const fn words(self) -> &'static [Word] {
        match self {
            Self::GithubActions => github::WORDS,
            Self::GitlabCi => gitlab::WORDS,
            Self::Jenkins => jenkins::WORDS,
            Self::CircleCi => circleci::WORDS,
            Self::Buildkite => buildkite::WORDS,
            Self::Other => &[],
        }
    }

    /// Returns the result that a word of the system stands for, ignoring case.
    pub(super) fn result(self, word: &str) -> Option<CiResult> {
        let mut words = self.words().iter();
        let (_, result) = words.find(|(known, _)| known.eq_ignore_ascii_case(word))?;
        Some(*result)
    }
}

/// Joins the parts of an id; `None` if one is missing.
fn joined<const PARTS: usize>(parts: [Option<&str>; PARTS]) -> Option<String> {
    let parts: Option<Vec<&str>> = parts.into_iter().collect();
    Some(parts?.join("/"))
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// Returns the fields that are known.
    pub(crate) fn known(details: &RunDetails) -> Vec<(&'static str, &str)> {
        let fields = [
            ("run_id", &details.run_id),
            ("run_attempt", &details.run_attempt),
            ("repo", &details.repo),
            ("repository_host", &details.repository_host),
            ("repository_id", &details.repository_id),
            ("commit", &details.commit),
            ("branch", &details.branch),
            ("workflow_name", &details.workflow_name),
            ("workflow_id", &details.workflow_id),
            ("workflow_path", &details.workflow_path),
            ("run_url", &details.run_url),
            ("status", &details.status),
        ];
        let fields = fields.into_iter();
        fields
            .filter_map(|(name, found)| Some((name, found.value.as_deref()?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::product::Product as _;

    #[test]
    fn a_system_is_detected_by_its_variable() {
        for (system, variable) in System::KNOWN_BY {
            let environment = Environment::of(&[(variable, "true"), ("CI", "true")]);
            assert_eq!(System::detect(&environment), [system]);
        }
        assert_eq!(System::detect(&Environment::default()), []);
        let both = Environment::of(&[("BUILDKITE", "true"), ("JENKINS_URL", "https://j/")]);
        assert_eq!(System::detect(&both), [System::Jenkins, System::Buildkite]);
    }

    #[test]
    fn the_words_of_each_system_map_to_results() {
        use CiResult::{Cancelled, Error, Failed, Neutral, Passed, Skipped, TimedOut, Unknown};
        for (system, words) in [
            (
                System::Jenkins,
                &[
                    ("SUCCESS", Passed),
                    ("FAILURE", Failed),
                    ("UNSTABLE", Failed),
                    ("ABORTED", Cancelled),
                    ("NOT_BUILT", Skipped),
                ][..],
            ),
            (
                System::GitlabCi,
                &[
                    ("success", Passed),
                    ("failed", Failed),
                    ("canceled", Cancelled),
                    ("skipped", Skipped),
                    ("manual", Neutral),
                ],
            ),
            (
                System::CircleCi,
                &[
                    ("success", Passed),
                    ("failed", Failed),
                    ("error", Error),
                    ("canceled", Cancelled),
                    ("unauthorized", Error),
                ],
            ),
            (
                System::Buildkite,
                &[
                    ("passed", Passed),
                    ("failed", Failed),
                    ("canceled", Cancelled),
                    ("skipped", Skipped),
                    ("not_run", Skipped),
                ],
            ),
            (
                System::GithubActions,
                &[
                    ("success", Passed),
                    ("failure", Failed),
                    ("cancelled", Cancelled),
                    ("timed_out", TimedOut),
                    ("skipped", Skipped),
                    ("neutral", Neutral),
                    ("action_required", Unknown),
                    ("stale", Unknown),
                    ("startup_failure", Unknown),
                ],
            ),
        ] {
            assert_eq!(system.words(), words, "{system:?}");
            for (word, result) in words {
                assert_eq!(system.result(&word.to_lowercase()), Some(*result));
                // The service takes the same words.
                assert_eq!(CiResult::from_word(word), Some(*result));
            }
            assert_eq!(system.result("running"), None, "{system:?}");
        }
    }

    #[test]
    fn the_wire_values_name_no_product() {
        let values = System::value_variants().iter().map(|system| {
            assert_eq!(system.name(), system.provider().product());
            format!("{} {}", system.name(), system.provider())
        });
        assert_eq!(
            values.collect::<Vec<_>>(),
            [
                "github-actions forge_actions",
                "gitlab-ci ci_b",
                "jenkins ci_a",
                "circleci ci_c",
                "buildkite ci_d",
                "other other"
            ]
        );
    }
}
