//! Exports facts one after another: by kind, then by id, so the same facts always come in the same
//! order.

use std::collections::{BTreeSet, HashMap};

use svc_engine_fact::{ObservationOrigin, PullRequest};
use svc_engine_store::{Snapshot, StoreError, StoredCall, StoredFact};
use svc_model::evidence::Message;
use svc_model::export::{
    CallContent, EditContent, ExportedCall, ExportedCiOutcome, ExportedDecision, ExportedEdit,
    ExportedFact, ExportedMerge, ExportedObservation, ExportedPullRequest, ExportedPush,
    ExportedRejection, ExportedRename, ExportedRetry, ExportedRevision, ExportedUsageReceipt,
    RawContent, RejectionContent,
};
use svc_model::facts::FactTable;
use svc_model::id::{FactId, SessionId};
use svc_model::json::{self, Json};
use svc_model::query::ObservationSource;
use svc_model::time::Instant;
use svc_model::usage::TokenCounts;

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

/// Makes the exported form of a fact: the members that it has itself, and the others.
macro_rules! form {
    ($fact:ident => $kind:ident($form:ident) {
        $($member:ident),+; $($other:ident: $value:expr),*
    }) => {{
        let $fact = *$fact;
        ExportedFact::$kind(Box::new($form {
            $($other: $value,)*
            $($member: $fact.$member,)+
        }))
    }};
}

fn exported(
    snapshot: &mut Snapshot<'_>,
    fact: StoredFact,
    with_content: bool,
    content_erased_at: Option<Instant>,
) -> Result<ExportedFact, Error> {
    // The placeholders of erased content are not exported.
    let with_content = with_content && content_erased_at.is_none();
    let raw = |raw: Json| with_content.then_some(RawContent { raw });
    Ok(match fact {
        StoredFact::InferenceCall(call) => {
            let content = if with_content {
                Some(content(snapshot, &call)?)
            } else {
                None
            };
            form!(call => InferenceCalls(ExportedCall) {
                inference_call_id, session_id, user_id, gateway_provider, model_call_id,
                model_provider, model, input_tokens, output_tokens, duration_ms, capture_source,
                agent, usage, response_id, request_id, observed_at, captured_at, input_bytes,
                output_bytes, left_out, input_unpaired;
                cwd: call.workplace.cwd, git_branch: call.workplace.git_branch, subagent: call.workplace.subagent,
                content_erased_at: content_erased_at, content: content
            })
        }
        StoredFact::DeveloperDecision(fact) => form!(fact => DeveloperDecisions(ExportedDecision) {
            decision_id, session_id, user_id, agent_harness, file_path, accepted, explicit,
            interaction_mode, commit_sha, call_id, edit_retention_score, observation_delay_ms,
            occurred_at, captured_at;
            content_erased_at: content_erased_at, content: raw(fact.raw)
        }),
        StoredFact::CiOutcome(fact) => form!(fact => CiOutcomes(ExportedCiOutcome) {
            outcome_id, provider, run_id, run_attempt, repo, repository, commit_sha, branch,
            workflow_name, workflow_id, workflow_path, result, run_url, provider_result,
            error_type, reason, source_event_type, source_spec_version, source_event_id,
            pr_number, signed, captured_at;
            content: raw(fact.raw)
        }),
        StoredFact::Push(fact) => form!(fact => Pushes(ExportedPush) {
            push_id, provider, repo, repository, clone_url, r#ref, before_sha, after_sha, forced,
            captured_at;
        }),
        StoredFact::PullRequestMerge(fact) => form!(fact => PullRequestMerges(ExportedMerge) {
            merge_id, merge_commit_sha, merged_at, source_event_id, captured_at;
            pull_request: pull_request(fact.pull_request)
        }),
        StoredFact::PullRequestRevision(fact) => {
            form!(fact => PullRequestRevisions(ExportedRevision) {
                revision_id, previous_head_sha, source_event_id, captured_at;
                pull_request: pull_request(fact.pull_request)
            })
        }
        StoredFact::EditObservation(fact) => form!(fact => EditObservations(ExportedEdit) {
            observation_id, session_id, user_id, agent_harness, call_id, file_path,
            external_lines_added, external_lines_removed, occurred_at, captured_at;
            content_erased_at: content_erased_at,
            content: with_content.then_some(EditContent {
                applied_text: fact.texts.applied,
                observed_file_text: fact.texts.observed_file,
                raw: fact.raw,
            })
        }),
        StoredFact::RejectedEdit(fact) => form!(fact => RejectedEdits(ExportedRejection) {
            rejection_id, session_id, user_id, agent_harness, call_id, file_path, occurred_at,
            captured_at;
            content_erased_at: content_erased_at,
            content: with_content.then_some(RejectionContent {
                proposed: fact.proposed,
                raw: fact.raw,
            })
        }),
        StoredFact::RetryLinkage(fact) => form!(fact => RetryLinkages(ExportedRetry) {
            retry_linkage_id, session_id, user_id, agent_harness, tool_name, file_path,
            rejected_call_id, accepted_call_id, occurred_at, captured_at;
            content_erased_at: content_erased_at, content: raw(fact.raw)
        }),
        StoredFact::SessionCommitObservation(fact) => {
            let (notes_ref, source) = match &fact.origin {
                ObservationOrigin::Note(notes_ref) => (Some(notes_ref.clone()), None),
                ObservationOrigin::Telemetry => (None, Some(ObservationSource::Telemetry)),
            };
            form!(fact => SessionCommitObservations(ExportedObservation) {
                observation_id, session_id, repo, repository, commit_sha, source_push_id,
                captured_at;
                notes_ref: notes_ref, source: source
            })
        }
        StoredFact::UsageReceipt(fact) => {
            let TokenCounts {
                input_tokens_uncached,
                cache_read_tokens,
                cache_write_tokens,
                cache_write_5m_tokens,
                cache_write_1h_tokens,
                output_tokens,
                reasoning_tokens,
            } = fact.tokens;
            form!(fact => UsageReceipts(ExportedUsageReceipt) {
                usage_receipt_id, session_id, user_id, source, agent, query_source, model,
                model_provider, request_id, response_id, client_request_id, cost_usd_micros,
                duration_ms, tier, occurred_at, captured_at, trace_id, span_id, sequence;
                input_tokens_uncached: input_tokens_uncached,
                cache_read_tokens: cache_read_tokens, cache_write_tokens: cache_write_tokens,
                cache_write_5m_tokens: cache_write_5m_tokens,
                cache_write_1h_tokens: cache_write_1h_tokens, output_tokens: output_tokens,
                reasoning_tokens: reasoning_tokens
            })
        }
        StoredFact::RepositoryRename(fact) => form!(fact => RepositoryRenames(ExportedRename) {
            rename_id, repository, old_repo, new_repo, source_event_id, occurred_at, captured_at;
        }),
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
