use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{CiResult, RejectedPayload};
use crate::closed_set;
use crate::id::FactId;
use crate::json::Json;
use crate::open::{Open, Vocabulary};

/// The receipt for one fact. It is sent after the fact has been written to disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct IngestResult {
    /// The id of the fact. For a redelivery, it is that of the stored fact.
    pub fact_id: FactId,
    /// Whether the fact is new. False for a redelivery, which is a success too.
    pub stored: bool,
    /// The stored result of a CI run, which stands. Present only if it differs from the one that
    /// was sent and the request asked to compare them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_result: Option<Open<CiResult>>,
    /// In what the stored call, which stands, differs from the one that was sent. Present only if
    /// it differs and the request asked to compare them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<Open<CallMember>>,
}

closed_set! {
    /// In what a call that is sent again may differ from the stored one.
    pub enum CallMember {
        /// The model.
        Model = "model",
        /// The messages.
        Content = "content",
    }
}

closed_set! {
    /// Why a delivery is skipped. Nothing is stored, but the answer is a success, so that the
    /// sender does not repeat it.
    pub enum SkipReason {
        /// Neither the request nor the payload names a Session.
        NoSession = "no_session",
        /// The gateway logged something else than a model's answer to messages, such as an
        /// embedding, a search or a call of an MCP tool.
        NotAnInferenceCall = "not_an_inference_call",
        /// Only the content is skipped: the call is stored, but nothing that was said in it could
        /// be read. No receipt has this reason; the operator sees it counted.
        NoContent = "no_content",

        /// A webhook's ping, on the route for every event.
        Ping = "ping",
        /// An event that is not captured, on the route for every event.
        UnsupportedEvent = "unsupported_event",
        /// An event other than a push, on the route for pushes.
        NotPush = "not a push event",
        /// An event other than a repository change, on the route for those.
        NotRepository = "not a repository event",
        /// An event other than a workflow run, on the route for CI.
        NotWorkflowRun = "not a workflow_run event",
        /// An event other than a pull request, on the route for those.
        NotPullRequest = "not a pull_request event",
        /// The id of the delivery is too long.
        InvalidDeliveryId = "invalid_delivery_id",
        /// The name of the repository is too long.
        InvalidRepositoryName = "invalid_repository_name",

        /// The pushed ref is absent, or is not below `refs/heads/`.
        NotABranch = "not_a_branch",
        /// The pushed ref contains NUL or a surrogate, or is too long.
        InvalidRef = "invalid_ref",
        /// The push deletes its branch.
        BranchDeleted = "branch_deleted",
        /// The new commit of the branch is absent or not a commit id.
        InvalidAfterSha = "invalid_after_sha",
        /// The previous commit of the branch is absent or not a commit id.
        InvalidBeforeSha = "invalid_before_sha",

        /// The run has not completed yet.
        WorkflowRunNotCompleted = "workflow_run_not_completed",
        /// The payload does not describe a run.
        WorkflowRunAbsent = "workflow_run_absent",
        /// The id of the run is absent or not valid.
        InvalidRunId = "invalid_run_id",
        /// The commit of the run is absent or not a commit id.
        InvalidHeadSha = "invalid_head_sha",
        /// The branch of the run contains NUL or a surrogate, or is too long.
        InvalidHeadBranch = "invalid_head_branch",
        /// The id of the workflow contains NUL or a surrogate, or is too long.
        InvalidWorkflowId = "invalid_workflow_id",
        /// The path of the workflow contains NUL or a surrogate, or is too long.
        InvalidWorkflowPath = "invalid_workflow_path",

        /// The action is not that a pull request was opened, updated or closed.
        UnsupportedPullRequestAction = "unsupported_pull_request_action",
        /// The head repository of the pull request was deleted.
        HeadRepositoryDeleted = "head_repository_deleted",
        /// The head that the push left differs from the head of the pull request.
        SynchronizeHeadMismatch = "synchronize_head_mismatch",
        /// A member that describes the state of the pull request is absent or malformed.
        InvalidPullRequestRevisionBoundary = "invalid_pull_request_revision_boundary",
        /// The pull request was closed without being merged.
        PullRequestNotMerged = "pull_request_not_merged",
        /// A member that describes the merge is absent or malformed.
        InvalidPullRequestMergeBoundary = "invalid_pull_request_merge_boundary",

        /// The action of a repository event is absent or not a text.
        MalformedDiscriminator = "malformed_discriminator",
        /// The action of a repository event is not a rename.
        UnsupportedDiscriminator = "unsupported_discriminator",
        /// The renamed repository has no id.
        RepositoryIdentityAbsent = "repository_identity_absent",
        /// The id of the renamed repository is not a positive decimal number.
        RepositoryIdentityInvalid = "repository_identity_invalid",
        /// The old or the new name of the renamed repository is absent or malformed.
        InvalidRepositoryRenameBoundary = "invalid_repository_rename_boundary",
        /// The old and the new name differ only in case.
        RepositoryNameUnchanged = "repository_name_unchanged",
    }
}

/// The receipt for a delivery that was skipped. Nothing was stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Skipped {
    /// Always true.
    #[cfg_attr(feature = "schema", schemars(extend("const" = true)))]
    pub skipped: bool,
    /// Why the delivery was skipped.
    pub reason: Open<SkipReason>,
}

impl Skipped {
    /// Returns the receipt for this reason.
    pub const fn new(reason: SkipReason) -> Self {
        Self {
            skipped: true,
            reason: Open::Known(reason),
        }
    }
}

/// The receipt for one delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged)]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub enum IngestReceipt {
    /// The fact is stored, now or since an earlier delivery.
    Fact(IngestResult),
    /// The delivery was skipped.
    Skipped(Skipped),
}

/// A receipt of another kind is identified by its first member.
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

/// The receipt for a batch of payloads. Its counts add up to the number of payloads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct GatewayBatchReceipt {
    /// The number of payloads that became new facts.
    pub stored: u64,
    /// The number of payloads that were already stored.
    pub duplicates: u64,
    /// Payloads that were skipped, by reason.
    #[cfg_attr(feature = "schema", schemars(schema_with = "counts_by::<SkipReason>"))]
    pub skipped: BTreeMap<Open<SkipReason>, u64>,
    /// Payloads that can never be stored as they were sent, by reason.
    #[cfg_attr(
        feature = "schema",
        schemars(schema_with = "counts_by::<RejectedPayload>")
    )]
    pub rejected: BTreeMap<Open<RejectedPayload>, u64>,
}

impl GatewayBatchReceipt {
    /// Returns the number of payloads that the receipt accounts for.
    pub fn total(&self) -> u64 {
        let by_reason = self.skipped.values().chain(self.rejected.values());
        total([self.stored, self.duplicates], by_reason)
    }
}

/// Returns the sum of the counts of a receipt. Something else than the service may have answered, so it
/// may be any numbers.
pub(super) fn total<'c>(apart: [u64; 2], by_reason: impl Iterator<Item = &'c u64>) -> u64 {
    let counts = by_reason.copied().chain(apart);
    counts.fold(0, u64::saturating_add)
}

/// Describes counts by the words of a closed set.
#[cfg(feature = "schema")]
pub(super) fn counts_by<Name: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "propertyNames": generator.subschema_for::<Name>(),
        "additionalProperties": generator.subschema_for::<u64>(),
    })
}
