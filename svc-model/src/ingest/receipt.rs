use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{CiResult, RejectedPayload};
use crate::closed_set;
use crate::id::FactId;
use crate::json::Json;
use crate::open::{Open, Vocabulary};

/// The receipt of one fact. It is given after the commit reached the disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct IngestResult {
    /// The id of the fact: of a redelivery, that of the retained one.
    pub fact_id: FactId,
    /// False when this is a redelivery, which is a success.
    pub stored: bool,
    /// The result that a CI run is stored with, when another one was sent now and the request asks for
    /// this: the first one stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_result: Option<Open<CiResult>>,
}

closed_set! {
    /// Why a delivery is declined with success, so that its sender does not repeat it.
    pub enum SkipReason {
        /// No source of the payload names a Session.
        NoSession = "no_session",

        /// A webhook's ping, on the route that takes every event.
        Ping = "ping",
        /// The event is none of those that are captured, on the route that takes every event.
        UnsupportedEvent = "unsupported_event",
        /// Another event than a push, on the route of pushes.
        NotPush = "not a push event",
        /// Another event than a change of a repository, on the route of those.
        NotRepository = "not a repository event",
        /// Another event than a workflow run, on the route of CI.
        NotWorkflowRun = "not a workflow_run event",
        /// Another event than a pull request, on the route of those.
        NotPullRequest = "not a pull_request event",
        /// The forge's id of the delivery is longer than an identity may be.
        InvalidDeliveryId = "invalid_delivery_id",
        /// The name of the repository is longer than an identity may be.
        InvalidRepositoryName = "invalid_repository_name",

        /// The pushed ref is absent, or is not below `refs/heads/`.
        NotABranch = "not_a_branch",
        /// The pushed ref holds NUL or a surrogate, or is longer than an identity may be.
        InvalidRef = "invalid_ref",
        /// The push deletes its branch.
        BranchDeleted = "branch_deleted",
        /// The commit that the branch is at is absent, or is no commit id.
        InvalidAfterSha = "invalid_after_sha",
        /// The commit that the branch was at is absent, or is no commit id.
        InvalidBeforeSha = "invalid_before_sha",

        /// The run has not completed.
        WorkflowRunNotCompleted = "workflow_run_not_completed",
        /// The payload describes no run.
        WorkflowRunAbsent = "workflow_run_absent",
        /// The id of the run is absent, or is no identity.
        InvalidRunId = "invalid_run_id",
        /// The commit of the run is absent, or is no commit id.
        InvalidHeadSha = "invalid_head_sha",
        /// The branch of the run holds NUL or a surrogate, or is longer than an identity may be.
        InvalidHeadBranch = "invalid_head_branch",
        /// The id of the workflow holds NUL or a surrogate, or is longer than an identity may be.
        InvalidWorkflowId = "invalid_workflow_id",
        /// The path of the workflow holds NUL or a surrogate, or is longer than a path may be.
        InvalidWorkflowPath = "invalid_workflow_path",

        /// The action is neither the opening, nor an update, nor the closing of a pull request.
        UnsupportedPullRequestAction = "unsupported_pull_request_action",
        /// The repository that the pull request comes from is gone.
        HeadRepositoryDeleted = "head_repository_deleted",
        /// The push that updated the pull request left another head than the pull request has.
        SynchronizeHeadMismatch = "synchronize_head_mismatch",
        /// A part of the revision is absent or malformed.
        InvalidPullRequestRevisionBoundary = "invalid_pull_request_revision_boundary",
        /// The pull request was closed without being merged.
        PullRequestNotMerged = "pull_request_not_merged",
        /// A part of the merge is absent or malformed.
        InvalidPullRequestMergeBoundary = "invalid_pull_request_merge_boundary",

        /// The action of a repository event is absent or no text.
        MalformedDiscriminator = "malformed_discriminator",
        /// The action of a repository event is no renaming.
        UnsupportedDiscriminator = "unsupported_discriminator",
        /// The renamed repository has no id.
        RepositoryIdentityAbsent = "repository_identity_absent",
        /// The id of the renamed repository is no positive decimal number.
        RepositoryIdentityInvalid = "repository_identity_invalid",
        /// The old or the new name of the renamed repository is absent or malformed.
        InvalidRepositoryRenameBoundary = "invalid_repository_rename_boundary",
        /// The old and the new name differ in nothing but case.
        RepositoryNameUnchanged = "repository_name_unchanged",
    }
}

/// A declined delivery. Nothing was stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Skipped {
    /// Always true.
    #[cfg_attr(feature = "schema", schemars(extend("const" = true)))]
    pub skipped: bool,
    /// Why.
    pub reason: Open<SkipReason>,
}

impl Skipped {
    /// Returns the answer for this reason.
    pub const fn new(reason: SkipReason) -> Self {
        Self {
            skipped: true,
            reason: Open::Known(reason),
        }
    }
}

/// The answer to one delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged)]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub enum IngestReceipt {
    /// The fact is stored, now or before.
    Fact(IngestResult),
    /// The delivery is declined.
    Skipped(Skipped),
}

/// A receipt of another kind is known by its first member.
impl Vocabulary for IngestReceipt {
    fn word(&self) -> &'static str {
        match self {
            Self::Fact(_) => "fact_id",
            Self::Skipped(_) => "skipped",
        }
    }

    fn unknown_word(value: &Json) -> Option<&str> {
        let receipt = value.as_object()?;
        let (first, _) = receipt.iter().next()?;
        let known = ["fact_id", "skipped"];
        let is_known = known.iter().any(|name| receipt.get(name).is_some());
        first.as_str().filter(|_| !is_known)
    }
}

/// The answer to a batch of payloads: what became of each, as counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct GatewayBatchReceipt {
    /// Payloads that became new facts.
    pub stored: u64,
    /// Payloads that were stored before.
    pub duplicates: u64,
    /// Payloads declined with success, by reason.
    #[cfg_attr(feature = "schema", schemars(schema_with = "counts_by::<SkipReason>"))]
    pub skipped: BTreeMap<Open<SkipReason>, u64>,
    /// Payloads that can never be stored as they are, by reason.
    #[cfg_attr(
        feature = "schema",
        schemars(schema_with = "counts_by::<RejectedPayload>")
    )]
    pub rejected: BTreeMap<Open<RejectedPayload>, u64>,
}

/// Counts whose names are of a closed set.
#[cfg(feature = "schema")]
fn counts_by<Name: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "propertyNames": generator.subschema_for::<Name>(),
        "additionalProperties": generator.subschema_for::<u64>(),
    })
}
