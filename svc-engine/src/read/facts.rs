//! Counts and metadata of facts.

use std::collections::BTreeSet;

use svc_engine_store::Snapshot;
use svc_model::endpoint::{Compatibility, Facts, SessionCalls, SessionFacts};
use svc_model::evidence::Part;
use svc_model::facts::{
    CompatibilityCall, CompatibilityEvidence, FactTable, FactsCounts, SessionFactsCounts,
    SessionInferenceCalls, SessionRequest,
};
use svc_model::limit::{
    COMPATIBILITY_CALLS_MAX, COMPATIBILITY_DECISIONS_MAX, RECONCILIATION_CALLS_MAX,
};
use svc_model::problem::SessionBound;

use super::ContentCache;
use super::answer::{AdmissionKind, Answer, ReadContext};
use super::earlier_cost::earlier_costs;
use crate::error::Error;

/// Returns the counts of the organization's facts.
///
/// # Errors
///
/// If the store does not answer.
pub fn facts(snapshot: &mut Snapshot<'_>) -> Result<FactsCounts, Error> {
    Ok(FactsCounts {
        sessions: snapshot.session_count()?,
        tables: snapshot.fact_counts()?,
        quarantine_revision: snapshot.quarantine_revision()?,
    })
}

/// Returns the counts of a Session's facts.
///
/// # Errors
///
/// If the store does not answer.
pub fn session_facts(
    snapshot: &mut Snapshot<'_>,
    request: SessionRequest,
) -> Result<SessionFactsCounts, Error> {
    Ok(SessionFactsCounts {
        tables: snapshot.session_fact_counts(&request.session_id)?,
        session_id: request.session_id,
    })
}

/// Returns the metadata of a Session's visible calls.
///
/// # Errors
///
/// If there are too many.
pub fn session_inference_calls(
    snapshot: &mut Snapshot<'_>,
    request: SessionRequest,
) -> Result<SessionInferenceCalls, Error> {
    let count = snapshot.session_fact_count(&request.session_id, FactTable::InferenceCalls)?;
    if count.visible > RECONCILIATION_CALLS_MAX {
        return Err(Error::SessionBound(SessionBound::Reconciliation));
    }
    let mut inference_calls = snapshot.call_scalars(&request.session_id)?;
    let costs = earlier_costs(snapshot, &request.session_id)?;
    for call in &mut inference_calls {
        let cost = costs.get(&call.inference_call_id);
        call.usage.cost_usd_micros = call.usage.cost_usd_micros.or(cost.copied());
    }
    Ok(SessionInferenceCalls {
        inference_calls,
        session_id: request.session_id,
    })
}

/// Returns the facts of a Session that an agent harness can compare with its own records.
///
/// # Errors
///
/// If there are too many.
pub fn compatibility_evidence(
    snapshot: &mut Snapshot<'_>,
    cache: &ContentCache,
    request: SessionRequest,
) -> Result<CompatibilityEvidence, Error> {
    let session_id = request.session_id;
    let kinds = [
        FactTable::InferenceCalls,
        FactTable::DeveloperDecisions,
        FactTable::EditObservations,
    ];
    let [calls, decisions, edits] = snapshot.session_fact_counts_of(&session_id, kinds)?;
    if calls.visible > COMPATIBILITY_CALLS_MAX
        || decisions.visible > COMPATIBILITY_DECISIONS_MAX
        || edits.visible > COMPATIBILITY_DECISIONS_MAX
    {
        return Err(Error::SessionBound(SessionBound::Compatibility));
    }
    let outputs = snapshot.call_outputs(&session_id)?;
    let contents = cache.load(snapshot, outputs.iter().flatten().copied())?;
    let erased = snapshot.erased_calls(&session_id)?;
    let calls = if erased.is_empty() {
        Vec::new()
    } else {
        // In the order of the outputs.
        snapshot.call_summaries(&session_id)?
    };
    let inference_calls = outputs
        .iter()
        .enumerate()
        .map(|(place, output)| {
            let ids: BTreeSet<&str> = output
                .iter()
                .flat_map(|id| &contents[id].message.parts)
                .filter_map(|part| match part {
                    Part::ToolCall { id, .. } => Some(id.as_str()),
                    Part::Text { .. } | Part::Reasoning { .. } | Part::ToolCallResponse { .. } => {
                        None
                    }
                })
                .collect();
            CompatibilityCall {
                tool_call_ids: ids.into_iter().map(str::to_owned).collect(),
                content_erased_at: calls
                    .get(place)
                    .and_then(|call| erased.get(&call.inference_call_id).copied()),
            }
        })
        .collect();
    Ok(CompatibilityEvidence {
        inference_calls,
        developer_decisions: snapshot.decisions(&session_id)?,
        edit_observations: snapshot.edit_observations(&session_id)?,
        session_id,
    })
}

impl Answer for Facts {
    const ADMISSION: AdmissionKind = AdmissionKind::Short;

    fn answer(reading: &mut ReadContext<'_, '_>, _: Self::Request) -> Result<Self::Reply, Error> {
        facts(reading.snapshot)
    }
}

impl Answer for SessionFacts {
    const ADMISSION: AdmissionKind = AdmissionKind::Short;

    fn answer(
        reading: &mut ReadContext<'_, '_>,
        request: Self::Request,
    ) -> Result<Self::Reply, Error> {
        session_facts(reading.snapshot, request)
    }
}

impl Answer for SessionCalls {
    const ADMISSION: AdmissionKind = AdmissionKind::Short;

    fn answer(
        reading: &mut ReadContext<'_, '_>,
        request: Self::Request,
    ) -> Result<Self::Reply, Error> {
        session_inference_calls(reading.snapshot, request)
    }
}

impl Answer for Compatibility {
    const ADMISSION: AdmissionKind = AdmissionKind::Short;

    fn answer(
        reading: &mut ReadContext<'_, '_>,
        request: Self::Request,
    ) -> Result<Self::Reply, Error> {
        let content = reading.content()?;
        compatibility_evidence(reading.snapshot, &content, request)
    }
}
