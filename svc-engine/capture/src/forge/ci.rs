//! A completed run of the forge's own CI.

use svc_engine_fact::CiOutcome;
use svc_model::id::{IdentityError, is_trimmed};
use svc_model::ingest::{CiProvider, CiResult, SkipReason};
use svc_model::json::{Json, Object, Text};
use svc_model::limit::PATH_BYTES_MAX;
use svc_model::repository::Branch;

use super::identity::{identity, name_or_empty};
use super::value::{content, count, id, object, sha, text};
use super::{DeliveryNotes, WebhookDelivery};

/// The event type in the outcome of a webhook.
const SOURCE_EVENT_TYPE: &str = "github.workflow_run.completed";

/// Turns a completed run into an outcome. The whole run is kept, with credentials redacted.
pub(super) fn capture(
    mut payload: Object,
    delivery: &WebhookDelivery<'_>,
    notes: &mut DeliveryNotes,
) -> Result<CiOutcome, SkipReason> {
    if text(Some(&payload), "action").is_none_or(|action| *action != "completed") {
        return Err(SkipReason::WorkflowRunNotCompleted);
    }
    let run = payload.remove("workflow_run").and_then(Json::into_object);
    let mut run = run.ok_or(SkipReason::WorkflowRunAbsent)?;
    let members = Some(&run);
    let run_id = id(run.get("id"))
        .ok()
        .flatten()
        .ok_or(SkipReason::InvalidRunId)?;
    let repository = object(Some(&payload), "repository");
    let conclusion = content(members, "conclusion");
    let mut outcome = CiOutcome {
        outcome_id: delivery.fact_id(),
        provider: CiProvider::ForgeActions,
        run_id,
        run_attempt: count(members, "run_attempt"),
        repo: name_or_empty(repository)?,
        repository: None,
        commit_sha: sha(members, "head_sha").ok_or(SkipReason::InvalidHeadSha)?,
        branch: branch(members).ok_or(SkipReason::InvalidHeadBranch)?,
        workflow_name: workflow_name(&payload, &run),
        workflow_id: id(run.get("workflow_id")).map_err(|_| SkipReason::InvalidWorkflowId)?,
        workflow_path: path(members).map_err(|_| SkipReason::InvalidWorkflowPath)?,
        result: result(conclusion.as_ref()),
        run_url: content(members, "html_url"),
        provider_result: conclusion,
        error_type: None,
        reason: None,
        source_event_type: Some(SOURCE_EVENT_TYPE.into()),
        source_spec_version: None,
        source_event_id: delivery.source_event_id()?,
        pr_number: pull_request(&run),
        signed: true,
        captured_at: delivery.receipt.received_at,
        raw: Json::Null,
    };
    outcome.repository = identity(repository, delivery.host)
        .map_err(|decline| notes.declined_identities.push(decline))
        .ok();
    if let Some(mut redactor) = delivery.receipt.redactor() {
        redactor.object(&mut run);
        if let Some(run_url) = &mut outcome.run_url {
            redactor.text(run_url);
        }
        notes.redactions = redactor.counts();
    }
    outcome.raw = Json::Object(run);
    Ok(outcome)
}

/// Returns the name of the workflow. Gitea gives it only beside the run.
fn workflow_name(payload: &Object, run: &Object) -> Text {
    content(Some(run), "name")
        .or_else(|| content(object(Some(payload), "workflow"), "name"))
        .unwrap_or_default()
}

/// Returns the result for the forge's conclusion.
fn result(conclusion: Option<&Text>) -> CiResult {
    match conclusion.and_then(Text::as_str) {
        Some("success") => CiResult::Passed,
        Some("failure") => CiResult::Failed,
        Some("cancelled") => CiResult::Cancelled,
        Some("timed_out") => CiResult::TimedOut,
        Some("skipped") => CiResult::Skipped,
        Some("neutral") => CiResult::Neutral,
        _ => CiResult::Unknown,
    }
}

/// Returns the branch of a run; `None` if it has none or an invalid one.
fn branch(run: Option<&Object>) -> Option<Branch> {
    match text(run, "head_branch") {
        Some(branch) => Branch::new(branch.as_str()?),
        None => Branch::new(""),
    }
}

/// Returns the path of the workflow's definition, if the run has one.
fn path(run: Option<&Object>) -> Result<Option<String>, IdentityError> {
    let Some(path) = text(run, "path") else {
        return Ok(None);
    };
    let path = path.as_str().ok_or(IdentityError::NotScalar)?;
    let path = path.trim_matches(is_trimmed);
    if path.contains('\0') {
        Err(IdentityError::NotScalar)
    } else if path.len() > PATH_BYTES_MAX {
        Err(IdentityError::TooLong)
    } else {
        Ok((!path.is_empty()).then(|| path.to_owned()))
    }
}

/// Returns the number of the first pull request of a run.
fn pull_request(run: &Object) -> Option<i64> {
    let first = run.get("pull_requests")?.as_array()?.first()?;
    count(first.as_object(), "number")
}

#[cfg(test)]
mod tests {
    use super::super::IdentityDecline;
    use super::super::testing::{self, changed, delivery};
    use super::*;
    use crate::Redaction;
    use crate::redaction::MARKER;

    const HEAD: &str = "cccccccccccccccccccccccccccccccccccccccc";

    fn payload() -> Object {
        testing::object(&format!(
            r#"{{
                "action": "completed",
                "workflow_run": {{
                    "id": 5001, "run_attempt": 1, "name": " CI ", "head_branch": "main",
                    "head_sha": "{HEAD}", "conclusion": "success",
                    "html_url": "https://git.example/o/r/actions/runs/1", "workflow_id": 77,
                    "path": " .github/workflows/ci.yml ",
                    "pull_requests": [{{"number": 7}}, {{"number": 8}}],
                    "display_title": "cut \ud83d", "n": 1.10
                }},
                "repository": {{"id": 900, "full_name": "O/R"}}
            }}"#
        ))
    }

    fn captured(payload: Object) -> (Result<CiOutcome, SkipReason>, DeliveryNotes) {
        let mut notes = DeliveryNotes::default();
        (capture(payload, &delivery(), &mut notes), notes)
    }

    fn with(place: &str, value: &str) -> Result<CiOutcome, SkipReason> {
        captured(changed(&payload(), place, value)).0
    }

    fn with_run(member: &str, value: &str) -> Result<CiOutcome, SkipReason> {
        with(&format!("workflow_run.{member}"), value)
    }

    #[test]
    fn every_member_of_a_completed_run_is_captured() {
        let named = WebhookDelivery {
            id: Some(" d-1 "),
            ..delivery()
        };
        let mut notes = DeliveryNotes::default();
        let outcome = capture(payload(), &named, &mut notes).unwrap();
        let repository = outcome.repository.clone().unwrap();
        assert_eq!(repository.repository_host.as_str(), "git.example");
        assert_eq!(repository.repository_id.as_str(), "900");
        let run = payload().remove("workflow_run").unwrap();
        let expected = CiOutcome {
            outcome_id: delivery().fact_id(),
            provider: CiProvider::ForgeActions,
            run_id: "5001".to_owned(),
            run_attempt: Some(1),
            repo: "o/r".to_owned(),
            repository: Some(repository),
            commit_sha: outcome.commit_sha.clone(),
            branch: Branch::new("main").unwrap(),
            workflow_name: "CI".into(),
            workflow_id: Some("77".to_owned()),
            workflow_path: Some(".github/workflows/ci.yml".to_owned()),
            result: CiResult::Passed,
            run_url: Some("https://git.example/o/r/actions/runs/1".into()),
            provider_result: Some("success".into()),
            error_type: None,
            reason: None,
            source_event_type: Some("github.workflow_run.completed".into()),
            source_spec_version: None,
            source_event_id: Some("d-1".to_owned()),
            pr_number: Some(7),
            signed: true,
            captured_at: delivery().receipt.received_at,
            raw: run,
        };
        assert_eq!(outcome, expected);
        assert_eq!(outcome.commit_sha.as_str(), HEAD);
        assert_eq!(notes, DeliveryNotes::default());
    }

    #[test]
    fn a_run_that_is_not_completed_is_declined() {
        for other in [
            "-",
            "null",
            "5",
            "\"requested\"",
            "\"in_progress\"",
            "\"Completed\"",
            "\" completed\"",
        ] {
            let reason = Err(SkipReason::WorkflowRunNotCompleted);
            assert_eq!(with("action", other), reason, "{other}");
        }
        for none in ["-", "null", "[]", "5"] {
            let reason = Err(SkipReason::WorkflowRunAbsent);
            assert_eq!(with("workflow_run", none), reason, "{none}");
        }
    }

    #[test]
    fn a_run_needs_an_id_and_a_commit() {
        let long = format!("\"{}\"", "x".repeat(1_025));
        let digits = "9".repeat(1_025);
        for wrong in [
            "-",
            "null",
            "0",
            "-1",
            "1.5",
            "1.0",
            "1e3",
            "NaN",
            "true",
            "\"\"",
            "\" \"",
            "\"a\\u0000\"",
            "\"\\ud800\"",
            "[1]",
            "{}",
            &long,
            &digits,
        ] {
            assert_eq!(
                with_run("id", wrong),
                Err(SkipReason::InvalidRunId),
                "{wrong}"
            );
        }
        let large = "123456789012345678901234567890";
        assert_eq!(with_run("id", large).unwrap().run_id, large);
        assert_eq!(with_run("id", "\" r-1 \"").unwrap().run_id, "r-1");
        for wrong in ["-", "null", "\"abc1234\"", "5"] {
            let reason = Err(SkipReason::InvalidHeadSha);
            assert_eq!(with_run("head_sha", wrong), reason, "{wrong}");
        }
    }

    #[test]
    fn an_invalid_run_attempt_is_dropped() {
        let attempt = |value: &str| with_run("run_attempt", value).unwrap().run_attempt;
        assert_eq!(attempt("2"), Some(2));
        assert_eq!(attempt("9223372036854775807"), Some(i64::MAX));
        for none in [
            "-",
            "null",
            "0",
            "-1",
            "\"2\"",
            "true",
            "1.0",
            "9223372036854775808",
        ] {
            assert_eq!(attempt(none), None, "{none}");
        }
    }

    #[test]
    fn every_conclusion_has_its_result() {
        for (conclusion, result) in [
            ("success", CiResult::Passed),
            ("failure", CiResult::Failed),
            (" failure ", CiResult::Failed),
            ("cancelled", CiResult::Cancelled),
            ("timed_out", CiResult::TimedOut),
            ("skipped", CiResult::Skipped),
            ("neutral", CiResult::Neutral),
            ("action_required", CiResult::Unknown),
            ("stale", CiResult::Unknown),
            ("startup_failure", CiResult::Unknown),
            ("Success", CiResult::Unknown),
            ("error", CiResult::Unknown),
            ("brand_new", CiResult::Unknown),
        ] {
            let outcome = with_run("conclusion", &format!("\"{conclusion}\"")).unwrap();
            assert_eq!(outcome.result, result, "{conclusion}");
            assert_eq!(outcome.provider_result, Some(conclusion.trim().into()));
        }
        for none in ["-", "null", "\"\"", "\" \"", "5", "[\"success\"]"] {
            let outcome = with_run("conclusion", none).unwrap();
            assert_eq!(outcome.result, CiResult::Unknown, "{none}");
            assert_eq!(outcome.provider_result, None, "{none}");
        }
        let odd = with_run("conclusion", "\"\\ud800\"").unwrap();
        assert_eq!(odd.result, CiResult::Unknown);
        assert!(odd.provider_result.is_some(), "it is kept unchanged");
    }

    #[test]
    fn a_missing_branch_is_accepted_and_an_invalid_one_is_declined() {
        let branch = |value: &str| with_run("head_branch", value);
        for none in ["-", "null", "5", "\" \"", "\"refs/heads/\""] {
            assert_eq!(branch(none).unwrap().branch.as_str(), "", "{none}");
        }
        let kept = branch("\" refs/heads/refs/heads/Main \"").unwrap();
        assert_eq!(kept.branch.as_str(), "Main");
        let long = format!("\"{}\"", "x".repeat(1_025));
        for wrong in ["\"a\\u0000\"", "\"\\ud800\"", &long] {
            let reason = Err(SkipReason::InvalidHeadBranch);
            assert_eq!(branch(wrong), reason, "{wrong}");
        }
    }

    #[test]
    fn a_missing_workflow_is_accepted_and_an_invalid_one_is_declined() {
        for none in ["-", "null", "0", "-1", "1.5", "true", "\" \"", "[]"] {
            assert_eq!(with_run("workflow_id", none).unwrap().workflow_id, None);
        }
        let text = with_run("workflow_id", "\" ci.yml \"").unwrap();
        assert_eq!(text.workflow_id.as_deref(), Some("ci.yml"));
        let long = format!("\"{}\"", "x".repeat(1_025));
        for wrong in ["\"a\\u0000\"", "\"\\ud800\"", &long] {
            let reason = Err(SkipReason::InvalidWorkflowId);
            assert_eq!(with_run("workflow_id", wrong), reason, "{wrong}");
        }
        for none in ["-", "null", "5", "\"   \"", "[]"] {
            assert_eq!(with_run("path", none).unwrap().workflow_path, None);
        }
        let longest = "x".repeat(PATH_BYTES_MAX);
        let kept = with_run("path", &format!("\"{longest}\"")).unwrap();
        assert_eq!(kept.workflow_path, Some(longest.clone()));
        let long = format!("\"{longest}x\"");
        for wrong in ["\"a\\u0000\"", "\"\\ud800\"", &long] {
            let reason = Err(SkipReason::InvalidWorkflowPath);
            assert_eq!(with_run("path", wrong), reason, "{wrong}");
        }
    }

    #[test]
    fn optional_members_of_the_wrong_type_are_treated_as_absent() {
        for none in ["-", "null", "5", "\" \"", "[]"] {
            let outcome = with_run("html_url", none).unwrap();
            assert_eq!(outcome.run_url, None, "{none}");
            let outcome = with_run("name", none).unwrap();
            assert_eq!(outcome.workflow_name, Text::default(), "{none}");
        }
        for none in [
            "-",
            "null",
            "[]",
            "{}",
            "[5]",
            "[{}]",
            "[{\"number\":true}]",
            "[{\"number\":0}]",
            "[null,{\"number\":8}]",
        ] {
            let outcome = with_run("pull_requests", none).unwrap();
            assert_eq!(outcome.pr_number, None, "{none}");
        }
    }

    #[test]
    fn the_workflow_name_is_read_from_the_run_first() {
        let named = |run: &str, workflow: &str| {
            let payload = changed(&payload(), "workflow_run.name", run);
            let payload = changed(&payload, "workflow", workflow);
            let outcome = captured(payload).0.unwrap();
            (outcome.workflow_name, outcome.workflow_id)
        };
        // The form in which Gitea sends it.
        let beside = r#"{"id":"test.yml","name":" TEST "}"#;
        let id = Some("77".to_owned());
        assert_eq!(named("-", beside), ("TEST".into(), id.clone()));
        assert_eq!(named("\" \"", beside), ("TEST".into(), id.clone()));
        assert_eq!(named("\"CI\"", beside), ("CI".into(), id.clone()));
        for none in ["null", "5", "{}", r#"{"name":5}"#] {
            assert_eq!(named("-", none), (Text::default(), id.clone()), "{none}");
        }
    }

    #[test]
    fn a_run_without_a_repository_identity_is_captured() {
        for (value, decline) in [
            ("-", IdentityDecline::Absent),
            ("{\"full_name\":\"nope\"}", IdentityDecline::Absent),
            (
                "{\"id\":\"x\",\"full_name\":null}",
                IdentityDecline::Invalid,
            ),
        ] {
            let (outcome, notes) = captured(changed(&payload(), "repository", value));
            let outcome = outcome.unwrap();
            assert_eq!((outcome.repo.as_str(), outcome.repository), ("", None));
            assert_eq!(notes.declined_identities, [decline], "{value}");
        }
        let long = format!("\"a/{}\"", "b".repeat(1_023));
        assert_eq!(
            with("repository.full_name", &long),
            Err(SkipReason::InvalidRepositoryName)
        );
    }

    #[test]
    fn the_raw_run_is_stored_unchanged_except_for_redacted_credentials() {
        let key = "sk-abcdefghijklmnopqrst";
        let run = format!(
            r#"{{"id":1,"head_sha":"{HEAD}","big":98765432109876543210,"nan":NaN,
                "cut":"\ud83d","key":"{key}","list":[1.10,"\u0000"],
                "html_url":"https://h/runs/1?k={key}"}}"#
        );
        let payload = changed(&payload(), "workflow_run", &run);
        let (outcome, notes) = captured(payload.clone());
        let expected = Json::parse(run.replace(key, MARKER).as_bytes()).unwrap();
        let outcome = outcome.unwrap();
        assert_eq!(outcome.raw, expected);
        let run_url = format!("https://h/runs/1?k={MARKER}");
        assert_eq!(outcome.run_url, Some(run_url.into()));
        assert_eq!(notes.redactions.provider_key, 3);
        let mut open = delivery();
        open.receipt.redaction = Redaction::Off;
        let mut notes = DeliveryNotes::default();
        let outcome = capture(payload, &open, &mut notes).unwrap();
        assert_eq!(outcome.raw, Json::parse(run.as_bytes()).unwrap());
        assert!(notes.redactions.is_empty());
    }

    #[test]
    fn a_delivery_with_a_too_long_id_is_declined() {
        let long = "x".repeat(1_025);
        let named = WebhookDelivery {
            id: Some(&long),
            ..delivery()
        };
        let outcome = capture(payload(), &named, &mut DeliveryNotes::default());
        assert_eq!(outcome, Err(SkipReason::InvalidDeliveryId));
    }
}
