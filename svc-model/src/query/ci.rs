#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parameter::{Positive, TRUE, Truth, as_of, asks};
use super::selector::{
    REPO, REPOSITORY_HOST, REPOSITORY_ID, REPOSITORY_PROVIDER, SelectorParameters,
};
use super::{CommitLink, LifetimeIdentity, RepositorySelector};
use crate::field::{Violation, Violations};
use crate::id::{FactId, RunId};
use crate::ingest::{CiProvider, CiResult};
use crate::json::{Text, WriteError};
use crate::open::Open;
use crate::parameter::{Declared, Parameter, parameters};
use crate::repository::{Branch, CommitSha};
use crate::request::{Incoming, Outgoing, Refusal, Request};
use crate::time::Instant;

/// Asks for the outcome of one run of a CI system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CiOutcomeRequest {
    /// The CI system.
    pub provider: CiProvider,
    /// The CI system's id of the run.
    pub run_id: RunId,
    /// The number of the attempt, from 1. Without one, the request asks for the outcome that was
    /// stored without an attempt number, not for the latest attempt.
    pub run_attempt: Option<i64>,
    /// Whether to ask for the latest attempt, which is the one with the highest number. Excludes
    /// `run_attempt`.
    pub latest: bool,
    /// The repository. Needed only if several forges have a run with this id.
    pub repository: RepositorySelector,
    /// The boundary: only facts captured at or before this moment count; by default all.
    pub as_of: Option<Instant>,
}

impl CiOutcomeRequest {
    /// Returns a request for the latest attempt of a run, in any repository.
    pub fn latest(provider: CiProvider, run_id: RunId) -> Self {
        Self {
            provider,
            run_id,
            run_attempt: None,
            latest: true,
            repository: RepositorySelector::default(),
            as_of: None,
        }
    }
}

impl CiOutcomeRequest {
    const PROVIDER: Declared<CiProvider> = Declared::required(
        "provider",
        "The CI system: `forge_actions`, `ci_a`, `ci_b`, `ci_c`, `ci_d` or `other`.",
    );
    const RUN_ID: Declared<RunId> = Declared::required("run_id", "The system's id of the run.");
    const RUN_ATTEMPT: Declared<Positive> = Declared::optional(
        "run_attempt",
        "The attempt, from 1; without one, the run that was stored without an attempt.",
    );
    const LATEST: Declared<Truth> = asks(
        "latest",
        "`true` asks for the latest attempt, the one with the highest number, and lists all \
         attempts. It excludes `run_attempt`.",
    );
    const AS_OF: Declared<Instant> =
        as_of("Count only facts captured at or before this moment; by default all facts.");
}

impl Request for CiOutcomeRequest {
    const PARAMETERS: &'static [Parameter] = parameters![
        Self::PROVIDER,
        Self::RUN_ID,
        Self::RUN_ATTEMPT,
        Self::LATEST,
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
        let provider = Self::PROVIDER.read(incoming, v);
        let run_id = Self::RUN_ID.read(incoming, v);
        let run_attempt = Self::RUN_ATTEMPT.read(incoming, v);
        let latest = Self::LATEST.read(incoming, v).is_some_and(Truth::get);
        if latest && run_attempt.is_some() {
            let both = Violation::rule("must not be true with run_attempt");
            v.push(both.at(fields.loc(Self::LATEST.name())));
        }
        let repository = SelectorParameters::read(incoming, v);
        let as_of = Self::AS_OF.read(incoming, v);
        let (provider, run_id) = violations.finish(|| Some((provider?, run_id?)))?;
        Ok(Self {
            provider,
            run_id,
            run_attempt: run_attempt.map(|attempt| attempt.0),
            latest,
            repository: repository.complete()?,
            as_of,
        })
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        let mut outgoing = Self::PROVIDER.write(Outgoing::default(), &self.provider);
        outgoing = Self::RUN_ID.write(outgoing, &self.run_id);
        outgoing = Self::RUN_ATTEMPT.write_any(outgoing, self.run_attempt.map(Positive).as_ref());
        outgoing = Self::LATEST.write_any(outgoing, self.latest.then_some(&TRUE));
        outgoing = self.repository.write(outgoing);
        Ok(Self::AS_OF.write_any(outgoing, self.as_of.as_ref()))
    }
}

/// The outcome of one run, as metadata: no logs and no payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CiOutcomeRecord {
    /// The id of the fact.
    pub outcome_id: FactId,
    /// The CI system.
    pub provider: Open<CiProvider>,
    /// The CI system's id of the run.
    pub run_id: String,
    /// The number of the attempt, as it was reported; null if it was reported without one.
    pub run_attempt: Option<i64>,
    /// The name of the repository on this fact, in lower case. It may have another name today.
    /// Empty if the forge sent none.
    pub repo: String,
    /// The full id of the commit that was checked.
    pub commit_sha: CommitSha,
    /// The branch that was checked. May be empty.
    pub branch: Branch,
    /// The normalised result. Only `passed` and `failed` are verdicts.
    pub result: Open<CiResult>,
    /// The name of the workflow. May be empty.
    pub workflow_name: Text,
    /// The CI system's id of the workflow; null if unknown.
    pub workflow_id: Option<String>,
    /// The URL of the run's page; null if unknown.
    pub run_url: Option<Text>,
    /// The CI system's own word for the result; null if unknown.
    pub provider_result: Option<Text>,
    /// The kind of failure, as the sender names it; null if unknown.
    pub error_type: Option<Text>,
    /// The sender's free text about the failure, with credentials redacted; null if there is none.
    pub reason: Option<Text>,
    /// The number of the pull request of the run; null if unknown. Only the forge's own runs have
    /// one.
    pub pr_number: Option<i64>,
    /// When the service received the outcome.
    pub captured_at: Instant,
    /// The link to what is known about the commit, with the boundary of this reply.
    pub commit_query: CommitLink,
    /// The identity of the repository; null if the sender gave none.
    pub repository_identity: Option<LifetimeIdentity>,
    /// The outcome of the run that this one supersedes: a token reported it, and it differs from what
    /// the forge says under its signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded: Option<SupersededOutcome>,
}

/// An outcome that another one supersedes. It stays stored, but answers nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SupersededOutcome {
    /// The id of the fact.
    pub outcome_id: FactId,
    /// The result that it reports.
    pub result: Open<CiResult>,
}

/// The outcome of the requested run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CiOutcomeAnswer {
    /// Whether such an outcome is stored and visible. If not, the run may still have happened.
    pub found: bool,
    /// The outcome. Absent if it was not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<CiOutcomeRecord>,
    /// The numbers of the visible attempts of the run, in ascending order. Null stands for an
    /// outcome without an attempt number. Present only if the request has `latest` and the outcome
    /// was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<Vec<Option<i64>>>,
}

impl From<Option<CiOutcomeRecord>> for CiOutcomeAnswer {
    fn from(outcome: Option<CiOutcomeRecord>) -> Self {
        Self {
            found: outcome.is_some(),
            outcome,
            attempts: None,
        }
    }
}
