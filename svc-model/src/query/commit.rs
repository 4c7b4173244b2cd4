use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::commit_link::visit_links;
use super::parameter::{TRUE, Truth, as_of, asks};
#[cfg(feature = "schema")]
use super::selector::counts_by_decline;
use super::selector::{
    REPO, REPOSITORY_HOST, REPOSITORY_ID, REPOSITORY_PROVIDER, SelectorParameters,
};
use super::{
    LifetimeIdentity, LinkSkip, LinkedCommit, NamedCommit, RepositorySelector, SupersededOutcome,
    ThroughPullRequest,
};
use crate::closed_set;
use crate::field::Violations;
use crate::id::{FactId, OrgId, SessionId};
use crate::ingest::{CiProvider, CiResult, GatewayProvider};
use crate::json::{Json, Text, WriteError};
use crate::open::Open;
use crate::parameter::{Declared, Parameter, parameters};
use crate::problem::QueryFault;
use crate::reports::Counts;
use crate::repository::{
    Branch, CommitSha, RepositoryDecline, RepositoryHost, RepositoryId, RepositoryProvider,
};
use crate::request::{Incoming, Outgoing, Refusal, Request};
use crate::time::Instant;

/// Asks what is known about one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitRequest {
    /// The full id of the commit.
    pub commit_sha: CommitSha,
    /// The repository; by default every repository that has the commit.
    pub repository: RepositorySelector,
    /// The boundary: only facts captured at or before this moment count; by default now.
    pub as_of: Option<Instant>,
    /// Whether to include the score and the files of each inferred call, and why calls were not
    /// searched for.
    pub explain: bool,
}

impl CommitRequest {
    /// Returns a request about a commit in every repository, with `explain` set.
    pub fn new(commit_sha: CommitSha) -> Self {
        Self {
            commit_sha,
            repository: RepositorySelector::default(),
            as_of: None,
            explain: true,
        }
    }
}

impl CommitRequest {
    const SHA: Declared<CommitSha> =
        Declared::path("sha", "The full commit id: 40 or 64 hexadecimal digits.");
    const AS_OF: Declared<Instant> =
        as_of("Count only facts captured at or before this moment; by default now.");
    const EXPLAIN: Declared<Truth> = asks(
        "explain",
        "`true` includes the score and the files of each inferred call, and why calls were not \
         searched for; by default `false`.",
    );
}

impl Request for CommitRequest {
    const PARAMETERS: &'static [Parameter] = parameters![
        Self::SHA,
        REPO,
        REPOSITORY_PROVIDER,
        REPOSITORY_HOST,
        REPOSITORY_ID,
        Self::AS_OF,
        Self::EXPLAIN,
    ];

    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let mut violations = Violations::default();
        let repository = SelectorParameters::read(incoming, &mut violations);
        let as_of = Self::AS_OF.read(incoming, &mut violations);
        let explain = Self::EXPLAIN.read(incoming, &mut violations);
        violations.finish(|| Some(()))?;
        let commit_sha = incoming
            .path
            .get(Self::SHA.name())
            .and_then(Json::as_str)
            .and_then(CommitSha::new)
            .ok_or(QueryFault::MalformedSha)?;
        Ok(Self {
            commit_sha,
            repository: repository.complete()?,
            as_of,
            explain: explain.is_some_and(Truth::get),
        })
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        let mut outgoing = Self::SHA.write(Outgoing::default(), &self.commit_sha);
        outgoing = self.repository.write(outgoing);
        outgoing = Self::AS_OF.write_any(outgoing, self.as_of.as_ref());
        Ok(Self::EXPLAIN.write_any(outgoing, self.explain.then_some(&TRUE)))
    }
}

closed_set! {
    /// How a call was linked to a file of a commit.
    pub enum AttributionSource {
        /// By note: the note on the commit names the Session of the call, and what the call wrote
        /// is similar to what the commit added.
        GitNotes = "git_notes",
        /// By similarity only: what the call wrote is similar to what the commit added. This is a
        /// guess.
        Jaccard = "jaccard",
    }
}

closed_set! {
    /// How an inferred call relates to a commit.
    pub enum InferredRelationship {
        /// What the call wrote is similar to what the commit added to a file.
        CallToFile = "inferred_call_to_file",
    }
}

closed_set! {
    /// Why calls were not searched for in a commit, or not in all of it. Each reason has its own
    /// unit.
    pub enum InferenceSkip {
        /// Commits that the mirror lacks, or whose diff cannot be read.
        CommitDiffUnavailable = "commit_diff_unavailable",
        /// Files for which no call is similar enough, although the content of a call that could
        /// have written them was erased.
        ContentErased = "content_erased",
        /// Malformed sections of the diff.
        MalformedDiffSection = "malformed_diff_section",
        /// Repositories without a mirror.
        MirrorAbsent = "mirror_absent",
        /// Repositories whose mirror cannot be opened.
        MirrorUnreadable = "mirror_unreadable",
        /// Commits for which it is unknown which push first brought them.
        PushUnknown = "push_unknown",
        /// Sections of the diff that are of an unsupported kind, such as binary files.
        UnsupportedDiffSection = "unsupported_diff_section",
    }
}

/// A call whose text is found in the commit. This is a guess, which is inferred for this answer and
/// not stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct InferredCall {
    /// The id of the call.
    #[cfg_attr(feature = "schema", schemars(with = "crate::id::InferenceCallId"))]
    pub inference_call_id: FactId,
    /// The Session of the call.
    pub session_id: SessionId,
    /// The kind of gateway that the call was copied from.
    pub gateway_provider: Open<GatewayProvider>,
    /// The provider of the model, as the gateway names it; null if unknown.
    pub model_provider: Option<String>,
    /// The model, as the gateway names it; null if unknown.
    pub model: Option<String>,
    /// How the call was linked to the commit. If it is linked to several files, the best match
    /// decides.
    pub attribution_source: Open<AttributionSource>,
    /// How similar what the call wrote is to what the commit adds to one file: the number of
    /// distinct tokens in both, divided by the number in either, from 0 to 1. If the call is linked
    /// to several files, this is the best match. It is not a probability. Present only if the
    /// request has `explain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similarity_score: Option<f64>,
    /// The number of files of the commit for which no other call is more similar; at least 1.
    /// Present only if the request has `explain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributed_files: Option<u64>,
    /// Always `inferred_call_to_file`.
    pub relationship: Open<InferredRelationship>,
}

closed_set! {
    /// Where a link between a Session and a commit comes from, if not from a note on the commit.
    pub enum ObservationSource {
        /// The Session's client reported the commit, and exactly one commit of the mirrors fits.
        Telemetry = "telemetry",
    }
}

/// A Session that was observed at the commit: a note on the commit names it, or its client reported
/// the commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ObservedSession {
    /// The id of the Session.
    pub session_id: SessionId,
    /// The ids of the observations, sorted; at least one.
    pub session_commit_observation_ids: Vec<FactId>,
    /// Where the observations come from. Absent if one of them comes from a note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Open<ObservationSource>>,
}

/// The version of the members of a CI outcome that has the identity of its repository.
pub const CI_OUTCOME_VERSION: u64 = 2;

/// The outcome of one run at the commit: all of the fact except the payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CommitCiOutcome {
    /// The version of the members of this fact: always 2.
    pub schema_version: u64,
    /// The kind of forge; null if the sender gave no identity of the repository.
    pub repository_provider: Option<Open<RepositoryProvider>>,
    /// The host of the forge; null if the sender gave no identity of the repository.
    pub repository_host: Option<RepositoryHost>,
    /// The id that the forge gave the repository; null if the sender gave no identity.
    pub repository_id: Option<RepositoryId>,
    /// The id of the fact.
    pub outcome_id: FactId,
    /// The organization.
    pub org_id: OrgId,
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
    /// The path of the workflow's definition; null if unknown.
    pub workflow_path: Option<String>,
    /// The URL of the run's page; null if unknown.
    pub run_url: Option<Text>,
    /// The CI system's own word for the result; null if unknown.
    pub provider_result: Option<Text>,
    /// The kind of failure, as the sender names it; null if unknown.
    pub error_type: Option<Text>,
    /// The sender's free text about the failure, with credentials redacted; null if there is none.
    pub reason: Option<Text>,
    /// The type of the event that reported the outcome; null if unknown.
    pub source_event_type: Option<Text>,
    /// The version of the specification of that event; null if unknown.
    pub source_spec_version: Option<Text>,
    /// The id of that event; null if unknown.
    pub source_event_id: Option<String>,
    /// The number of the pull request of the run; null if unknown. Only the forge's own runs have
    /// one.
    pub pr_number: Option<i64>,
    /// When the service received the outcome.
    pub captured_at: Instant,
    /// The outcome of the run that this one supersedes: a token reported it, and it differs from what
    /// the forge says under its signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded: Option<SupersededOutcome>,
}

/// What is known about the commit in one repository.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CommitRepository {
    /// A name of the repository: of all its names, the first in alphabetical order.
    pub repo: String,
    /// The name of the repository on its latest fact; absent if the repository is known by name
    /// only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_repo: Option<String>,
    /// The identity of the repository; null if the repository is known by name only.
    pub repository_identity: Option<LifetimeIdentity>,
    /// Every name that the repository has had up to the boundary, sorted.
    pub observed_repo_slugs: Vec<String>,
    /// The calls whose text is found in the commit, ordered by id. They are guesses and do not
    /// affect `observed_sessions`. If calls were not searched for, `inference_skipped` has the
    /// reason.
    pub inference_calls: Vec<InferredCall>,
    /// The number of decisions that are attached to these calls: those of the same Session whose
    /// call id belongs to exactly one call of the organization.
    pub decisions: u64,
    /// The Sessions that were observed at the commit, ordered by id. A missing note does not tell
    /// who wrote the commit.
    pub observed_sessions: Vec<ObservedSession>,
    /// The number of Sessions that have an inferred call but were not observed at the commit.
    pub session_commit_unobserved: u64,
    /// The CI outcomes of the commit, ordered by capture time, then by id.
    pub ci_outcomes: Vec<CommitCiOutcome>,
    /// The pull requests that the commit was merged with, by number, with the Sessions observed at
    /// their commits. They do not affect `observed_sessions`. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub through_pull_requests: Vec<ThroughPullRequest>,
    /// The commits that the message of the commit names as copied or taken back, in the order of
    /// the message. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named_commits: Vec<NamedCommit>,
}

impl CommitRepository {
    /// Returns the commits that this one leads to, through pull requests and by messages.
    pub fn linked_commits(&self) -> Vec<&LinkedCommit> {
        let mut commits = Vec::new();
        visit_links(
            &self.through_pull_requests,
            &self.named_commits,
            &mut |commit| {
                commits.push(commit);
            },
        );
        commits
    }
}

/// What is known about a commit. If nothing is known, only the first two members are present.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CommitEvidence {
    /// The commit, in lower case.
    pub commit_sha: CommitSha,
    /// Whether a Session was observed at the commit. Inferred calls and CI outcomes do not count.
    pub attributed: bool,
    /// The repositories with evidence, those with an identity first. Empty if there is evidence,
    /// but none that belongs to a known repository; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repos: Option<Vec<CommitRepository>>,
    /// The number of facts about the commit whose repository cannot be determined, by reason. They
    /// are counted whichever repository is selected. Absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "counts_by_decline"))]
    pub repository_skipped: Option<BTreeMap<Open<RepositoryDecline>, u64>>,
    /// The CI outcomes of the commit whose repository cannot be determined, ordered by capture
    /// time, then by id. Absent if there are none, or if a repository was selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unresolved_ci_outcomes: Option<Vec<CommitCiOutcome>>,
    /// Why calls were not searched for, or not in all of the commit, by reason. Absent if there is
    /// no reason, or if the request has no `explain`. If an explained answer has neither this nor
    /// `inference_calls`, no call is similar enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference_skipped: Option<Counts<InferenceSkip>>,
    /// Why links to other commits were not followed, or not all of them, by reason. Absent if there
    /// is no reason, or if the request has no `explain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links_skipped: Option<Counts<LinkSkip>>,
}

impl CommitEvidence {
    /// Returns the answer for a commit about which nothing is known.
    pub const fn none(commit_sha: CommitSha) -> Self {
        Self {
            commit_sha,
            attributed: false,
            repos: None,
            repository_skipped: None,
            unresolved_ci_outcomes: None,
            inference_skipped: None,
            links_skipped: None,
        }
    }
}
