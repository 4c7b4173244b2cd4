//! A CI system's report of a run becomes a CI outcome.

use svc_model::id::FactId;
use svc_model::ingest::VendorCIRequest;
use svc_model::json::{Json, Object, Text};
use svc_model::limit::CI_REASON_CHARACTERS_MAX;

use super::redaction::{self, Counts, MARKER};
use super::{Receipt, Redaction};
use crate::fact::CiOutcome;

/// Turns a report into a CI outcome. Its free text is redacted.
pub fn capture(request: VendorCIRequest, receipt: Receipt<'_>) -> (CiOutcome, Counts) {
    let mut counts = Counts::default();
    let repository = request.repository_identity();
    let mut reason = request.reason;
    if let (Some(reason), Redaction::On) = (&mut reason, receipt.redaction) {
        counts = redaction::redact_text(reason);
        shorten(reason);
    }
    let outcome = CiOutcome {
        outcome_id: FactId::new(receipt.fresh_id),
        provider: request.provider,
        run_id: request.run_id.into(),
        run_attempt: request.run_attempt,
        repo: request.repo.into(),
        repository,
        commit_sha: request.commit_sha,
        branch: request.branch,
        workflow_name: request.workflow_name,
        workflow_id: request.workflow_id.map(Into::into),
        workflow_path: request.workflow_path,
        result: request.result,
        run_url: request.run_url,
        provider_result: request.provider_result,
        error_type: request.error_type,
        reason,
        source_event_type: request.source_event_type,
        source_spec_version: request.source_spec_version,
        source_event_id: request.source_event_id.map(Into::into),
        pr_number: None,
        captured_at: receipt.received_at,
        raw: Json::Object(Object::new()),
    };
    (outcome, counts)
}

/// Cuts a reason that outgrew its bound when its credentials were replaced. A marker ends it, and
/// none in it is cut in two.
fn shorten(reason: &mut Text) {
    let bytes = reason.as_bytes();
    let starts = |bytes: &[u8]| {
        bytes.iter().enumerate().filter(|(_, byte)| **byte & 0xc0 != 0x80).map(|(at, _)| at).collect::<Vec<_>>()
    };
    let starts = starts(bytes);
    if starts.len() <= CI_REASON_CHARACTERS_MAX {
        return;
    }
    let mut end = starts[CI_REASON_CHARACTERS_MAX - MARKER.len()];
    let around = end.saturating_sub(MARKER.len() - 1)..end;
    if let Some(cut) = around.rev().find(|at| bytes[*at..].starts_with(MARKER.as_bytes())) {
        end = cut;
    }
    let shortened = [&bytes[..end], MARKER.as_bytes()].concat();
    *reason = Text::from_wtf8(shortened).unwrap_or_else(|| MARKER.into());
}
