//! The CI systems: how each is detected, what its variables say about a run, and its words for a
//! result.

mod buildkite;
mod circleci;
mod field;
mod github;
mod gitlab;
mod jenkins;

use std::collections::BTreeMap;

use clap::ValueEnum;
use svc_model::ingest::{CiProvider, CiResult};

use self::field::SystemFields;
use super::environment::Environment;

pub(super) use self::field::{Field, RunScope};

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

/// A value, and the variables that were tried for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldValue {
    pub(super) value: Option<String>,
    /// Where the value was looked for, for the error message when there is none: variables, or
    /// members of an event.
    pub(super) looked_at: &'static str,
}

/// What a system's variables say about a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RunDetails(BTreeMap<Field, FieldValue>);

impl RunDetails {
    /// Returns a field.
    pub(super) fn of(&self, field: Field) -> &FieldValue {
        const NOWHERE: &FieldValue = &FieldValue {
            value: None,
            looked_at: "",
        };
        self.0.get(&field).unwrap_or(NOWHERE)
    }

    /// Fills in the repository's identity from the variables that the pipeline itself defines,
    /// because most systems have no variable for the forge's number of a repository.
    pub(super) fn completed(mut self, environment: &Environment) -> Self {
        for (field, variable) in [
            (Field::RepositoryId, REPOSITORY_ID),
            (Field::RepositoryHost, REPOSITORY_HOST),
        ] {
            let found = self.0.entry(field).or_default();
            let value = environment.first([variable]);
            if value.is_some() {
                *found = FieldValue {
                    value,
                    looked_at: variable,
                };
            } else if found.looked_at.is_empty() {
                found.looked_at = variable;
            }
        }
        self
    }
}

/// The forge's number of the repository, for pipelines that know it from elsewhere.
const REPOSITORY_ID: &str = "SVC_REPOSITORY_ID";
/// The host of the forge.
const REPOSITORY_HOST: &str = "SVC_REPOSITORY_HOST";

impl System {
    const fn table(self) -> &'static SystemFields {
        match self {
            Self::GithubActions => &github::SYSTEM,
            Self::GitlabCi => &gitlab::SYSTEM,
            Self::Jenkins => &jenkins::SYSTEM,
            Self::CircleCi => &circleci::SYSTEM,
            Self::Buildkite => &buildkite::SYSTEM,
            Self::Other => &SystemFields {
                known_by: "",
                words: &[],
                rows: &[],
            },
        }
    }

    /// Returns the systems that can be detected, each with the variable that identifies it.
    fn detectable() -> impl Iterator<Item = (Self, &'static str)> {
        let systems = Self::value_variants().iter();
        let known = systems.map(|system| (*system, system.table().known_by));
        known.filter(|(_, variable)| !variable.is_empty())
    }

    /// Returns the systems whose variables are set.
    pub(super) fn detect(environment: &Environment) -> Vec<Self> {
        Self::detectable()
            .filter(|(_, variable)| environment.get(variable).is_some())
            .map(|(system, _)| system)
            .collect()
    }

    /// Lists the variables that identify systems.
    pub(super) fn variables() -> String {
        let variables: Vec<&str> = Self::detectable().map(|(_, variable)| variable).collect();
        variables.join(", ")
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
    pub(super) fn read(self, environment: &Environment, scope: RunScope) -> RunDetails {
        let rows = self.table().rows.iter();
        let rows = rows.filter(|row| (row.when)(environment, scope));
        let found = rows.map(|row| {
            let value = row.value(environment);
            let looked_at = row.looked_at;
            (row.field, FieldValue { value, looked_at })
        });
        RunDetails(found.collect())
    }

    /// Returns how to name a repository whose path has more than two parts.
    pub(super) const fn two_parts(self) -> &'static str {
        match self {
            Self::GitlabCi => "\"$CI_PROJECT_ROOT_NAMESPACE/$CI_PROJECT_NAME\"",
            _ => "OWNER/NAME",
        }
    }

    /// Returns the system's words for results.
    pub(super) const fn words(self) -> &'static [&'static str] {
        self.table().words
    }

    /// Returns the result that a word of the system stands for, ignoring case.
    pub(super) fn result(self, word: &str) -> Option<CiResult> {
        let mut words = self.words().iter();
        let known = words.find(|known| known.eq_ignore_ascii_case(word))?;
        CiResult::from_word(known)
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;

    impl RunDetails {
        /// Returns a field that is known.
        pub(crate) fn text(&self, field: Field) -> &str {
            self.of(field).value.as_deref().unwrap()
        }
    }

    /// Returns the fields that are known.
    pub(crate) fn known(details: &RunDetails) -> Vec<(Field, &str)> {
        let found = details.0.iter();
        found
            .filter_map(|(field, found)| Some((*field, found.value.as_deref()?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::product::Product as _;

    #[test]
    fn a_system_is_detected_by_its_variable() {
        for (system, variable) in System::detectable() {
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
            assert_eq!(
                system.words(),
                words.iter().map(|(word, _)| *word).collect::<Vec<_>>()
            );
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
