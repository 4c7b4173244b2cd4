#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::parameter::as_of;
use super::selector::{
    REPO, REPOSITORY_HOST, REPOSITORY_ID, REPOSITORY_PROVIDER, SelectorParameters,
};
use super::{CiOutcomeRecord, RepositorySelector};
use crate::field::{FieldKind, FromField, Violation, Violations};
use crate::id::{FactId, RunId, SessionId};
use crate::ingest::CiProvider;
use crate::json::{Json, WriteError};
use crate::parameter::{Declared, Parameter, parameters};
use crate::repository::CommitSha;
use crate::request::{Incoming, Outgoing, Refusal, Request};
use crate::time::Instant;

/// The URL of a run, as its CI system reported it or as a person copied it: `http` or `https`, at
/// most 4,096 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunUrl(String);

impl RunUrl {
    /// The maximum length of a URL in bytes.
    const BYTES_MAX: usize = 4_096;

    /// Returns the URL, or a message that says what is expected.
    ///
    /// # Errors
    ///
    /// If the text is too long, or has another scheme.
    pub fn new(text: &str) -> Result<Self, &'static str> {
        let text = text.trim();
        if text.len() > Self::BYTES_MAX {
            return Err("must have at most 4096 bytes");
        }
        if !["https://", "http://"]
            .iter()
            .any(|scheme| text.starts_with(scheme))
        {
            return Err("must begin with https:// or http://");
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the part of a URL that identifies a page: without query, fragment and trailing
    /// slashes.
    pub fn page(url: &str) -> &str {
        let page = url.split(['?', '#']).next().unwrap_or_default();
        page.trim_end_matches('/')
    }
}

impl crate::parameter::ParameterValue for RunUrl {
    fn to_parameter(&self) -> String {
        self.0.clone()
    }
}
#[cfg(feature = "schema")]
impl JsonSchema for RunUrl {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RunUrl".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "uri",
            "pattern": r"^\s*https?://",
            "maxLength": Self::BYTES_MAX,
        })
    }
}

impl FromField for RunUrl {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let expected = Violation::new(FieldKind::StringType, "must be a string");
        Self::new(value.as_str().ok_or(expected)?).map_err(Violation::rule)
    }
}

/// How a request names the runs that it asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunName {
    /// The id of a run. Also matches ids that continue after it with a slash, as the ids of a run's
    /// jobs do.
    Id(RunId),
    /// The URL of the run's page. Query and fragment are ignored.
    Url(RunUrl),
}

/// Asks for the runs that have an id or a URL, in any CI system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CiRunsRequest {
    /// The id or the URL of the runs.
    pub name: RunName,
    /// The CI system; by default all.
    pub provider: Option<CiProvider>,
    /// The repository; by default all.
    pub repository: RepositorySelector,
    /// The boundary: only facts captured at or before this moment count; by default all.
    pub as_of: Option<Instant>,
}

impl CiRunsRequest {
    const RUN_ID: Declared<RunId> = Declared::optional(
        "run_id",
        "The id of the run, or the part before the slash of its jobs' ids. Either `run_id` or \
         `run_url` is required.",
    );
    const RUN_URL: Declared<RunUrl> = Declared::optional(
        "run_url",
        "The URL of the run, as it was reported; query and fragment are ignored.",
    );
    const PROVIDER: Declared<CiProvider> = Declared::optional(
        "provider",
        "The CI system: `forge_actions`, `ci_a`, `ci_b`, `ci_c`, `ci_d` or `other`; by default all.",
    );
    const AS_OF: Declared<Instant> =
        as_of("Count only facts captured at or before this moment; by default all facts.");
}

impl Request for CiRunsRequest {
    const PARAMETERS: &'static [Parameter] = parameters![
        Self::RUN_ID,
        Self::RUN_URL,
        Self::PROVIDER,
        REPO,
        REPOSITORY_PROVIDER,
        REPOSITORY_HOST,
        REPOSITORY_ID,
        Self::AS_OF,
    ];

    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let fields = incoming.query_fields();
        let mut violations = Violations::default();
        let v = &mut violations;
        let run_url = Self::RUN_URL.read(incoming, v);
        let run_id = if fields.get(Self::RUN_URL.name()).is_none() {
            fields.required(Self::RUN_ID.name(), v)
        } else {
            if fields.get(Self::RUN_ID.name()).is_some() {
                let both = Violation::rule("cannot be used with run_id");
                v.push(both.at(fields.loc(Self::RUN_URL.name())));
            }
            None
        };
        let provider = Self::PROVIDER.read(incoming, v);
        let repository = SelectorParameters::read(incoming, v);
        let as_of = Self::AS_OF.read(incoming, v);
        let name = run_url.map(RunName::Url).or(run_id.map(RunName::Id));
        let name = violations.finish(|| name)?;
        Ok(Self {
            name,
            provider,
            repository: repository.complete()?,
            as_of,
        })
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        let outgoing = Outgoing::default();
        let mut outgoing = match &self.name {
            RunName::Id(run_id) => Self::RUN_ID.write(outgoing, run_id),
            RunName::Url(run_url) => Self::RUN_URL.write(outgoing, run_url),
        };
        outgoing = Self::PROVIDER.write_any(outgoing, self.provider.as_ref());
        outgoing = self.repository.write(outgoing);
        Ok(Self::AS_OF.write_any(outgoing, self.as_of.as_ref()))
    }
}

/// One run, represented by its latest attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CiRun {
    /// The outcome of the latest attempt, which is the one with the highest number.
    pub outcome: CiOutcomeRecord,
    /// The numbers of the visible attempts, in ascending order. Null stands for an outcome without
    /// an attempt number.
    pub attempts: Vec<Option<i64>>,
}

/// A commit that was delivered together with the commit of a run, and the Sessions that were
/// observed at it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct DeliveredCommit {
    /// The full id of the commit.
    pub commit_sha: CommitSha,
    /// The Sessions that were observed at the commit, sorted; at least one.
    pub session_ids: Vec<SessionId>,
}

/// What was delivered with the commit of a run, by two kinds of push: pushes that left a branch at
/// the commit, and pushes of the pull requests whose head the commit was. A Session is included if
/// a note that names it was read after such a push.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CiDelivery {
    /// The commit of the run.
    pub commit_sha: CommitSha,
    /// The ids of the pushes, sorted.
    pub push_ids: Vec<FactId>,
    /// The numbers of the pull requests, sorted.
    pub pull_requests: Vec<i64>,
    /// The commits at which Sessions were observed, sorted.
    pub commits: Vec<DeliveredCommit>,
    /// Whether something is left out, because there are too many pushes, pull requests, commits or
    /// Sessions.
    pub more: bool,
}

/// The runs that have the requested id or URL, latest capture first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CiRuns {
    /// The runs, at most 100.
    pub runs: Vec<CiRun>,
    /// Whether runs are left out, because there are more, or because too many outcomes would have
    /// to be examined.
    pub more: bool,
    /// What was delivered with the commit of the runs. Present only if all runs have the same
    /// commit and the same repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<CiDelivery>,
}
