#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::selector::SelectorParameters;
use super::{CiOutcomeRecord, RepositorySelector};
use crate::field::{FieldKind, FromField, Violation, Violations};
use crate::id::{FactId, RunId, SessionId};
use crate::ingest::CiProvider;
use crate::json::{Json, WriteError};
use crate::repository::CommitSha;
use crate::request::{Incoming, Outgoing, Refusal, Request};
use crate::time::Instant;

/// The URL of a run, as its CI system reports it or a person copies it: `http` or `https`, at most
/// 4,096 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunUrl(String);

impl RunUrl {
    /// The most bytes of a URL.
    const BYTES_MAX: usize = 4_096;

    /// Returns the URL, or a text that says what is expected.
    ///
    /// # Errors
    ///
    /// When the text is too long, or has another scheme.
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

    /// Returns the part of a URL that names a page: without what stands behind `?` or `#`, and without
    /// slashes at the end.
    pub fn page(url: &str) -> &str {
        let page = url.split(['?', '#']).next().unwrap_or_default();
        page.trim_end_matches('/')
    }
}

impl FromField for RunUrl {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let expected = Violation::new(FieldKind::StringType, "must be a string");
        Self::new(value.as_str().ok_or(expected)?).map_err(Violation::rule)
    }
}

/// What a run is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunName {
    /// By this id; or by one that goes on behind a slash, as those of the jobs of a run do.
    Id(RunId),
    /// By this URL, whatever stands behind `?` or `#`.
    Url(RunUrl),
}

/// Asks for the runs that an id or a URL names, in whichever CI system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CiRunsRequest {
    /// What they are called.
    pub name: RunName,
    /// The CI system; without one, all.
    pub provider: Option<CiProvider>,
    /// The repository; without one, all.
    pub repository: RepositorySelector,
    /// The moment up to which facts count, itself included; without one, all.
    pub as_of: Option<Instant>,
}

impl Request for CiRunsRequest {
    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let fields = incoming.query_fields();
        let mut violations = Violations::default();
        let v = &mut violations;
        let run_url = fields.present::<RunUrl>("run_url", v);
        let run_id = if fields.get("run_url").is_none() {
            fields.required("run_id", v)
        } else {
            if fields.get("run_id").is_some() {
                let both = Violation::rule("must not stand beside run_id");
                v.push(both.at(fields.loc("run_url")));
            }
            None
        };
        let provider = fields.present("provider", v);
        let repository = SelectorParameters::read(&fields, v);
        let as_of = fields.present("as_of", v);
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
            RunName::Id(run_id) => outgoing.with_query("run_id", run_id.as_str()),
            RunName::Url(run_url) => outgoing.with_query("run_url", run_url.as_str()),
        };
        if let Some(provider) = self.provider {
            outgoing = outgoing.with_query("provider", provider.as_str());
        }
        outgoing = self.repository.write(outgoing);
        if let Some(as_of) = self.as_of {
            outgoing = outgoing.with_query("as_of", as_of.to_string());
        }
        Ok(outgoing)
    }
}

/// A run, by its last attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CiRun {
    /// How its last attempt ended: that of the greatest number.
    pub outcome: CiOutcomeRecord,
    /// The attempts that are stored and visible, in rising order; null stands for the run without an
    /// attempt.
    pub attempts: Vec<Option<i64>>,
}

/// A commit that came with that of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct DeliveredCommit {
    /// The commit.
    pub commit_sha: CommitSha,
    /// The Sessions that were observed at it, sorted; there is at least one.
    pub session_ids: Vec<SessionId>,
}

/// What came with the commit of a run: in the pushes that left a branch there, and in those of the
/// pull requests whose head it was. A Session is named when a note of its commit was read for such a
/// push.
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
    /// Whether there is more than an answer shows.
    pub more: bool,
}

/// The runs that an id or a URL names, the latest capture first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CiRuns {
    /// The runs: at most 100.
    pub runs: Vec<CiRun>,
    /// Whether there are more.
    pub more: bool,
    /// What came with their commit, when all are of one commit of one repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<CiDelivery>,
}
