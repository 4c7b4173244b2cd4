//! The service's own events, which shims and hooks log for agents whose telemetry says too little.
//!
//! An event is an OTLP log record whose body is the name of the event. Its attributes:
//!
//! | Attribute | `svc.tool_decision` | `svc.edit_observation` | `svc.rejected_edit` | `svc.retry_linkage` |
//! |---|---|---|---|---|
//! | `agent`: `claude-code`, `copilot`, `codex`, `cursor` or `pi` | required | required | required | required |
//! | `session.id`, of the record or else the resource | required | required | required | required |
//! | `tool_use_id`, the agent's id of the tool call | required; blank counts as unknown | required | required | - |
//! | `file_path`, as the agent writes it | optional | required | required | required |
//! | `decision`: `accept` or `reject` | required | - | - | - |
//! | `explicit`, a boolean: whether a person decided | required | - | - | - |
//! | `tool_name` | optional | optional | optional | required: `Edit` or `Write` |
//! | `applied_text`, what the edit inserted, and `observed_file_text`, the file later, `""` if it is gone | - | required | - | - |
//! | `external_lines_added`, `external_lines_removed`, integers: lines that something other than the agent changed before the check; absent if nobody measured | - | optional | - | - |
//! | `proposed`, the refused text | - | - | required | - |
//! | `rejected_call_id`, `accepted_call_id`, two different calls | - | - | - | required |
//! | `user.id`, of the resource or else the record | optional | optional | optional | optional |
//!
//! The time is `timeUnixNano`, which is required. A text has at most 262,144 bytes. A record that
//! breaks a rule is skipped, its reason is counted, and no other record is affected. Sending a
//! record again is safe: a fact is stored only once for its Session and call.

use svc_engine_fact::{DeveloperDecision, EditObservation, EditTexts, RejectedEdit, RetryLinkage};
use svc_model::facts::AgentHarness;
use svc_model::id::{FactId, OrgId, is_trimmed};
use svc_model::ingest::LogSkip;
use svc_model::json::{Json, Object, Text};
use svc_model::limit::EDIT_TEXT_BYTES_MAX;
use uuid::Uuid;

use super::attribute::{AttributeValue, Attributes};
use super::decided::{DecisionDraft, blank};
use super::kept::{KeptRecords, RecordsForm};
use super::logged::{ExportedRecord, identity, path};
use crate::Receipt;

/// The namespace of the ids of Cursor's writes. Changing it would store every repeated receipt
/// again.
const CURSOR_WRITE_NAMESPACE: Uuid = Uuid::from_u128(0x9d0c_63c1_5a43_4ad0_8f0e_27d5_a1b4_c6e9);

/// The name of the attribute with the id of the call.
const CALL: &str = "tool_use_id";

/// Turns a decision into a fact.
pub(super) fn decision(
    logged: &ExportedRecord<'_>,
    receipt: Receipt<'_>,
) -> Result<DecisionDraft, LogSkip> {
    let attributes = logged.attributes.well_formed()?;
    let str = |name| attributes.get(name).and_then(AttributeValue::str);
    let session_id = logged.session()?;
    let agent_harness = agent(attributes)?;
    attributes.text(CALL).ok_or(LogSkip::MissingCallId)?;
    let accepted = match str("decision") {
        Some("accept") => true,
        Some("reject") => false,
        _ => return Err(LogSkip::UnknownDecision),
    };
    let explicit = attributes.get("explicit").and_then(AttributeValue::bool);
    let explicit = explicit.ok_or(LogSkip::MissingExplicit)?;
    let occurred_at = logged.occurred_at()?;
    let file_path = match attributes.get("file_path").and_then(AttributeValue::text) {
        Some(file) => path(file.as_str().ok_or(LogSkip::InvalidFact)?)?,
        None => String::new(),
    };
    let mut decision = DeveloperDecision {
        user_id: logged.user()?,
        file_path,
        accepted,
        explicit,
        call_id: logged.call(CALL)?,
        ..blank(agent_harness, session_id, occurred_at, receipt)
    };
    if str("tool_name") == Some("Write")
        && let Some(id) = cursor_write_id(receipt.org_id, &decision)
    {
        decision.decision_id = id;
    }
    let kept = KeptRecords {
        form: RecordsForm::OwnAttributes,
        decision: logged.place,
        result: None,
    };
    Ok((decision, kept))
}

/// Returns the id of a successful write that Cursor's hook reports.
///
/// The hook only knows when it received the write, so a repeated receipt must be recognised by the
/// write itself. The id is the UUID version 5 of the canonical JSON of `[organization, "cursor",
/// session, call, path, true, false, "agent", "Write"]`.
fn cursor_write_id(org_id: &OrgId, decision: &DeveloperDecision) -> Option<FactId> {
    let call_id = decision.call_id.as_deref()?;
    if decision.agent_harness != AgentHarness::Cursor || !decision.accepted || decision.explicit {
        return None;
    }
    let name = Json::Array(vec![
        org_id.as_str().into(),
        decision.agent_harness.as_str().into(),
        decision.session_id.as_str().into(),
        call_id.into(),
        decision.file_path.as_str().into(),
        decision.accepted.into(),
        decision.explicit.into(),
        decision.interaction_mode.as_str().into(),
        "Write".into(),
    ]);
    let id = Uuid::new_v5(&CURSOR_WRITE_NAMESPACE, &name.to_canonical());
    Some(FactId::new(id))
}

/// Turns a later check of an applied edit into a fact.
pub(super) fn edit_observation(
    logged: &ExportedRecord<'_>,
    receipt: Receipt<'_>,
) -> Result<EditObservation, LogSkip> {
    let attributes = logged.attributes.well_formed()?;
    let session_id = logged.session()?;
    let agent_harness = agent(attributes)?;
    let call_id = logged.call(CALL)?.ok_or(LogSkip::MissingCallId)?;
    let file = attributes
        .text("file_path")
        .ok_or(LogSkip::MissingFilePath)?;
    let texts = EditTexts {
        applied: text(attributes, "applied_text")?,
        observed_file: text(attributes, "observed_file_text")?,
    };
    let count = |name| attributes.get(name).and_then(AttributeValue::count);
    Ok(EditObservation {
        occurred_at: logged.occurred_at()?,
        user_id: logged.user()?,
        session_id,
        agent_harness,
        call_id,
        file_path: path(file.as_str().ok_or(LogSkip::InvalidFact)?)?,
        texts,
        external_lines_added: count("external_lines_added"),
        external_lines_removed: count("external_lines_removed"),
        observation_id: receipt.fresh_id(),
        captured_at: receipt.received_at,
        raw: raw(attributes),
    })
}

/// Turns a refused edit into a fact.
pub(super) fn rejected_edit(
    logged: &ExportedRecord<'_>,
    receipt: Receipt<'_>,
) -> Result<RejectedEdit, LogSkip> {
    let attributes = logged.attributes.well_formed()?;
    let session_id = logged.session()?;
    let agent_harness = agent(attributes)?;
    let call_id = logged.call(CALL)?.ok_or(LogSkip::MissingCallId)?;
    let file = attributes
        .text("file_path")
        .ok_or(LogSkip::MissingFilePath)?;
    let proposed = text(attributes, "proposed")?;
    Ok(RejectedEdit {
        occurred_at: logged.occurred_at()?,
        user_id: logged.user()?,
        session_id,
        agent_harness,
        call_id,
        file_path: path(file.as_str().ok_or(LogSkip::InvalidFact)?)?,
        proposed,
        rejection_id: receipt.fresh_id(),
        captured_at: receipt.received_at,
        raw: raw(attributes),
    })
}

/// Turns a refusal and its successful retry into a fact. Missing members are reported before
/// invalid ones.
pub(super) fn retry_linkage(
    logged: &ExportedRecord<'_>,
    receipt: Receipt<'_>,
) -> Result<RetryLinkage, LogSkip> {
    let attributes = logged.attributes.well_formed()?;
    let present = |name, skip| {
        let text = attributes.text(name).filter(|text| !text.is_blank());
        text.ok_or(skip)
    };
    let session_id = logged.session();
    if session_id == Err(LogSkip::MissingSession) {
        return Err(LogSkip::MissingSession);
    }
    present("agent", LogSkip::MissingAgentHarness)?;
    let file = present("file_path", LogSkip::MissingFilePath)?;
    let tool = present("tool_name", LogSkip::MissingToolName)?;
    let rejected = present("rejected_call_id", LogSkip::MissingRejectedCallId)?;
    let accepted = present("accepted_call_id", LogSkip::MissingAcceptedCallId)?;
    let occurred_at = logged.occurred_at()?;
    let agent_harness = agent(attributes)?;
    let tool_name = match tool.as_str() {
        Some(name @ ("Edit" | "Write")) => name.to_owned(),
        _ => return Err(LogSkip::InvalidToolName),
    };
    let file = file.as_str().ok_or(LogSkip::InvalidFact)?;
    let linkage = RetryLinkage {
        retry_linkage_id: receipt.fresh_id(),
        session_id: session_id?,
        user_id: logged.user()?,
        agent_harness,
        tool_name,
        file_path: path(file.trim_matches(is_trimmed))?,
        rejected_call_id: identity(rejected)?,
        accepted_call_id: identity(accepted)?,
        occurred_at,
        captured_at: receipt.received_at,
        raw: Object::new().into(),
    };
    if linkage.rejected_call_id == linkage.accepted_call_id {
        return Err(LogSkip::InvalidFact);
    }
    Ok(linkage)
}

fn agent(attributes: &Attributes<'_>) -> Result<AgentHarness, LogSkip> {
    let name = attributes
        .text("agent")
        .ok_or(LogSkip::MissingAgentHarness)?;
    name.as_str()
        .and_then(AgentHarness::from_wire)
        .ok_or(LogSkip::InvalidAgentHarness)
}

/// Returns a text within its limit. It may be empty.
fn text(attributes: &Attributes<'_>, name: &str) -> Result<Text, LogSkip> {
    let text = attributes.get(name).and_then(AttributeValue::text);
    let text = text.ok_or(LogSkip::MissingText)?;
    // A surrogate takes three bytes here but counts as one character.
    let is_surrogate = |pair: &&[u8]| matches!(pair, [0xed, 0xa0..=0xbf]);
    let surrogates = text.as_bytes().windows(2).filter(is_surrogate).count();
    if text.len() - 2 * surrogates > EDIT_TEXT_BYTES_MAX {
        return Err(LogSkip::TextTooLong);
    }
    Ok(text.clone())
}

/// Returns what is kept of an edit besides its fields.
fn raw(attributes: &Attributes<'_>) -> Json {
    let tool = attributes.get("tool_name").map(AttributeValue::to_json);
    Object::from_iter([("tool_name", tool)]).into()
}

#[cfg(test)]
mod tests {
    use svc_model::id::UserId;

    use super::super::testing::{
        TIME, captured, captured_records, changed, check_skip, event, export, json, object,
        the_decision, written,
    };
    use super::*;

    const DECISION: &str = r#"{"agent":"pi","session.id":"s-1","tool_use_id":"t1","file_path":"a.py",
        "decision":"accept","explicit":false,"tool_name":"edit"}"#;
    const OBSERVATION: &str = r#"{"agent":"pi","session.id":"s-1","tool_use_id":"t1","file_path":"a.py",
        "applied_text":"A","observed_file_text":"F","tool_name":"Edit"}"#;
    const REJECTED: &str = r#"{"agent":"pi","session.id":"s-1","tool_use_id":"t1","file_path":"a.py",
        "proposed":"P","tool_name":"Edit"}"#;
    const LINKAGE: &str = r#"{"agent":"pi","session.id":"s-1","file_path":"a.py","tool_name":"Edit",
        "rejected_call_id":"r1","accepted_call_id":"a1"}"#;

    fn decided(changes: &str) -> Json {
        event("svc.tool_decision", &changed(DECISION, changes))
    }

    fn observed(changes: &str) -> Json {
        event("svc.edit_observation", &changed(OBSERVATION, changes))
    }

    fn rejected(changes: &str) -> Json {
        event("svc.rejected_edit", &changed(REJECTED, changes))
    }

    fn linked(changes: &str) -> Json {
        event("svc.retry_linkage", &changed(LINKAGE, changes))
    }

    fn timeless(record: Json) -> Json {
        let mut record = record.into_object().unwrap();
        record.remove("timeUnixNano");
        record.insert("observedTimeUnixNano", TIME);
        record.into()
    }

    fn listless(record: Json) -> Json {
        let mut record = record.into_object().unwrap();
        record.insert("attributes", Object::new());
        record.into()
    }

    fn check(records: impl IntoIterator<Item = (Json, &'static str)>, name: &str) {
        for (record, reason) in records {
            check_skip("{}", record, &format!("{name}: {reason}"));
        }
    }

    fn observation(changes: &str) -> EditObservation {
        let mut captured = captured_records([observed(changes)]);
        assert_eq!(
            captured.edit_observations.len(),
            1,
            "{changes}: {:?}",
            captured.report
        );
        captured.edit_observations.remove(0)
    }

    #[test]
    fn a_decision_of_every_agent_is_captured() {
        for harness in AgentHarness::ALL {
            let decision = the_decision([decided(&format!(r#"{{"agent":"{harness}"}}"#))]);
            assert_eq!(decision.agent_harness, *harness);
            assert_eq!(decision.session_id.as_str(), "s-1");
            assert_eq!(decision.call_id.as_deref(), Some("t1"));
            assert_eq!(decision.file_path, "a.py");
            assert!(decision.accepted && !decision.explicit);
            assert_eq!(decision.interaction_mode.as_str(), "agent");
        }
        let decision = the_decision([decided(
            r#"{"decision":"reject","explicit":true,"file_path":null,"tool_use_id":" "}"#,
        )]);
        assert!(!decision.accepted && decision.explicit);
        assert_eq!((decision.file_path.as_str(), decision.call_id), ("", None));
        assert_eq!(the_decision([decided(r#"{"file_path":5}"#)]).file_path, "");
        assert_eq!(
            the_decision([decided(r#"{"file_path":" "}"#)]).file_path,
            " "
        );
    }

    #[test]
    fn a_decision_stores_its_attributes_without_account_attributes() {
        let raw = the_decision([decided(r#"{"user.account_id":"1","session.id":" s "}"#)]).raw;
        let attributes = changed(DECISION, r#"{"session.id":" s "}"#);
        assert_eq!(raw, json(&format!(r#"{{"decision":{attributes}}}"#)));
    }

    #[test]
    fn every_skip_of_a_decision_has_its_reason() {
        check(
            [
                (listless(decided("{}")), "malformed_attributes"),
                (decided(r#"{"session.id":null}"#), "missing_session"),
                (decided(r#"{"agent":null}"#), "missing_agent_harness"),
                (decided(r#"{"agent":5}"#), "missing_agent_harness"),
                (
                    decided(r#"{"agent":"claude_code"}"#),
                    "invalid_agent_harness",
                ),
                (decided(r#"{"agent":"Pi"}"#), "invalid_agent_harness"),
                (decided(r#"{"tool_use_id":null}"#), "missing_call_id"),
                (decided(r#"{"tool_use_id":""}"#), "missing_call_id"),
                (decided(r#"{"tool_use_id":7}"#), "missing_call_id"),
                (decided(r#"{"decision":"Accept"}"#), "unknown_decision"),
                (decided(r#"{"decision":null}"#), "unknown_decision"),
                (decided(r#"{"explicit":"true"}"#), "missing_explicit"),
                (decided(r#"{"explicit":1}"#), "missing_explicit"),
                (decided(r#"{"explicit":null}"#), "missing_explicit"),
                (timeless(decided("{}")), "missing_event_time"),
                (decided(r#"{"session.id":" "}"#), "invalid_fact"),
                (decided(r#"{"tool_use_id":"\u0000"}"#), "invalid_fact"),
                (decided(r#"{"file_path":"\ud800"}"#), "invalid_fact"),
                (decided(r#"{"file_path":"a\u0000"}"#), "invalid_fact"),
                (decided(r#"{"user.id":"a\u0000"}"#), "invalid_fact"),
            ],
            "svc.tool_decision",
        );
    }

    #[test]
    fn the_id_of_a_cursor_write_is_derived_from_its_members() {
        const WRITE: &str = r#"{"agent":"cursor","tool_name":"Write"}"#;
        let decision = |changes: &str| the_decision([decided(&changed(WRITE, changes))]);
        let id = |changes: &str| decision(changes).decision_id;
        let known = id("{}");
        let name = br#"["acme","cursor","s-1","t1","a.py",true,false,"agent","Write"]"#;
        assert_eq!(known.uuid(), Uuid::new_v5(&CURSOR_WRITE_NAMESPACE, name));
        let mut later = decided(WRITE).into_object().unwrap();
        later.insert("timeUnixNano", "1000");
        assert_eq!(the_decision([later.into()]).decision_id, known);
        for other in [
            r#"{"session.id":"s-2"}"#,
            r#"{"tool_use_id":"t2"}"#,
            r#"{"file_path":"\u00e9"}"#,
        ] {
            assert_eq!(id(other).uuid().get_version_num(), 5, "{other}");
            assert_ne!(id(other), known, "{other}");
        }
        for fresh in [
            r#"{"agent":"pi"}"#,
            r#"{"tool_name":"Edit"}"#,
            r#"{"tool_name":"write"}"#,
            r#"{"decision":"reject"}"#,
            r#"{"explicit":true}"#,
            r#"{"tool_use_id":" "}"#,
        ] {
            assert_eq!(id(fresh).uuid(), Uuid::from_u128(1), "{fresh}");
        }
    }

    #[test]
    fn an_observation_stores_its_texts_and_counts() {
        let padded = observation(r#"{"file_path":" ","tool_use_id":" t1 "}"#);
        assert_eq!(padded.call_id, "t1");
        assert_eq!(padded.file_path, " ");
        assert_eq!(padded.texts.applied, Text::from("A"));
        assert_eq!(padded.texts.observed_file, Text::from("F"));
        assert_eq!(padded.external_lines_added, None);
        assert_eq!(padded.raw, json(r#"{"tool_name":"Edit"}"#));
        let gone = observation(r#"{"applied_text":"","observed_file_text":"","tool_name":null}"#);
        assert!(gone.texts == EditTexts::default());
        assert_eq!(gone.raw, json(r#"{"tool_name":null}"#));
    }

    #[test]
    fn an_invalid_count_of_external_lines_is_unknown() {
        for (count, expected) in [
            ("0", Some(0)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-1", None),
            ("9223372036854775808", None),
            ("1.0", None),
            (r#""3""#, None),
            ("true", None),
            ("null", None),
        ] {
            let changes =
                format!(r#"{{"external_lines_added":{count},"external_lines_removed":2}}"#);
            let observed = observation(&changes);
            assert_eq!(observed.external_lines_added, expected, "{count}");
            assert_eq!(observed.external_lines_removed, Some(2));
        }
    }

    #[test]
    fn every_skip_of_an_observation_has_its_reason() {
        check(
            [
                (listless(observed("{}")), "malformed_attributes"),
                (observed(r#"{"session.id":null}"#), "missing_session"),
                (observed(r#"{"agent":null}"#), "missing_agent_harness"),
                (observed(r#"{"agent":"vim"}"#), "invalid_agent_harness"),
                (observed(r#"{"tool_use_id":null}"#), "missing_call_id"),
                (observed(r#"{"tool_use_id":" "}"#), "missing_call_id"),
                (observed(r#"{"file_path":null}"#), "missing_file_path"),
                (observed(r#"{"file_path":""}"#), "missing_file_path"),
                (observed(r#"{"applied_text":null}"#), "missing_text"),
                (observed(r#"{"applied_text":5}"#), "missing_text"),
                (observed(r#"{"observed_file_text":null}"#), "missing_text"),
                (timeless(observed("{}")), "missing_event_time"),
                (observed(r#"{"file_path":"\u0000"}"#), "invalid_fact"),
            ],
            "svc.edit_observation",
        );
    }

    #[test]
    fn a_text_is_bounded_by_its_bytes_with_a_surrogate_counted_as_one() {
        let over = "x".repeat(EDIT_TEXT_BYTES_MAX + 1);
        for name in ["applied_text", "observed_file_text"] {
            let record = observed(&format!(r#"{{"{name}":"{over}"}}"#));
            check([(record, "text_too_long")], "svc.edit_observation");
        }
        let record = rejected(&format!(r#"{{"proposed":"{over}"}}"#));
        check([(record, "text_too_long")], "svc.rejected_edit");
        let fits = format!(r#"{{"applied_text":"{}"}}"#, &over[1..]);
        assert_eq!(observation(&fits).texts.applied.len(), EDIT_TEXT_BYTES_MAX);
        // A character of two bytes, one surrogate of each kind, and U+FFFD, a character of three
        // bytes.
        let odd = r"\u00e9\ud800\ufffd\udfff";
        let rest = EDIT_TEXT_BYTES_MAX - 7;
        let fits = format!(r#"{{"applied_text":"{odd}{}"}}"#, &over[..rest]);
        assert_eq!(
            observation(&fits).texts.applied.len(),
            EDIT_TEXT_BYTES_MAX + 4
        );
        let record = observed(&format!(r#"{{"applied_text":"{odd}{}"}}"#, &over[..=rest]));
        check([(record, "text_too_long")], "svc.edit_observation");
    }

    #[test]
    fn a_rejected_edit_stores_the_proposed_text() {
        let mut captured = captured_records([rejected(r#"{"proposed":"\u0000"}"#)]);
        let refused = captured.rejected_edits.remove(0);
        assert_eq!(refused.proposed, Text::from("\0"));
        assert_eq!(
            (refused.call_id.as_str(), refused.file_path.as_str()),
            ("t1", "a.py")
        );
        assert_eq!(refused.raw, json(r#"{"tool_name":"Edit"}"#));
        check(
            [
                (listless(rejected("{}")), "malformed_attributes"),
                (rejected(r#"{"session.id":null}"#), "missing_session"),
                (rejected(r#"{"agent":null}"#), "missing_agent_harness"),
                (rejected(r#"{"agent":"vim"}"#), "invalid_agent_harness"),
                (rejected(r#"{"tool_use_id":null}"#), "missing_call_id"),
                (rejected(r#"{"file_path":null}"#), "missing_file_path"),
                (rejected(r#"{"proposed":null}"#), "missing_text"),
                (rejected(r#"{"proposed":5}"#), "missing_text"),
                (timeless(rejected("{}")), "missing_event_time"),
                (rejected(r#"{"tool_use_id":"\u0000"}"#), "invalid_fact"),
            ],
            "svc.rejected_edit",
        );
    }

    #[test]
    fn a_retry_links_two_calls() {
        let mut captured = captured_records([linked(
            r#"{"file_path":" a.py ","rejected_call_id":" r1","accepted_call_id":"a1 ","tool_name":"Write"}"#,
        )]);
        let linkage = captured.retry_linkages.remove(0);
        assert_eq!(linkage.file_path, "a.py");
        assert_eq!(linkage.tool_name, "Write");
        let calls = (
            linkage.rejected_call_id.as_str(),
            linkage.accepted_call_id.as_str(),
        );
        assert_eq!(calls, ("r1", "a1"));
        assert_eq!(linkage.raw, json("{}"));
    }

    #[test]
    fn a_skipped_retry_reports_missing_members_before_invalid_ones() {
        let everything_wrong = r#"{"session.id":null,"agent":null,"file_path":" ","tool_name":null,
            "rejected_call_id":null,"accepted_call_id":" "}"#;
        let mut wrong = everything_wrong.to_owned();
        let mut record = listless(linked(&wrong));
        for (reason, repair) in [
            ("malformed_attributes", "{}"),
            ("missing_session", r#"{"session.id":"s"}"#),
            ("missing_agent_harness", r#"{"agent":"vim"}"#),
            ("missing_file_path", r#"{"file_path":"a\u0000"}"#),
            ("missing_tool_name", r#"{"tool_name":"MultiEdit"}"#),
            ("missing_rejected_call_id", r#"{"rejected_call_id":"c"}"#),
            ("missing_accepted_call_id", r#"{"accepted_call_id":" c "}"#),
        ] {
            check_skip("{}", record, &format!("svc.retry_linkage: {reason}"));
            // `changed` removes null members, so the invalid members are merged by hand.
            let mut members = object(&wrong);
            for (name, value) in object(repair) {
                members.insert(name, value);
            }
            wrong = written(&members.into());
            record = timeless(linked(&wrong));
        }
        check_skip("{}", record, "svc.retry_linkage: missing_event_time");
        check_skip(
            "{}",
            linked(&wrong),
            "svc.retry_linkage: invalid_agent_harness",
        );
        let agent = changed(&wrong, r#"{"agent":"pi"}"#);
        check_skip("{}", linked(&agent), "svc.retry_linkage: invalid_tool_name");
        let tool = changed(&agent, r#"{"tool_name":"Edit"}"#);
        check_skip("{}", linked(&tool), "svc.retry_linkage: invalid_fact");
        let path = changed(&tool, r#"{"file_path":"a.py"}"#);
        check_skip("{}", linked(&path), "svc.retry_linkage: invalid_fact");
        let calls = changed(&path, r#"{"accepted_call_id":"d"}"#);
        assert_eq!(captured_records([linked(&calls)]).retry_linkages.len(), 1);
        let blank = changed(&calls, r#"{"session.id":" "}"#);
        check_skip("{}", linked(&blank), "svc.retry_linkage: invalid_fact");
    }

    #[test]
    fn the_user_id_of_the_sender_is_kept_unchanged() {
        let digits = "8".repeat(64);
        let named = format!(r#"{{"user.id":"{digits}"}}"#);
        let captured = captured_records([decided(&named)]);
        assert_eq!(captured.decisions[0].user_id, UserId::new(&digits).ok());
    }

    #[test]
    fn session_and_user_may_come_from_the_resource() {
        let resource = r#"{"session.id":"r","user.id":"dev"}"#;
        let own = r#"{"session.id":null,"user.id":"own"}"#;
        let records = [decided(own), observed(own), rejected(own), linked(own)];
        let captured = captured(export(resource, records));
        let dev = || UserId::new("dev").ok();
        let of = [
            (
                &captured.decisions[0].session_id,
                &captured.decisions[0].user_id,
            ),
            (
                &captured.edit_observations[0].session_id,
                &captured.edit_observations[0].user_id,
            ),
            (
                &captured.rejected_edits[0].session_id,
                &captured.rejected_edits[0].user_id,
            ),
            (
                &captured.retry_linkages[0].session_id,
                &captured.retry_linkages[0].user_id,
            ),
        ];
        for (session, user) in of {
            assert_eq!((session.as_str(), user), ("r", &dev()));
        }
    }
}
