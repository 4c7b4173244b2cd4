//! Turns a CI system's report of a run into a CI outcome.

use svc_engine_fact::CiOutcome;
use svc_model::ingest::VendorCIRequest;
use svc_model::json::{Json, Object, Text};
use svc_model::limit::CI_REASON_CHARACTERS_MAX;

use super::Receipt;
use super::redaction::{MARKER, RedactionCounts};

/// Turns a report into a CI outcome. Its free texts and its URL are redacted.
pub fn capture(request: VendorCIRequest, receipt: Receipt<'_>) -> (CiOutcome, RedactionCounts) {
    let mut counts = RedactionCounts::default();
    let repository = request.repository_identity();
    let (mut reason, mut run_url) = (request.reason, request.run_url);
    let mut error_type = request.error_type;
    if let Some(mut redactor) = receipt.redactor() {
        for text in [&mut reason, &mut run_url, &mut error_type]
            .into_iter()
            .flatten()
        {
            redactor.text(text);
        }
        reason.as_mut().map(shorten);
        counts = redactor.counts();
    }
    let outcome = CiOutcome {
        outcome_id: receipt.fresh_id(),
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
        run_url,
        provider_result: request.provider_result,
        error_type,
        reason,
        source_event_type: request.source_event_type,
        source_spec_version: request.source_spec_version,
        source_event_id: request.source_event_id.map(Into::into),
        pr_number: None,
        signed: false,
        captured_at: receipt.received_at,
        raw: Json::Object(Object::new()),
    };
    (outcome, counts)
}

/// Shortens a reason that redaction made longer than its limit. The shortened reason ends with a
/// complete marker.
fn shorten(reason: &mut Text) {
    let bytes = reason.as_bytes();
    let first_byte = |(_, byte): &(usize, &u8)| **byte & 0xc0 != 0x80;
    let mut characters = bytes
        .iter()
        .enumerate()
        .filter(first_byte)
        .map(|(place, _)| place);
    let Some(mut end) = characters.nth(CI_REASON_CHARACTERS_MAX - MARKER.len()) else {
        return;
    };
    if characters.nth(MARKER.len() - 1).is_none() {
        return;
    }
    let mut before = end.saturating_sub(MARKER.len() - 1)..end;
    if let Some(cut_in_two) = before.rfind(|place| bytes[*place..].starts_with(MARKER.as_bytes())) {
        end = cut_in_two;
    }
    let shortened = [&bytes[..end], MARKER.as_bytes()].concat();
    *reason = Text::from_wtf8(shortened).unwrap_or_else(|| MARKER.into());
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::clock::Ids;
    use svc_model::id::{FactId, OrgId, RunId};
    use svc_model::ingest::{CiProvider, CiResult};
    use svc_model::repository::{
        Branch, CommitSha, RepositoryHost, RepositoryId, RepositoryName, RepositoryProvider,
    };
    use svc_model::time::Instant;
    use uuid::Uuid;

    use super::*;
    use crate::Redaction;
    use crate::redaction::Secrets;

    fn request() -> VendorCIRequest {
        VendorCIRequest {
            provider: CiProvider::CiA,
            run_id: RunId::new("v1").unwrap(),
            run_attempt: None,
            repo: RepositoryName::new("o/r").unwrap(),
            repository_provider: None,
            repository_host: None,
            repository_id: None,
            commit_sha: CommitSha::new(&"c".repeat(40)).unwrap(),
            branch: Branch::new("main").unwrap(),
            workflow_name: Text::default(),
            workflow_id: None,
            workflow_path: None,
            result: CiResult::Failed,
            run_url: None,
            provider_result: None,
            error_type: None,
            reason: None,
            source_event_type: None,
            source_spec_version: None,
            source_event_id: None,
            compare: false,
        }
    }

    fn captured(request: VendorCIRequest, redaction: Redaction) -> (CiOutcome, RedactionCounts) {
        let receipt = Receipt {
            org_id: &OrgId::new("acme").unwrap(),
            received_at: Instant::from_microseconds(1).unwrap(),
            ids: &Ids::counting(),
            redaction,
            secrets: &Secrets::default(),
        };
        capture(request, receipt)
    }

    fn reason(text: impl Into<Text>, redaction: Redaction) -> Text {
        let request = VendorCIRequest {
            reason: Some(text.into()),
            ..request()
        };
        captured(request, redaction).0.reason.unwrap()
    }

    #[test]
    fn the_smallest_report() {
        let (outcome, counts) = captured(request(), Redaction::On);
        assert_eq!(outcome.outcome_id, FactId::new(Uuid::from_u128(1)));
        assert_eq!(
            (outcome.run_id.as_str(), outcome.repo.as_str()),
            ("v1", "o/r")
        );
        assert_eq!((outcome.repository, outcome.pr_number), (None, None));
        assert_eq!(outcome.captured_at, Instant::from_microseconds(1).unwrap());
        assert_eq!(outcome.raw, Json::Object(Object::new()));
        assert!(counts.is_empty());
    }

    #[test]
    fn the_host_and_id_together_identify_the_repository() {
        let request = VendorCIRequest {
            repository_provider: Some(RepositoryProvider::Github),
            repository_host: RepositoryHost::new("github.com"),
            repository_id: RepositoryId::new("900"),
            ..request()
        };
        let (outcome, _) = captured(request, Redaction::On);
        assert_eq!(outcome.repository.unwrap().repository_id.as_str(), "900");
    }

    #[test]
    fn free_texts_and_the_url_are_redacted() {
        let key = "sk-abcdefghijklmnopqrst";
        let mut request = request();
        request.reason = Some(format!("failed with {key}").into());
        request.error_type = Some(key.into());
        request.run_url = Some(format!("https://h/?k={key}").into());
        request.provider_result = Some("failure".into());
        let (outcome, counts) = captured(request, Redaction::On);
        assert_eq!(outcome.reason, Some(format!("failed with {MARKER}").into()));
        assert_eq!(outcome.error_type, Some(MARKER.into()));
        assert_eq!(
            outcome.run_url,
            Some(format!("https://h/?k={MARKER}").into())
        );
        assert_eq!(outcome.provider_result, Some("failure".into()));
        assert_eq!(counts.provider_key, 3);
        assert_eq!(reason(key, Redaction::Off), Text::from(key));
        assert_eq!(reason("", Redaction::On), Text::default());
    }

    #[test]
    fn a_reason_that_outgrows_its_bound_ends_with_a_marker() {
        let key = "api_key=\"12345678\" ";
        let long = |before: usize, keys: usize| "\u{e9}".repeat(before) + &key.repeat(keys);
        for (before, keys) in [
            (0, 200),
            (3_996, 5),
            (4_076, 1),
            (1, 215),
            (2, 215),
            (3, 215),
        ] {
            let text = long(before, keys);
            assert!(text.chars().count() <= CI_REASON_CHARACTERS_MAX);
            let redacted = reason(text, Redaction::On);
            let redacted = redacted.as_str().unwrap();
            let characters = redacted.chars().count();
            assert!(characters <= CI_REASON_CHARACTERS_MAX, "{characters}");
            assert!(
                characters > CI_REASON_CHARACTERS_MAX - 2 * MARKER.len(),
                "{characters}"
            );
            assert!(redacted.ends_with(MARKER));
            let whole = redacted.matches(MARKER).count();
            assert_eq!(
                redacted.matches("[REDACTED").count(),
                whole,
                "no marker is cut in two"
            );
        }
        let fits = "x".repeat(CI_REASON_CHARACTERS_MAX);
        assert_eq!(reason(fits.as_str(), Redaction::On), Text::from(fits));
        let exact = "x".repeat(CI_REASON_CHARACTERS_MAX - 32) + " api_key=\"12345678\"";
        let redacted = reason(exact.as_str(), Redaction::On);
        assert_eq!(redacted.len(), CI_REASON_CHARACTERS_MAX);
        assert!(redacted.as_str().unwrap().ends_with("CREDENTIAL]\""));
    }
}
