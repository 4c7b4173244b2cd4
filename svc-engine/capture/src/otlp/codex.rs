//! Codex: `codex.tool_decision`, completed by `codex.tool_result`.
//!
//! A decision is about files if its tool is `apply_patch`, or if the result shows that a shell
//! command ran it. One decision becomes one fact for each file of the patch. Codex emits nothing
//! when a person refuses at its prompt, so its refusals are rare.

use svc_engine_fact::DeveloperDecision;
use svc_model::facts::AgentHarness;
use svc_model::ingest::LogSkip;
use svc_model::json::Text;

use super::attribute::AttributeValue;
use super::decided::{DecisionDraft, blank};
use super::kept::{KeptRecords, RecordsForm};
use super::logged::{ExportedRecord, session};
use super::{patch, result};
use crate::Receipt;
use svc_messages::embedded;

/// The name of the attribute with the Session.
pub(super) const CONVERSATION: &str = "conversation.id";
/// The name of the attribute with the id of the call.
const CALL: &str = "call_id";
/// The start of a shell command that applies a patch.
const PATCH_COMMAND: &str = "apply_patch <<";

/// The results of an export, with the patch in each.
pub(super) type Results<'r> = result::Results<'r, Patch>;

/// The files in a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Patch {
    /// Whether the result is about a patch; a result of `apply_patch` always is.
    is_patch: bool,
    /// The files that the patch names.
    files: Vec<Result<String, LogSkip>>,
}

/// Adds a result of a tool call.
pub(super) fn add<'r>(results: &mut Results<'r>, result: &'r ExportedRecord<'r>) {
    let session = result.either(CONVERSATION);
    results.add(result.attributes.text(CALL), session, result);
}

/// The facts from a decision.
#[derive(Debug, Default)]
pub(super) struct CodexDecisions {
    /// A fact for each file, or why there is none.
    pub(super) decided: Vec<Result<DecisionDraft, LogSkip>>,
    /// The number of files beyond the export's limit.
    pub(super) too_many: usize,
}

/// Turns a decision into a fact for each file of its patch, without a path if none is known.
///
/// `files_left` is how many files the export may still name, beyond one per decision.
pub(super) fn decisions(
    logged: &ExportedRecord<'_>,
    results: &mut Results<'_>,
    files_left: &mut usize,
    receipt: Receipt<'_>,
) -> Result<CodexDecisions, LogSkip> {
    let attributes = logged.attributes.well_formed()?;
    let str = |name| attributes.get(name).and_then(AttributeValue::str);
    let tool = str("tool_name").and_then(Tool::of);
    let tool = tool.ok_or(LogSkip::NotAnEditTool)?;
    let session_id = session(logged.either(CONVERSATION))?;
    let call_id = logged.call(CALL)?;
    let result = call_id
        .as_deref()
        .and_then(|call| results.find(call, session_id.as_str(), |result| tool.patch(result)));
    let (result, patch) = result.unzip();
    match (tool, patch) {
        (Tool::ApplyPatch, _) | (Tool::Shell, Some(Patch { is_patch: true, .. })) => {}
        (Tool::Shell, Some(_)) => return Err(LogSkip::NotAnEditTool),
        (Tool::Shell, None) => return Err(LogSkip::MissingResult),
    }
    let accepted = match str("decision") {
        Some("approved" | "approved_for_session") => true,
        Some("denied" | "abort") => false,
        _ => return Err(LogSkip::UnknownDecision),
    };
    let occurred_at = logged.occurred_or_observed_at()?;
    let user_id = logged.resource_user()?;
    let explicit = str("source").is_some_and(|source| source.eq_ignore_ascii_case("user"));
    let decided = |file_path: String| {
        let decision = DeveloperDecision {
            user_id: user_id.clone(),
            file_path,
            accepted,
            explicit,
            call_id: call_id.clone(),
            ..blank(
                AgentHarness::Codex,
                session_id.clone(),
                occurred_at,
                receipt,
            )
        };
        let kept = KeptRecords {
            form: RecordsForm::Attributes,
            decision: logged.place,
            result,
        };
        (decision, kept)
    };
    let files = patch
        .map(|patch| patch.files.as_slice())
        .unwrap_or_default();
    let Some((first, more)) = files.split_first() else {
        return Ok(CodexDecisions {
            decided: vec![Ok(decided(String::new()))],
            too_many: 0,
        });
    };
    let (more, too_many) = more.split_at(more.len().min(*files_left));
    *files_left -= more.len();
    Ok(CodexDecisions {
        decided: std::iter::once(first)
            .chain(more)
            .map(|file| file.clone().map(decided))
            .collect(),
        too_many: too_many.len(),
    })
}

/// The tools that may edit files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    ApplyPatch,
    Shell,
}

impl Tool {
    fn of(name: &str) -> Option<Self> {
        match name {
            "apply_patch" => Some(Self::ApplyPatch),
            "exec_command" => Some(Self::Shell),
            _ => None,
        }
    }

    /// Returns the patch in a call's result.
    fn patch(self, result: &ExportedRecord<'_>) -> Patch {
        let Some(arguments) = result.attributes.text("arguments") else {
            return Patch {
                is_patch: self == Self::ApplyPatch,
                files: Vec::new(),
            };
        };
        let member = |name| {
            let text = embedded::object(arguments)?.remove(name)?;
            text.into_text()
        };
        match self {
            // Either the input of the tool, or an object that contains it.
            Self::ApplyPatch => Patch {
                is_patch: true,
                files: patch::files(member("input").as_ref().unwrap_or(arguments).as_bytes()),
            },
            Self::Shell => match member("cmd").filter(is_patch_command) {
                Some(command) => Patch {
                    is_patch: true,
                    files: patch::files(command.as_bytes()),
                },
                None => Patch {
                    is_patch: false,
                    files: Vec::new(),
                },
            },
        }
    }
}

/// Returns whether a command passes a patch to `apply_patch` in its first line.
fn is_patch_command(command: &Text) -> bool {
    let bytes = command.as_bytes();
    let blanks = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count();
    bytes[blanks..].starts_with(PATCH_COMMAND.as_bytes())
}

#[cfg(test)]
mod tests {
    use svc_model::json::{Json, Object};
    use svc_model::limit::LOG_PATCH_FILES_MAX;

    use super::super::testing::{
        TIME, attributes, captured, captured_records, changed, check_skip, export, json, object,
        record, skips, the_decision, written,
    };
    use super::*;

    const DECISION: &str = r#"{"event.name":"codex.tool_decision","conversation.id":"s-1",
        "decision":"approved","source":"User","tool_name":"apply_patch","call_id":"c1"}"#;
    const PATCH: &str = "*** Begin Patch\n*** Update File: a.rs\n@@\n-x\n+y\n*** Move to: b.rs\n\
                         *** Add File: c.rs\n+z\n*** End Patch\n";

    fn decided(changes: &str) -> Json {
        record(&changed(DECISION, changes)).into()
    }

    fn shell(changes: &str) -> Json {
        decided(&changed(r#"{"tool_name":"exec_command"}"#, changes))
    }

    fn answered(arguments: &str) -> Json {
        let members = [
            ("event.name", "codex.tool_result"),
            ("call_id", "c1"),
            ("arguments", arguments),
        ];
        record(&written(&Object::from_iter(members).into())).into()
    }

    fn command(cmd: &str) -> Json {
        answered(&written(&Object::from_iter([("cmd", cmd)]).into()))
    }

    fn paths(records: impl IntoIterator<Item = Json>) -> Vec<String> {
        let captured = captured_records(records);
        let path = |decision: DeveloperDecision| decision.file_path;
        captured.decisions.into_iter().map(path).collect()
    }

    #[test]
    fn a_patch_becomes_one_decision_per_file() {
        let captured = captured_records([decided("{}"), answered(PATCH)]);
        let paths: Vec<&str> = captured
            .decisions
            .iter()
            .map(|decision| decision.file_path.as_str())
            .collect();
        assert_eq!(paths, ["a.rs", "b.rs", "c.rs"]);
        let first = &captured.decisions[0];
        assert_eq!(first.agent_harness, AgentHarness::Codex);
        assert_eq!(first.session_id.as_str(), "s-1");
        assert_eq!(first.call_id.as_deref(), Some("c1"));
        assert!(first.accepted && first.explicit);
        assert_eq!(first.interaction_mode.as_str(), "agent");
        for (one, other) in captured.decisions.iter().zip(&captured.decisions[1..]) {
            assert_ne!(one.decision_id, other.decision_id);
            assert_eq!(one.raw, other.raw);
        }
        assert_eq!(captured.report.records.translated, 1);
        assert_eq!(captured.report.records.untranslated, 1);
    }

    #[test]
    fn a_decision_stores_the_attributes_of_both_records_without_the_account() {
        let asked = decided(r#"{"user.email":"a@b","n":5,"flag":true,"source":null}"#);
        let raw = the_decision([asked.clone()]).raw;
        let decision = r#"{"event.name":"codex.tool_decision","conversation.id":"s-1","decision":"approved",
            "tool_name":"apply_patch","call_id":"c1","n":5,"flag":true}"#;
        assert_eq!(
            raw,
            json(&format!(r#"{{"decision":{decision},"result":null}}"#))
        );
        let raw = the_decision([answered("x"), asked]).raw;
        let result = r#"{"event.name":"codex.tool_result","call_id":"c1","arguments":"x"}"#;
        assert_eq!(
            raw,
            json(&format!(r#"{{"decision":{decision},"result":{result}}}"#))
        );
    }

    #[test]
    fn without_a_path_a_single_decision_is_captured() {
        for records in [
            vec![decided("{}")],
            vec![decided("{}"), answered("")],
            vec![decided("{}"), answered("*** Begin Patch\n*** End Patch")],
            vec![decided(r#"{"call_id":null}"#), answered(PATCH)],
            vec![decided(r#"{"call_id":"c2"}"#), answered(PATCH)],
        ] {
            assert_eq!(paths(records), [""]);
        }
    }

    #[test]
    fn the_input_of_the_tool_may_be_wrapped_in_an_object() {
        let wrapped = written(&Object::from_iter([("input", PATCH)]).into());
        assert_eq!(
            paths([decided("{}"), answered(&wrapped)]),
            ["a.rs", "b.rs", "c.rs"]
        );
    }

    #[test]
    fn a_patch_in_a_shell_command_is_read() {
        let heredoc = format!(" \n\tapply_patch <<'EOF'\n{PATCH}EOF\n");
        assert_eq!(
            paths([shell("{}"), command(&heredoc)]),
            ["a.rs", "b.rs", "c.rs"]
        );
        assert_eq!(
            paths([shell("{}"), command("apply_patch <<EOF\nEOF")]),
            [""]
        );
        for other in [
            command("ls"),
            command(&format!("cd x && apply_patch <<'EOF'\n{PATCH}")),
            command(&format!("true\napply_patch <<'EOF'\n{PATCH}")),
            answered(&heredoc),
            answered(r#"{"cmd":["apply_patch <<EOF"]}"#),
            answered(r#"{"command":"apply_patch <<EOF"}"#),
            answered(""),
        ] {
            let captured = captured_records([shell("{}"), other]);
            let expected = "codex.tool_decision: not_an_edit_tool".to_owned();
            assert_eq!(skips(&captured), [(expected, 1)]);
        }
        check_skip("{}", shell("{}"), "codex.tool_decision: missing_result");
    }

    #[test]
    fn verdicts_and_sources_are_read_from_their_exact_words() {
        for (verdict, accepted) in [
            ("approved", true),
            ("approved_for_session", true),
            ("denied", false),
            ("abort", false),
        ] {
            let record = decided(&format!(r#"{{"decision":"{verdict}"}}"#));
            assert_eq!(the_decision([record]).accepted, accepted, "{verdict}");
        }
        for verdict in [r#""Approved""#, r#""accept""#, "true", "null"] {
            let record = decided(&format!(r#"{{"decision":{verdict}}}"#));
            check_skip("{}", record, "codex.tool_decision: unknown_decision");
        }
        for (source, explicit) in [
            (r#""user""#, true),
            (r#""USER""#, true),
            (r#""config""#, false),
            (r#""automated_reviewer""#, false),
            ("null", false),
        ] {
            let record = decided(&format!(r#"{{"source":{source}}}"#));
            assert_eq!(the_decision([record]).explicit, explicit, "{source}");
        }
        for tool in [r#""shell""#, r#""Apply_patch""#, "null"] {
            let record = decided(&format!(r#"{{"tool_name":{tool}}}"#));
            check_skip("{}", record, "codex.tool_decision: not_an_edit_tool");
        }
    }

    #[test]
    fn the_event_time_wins_over_the_observed_one() {
        let at = |event: &str, observed: &str| {
            let mut record = decided("{}").into_object().unwrap();
            record.insert("timeUnixNano", event);
            record.insert("observedTimeUnixNano", observed);
            let captured = captured_records([record.into()]);
            let time = |decision: &DeveloperDecision| decision.occurred_at.microseconds();
            captured.decisions.first().map(time)
        };
        assert_eq!(at("2000", "1000"), Some(2));
        assert_eq!(at("0", "1000"), Some(1));
        assert_eq!(at("0", "0"), None);
        let mut timeless = decided("{}").into_object().unwrap();
        timeless.remove("timeUnixNano");
        check_skip(
            "{}",
            timeless.into(),
            "codex.tool_decision: missing_event_time",
        );
    }

    #[test]
    fn the_session_is_the_conversation_and_the_user_comes_from_the_resource() {
        let other = r#"{"conversation.id":null,"session.id":"no","user.id":"no"}"#;
        check_skip(
            r#"{"session.id":"no"}"#,
            decided(other),
            "codex.tool_decision: missing_session",
        );
        let resource = r#"{"conversation.id":"r","user.id":"dev"}"#;
        let captured = captured(export(resource, [decided(other)]));
        assert_eq!(captured.decisions[0].session_id.as_str(), "r");
        assert_eq!(
            captured.decisions[0].user_id.as_ref().unwrap().as_str(),
            "dev"
        );
        let user = the_decision([decided(r#"{"user.id":"no"}"#)]).user_id;
        assert_eq!(user, None);
    }

    #[test]
    fn a_result_of_another_conversation_is_not_joined() {
        let mut other = answered(PATCH).into_object().unwrap();
        let members = r#"{"event.name":"codex.tool_result","call_id":"c1","conversation.id":"s-2",
            "arguments":"*** Add File: a"}"#;
        other.insert("attributes", attributes(members));
        assert_eq!(paths([decided("{}"), other.into()]), [""]);
    }

    #[test]
    fn a_file_with_an_invalid_path_is_skipped_alone() {
        let mut result = answered("").into_object().unwrap();
        let members = r#"{"event.name":"codex.tool_result","call_id":"c1",
            "arguments":"*** Add File: a\n*** Add File: b\u0000\n*** Add File: \ud800\n*** Add File: c"}"#;
        result.insert("attributes", attributes(members));
        let captured = captured_records([decided("{}"), result.into()]);
        let paths: Vec<&str> = captured
            .decisions
            .iter()
            .map(|decision| decision.file_path.as_str())
            .collect();
        assert_eq!(paths, ["a", "c"]);
        let skipped: Vec<_> = captured.report.skipped.into_iter().collect();
        let event = svc_model::ingest::LogEvent::CodexToolDecision;
        assert_eq!(skipped, [((event, LogSkip::InvalidFact), 2)]);
    }

    #[test]
    fn the_files_named_by_one_export_are_bounded() {
        let headers = (0..LOG_PATCH_FILES_MAX - 1).map(|number| format!("*** Add File: {number}"));
        let patch = headers.collect::<Vec<String>>().join("\n");
        let captured = captured_records([decided("{}"), decided("{}"), answered(&patch)]);
        // All files of the first decision, then one file of the second and whatever the limit
        // leaves.
        assert_eq!(captured.decisions.len(), LOG_PATCH_FILES_MAX + 2);
        let skipped: Vec<_> = captured.report.skipped.into_iter().collect();
        let event = svc_model::ingest::LogEvent::CodexToolDecision;
        let too_many = LOG_PATCH_FILES_MAX as u64 - 4;
        assert_eq!(skipped, [((event, LogSkip::TooManyFiles), too_many)]);
    }

    #[test]
    fn every_skip_has_its_reason() {
        let mut listless = decided("{}").into_object().unwrap();
        listless.insert("attributes", "x");
        listless.insert("eventName", "codex.tool_decision");
        listless.insert("timeUnixNano", TIME);
        for (record, reason) in [
            (Json::Object(listless), "malformed_attributes"),
            (decided(r#"{"conversation.id":" "}"#), "invalid_fact"),
            (decided(r#"{"conversation.id":"a\u0000"}"#), "invalid_fact"),
            (decided(r#"{"call_id":"\ud800"}"#), "invalid_fact"),
        ] {
            check_skip("{}", record, &format!("codex.tool_decision: {reason}"));
        }
        let record = Json::Object(object(&written(&decided("{}"))));
        check_skip(
            r#"{"user.id":"a\u0000"}"#,
            record,
            "codex.tool_decision: invalid_fact",
        );
    }
}
