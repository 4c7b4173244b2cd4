//! Exports facts one after another: by kind, then by id, so the same facts always come in the same
//! order.

use std::collections::{BTreeSet, HashMap};

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
use crate::fact::PullRequest;
use crate::store::{Snapshot, StoreError, StoredCall, StoredFact};

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
        StoredFact::DeveloperDecision(it) => {
            ExportedFact::DeveloperDecisions(Box::new(ExportedDecision {
                decision_id: it.decision_id,
                session_id: it.session_id,
                user_id: it.user_id,
                agent_harness: it.agent_harness,
                file_path: it.file_path,
                accepted: it.accepted,
                explicit: it.explicit,
                interaction_mode: it.interaction_mode,
                commit_sha: it.commit_sha,
                call_id: it.call_id,
                edit_retention_score: it.edit_retention_score,
                observation_delay_ms: it.observation_delay_ms,
                occurred_at: it.occurred_at,
                captured_at: it.captured_at,
                content_erased_at: erased_at,
                content: raw(it.raw),
            }))
        }
        StoredFact::CiOutcome(it) => ExportedFact::CiOutcomes(Box::new(ExportedCiOutcome {
            outcome_id: it.outcome_id,
            provider: it.provider,
            run_id: it.run_id,
            run_attempt: it.run_attempt,
            repo: it.repo,
            repository: it.repository,
            commit_sha: it.commit_sha,
            branch: it.branch,
            workflow_name: it.workflow_name,
            workflow_id: it.workflow_id,
            workflow_path: it.workflow_path,
            result: it.result,
            run_url: it.run_url,
            provider_result: it.provider_result,
            error_type: it.error_type,
            reason: it.reason,
            source_event_type: it.source_event_type,
            source_spec_version: it.source_spec_version,
            source_event_id: it.source_event_id,
            pr_number: it.pr_number,
            captured_at: it.captured_at,
            content: raw(it.raw),
        })),
        StoredFact::Push(it) => ExportedFact::Pushes(Box::new(ExportedPush {
            push_id: it.push_id,
            provider: it.provider,
            repo: it.repo,
            repository: it.repository,
            clone_url: it.clone_url,
            r#ref: it.r#ref,
            before_sha: it.before_sha,
            after_sha: it.after_sha,
            forced: it.forced,
            captured_at: it.captured_at,
        })),
        StoredFact::PullRequestMerge(it) => {
            ExportedFact::PullRequestMerges(Box::new(ExportedMerge {
                merge_id: it.merge_id,
                pull_request: pull_request(it.pull_request),
                merge_commit_sha: it.merge_commit_sha,
                merged_at: it.merged_at,
                source_event_id: it.source_event_id,
                captured_at: it.captured_at,
            }))
        }
        StoredFact::PullRequestRevision(it) => {
            ExportedFact::PullRequestRevisions(Box::new(ExportedRevision {
                revision_id: it.revision_id,
                pull_request: pull_request(it.pull_request),
                previous_head_sha: it.previous_head_sha,
                source_event_id: it.source_event_id,
                captured_at: it.captured_at,
            }))
        }
        StoredFact::EditObservation(it) => ExportedFact::EditObservations(Box::new(ExportedEdit {
            observation_id: it.observation_id,
            session_id: it.session_id,
            user_id: it.user_id,
            agent_harness: it.agent_harness,
            call_id: it.call_id,
            file_path: it.file_path,
            external_lines_added: it.external_lines_added,
            external_lines_removed: it.external_lines_removed,
            occurred_at: it.occurred_at,
            captured_at: it.captured_at,
            content_erased_at: erased_at,
            content: with_content.then_some(EditContent {
                applied_text: it.texts.applied,
                observed_file_text: it.texts.observed_file,
                raw: it.raw,
            }),
        })),
        StoredFact::RejectedEdit(it) => ExportedFact::RejectedEdits(Box::new(ExportedRejection {
            rejection_id: it.rejection_id,
            session_id: it.session_id,
            user_id: it.user_id,
            agent_harness: it.agent_harness,
            call_id: it.call_id,
            file_path: it.file_path,
            occurred_at: it.occurred_at,
            captured_at: it.captured_at,
            content_erased_at: erased_at,
            content: with_content.then_some(RejectionContent {
                proposed: it.proposed,
                raw: it.raw,
            }),
        })),
        StoredFact::RetryLinkage(it) => ExportedFact::RetryLinkages(Box::new(ExportedRetry {
            retry_linkage_id: it.retry_linkage_id,
            session_id: it.session_id,
            user_id: it.user_id,
            agent_harness: it.agent_harness,
            tool_name: it.tool_name,
            file_path: it.file_path,
            rejected_call_id: it.rejected_call_id,
            accepted_call_id: it.accepted_call_id,
            occurred_at: it.occurred_at,
            captured_at: it.captured_at,
            content_erased_at: erased_at,
            content: raw(it.raw),
        })),
        StoredFact::SessionCommitObservation(it) => {
            ExportedFact::SessionCommitObservations(Box::new(ExportedObservation {
                observation_id: it.observation_id,
                session_id: it.session_id,
                repo: it.repo,
                repository: it.repository,
                commit_sha: it.commit_sha,
                source_push_id: it.source_push_id,
                notes_ref: it.notes_ref,
                captured_at: it.captured_at,
            }))
        }
        StoredFact::RepositoryRename(it) => {
            ExportedFact::RepositoryRenames(Box::new(ExportedRename {
                rename_id: it.rename_id,
                repository: it.repository,
                old_repo: it.old_repo,
                new_repo: it.new_repo,
                source_event_id: it.source_event_id,
                occurred_at: it.occurred_at,
                captured_at: it.captured_at,
            }))
        }
    })
}

fn pull_request(it: PullRequest) -> ExportedPullRequest {
    ExportedPullRequest {
        provider: it.provider,
        repo: it.repo,
        repository: it.repository,
        pr_number: it.pr_number,
        head_repo: it.head_repo,
        head_repository: it.head_repository,
        head_ref: it.head_ref,
        head_sha: it.head_sha,
        base_ref: it.base_ref,
        base_sha: it.base_sha,
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
