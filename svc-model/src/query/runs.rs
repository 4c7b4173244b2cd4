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

/// The URL of a run, as reported by its CI system or copied by a person: `http` or `https`, at most
/// 4,096 bytes.
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
            .any(|it| text.starts_with(it))
        {
            return Err("must begin with https:// or http://");
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the part of a URL that names a page: without query, fragment and trailing slashes.
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

/// The name of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunName {
    /// This id, or one that continues after a slash, as the ids of a run's jobs do.
    Id(RunId),
    /// This URL, ignoring query and fragment.
    Url(RunUrl),
}

/// Asks for the runs that an id or a URL names, in any CI system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CiRunsRequest {
    /// The name of the runs.
    pub name: RunName,
    /// The CI system; by default all.
    pub provider: Option<CiProvider>,
    /// The repository; by default all.
    pub repository: RepositorySelector,
    /// Counts only facts captured at or before this moment; by default all.
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
    /// The query parameters.
    pub(crate) const PARAMETERS: &'static [Parameter] = parameters![
        Self::RUN_ID,
        Self::RUN_URL,
        Self::PROVIDER,
        REPO,
        REPOSITORY_PROVIDER,
        REPOSITORY_HOST,
        REPOSITORY_ID,
        Self::AS_OF,
    ];
}

impl Request for CiRunsRequest {
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

/// A run, represented by its latest attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CiRun {
    /// The outcome of its latest attempt, the one with the highest number.
    pub outcome: CiOutcomeRecord,
    /// The stored and visible attempts, in ascending order; null stands for the run without an
    /// attempt.
    pub attempts: Vec<Option<i64>>,
}

/// A commit that was delivered together with that of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct DeliveredCommit {
    /// The commit.
    pub commit_sha: CommitSha,
    /// The Sessions that were observed at it, sorted; at least one.
    pub session_ids: Vec<SessionId>,
}

/// What was delivered with the commit of a run: in the pushes that left a branch there, and in the
/// pushes of the pull requests whose head it was. A Session is included if a note on its commit was
/// read for such a push.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CiDelivery {
    /// The commit of the run.
    pub commit_sha: CommitSha,
    /// The pushes, sorted.
    pub push_ids: Vec<FactId>,
    /// The numbers of the pull requests, sorted.
    pub pull_requests: Vec<i64>,
    /// The commits at which Sessions were observed, sorted.
    pub commits: Vec<DeliveredCommit>,
    /// Whether the answer leaves some out.
    pub more: bool,
}

/// The runs that an id or a URL names, by descending capture time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CiRuns {
    /// The runs: at most 100.
    pub runs: Vec<CiRun>,
    /// Whether there are more.
    pub more: bool,
    /// What was delivered with their commit, if all have the same commit and repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<CiDelivery>,
}
