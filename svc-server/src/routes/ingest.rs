use std::collections::BTreeMap;

use svc_engine::capture::Receipt;
use svc_engine::capture::ci;
use svc_engine::capture::gateway::{self, Captured, GatewayError};
use svc_engine::store::{Append, Counted, Outcome};
use svc_model::capture::CaptureSource;
use svc_model::endpoint::CiOutcomeQuery;
use svc_model::facts::FactTable;
use svc_model::field::{Violation, Violations};
use svc_model::ingest::{
    GatewayBatchReceipt, GatewayBatchRequest, GatewayIngestRequest, GatewayProvider, IngestReceipt,
    IngestResult, RejectedPayload, SkipReason, Skipped, VendorCIRequest,
};
use svc_model::json::Json;
use svc_model::open::Open;
use svc_model::problem::Problem;
use svc_model::query::{CiOutcomeRequest, RepositorySelector};
use svc_model::time::Instant;

use crate::app::App;
use crate::counts::count;
use crate::dispatch::Exchange;

/// The result of capturing one payload.
enum Prepared {
    Fact {
        fact: Append,
        /// Whether nothing that was said could be read.
        is_empty: bool,
    },
    Skipped(SkipReason),
}

/// Captures one payload, which may contain the time of its call. Only counts and ids are logged,
/// never content.
fn prepare(
    exchange: &Exchange,
    request: GatewayIngestRequest,
    receipt: Receipt<'_>,
    made_at: Option<Instant>,
) -> Result<Prepared, GatewayError> {
    let provider = request.provider;
    let (captured, notes) = gateway::capture(request, receipt, &exchange.memory)?;
    if !notes.degradation.is_empty() {
        tracing::debug!(degradation = ?notes.degradation, "inference_messages_degraded");
    }
    if !notes.redactions.is_empty() {
        tracing::info!(redactions = %notes.redactions, "fact_redacted");
    }
    Ok(match captured {
        Captured::Call(mut call) => {
            call.observed_at = made_at.unwrap_or(call.observed_at);
            let messages = call.input_messages.iter().chain(&call.output_messages);
            let is_empty = messages.map(|message| message.parts.len()).sum::<usize>() == 0;
            if is_empty {
                tracing::info!(
                    call_id = call.model_call_id.as_deref(),
                    "gateway_ingest_without_content"
                );
            }
            Prepared::Fact {
                fact: exchange.app.engine.prepare(*call, receipt.received_at),
                is_empty,
            }
        }
        Captured::Skipped {
            reason,
            model_call_id,
        } => {
            tracing::info!(
                provider = provider.as_str(),
                call_id = model_call_id.as_deref(),
                reason = reason.as_str(),
                "{}",
                match reason {
                    SkipReason::NoSession => "gateway_ingest_skipped_no_session",
                    _ => "gateway_ingest_skipped",
                }
            );
            Prepared::Skipped(reason)
        }
    })
}

/// Logs why payloads can never be stored, and the position of the first of them in a batch.
fn log_rejected(reason: RejectedPayload, payloads: u64, first: Option<usize>) {
    tracing::info!(
        reason = reason.as_str(),
        payloads,
        first,
        "gateway_ingest_invalid_payload"
    );
}

fn invalid_payload() -> Problem {
    log_rejected(RejectedPayload::InvalidPayload, 1, None);
    Problem::Invalid(Violations::one(
        Violation::rule("the identities of the payload must contain no NUL and no surrogate, and have at most 1024 bytes")
            .at(vec!["body".into(), "payload".into()]),
    ))
}

/// Appends the only fact of a delivery, and counts the delivery.
pub(super) async fn append_one(
    app: &App,
    counted: Counted,
    fact: Append,
) -> Result<IngestResult, Problem> {
    let table = fact.table();
    let outcomes = app.engine.append(vec![fact], counted.clone()).await?;
    let outcome = outcomes.first().map(|outcome| (table, *outcome));
    app.counts.delivered(&counted.with(outcome));
    if let Some(Outcome::Superseding(fact_id) | Outcome::Overruled(fact_id)) = outcomes.first() {
        tracing::info!(signed = %fact_id, "ci_outcome_contradicted");
    }
    match outcomes.first() {
        Some(Outcome::Stored(fact_id) | Outcome::Superseding(fact_id)) => {
            tracing::debug!(%fact_id, stored = true, "fact_stored");
            Ok(IngestResult {
                fact_id: *fact_id,
                stored: true,
                stored_result: None,
                differs: Vec::new(),
            })
        }
        Some(Outcome::Redelivered(fact_id) | Outcome::Overruled(fact_id)) => {
            tracing::debug!(%fact_id, stored = false, "fact_stored");
            Ok(IngestResult {
                fact_id: *fact_id,
                stored: false,
                stored_result: None,
                differs: Vec::new(),
            })
        }
        Some(Outcome::Differs(fact_id, members)) => Ok(IngestResult {
            fact_id: *fact_id,
            stored: false,
            stored_result: None,
            differs: members.iter().copied().map(Open::Known).collect(),
        }),
        Some(Outcome::Conflict(code)) => {
            tracing::info!(code = code.as_str(), "ingest_identity_conflict");
            Err(Problem::Conflict(*code))
        }
        Some(Outcome::Known) | None => {
            tracing::warn!("store.no_outcome");
            Err(Problem::StoreUnavailable)
        }
    }
}

/// Appends the facts of a delivery together with its counts. A delivery without facts is only
/// counted, without waiting for the store.
pub(super) async fn store(
    app: &App,
    facts: Vec<Append>,
    counted: &Counted,
) -> Result<Vec<Outcome>, Problem> {
    if facts.is_empty() {
        app.engine.count(counted);
        return Ok(Vec::new());
    }
    Ok(app.engine.append(facts, counted.clone()).await?)
}

/// Counts a delivery that is skipped.
pub(super) fn skipped(app: &App, source: CaptureSource, at: Instant, reason: SkipReason) {
    let mut counted = Counted::new(source, at);
    count(&mut counted.source().skipped, reason.as_str(), 1);
    without_facts(app, &counted);
}

/// Counts a delivery without facts.
fn without_facts(app: &App, counted: &Counted) {
    app.counts.delivered(&counted.totals);
    app.engine.count(counted);
}

/// Counts calls that are stored although nothing that was said could be read.
fn count_empty(counted: &mut Counted, calls: u64) {
    if calls > 0 {
        let reason = SkipReason::NoContent.as_str();
        count(&mut counted.source().skipped, reason, calls);
    }
}

pub(super) async fn gateway(
    exchange: Exchange,
    request: GatewayIngestRequest,
) -> Result<Open<IngestReceipt>, Problem> {
    let receipt = exchange.app.engine.receipt();
    let at = receipt.received_at;
    let (provider, compare) = (request.provider, request.compare);
    let prepared = exchange
        .in_place(|| prepare(&exchange, request, receipt, None))
        .map_err(|error| match error {
            GatewayError::UnsupportedProvider => Problem::UnsupportedProvider(provider),
            GatewayError::InvalidPayload => {
                let reason = RejectedPayload::InvalidPayload;
                let mut counted = Counted::new(CaptureSource::Gateway, at);
                count(&mut counted.source().rejected, reason.as_str(), 1);
                without_facts(&exchange.app, &counted);
                invalid_payload()
            }
            GatewayError::TooLarge => Problem::TooManyValues,
        })?;
    match prepared {
        Prepared::Skipped(reason) => {
            skipped(&exchange.app, CaptureSource::Gateway, at, reason);
            Ok(IngestReceipt::Skipped(Skipped::new(reason)).into())
        }
        Prepared::Fact { fact, is_empty } => {
            let mut counted = Counted::new(CaptureSource::Gateway, at);
            count_empty(&mut counted, u64::from(is_empty));
            let mut appended = append_one(&exchange.app, counted, fact).await?;
            if !compare {
                appended.differs.clear();
            }
            Ok(IngestReceipt::Fact(appended).into())
        }
    }
}

pub(super) async fn gateway_batch(
    exchange: Exchange,
    request: GatewayBatchRequest,
) -> Result<GatewayBatchReceipt, Problem> {
    if request.provider != GatewayProvider::GatewayA {
        return Err(Problem::UnsupportedProvider(request.provider));
    }
    let mut receipt = GatewayBatchReceipt::default();
    let (mut facts, mut empty) = (Vec::new(), 0);
    let prepare_all = || -> Result<Vec<_>, Problem> {
        request
            .payloads
            .into_iter()
            .map(|payload| {
                let payload = match payload {
                    Ok(payload) => payload,
                    Err(reason) => return Ok(Err(reason)),
                };
                let receipt = exchange.app.engine.receipt();
                let made_at = gateway::delivery_moment(&payload);
                let request = GatewayIngestRequest {
                    provider: request.provider,
                    session_id: None,
                    user_id: None,
                    capture: gateway::delivery_name(&payload, receipt.received_at),
                    payload: Json::Object(payload),
                    compare: false,
                };
                match prepare(&exchange, request, receipt, made_at) {
                    Ok(prepared) => Ok(Ok(prepared)),
                    // The whole batch is refused, and none of it is stored.
                    Err(GatewayError::TooLarge) => Err(Problem::TooManyValues),
                    Err(GatewayError::UnsupportedProvider | GatewayError::InvalidPayload) => {
                        Ok(Err(RejectedPayload::InvalidPayload))
                    }
                }
            })
            .collect()
    };
    let prepared = exchange.in_place(prepare_all)?;
    // One line a reason, however many payloads a batch has.
    let mut rejected: BTreeMap<RejectedPayload, (u64, usize)> = BTreeMap::new();
    for (place, prepared) in prepared.into_iter().enumerate() {
        match prepared {
            Ok(Prepared::Fact { fact, is_empty }) => {
                facts.push(fact);
                empty += u64::from(is_empty);
            }
            Ok(Prepared::Skipped(reason)) => {
                *receipt.skipped.entry(reason.into()).or_default() += 1;
            }
            Err(reason) => rejected.entry(reason).or_insert((0, place)).0 += 1,
        }
    }
    for (reason, (payloads, first)) in rejected {
        log_rejected(reason, payloads, Some(first));
        receipt.rejected.insert(reason.into(), payloads);
    }
    let tables: Vec<FactTable> = facts.iter().map(Append::table).collect();
    let app = &exchange.app;
    let mut counted = Counted::new(CaptureSource::Gateway, app.engine.now());
    count_empty(&mut counted, empty);
    let source = counted.source();
    for (reason, by) in &receipt.skipped {
        count(&mut source.skipped, reason.as_str(), *by);
    }
    for (reason, by) in &receipt.rejected {
        count(&mut source.rejected, reason.as_str(), *by);
    }
    let outcomes = store(app, facts, &counted).await?;
    let facts = tables.into_iter().zip(outcomes.iter().copied());
    app.counts.delivered(&counted.with(facts));
    for outcome in outcomes {
        match outcome {
            Outcome::Stored(_) | Outcome::Superseding(_) => receipt.stored += 1,
            Outcome::Redelivered(_) | Outcome::Overruled(_) | Outcome::Known => {
                receipt.duplicates += 1;
            }
            // It is not stored, so it must not look like a mere repetition.
            Outcome::Differs(..) | Outcome::Conflict(_) => {
                *receipt
                    .rejected
                    .entry(RejectedPayload::InferenceCallIdentityConflict.into())
                    .or_default() += 1;
            }
        }
    }
    Ok(receipt)
}

pub(super) async fn ci(
    exchange: Exchange,
    request: VendorCIRequest,
) -> Result<IngestResult, Problem> {
    let receipt = exchange.app.engine.receipt();
    let at = receipt.received_at;
    let asked = request.compare.then(|| retained(&request));
    let sent = request.result;
    let (outcome, redactions) = ci::capture(request, receipt);
    if !redactions.is_empty() {
        tracing::info!(?redactions, "fact_redacted");
    }
    let outcome = Append::CiOutcome(Box::new(outcome));
    let counted = Counted::new(CaptureSource::Ci, at);
    let mut appended = append_one(&exchange.app, counted, outcome).await?;
    if let Some(asked) = asked.filter(|_| !appended.stored) {
        // The receipt is correct without it.
        let retained = exchange.app.engine.answer::<CiOutcomeQuery>(asked).await;
        let retained = retained.ok().and_then(|answer| answer.outcome);
        let retained = retained.filter(|retained| {
            let superseded = retained.superseded.iter().map(|other| other.outcome_id);
            superseded
                .chain([retained.outcome_id])
                .any(|outcome_id| outcome_id == appended.fact_id)
        });
        appended.stored_result = retained
            .map(|retained| retained.result)
            .filter(|retained| *retained != sent);
    }
    Ok(appended)
}

/// Returns the request for the outcome that is stored for the reported run.
fn retained(request: &VendorCIRequest) -> CiOutcomeRequest {
    CiOutcomeRequest {
        provider: request.provider,
        run_id: request.run_id.clone(),
        run_attempt: request.run_attempt,
        latest: false,
        repository: RepositorySelector {
            repo: None,
            identity: request.repository_identity(),
        },
        as_of: None,
    }
}
