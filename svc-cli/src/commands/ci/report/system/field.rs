//! The fields of a run, and the tables of where each is found in the variables of a job.

use super::super::environment::Environment;
use super::super::repository::{RepositoryUrl, host};

/// A field of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Field {
    RunId,
    RunAttempt,
    Repo,
    RepositoryHost,
    RepositoryId,
    Commit,
    Branch,
    WorkflowName,
    WorkflowId,
    WorkflowPath,
    RunUrl,
    /// The system's word for the result.
    Status,
}

/// What a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum RunScope {
    /// The job that sends it.
    Job,
    /// The whole run that the job belongs to.
    Run,
}

/// How a field is read from the variables that are looked at.
#[derive(Clone, Copy)]
pub(super) enum FieldRule {
    /// It is the first variable that is set.
    First,
    /// All variables, joined by slashes.
    Joined,
    /// As [`FieldRule::First`], but the last variable is a tag, which is on no branch.
    BranchOrTag,
    /// The path in the first variable that is set, which is a clone URL.
    Path,
    /// The host in that clone URL.
    Host,
    /// The host in the first variable that is set, which is the URL of a server.
    Server,
    /// The member of an event: `PATH of VARIABLE`.
    Event,
    /// No variable has it.
    Nowhere,
    /// By a rule of the system.
    With(fn(&Environment) -> Option<String>),
}

/// Where a field is found.
#[derive(Clone, Copy)]
pub(super) struct FieldSource {
    pub(super) field: Field,
    /// Whether it is found there. Of several rows of a field that apply, the last one counts.
    pub(super) when: fn(&Environment, RunScope) -> bool,
    /// The variables, as an error lists them. A remark after them is none that can be set.
    pub(super) looked_at: &'static str,
    pub(super) read: FieldRule,
}

/// What is known of a system.
pub(super) struct SystemFields {
    /// The variable that identifies it.
    pub(super) known_by: &'static str,
    /// Its words for results.
    pub(super) words: &'static [&'static str],
    /// Where each field is found.
    pub(super) rows: &'static [FieldSource],
}

/// Rows of the form `CONDITION FIELD = READ, "VARIABLES";`.
macro_rules! rows {
    ($($when:ident $field:ident = $read:ident $(($rule:expr))?, $looked_at:literal;)+) => {
        &[$($crate::commands::ci::report::system::field::FieldSource {
            field: $crate::commands::ci::report::system::field::Field::$field,
            when: $when,
            looked_at: $looked_at,
            read: $crate::commands::ci::report::system::field::FieldRule::$read $(($rule))?,
        }),+]
    };
}

pub(super) use rows;

/// The condition of a row that always applies.
pub(super) const fn always(_: &Environment, _: RunScope) -> bool {
    true
}

/// The condition of a row for reports about a job.
pub(super) fn job(_: &Environment, scope: RunScope) -> bool {
    scope == RunScope::Job
}

/// The condition of a row for reports about a run.
pub(super) fn run(_: &Environment, scope: RunScope) -> bool {
    scope == RunScope::Run
}

impl FieldSource {
    /// Reads the field.
    pub(super) fn value(&self, environment: &Environment) -> Option<String> {
        let variables = || self.looked_at.split(", ");
        let clone_url = || RepositoryUrl::parse(&environment.first(variables())?);
        match self.read {
            FieldRule::First => environment.first(variables()),
            FieldRule::Joined => joined(environment, variables()),
            FieldRule::BranchOrTag => {
                let (branches, tag) = self.looked_at.rsplit_once(", ")?;
                let branch = environment.first(branches.split(", "));
                branch.or_else(|| environment.get(tag).map(|_| String::new()))
            }
            FieldRule::Path => clone_url().map(|url| url.path),
            FieldRule::Host => clone_url().map(|url| url.host),
            FieldRule::Server => host(&environment.first(variables())?),
            FieldRule::Event => {
                let (path, variable) = self.looked_at.split_once(" of ")?;
                environment.at(path, variable)
            }
            FieldRule::Nowhere => None,
            FieldRule::With(rule) => rule(environment),
        }
    }
}

/// Joins variables by slashes; `None` if one is not set.
pub(super) fn joined<'n>(
    environment: &Environment,
    names: impl IntoIterator<Item = &'n str>,
) -> Option<String> {
    let parts = names.into_iter().map(|name| environment.get(name));
    Some(parts.collect::<Option<Vec<&str>>>()?.join("/"))
}
