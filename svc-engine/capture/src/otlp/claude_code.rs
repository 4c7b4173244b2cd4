//! Claude Code: `claude_code.tool_decision`, completed by `claude_code.tool_result`.
//!
//! The decision contains only the verdict. The file is named in the result, which a refused call
//! does not have. Claude Code sends the bare `tool_decision` as `event.name`.

use svc_engine_fact::DeveloperDecision;
use svc_model::facts::AgentHarness;
use svc_model::id::UserId;
use svc_model::ingest::LogSkip;
use svc_model::json::Json;

use super::attribute::AttributeValue;
use super::decided::{DecisionDraft, blank};
use super::kept::{KeptRecords, RecordsForm};
use super::logged::{ExportedRecord, SESSION, path};
use super::result;
use crate::Receipt;
use crate::value::device;
use svc_messages::embedded;

/// The tools that edit files.
const EDIT_TOOLS: [&str; 4] = ["Edit", "Write", "MultiEdit", "NotebookEdit"];
/// The sources of decisions that a person made. The other sources are settings and hooks.
const PEOPLE: [&str; 4] = [
    "user_permanent",
    "user_temporary",
    "user_abort",
    "user_reject",
];
/// The name of the attribute with the id of the call.
pub(super) const CALL: &str = "tool_use_id";

/// The results of an export, with the path in each.
pub(super) type Results<'r> = result::Results<'r, Result<String, LogSkip>>;

/// Adds a result of a tool call.
pub(super) fn add<'r>(results: &mut Results<'r>, result: &'r ExportedRecord<'r>) {
    results.add(result.attributes.text(CALL), result.either(SESSION), result);
}

/// Turns a decision into a fact.
pub(super) fn decision(
    logged: &ExportedRecord<'_>,
    results: &mut Results<'_>,
    receipt: Receipt<'_>,
) -> Result<DecisionDraft, LogSkip> {
    let attributes = logged.attributes.well_formed()?;
    let str = |name| attributes.get(name).and_then(AttributeValue::str);
    if !str("tool_name").is_some_and(|tool| EDIT_TOOLS.contains(&tool)) {
        return Err(LogSkip::NotAnEditTool);
    }
    let accepted = match str("decision") {
        Some("accept") => true,
        Some("reject") => false,
        _ => return Err(LogSkip::UnknownDecision),
    };
    let session_id = logged.session()?;
    let occurred_at = logged.occurred_at()?;
    let call_id = logged.call(CALL)?;
    let result = call_id
        .as_deref()
        .and_then(|call| results.find(call, session_id.as_str(), file_path));
    let (result, file_path) = match result {
        Some((place, path)) => (Some(place), path.clone()?),
        None => (None, String::new()),
    };
    let decision = DeveloperDecision {
        user_id: user(logged)?,
        file_path,
        accepted,
        explicit: str("source").is_some_and(|source| PEOPLE.contains(&source)),
        call_id,
        ..blank(AgentHarness::ClaudeCode, session_id, occurred_at, receipt)
    };
    let kept = KeptRecords {
        form: RecordsForm::Records,
        decision: logged.place,
        result,
    };
    Ok((decision, kept))
}

/// Returns the path in a tool's input, unchanged; empty if there is none.
fn file_path(result: &ExportedRecord<'_>) -> Result<String, LogSkip> {
    let input = result
        .attributes
        .text("tool_input")
        .and_then(embedded::object);
    let member = |name| input.as_ref()?.get(name).filter(|value| is_truthy(value));
    match member("file_path").or_else(|| member("notebook_path")) {
        Some(Json::String(text)) => path(text.as_str().ok_or(LogSkip::InvalidFact)?),
        _ => Ok(String::new()),
    }
}

/// Returns whether a value is not null, false, empty or zero.
fn is_truthy(value: &Json) -> bool {
    match value {
        Json::Null => false,
        Json::Bool(value) => *value,
        Json::Number(number) => number.as_f64() != 0.0,
        Json::String(text) => !text.is_empty(),
        Json::Array(items) => !items.is_empty(),
        Json::Object(object) => !object.is_empty(),
    }
}

/// Returns the user whom the resource names, or else the device, named as in what the gateway logs.
pub(super) fn user(logged: &ExportedRecord<'_>) -> Result<Option<UserId>, LogSkip> {
    let user = logged.user()?;
    if logged.resource_user()?.is_some() {
        return Ok(user);
    }
    let device = user.as_ref().and_then(|user| device(user.as_str()));
    Ok(device.and_then(|device| UserId::new(&device).ok()).or(user))
}

#[cfg(test)]
mod tests {
    use svc_model::json::Object;

    use super::super::testing::{
        TIME, attributes, captured, captured_records, changed, check_skip, event, export, skips,
        the_decision, written,
    };
    use super::*;

    const DECISION: &str = r#"{"session.id":"s-1","decision":"accept","source":"user_temporary",
        "tool_name":"Edit","tool_use_id":"tu1","event.name":"tool_decision"}"#;

    fn decided(changes: &str) -> Json {
        event("claude_code.tool_decision", &changed(DECISION, changes))
    }

    fn result(members: &str) -> Json {
        event("claude_code.tool_result", members)
    }

    fn tool_input(input: &str) -> Json {
        let members = Json::Object(Object::from_iter([
            ("tool_use_id", "tu1"),
            ("tool_input", input),
        ]));
        result(&written(&members))
    }

    #[test]
    fn a_decision_takes_its_path_from_a_result_before_or_after_it() {
        let input = r#"{"file_path":"/w/a.py"}"#;
        for records in [
            [decided("{}"), tool_input(input)],
            [tool_input(input), decided("{}")],
        ] {
            let decision = the_decision(records);
            assert_eq!(decision.agent_harness, AgentHarness::ClaudeCode);
            assert_eq!(decision.session_id.as_str(), "s-1");
            assert_eq!(decision.call_id.as_deref(), Some("tu1"));
            assert_eq!(decision.file_path, "/w/a.py");
            assert!(decision.accepted && decision.explicit);
            assert_eq!(decision.interaction_mode.as_str(), "agent");
            assert_eq!(
                decision.occurred_at.to_string(),
                "2026-07-07T19:57:35.424000Z"
            );
            assert_eq!(decision.captured_at.microseconds(), 1);
            assert_eq!((decision.user_id, decision.commit_sha), (None, None));
        }
    }

    #[test]
    fn a_decision_stores_both_records_without_account_attributes() {
        let members = r#"{"session.id":"s","tool_name":"Write","decision":"reject","tool_use_id":"t",
            "user.email":"a@b.c","user.account_id":"1","user.account_uuid":"2"}"#;
        let asked = event("claude_code.tool_decision", members);
        let raw = the_decision([asked.clone()]).raw;
        let mut kept = asked.clone();
        let members =
            r#"{"session.id":"s","tool_name":"Write","decision":"reject","tool_use_id":"t"}"#;
        let list = kept.as_object_mut().unwrap();
        list.insert("attributes", attributes(members));
        let expected = format!(r#"{{"decision":{},"result":null}}"#, written(&kept));
        assert_eq!(written(&raw), expected);

        let answer = result(r#"{"tool_use_id":"t","user.email":"a@b.c","tool_input":"{}"}"#);
        let raw = the_decision([answer, asked]).raw;
        let answer = result(r#"{"tool_use_id":"t","tool_input":"{}"}"#);
        let expected = format!(
            r#"{{"decision":{},"result":{}}}"#,
            written(&kept),
            written(&answer)
        );
        assert_eq!(written(&raw), expected);
    }

    #[test]
    fn only_decisions_of_the_four_editing_tools_are_captured() {
        for tool in ["Edit", "Write", "MultiEdit", "NotebookEdit"] {
            let decision = the_decision([decided(&format!(r#"{{"tool_name":"{tool}"}}"#))]);
            assert_eq!(decision.file_path, "");
        }
        for tool in [r#""edit""#, r#""Bash""#, r#""Read""#, "5", "null", r#""""#] {
            let record = decided(&format!(r#"{{"tool_name":{tool}}}"#));
            check_skip("{}", record, "claude_code.tool_decision: not_an_edit_tool");
        }
    }

    #[test]
    fn only_the_decision_of_a_person_is_explicit() {
        for (source, explicit) in [
            (r#""user_permanent""#, true),
            (r#""user_temporary""#, true),
            (r#""user_abort""#, true),
            (r#""user_reject""#, true),
            (r#""config""#, false),
            (r#""hook""#, false),
            (r#""User_temporary""#, false),
            ("true", false),
            ("null", false),
        ] {
            let decision = the_decision([decided(&format!(r#"{{"source":{source}}}"#))]);
            assert_eq!(decision.explicit, explicit, "{source}");
        }
    }

    #[test]
    fn an_unknown_verdict_is_skipped() {
        let refused = decided(r#"{"decision":"reject"}"#);
        assert!(!the_decision([refused]).accepted);
        for verdict in [r#""Accept""#, r#""approved""#, "true", "null"] {
            let record = decided(&format!(r#"{{"decision":{verdict}}}"#));
            check_skip("{}", record, "claude_code.tool_decision: unknown_decision");
        }
    }

    #[test]
    fn a_decision_may_lack_a_tool_call_id() {
        for call in [r#"" ""#, "5", "null", r#"["tu"]"#] {
            let decision = the_decision([decided(&format!(r#"{{"tool_use_id":{call}}}"#))]);
            assert_eq!(decision.call_id, None, "{call}");
        }
        let padded = decided(r#"{"tool_use_id":" tu1\n"}"#);
        let decision = the_decision([padded, tool_input(r#"{"file_path":"a"}"#)]);
        assert_eq!(decision.call_id.as_deref(), Some("tu1"));
        assert_eq!(decision.file_path, "a");
    }

    #[test]
    fn the_path_is_the_file_or_else_the_notebook_and_is_not_trimmed() {
        for (input, path) in [
            (r#"{"file_path":" a b "}"#, " a b "),
            (r#"{"file_path":" ","notebook_path":"n"}"#, " "),
            (r#"{"notebook_path":"n.ipynb"}"#, "n.ipynb"),
            (r#"{"file_path":"","notebook_path":"n"}"#, "n"),
            (r#"{"file_path":null,"notebook_path":"n"}"#, "n"),
            (r#"{"file_path":0,"notebook_path":"n"}"#, "n"),
            (r#"{"file_path":[],"notebook_path":"n"}"#, "n"),
            (r#"{"file_path":{},"notebook_path":"n"}"#, "n"),
            (r#"{"file_path":false,"notebook_path":"n"}"#, "n"),
            (r#"{"file_path":7,"notebook_path":"n"}"#, ""),
            (r#"{"file_path":["a"]}"#, ""),
            (r#"{"path":"a"}"#, ""),
            (r#"["file_path"]"#, ""),
            (r#"{"file_path":"cut in pla"#, ""),
            ("no JSON", ""),
        ] {
            let decision = the_decision([decided("{}"), tool_input(input)]);
            assert_eq!(decision.file_path, path, "{input}");
        }
        let wrapped = result(r#"{"tool_use_id":"tu1","tool_input":{"kvlistValue":{}}}"#);
        assert_eq!(the_decision([decided("{}"), wrapped]).file_path, "");
    }

    #[test]
    fn an_invalid_path_skips_the_decision() {
        let long = format!(r#"{{"file_path":"{}"}}"#, "x".repeat(4_097));
        for input in [
            r#"{"file_path":"a\u0000"}"#,
            r#"{"file_path":"a\ud800"}"#,
            &long,
        ] {
            let captured = captured_records([decided("{}"), tool_input(input)]);
            let expected = "claude_code.tool_decision: invalid_fact".to_owned();
            assert_eq!(skips(&captured), [(expected, 1)]);
        }
        let longest = format!(r#"{{"file_path":"{}"}}"#, "x".repeat(4_096));
        let decision = the_decision([decided("{}"), tool_input(&longest)]);
        assert_eq!(decision.file_path.len(), 4_096);
    }

    #[test]
    fn the_last_result_of_the_same_session_wins() {
        let of = |session: &str, path: &str| {
            let session = match session {
                "" => String::new(),
                session => format!(r#""session.id":"{session}","#),
            };
            let input = format!(r#""{{\"file_path\":\"{path}\"}}""#);
            result(&format!(
                r#"{{{session}"tool_use_id":"tu1","tool_input":{input}}}"#
            ))
        };
        for (results, path) in [
            (vec![of("s-1", "a"), of("s-1", "b")], "b"),
            (vec![of("", "a"), of("s-1", "b")], "b"),
            (vec![of("s-1", "a"), of("", "b")], "b"),
            (vec![of(" s-1 ", "a")], "a"),
            (vec![of("s-1", "a"), of("s-2", "b")], "a"),
            (vec![of("s-2", "b")], ""),
        ] {
            let records = results.into_iter().chain([decided("{}")]);
            assert_eq!(the_decision(records).file_path, path);
        }
    }

    #[test]
    fn a_result_may_take_its_session_from_the_resource() {
        let scope = |resource: &str, record: Json| {
            let export = export(resource, [record]);
            export.get("resourceLogs").unwrap().as_array().unwrap()[0].clone()
        };
        let input = tool_input(r#"{"file_path":"a"}"#);
        for (session, path) in [("s-1", "a"), ("s-2", "")] {
            let logs = [
                scope(&format!(r#"{{"session.id":"{session}"}}"#), input.clone()),
                scope("{}", decided("{}")),
            ];
            let export = Object::from_iter([("resourceLogs", Json::from_iter(logs))]);
            assert_eq!(captured(export).decisions[0].file_path, path, "{session}");
        }
    }

    #[test]
    fn every_skip_has_its_reason() {
        let mut timeless = decided("{}");
        let record = timeless.as_object_mut().unwrap();
        record.insert("timeUnixNano", "0");
        record.insert("observedTimeUnixNano", TIME);
        let mut listless = decided("{}");
        let record = listless.as_object_mut().unwrap();
        record.insert("attributes", Object::new());
        for (record, reason) in [
            (timeless, "missing_event_time"),
            (listless, "malformed_attributes"),
            (decided(r#"{"session.id":null}"#), "missing_session"),
            (decided(r#"{"session.id":""}"#), "missing_session"),
            (decided(r#"{"session.id":5}"#), "missing_session"),
            (decided(r#"{"session.id":" "}"#), "invalid_fact"),
            (decided(r#"{"session.id":"a\u0000"}"#), "invalid_fact"),
            (decided(r#"{"session.id":"\ud800"}"#), "invalid_fact"),
            (decided(r#"{"tool_use_id":"a\u0000"}"#), "invalid_fact"),
            (decided(r#"{"tool_use_id":"\udfff"}"#), "invalid_fact"),
            (decided(r#"{"user.id":"\ud800"}"#), "invalid_fact"),
        ] {
            let expected = format!("claude_code.tool_decision: {reason}");
            check_skip("{}", record, &expected);
        }
        let long = format!(r#"{{"session.id":"{}"}}"#, "x".repeat(1_025));
        check_skip(
            "{}",
            decided(&long),
            "claude_code.tool_decision: invalid_fact",
        );
    }

    #[test]
    fn the_user_is_read_from_the_resource_before_the_record() {
        let user = |resource: &str, changes: &str| {
            let mut captured = captured(export(resource, [decided(changes)]));
            let user = captured.decisions.remove(0).user_id;
            user.map(|user| user.as_str().to_owned())
        };
        let own = r#"{"user.id":"own"}"#;
        assert_eq!(user(r#"{"user.id":" dev "}"#, own).as_deref(), Some("dev"));
        assert_eq!(user(r#"{"user.id":" "}"#, own).as_deref(), Some("own"));
        assert_eq!(user(r#"{"user.id":5}"#, own).as_deref(), Some("own"));
        assert_eq!(user("{}", "{}"), None);
        // A device has the same name as in the gateway's logs.
        let digits = "837792f0cc27d5db8367299f827ec2068ad55bb73be1b0dbb669dfb6044d8fee";
        let device = format!(r#"{{"user.id":"{digits}"}}"#);
        assert_eq!(user("{}", &device).as_deref(), Some("device_837792f0cc27"));
        assert_eq!(user(&device, "{}").as_deref(), Some(digits));
    }

    #[test]
    fn the_session_is_read_from_the_record_before_the_resource() {
        let session = |resource: &str, changes: &str| {
            let captured = captured(export(resource, [decided(changes)]));
            captured.decisions[0].session_id.as_str().to_owned()
        };
        let resource = r#"{"session.id":"r"}"#;
        assert_eq!(session(resource, "{}"), "s-1");
        assert_eq!(session(resource, r#"{"session.id":null}"#), "r");
        assert_eq!(session(resource, r#"{"session.id":""}"#), "r");
    }
}
