//! Exports facts one after another: by kind, then by id, so the same facts always come in the same
//! order.

use std::collections::{BTreeSet, HashMap};

use svc_engine_fact::PullRequest;
use svc_engine_store::{Snapshot, StoreError, StoredCall, StoredFact};
use svc_model::evidence::Message;
use svc_model::export::{
    CallContent, EditContent, ExportedCall, ExportedCiOutcome, ExportedDecision, ExportedEdit,
    ExportedFact, ExportedMerge, ExportedObservation, ExportedPullRequest, ExportedPush,
    ExportedRejection, ExportedRename, ExportedRetry, ExportedRevision, RawContent,
    RejectionContent,
};
use svc_model::facts::FactTable;
use svc_model::id::{FactId, SessionId};
use svc_model::json::{self, Json};
use svc_model::time::Instant;

use crate::error::Error;

/// How many facts are read at once.
const FACTS_MAX: usize = 500;
/// How many facts are read at once with their contents, each of which may be tens of megabytes.
const FACTS_WITH_CONTENT_MAX: usize = 16;

/// Selects the facts to export.
#[derive(Clone, Debug)]
pub struct Export {
    /// The kinds, in the order of the export.
    pub kinds: Vec<FactTable>,
    /// The range of capture times: from the first, and before the second, where given.
    pub captured: (Option<Instant>, Option<Instant>),
    /// Whether to include what people, models and machines wrote.
    pub with_content: bool,
}

/// Calls `each` with every selected visible fact, its kind and its id, all from one snapshot.
///
/// # Errors
///
/// If the store does not answer before the deadline, a row cannot be read, or `each` fails.
pub fn export<E: From<Error>>(
    snapshot: &mut Snapshot<'_>,
    export: &Export,
    mut each: impl FnMut(FactTable, FactId, ExportedFact) -> Result<(), E>,
) -> Result<(), E> {
    let at_once = if export.with_content {
        FACTS_WITH_CONTENT_MAX
    } else {
        FACTS_MAX
    };
    for kind in &export.kinds {
        let ids = snapshot.visible_ids(*kind, export.captured);
        for ids in ids.map_err(Error::from)?.chunks(at_once) {
            let facts = snapshot.facts_of(*kind, ids).map_err(Error::from)?;
            let sessions: BTreeSet<&SessionId> =
                facts.iter().filter_map(StoredFact::session).collect();
            let erased = snapshot.erased_facts(*kind, sessions);
            let erased = erased.map_err(Error::from)?;
            for fact in facts {
                let id = fact.id();
                let erased_at = erased.get(&id).copied();
                each(
                    *kind,
                    id,
                    exported(snapshot, fact, export.with_content, erased_at)?,
                )?;
            }
        }
    }
    Ok(())
}

fn exported(
    snapshot: &mut Snapshot<'_>,
    fact: StoredFact,
    with_content: bool,
    erased_at: Option<Instant>,
) -> Result<ExportedFact, Error> {
    // The placeholders of erased content are not exported.
    let with_content = with_content && erased_at.is_none();
    let raw = |raw: Json| with_content.then_some(RawContent { raw });
    Ok(match fact {
        StoredFact::InferenceCall(call) => {
            let content = if with_content {
                Some(content(snapshot, &call)?)
            } else {
                None
            };
            ExportedFact::InferenceCalls(Box::new(exported_call(*call, content, erased_at)))
        }
        StoredFact::DeveloperDecision(decision) => {
            ExportedFact::DeveloperDecisions(Box::new(ExportedDecision {
                decision_id: decision.decision_id,
                session_id: decision.session_id,
                user_id: decision.user_id,
                agent_harness: decision.agent_harness,
                file_path: decision.file_path,
                accepted: decision.accepted,
                explicit: decision.explicit,
                interaction_mode: decision.interaction_mode,
                commit_sha: decision.commit_sha,
                call_id: decision.call_id,
                edit_retention_score: decision.edit_retention_score,
                observation_delay_ms: decision.observation_delay_ms,
                occurred_at: decision.occurred_at,
                captured_at: decision.captured_at,
                content_erased_at: erased_at,
                content: raw(decision.raw),
            }))
        }
        StoredFact::CiOutcome(outcome) => ExportedFact::CiOutcomes(Box::new(ExportedCiOutcome {
            outcome_id: outcome.outcome_id,
            provider: outcome.provider,
            run_id: outcome.run_id,
            run_attempt: outcome.run_attempt,
            repo: outcome.repo,
            repository: outcome.repository,
            commit_sha: outcome.commit_sha,
            branch: outcome.branch,
            workflow_name: outcome.workflow_name,
            workflow_id: outcome.workflow_id,
            workflow_path: outcome.workflow_path,
            result: outcome.result,
            run_url: outcome.run_url,
            provider_result: outcome.provider_result,
            error_type: outcome.error_type,
            reason: outcome.reason,
            source_event_type: outcome.source_event_type,
            source_spec_version: outcome.source_spec_version,
            source_event_id: outcome.source_event_id,
            pr_number: outcome.pr_number,
            signed: outcome.signed,
            captured_at: outcome.captured_at,
            content: raw(outcome.raw),
        })),
        StoredFact::Push(push) => ExportedFact::Pushes(Box::new(ExportedPush {
            push_id: push.push_id,
            provider: push.provider,
            repo: push.repo,
            repository: push.repository,
            clone_url: push.clone_url,
            r#ref: push.r#ref,
            before_sha: push.before_sha,
            after_sha: push.after_sha,
            forced: push.forced,
            captured_at: push.captured_at,
        })),
        StoredFact::PullRequestMerge(merge) => {
            ExportedFact::PullRequestMerges(Box::new(ExportedMerge {
                merge_id: merge.merge_id,
                pull_request: pull_request(merge.pull_request),
                merge_commit_sha: merge.merge_commit_sha,
                merged_at: merge.merged_at,
                source_event_id: merge.source_event_id,
                captured_at: merge.captured_at,
            }))
        }
        StoredFact::PullRequestRevision(revision) => {
            ExportedFact::PullRequestRevisions(Box::new(ExportedRevision {
                revision_id: revision.revision_id,
                pull_request: pull_request(revision.pull_request),
                previous_head_sha: revision.previous_head_sha,
                source_event_id: revision.source_event_id,
                captured_at: revision.captured_at,
            }))
        }
        StoredFact::EditObservation(edit) => {
            ExportedFact::EditObservations(Box::new(ExportedEdit {
                observation_id: edit.observation_id,
                session_id: edit.session_id,
                user_id: edit.user_id,
                agent_harness: edit.agent_harness,
                call_id: edit.call_id,
                file_path: edit.file_path,
                external_lines_added: edit.external_lines_added,
                external_lines_removed: edit.external_lines_removed,
                occurred_at: edit.occurred_at,
                captured_at: edit.captured_at,
                content_erased_at: erased_at,
                content: with_content.then_some(EditContent {
                    applied_text: edit.texts.applied,
                    observed_file_text: edit.texts.observed_file,
                    raw: edit.raw,
                }),
            }))
        }
        StoredFact::RejectedEdit(rejection) => {
            ExportedFact::RejectedEdits(Box::new(ExportedRejection {
                rejection_id: rejection.rejection_id,
                session_id: rejection.session_id,
                user_id: rejection.user_id,
                agent_harness: rejection.agent_harness,
                call_id: rejection.call_id,
                file_path: rejection.file_path,
                occurred_at: rejection.occurred_at,
                captured_at: rejection.captured_at,
                content_erased_at: erased_at,
                content: with_content.then_some(RejectionContent {
                    proposed: rejection.proposed,
                    raw: rejection.raw,
                }),
            }))
        }
        StoredFact::RetryLinkage(retry) => ExportedFact::RetryLinkages(Box::new(ExportedRetry {
            retry_linkage_id: retry.retry_linkage_id,
            session_id: retry.session_id,
            user_id: retry.user_id,
            agent_harness: retry.agent_harness,
            tool_name: retry.tool_name,
            file_path: retry.file_path,
            rejected_call_id: retry.rejected_call_id,
            accepted_call_id: retry.accepted_call_id,
            occurred_at: retry.occurred_at,
            captured_at: retry.captured_at,
            content_erased_at: erased_at,
            content: raw(retry.raw),
        })),
        StoredFact::SessionCommitObservation(observation) => {
            ExportedFact::SessionCommitObservations(Box::new(ExportedObservation {
                observation_id: observation.observation_id,
                session_id: observation.session_id,
                repo: observation.repo,
                repository: observation.repository,
                commit_sha: observation.commit_sha,
                source_push_id: observation.source_push_id,
                notes_ref: observation.notes_ref,
                captured_at: observation.captured_at,
            }))
        }
        StoredFact::RepositoryRename(rename) => {
            ExportedFact::RepositoryRenames(Box::new(ExportedRename {
                rename_id: rename.rename_id,
                repository: rename.repository,
                old_repo: rename.old_repo,
                new_repo: rename.new_repo,
                source_event_id: rename.source_event_id,
                occurred_at: rename.occurred_at,
                captured_at: rename.captured_at,
            }))
        }
    })
}

fn pull_request(pull_request: PullRequest) -> ExportedPullRequest {
    ExportedPullRequest {
        provider: pull_request.provider,
        repo: pull_request.repo,
        repository: pull_request.repository,
        pr_number: pull_request.pr_number,
        head_repo: pull_request.head_repo,
        head_repository: pull_request.head_repository,
        head_ref: pull_request.head_ref,
        head_sha: pull_request.head_sha,
        base_ref: pull_request.base_ref,
        base_sha: pull_request.base_sha,
    }
}

fn exported_call(
    call: StoredCall,
    content: Option<CallContent>,
    content_erased_at: Option<Instant>,
) -> ExportedCall {
    ExportedCall {
        inference_call_id: call.inference_call_id,
        session_id: call.session_id,
        user_id: call.user_id,
        gateway_provider: call.gateway_provider,
        model_call_id: call.model_call_id,
        model_provider: call.model_provider,
        model: call.model,
        input_tokens: call.input_tokens,
        output_tokens: call.output_tokens,
        duration_ms: call.duration_ms,
        observed_at: call.observed_at,
        captured_at: call.captured_at,
        input_bytes: call.input_bytes,
        output_bytes: call.output_bytes,
        left_out: call.left_out,
        content_erased_at,
        content,
    }
}

fn content(snapshot: &mut Snapshot<'_>, call: &StoredCall) -> Result<CallContent, Error> {
    let mut ids = [&call.input[..], &call.output].concat();
    ids.sort_unstable();
    ids.dedup();
    let mut found: HashMap<i64, Message> = HashMap::with_capacity(ids.len());
    snapshot.content(&ids, |content_id, bytes| {
        let message = json::from_written(bytes).map_err(|_| CORRUPT)?;
        found.insert(content_id, message);
        Ok(())
    })?;
    let messages = |ids: &[i64]| {
        let messages = ids.iter().map(|id| found.get(id).cloned());
        messages.collect::<Option<Vec<Message>>>().ok_or(CORRUPT)
    };
    let raw = snapshot.call_raw(call.inference_call_id)?.ok_or(CORRUPT)?;
    Ok(CallContent {
        input_messages: messages(&call.input)?,
        output_messages: messages(&call.output)?,
        raw: Json::parse(&raw).map_err(|_| CORRUPT)?,
    })
}

const CORRUPT: StoreError = StoreError::Corrupt {
    table: "content",
    what: "a message of a call",
};
