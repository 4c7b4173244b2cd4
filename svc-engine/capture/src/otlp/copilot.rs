//! Copilot Chat: decisions about proposed edits, and how much of an edit survived.
//!
//! Its Session belongs to the window, so only the resource's attribute counts. The event
//! `copilot_chat.edit.hunk.action` is not read: it does not say whether the edit was proposed
//! inline, and the feedback on the whole file that follows it would count the same edit again.

use svc_engine_fact::DeveloperDecision;
use svc_model::facts::{AgentHarness, InteractionMode};
use svc_model::ingest::LogSkip;
use svc_model::repository::CommitSha;

use super::attribute::AttributeValue;
use super::decided::{DecisionDraft, blank};
use super::kept::{KeptRecords, RecordsForm};
use super::logged::{ExportedRecord, SESSION, path, session};
use crate::Receipt;
use crate::gateway::litellm::scalar;

/// The name of the attribute with the file.
const FILE: &str = "copilot_chat.file.relative_path";

/// What an event reports about an edit.
#[derive(Clone, Copy, Debug)]
struct EditReport {
    accepted: bool,
    explicit: bool,
    interaction_mode: InteractionMode,
}

/// Turns feedback on the edits of a file into a fact.
pub(super) fn feedback(
    logged: &ExportedRecord<'_>,
    receipt: Receipt<'_>,
) -> Result<DecisionDraft, LogSkip> {
    let attributes = logged.attributes.well_formed()?;
    let str = |name| attributes.get(name).and_then(AttributeValue::str);
    let accepted = match str("outcome") {
        Some("accepted") => true,
        Some("rejected") => false,
        // Saving a file is not a decision.
        _ => return Err(LogSkip::UnknownDecision),
    };
    // Feedback is about a file.
    attributes.text(FILE).ok_or(LogSkip::MissingFilePath)?;
    let interaction_mode = match str("edit_surface") {
        Some("inline_chat") => InteractionMode::Inline,
        _ => InteractionMode::Agent,
    };
    decided(
        logged,
        EditReport {
            accepted,
            explicit: true,
            interaction_mode,
        },
        receipt,
    )
}

/// Turns the end of an inline proposal into a fact.
pub(super) fn inline_done(
    logged: &ExportedRecord<'_>,
    receipt: Receipt<'_>,
) -> Result<DecisionDraft, LogSkip> {
    let attributes = logged.attributes.well_formed()?;
    let accepted = attributes.get("accepted").and_then(AttributeValue::bool);
    decided(
        logged,
        EditReport {
            accepted: accepted.ok_or(LogSkip::UnknownDecision)?,
            explicit: true,
            interaction_mode: InteractionMode::Inline,
        },
        receipt,
    )
}

/// The tools whose edits are checked later. The names of their events differ from those in requests,
/// which say where the edit goes (`replace_string_in_file`).
const EDIT_TOOLS: [&str; 6] = [
    "apply_patch",
    "replace_string",
    "multi_replace_string",
    "insert_edit",
    "create_file",
    "edit_notebook",
];

fn is_edit_tool(source: &str) -> bool {
    let source = source.trim_end_matches("_file");
    let source = source.trim_end_matches("_in").trim_end_matches("_into");
    EDIT_TOOLS
        .iter()
        .any(|tool| tool.trim_end_matches("_file") == source)
}

/// Turns a later check of an edit into a fact. Nobody made a decision, but what remained was
/// accepted. After a change of the branch nothing is known of the edit: its file has other content.
pub(super) fn survival(
    logged: &ExportedRecord<'_>,
    receipt: Receipt<'_>,
) -> Result<DecisionDraft, LogSkip> {
    let attributes = logged.attributes.well_formed()?;
    let source = attributes.get("edit_source").and_then(AttributeValue::str);
    if !source.is_some_and(is_edit_tool) {
        return Err(LogSkip::NotAnEditTool);
    }
    if attributes
        .get("did_branch_change")
        .and_then(AttributeValue::bool)
        == Some(true)
    {
        return Err(LogSkip::BranchChanged);
    }
    let number = |name| attributes.get(name).map(AttributeValue::to_json);
    let rate = |name| Some(number(name)?.as_number()?.as_f64()).filter(|rate| !rate.is_nan());
    let kept = rate("survival_rate_no_revert").ok_or(LogSkip::UnknownDecision)?;
    let (decision, records) = decided(
        logged,
        EditReport {
            accepted: kept > 0.0,
            explicit: false,
            interaction_mode: InteractionMode::Agent,
        },
        receipt,
    )?;
    let edit_retention_score =
        rate("survival_rate_four_gram").filter(|score| (0.0..=1.0).contains(score));
    // The range applies to the number as it was sent: -0.5 is not a delay, although its whole part
    // is 0.
    let is_delay = rate("time_delay_ms").is_some_and(|delay| delay >= 0.0);
    let delay = number("time_delay_ms").filter(|_| is_delay);
    let delay = scalar::integer(delay.as_ref());
    let decision = DeveloperDecision {
        edit_retention_score,
        observation_delay_ms: delay.filter(|_| edit_retention_score.is_some()),
        ..decision
    };
    Ok((decision, records))
}

fn decided(
    logged: &ExportedRecord<'_>,
    reported: EditReport,
    receipt: Receipt<'_>,
) -> Result<DecisionDraft, LogSkip> {
    let attributes = &logged.attributes;
    let session_id = session(logged.resource.text(SESSION))?;
    let file_path = match attributes.text(FILE) {
        Some(file) => path(file.as_str().ok_or(LogSkip::InvalidFact)?)?,
        None => String::new(),
    };
    let occurred_at = logged.occurred_at()?;
    let decision = DeveloperDecision {
        user_id: logged.resource_user()?,
        file_path,
        accepted: reported.accepted,
        explicit: reported.explicit,
        interaction_mode: reported.interaction_mode,
        commit_sha: attributes
            .get("github.copilot.git.commit_sha")
            .and_then(AttributeValue::str)
            .and_then(CommitSha::new),
        call_id: logged.call("request_id")?,
        ..blank(AgentHarness::Copilot, session_id, occurred_at, receipt)
    };
    let kept = KeptRecords {
        form: RecordsForm::Record,
        decision: logged.place,
        result: None,
    };
    Ok((decision, kept))
}

#[cfg(test)]
mod tests {
    use svc_model::json::Json;

    use super::super::testing::{captured, changed, check_skip, export, json, record, written};
    use super::*;

    const RESOURCE: &str = r#"{"session.id":"w-1","user.id":"dev"}"#;
    const FEEDBACK: &str = r#"{"event.name":"copilot_chat.edit.feedback","outcome":"accepted",
        "copilot_chat.file.relative_path":"src/a.ts","request_id":"rq1"}"#;
    const DONE: &str = r#"{"event.name":"copilot_chat.inline.done","accepted":true,
        "copilot_chat.file.relative_path":"src/a.ts"}"#;
    const SURVIVAL: &str = r#"{"event.name":"copilot_chat.edit.survival","edit_source":"apply_patch",
        "survival_rate_no_revert":0.5,"survival_rate_four_gram":0.25,"time_delay_ms":30000,
        "copilot_chat.file.relative_path":"src/a.ts","request_id":"rq1"}"#;

    fn logged(base: &str, changes: &str) -> Json {
        record(&changed(base, changes)).into()
    }

    fn one(base: &str, changes: &str) -> DeveloperDecision {
        let mut captured = captured(export(RESOURCE, [logged(base, changes)]));
        assert_eq!(
            captured.decisions.len(),
            1,
            "{changes}: {:?}",
            captured.report
        );
        captured.decisions.remove(0)
    }

    fn check(base: &str, changes: &str, expected: &str) {
        check_skip(RESOURCE, logged(base, changes), expected);
    }

    #[test]
    fn feedback_is_an_explicit_decision() {
        let decision = one(FEEDBACK, "{}");
        assert_eq!(decision.agent_harness, AgentHarness::Copilot);
        assert_eq!(decision.session_id.as_str(), "w-1");
        assert_eq!(decision.user_id.unwrap().as_str(), "dev");
        assert_eq!(decision.file_path, "src/a.ts");
        assert_eq!(decision.call_id.as_deref(), Some("rq1"));
        assert!(decision.accepted && decision.explicit);
        assert_eq!(decision.interaction_mode, InteractionMode::Agent);
        assert_eq!(decision.edit_retention_score, None);
        let inline = one(
            FEEDBACK,
            r#"{"outcome":"rejected","edit_surface":"inline_chat"}"#,
        );
        assert!(!inline.accepted && inline.explicit);
        assert_eq!(inline.interaction_mode, InteractionMode::Inline);
        let agent = one(FEEDBACK, r#"{"edit_surface":"agent"}"#);
        assert_eq!(agent.interaction_mode, InteractionMode::Agent);
        for outcome in [r#""saved""#, r#""Accepted""#, "true", "null"] {
            let changes = format!(r#"{{"outcome":{outcome}}}"#);
            check(
                FEEDBACK,
                &changes,
                "copilot_chat.edit.feedback: unknown_decision",
            );
        }
    }

    #[test]
    fn the_end_of_an_inline_proposal_is_an_explicit_decision() {
        let decision = one(DONE, "{}");
        assert!(decision.accepted && decision.explicit);
        assert_eq!(decision.interaction_mode, InteractionMode::Inline);
        assert_eq!(decision.call_id, None);
        assert!(!one(DONE, r#"{"accepted":false}"#).accepted);
        for accepted in [r#""true""#, "1", "null"] {
            let changes = format!(r#"{{"accepted":{accepted}}}"#);
            check(DONE, &changes, "copilot_chat.inline.done: unknown_decision");
        }
    }

    #[test]
    fn a_survival_is_an_implicit_acceptance() {
        let decision = one(SURVIVAL, "{}");
        assert!(decision.accepted && !decision.explicit);
        assert_eq!(decision.interaction_mode, InteractionMode::Agent);
        assert_eq!(decision.edit_retention_score, Some(0.25));
        assert_eq!(decision.observation_delay_ms, Some(30_000));
        for (rate, accepted) in [
            ("0", false),
            ("0.0", false),
            ("-1", false),
            ("1", true),
            ("7.5", true),
        ] {
            let changes = format!(r#"{{"survival_rate_no_revert":{rate}}}"#);
            assert_eq!(one(SURVIVAL, &changes).accepted, accepted, "{rate}");
        }
        for rate in [
            "true",
            r#""1""#,
            "null",
            r#"{"doubleValue":"NaN"}"#,
            r#"{"doubleValue":NaN}"#,
        ] {
            let changes = format!(r#"{{"survival_rate_no_revert":{rate}}}"#);
            let changed = changes.replace("null", r#"{"kvlistValue":{}}"#);
            check(
                SURVIVAL,
                &changed,
                "copilot_chat.edit.survival: unknown_decision",
            );
        }
        for source in [
            "replace_string",
            "multi_replace_string_in_file",
            "create_file",
        ] {
            let changes = format!(r#"{{"edit_source":"{source}"}}"#);
            assert!(one(SURVIVAL, &changes).accepted, "{source}");
        }
        check(
            SURVIVAL,
            r#"{"did_branch_change":true}"#,
            "copilot_chat.edit.survival: branch_changed",
        );
        let nameless = r#"{"copilot_chat.file.relative_path":5}"#;
        assert_eq!(one(SURVIVAL, nameless).file_path, "");
        for source in [r#""run_in_terminal""#, "null", "5"] {
            let changes = format!(r#"{{"edit_source":{source}}}"#);
            check(
                SURVIVAL,
                &changes,
                "copilot_chat.edit.survival: not_an_edit_tool",
            );
        }
    }

    #[test]
    fn a_score_is_between_zero_and_one_and_a_delay_needs_a_score() {
        for (score, delay, expected) in [
            ("0", "0", (Some(0.0), Some(0))),
            ("1", "1.9", (Some(1.0), Some(1))),
            ("1.0", "-1", (Some(1.0), None)),
            ("1.0", "-0.5", (Some(1.0), None)),
            ("1.0", "-0.0", (Some(1.0), Some(0))),
            ("1.01", "5", (None, None)),
            ("-0.1", "5", (None, None)),
            ("true", "5", (None, None)),
            (r#""0.5""#, "5", (None, None)),
            ("0.5", "true", (Some(0.5), None)),
            ("0.5", r#""5""#, (Some(0.5), None)),
            ("0.5", "9223372036854775807", (Some(0.5), Some(i64::MAX))),
            ("0.5", "1e300", (Some(0.5), None)),
        ] {
            let changes =
                format!(r#"{{"survival_rate_four_gram":{score},"time_delay_ms":{delay}}}"#);
            let decision = one(SURVIVAL, &changes);
            let found = (decision.edit_retention_score, decision.observation_delay_ms);
            assert_eq!(found, expected, "{changes}");
        }
        let feedback = one(
            FEEDBACK,
            r#"{"survival_rate_four_gram":0.5,"time_delay_ms":5}"#,
        );
        assert_eq!(feedback.edit_retention_score, None);
    }

    #[test]
    fn an_invalid_commit_id_is_dropped() {
        let sha = "A".repeat(40);
        for (commit, expected) in [
            (format!(r#"" {sha} ""#), Some(sha.to_lowercase())),
            (r#""nope""#.to_owned(), None),
            (r#""a\u0000""#.to_owned(), None),
            ("5".to_owned(), None),
        ] {
            let changes = format!(r#"{{"github.copilot.git.commit_sha":{commit}}}"#);
            let found = one(FEEDBACK, &changes).commit_sha;
            assert_eq!(found.map(String::from), expected, "{commit}");
        }
    }

    #[test]
    fn a_decision_stores_its_record_without_account_attributes() {
        let decision = one(FEEDBACK, r#"{"user.email":"a@b.c"}"#);
        assert_eq!(decision.raw, json(&written(&logged(FEEDBACK, "{}"))));
    }

    #[test]
    fn every_skip_has_its_reason() {
        let mut listless = logged(FEEDBACK, "{}").into_object().unwrap();
        listless.insert("attributes", 5);
        listless.insert("eventName", "copilot_chat.edit.feedback");
        let event = "copilot_chat.edit.feedback";
        check_skip(
            RESOURCE,
            listless.into(),
            &format!("{event}: malformed_attributes"),
        );
        let mut timeless = logged(FEEDBACK, "{}").into_object().unwrap();
        timeless.remove("timeUnixNano");
        check_skip(
            RESOURCE,
            timeless.into(),
            &format!("{event}: missing_event_time"),
        );
        // The Session belongs to the window, so the one of a record does not count.
        let own = r#"{"session.id":"s"}"#;
        check_skip(
            "{}",
            logged(FEEDBACK, own),
            &format!("{event}: missing_session"),
        );
        for (path, reason) in [
            ("null", "missing_file_path"),
            (r#""""#, "missing_file_path"),
            ("5", "missing_file_path"),
            (r#""\u0000""#, "invalid_fact"),
            (r#""\ud800""#, "invalid_fact"),
        ] {
            let changes = format!(r#"{{"copilot_chat.file.relative_path":{path}}}"#);
            check(FEEDBACK, &changes, &format!("{event}: {reason}"));
        }
        check(
            FEEDBACK,
            r#"{"request_id":"\u0000"}"#,
            &format!("{event}: invalid_fact"),
        );
        assert_eq!(one(FEEDBACK, r#"{"request_id":" "}"#).call_id, None);
        let other = r#"{"event.name":"copilot_chat.edit.hunk.action"}"#;
        let ignored = captured(export(RESOURCE, [logged(FEEDBACK, other)]));
        assert!(ignored.decisions.is_empty() && ignored.report.skipped.is_empty());
    }
}
