use std::io::{self, Read as _};
use std::time::{Duration, SystemTime};

use clap::Args;
use svc_client::outbox::Ending;
use svc_model::facts::AgentHarness;
use svc_model::id::{ForeignId, SessionId};
use svc_model::ingest::event::{Event, FilePath, ToolDecision};
use svc_model::json::{Json, Object};

use crate::commands::sending::ServiceOutbox;
use crate::commands::service;
use crate::credentials::Role;
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::Output;

/// The hook that Cursor runs after a successful tool call.
const HOOK: &str = "postToolUse";
/// The tool with which Cursor's agent changes files.
const TOOL: &str = "Write";
/// The maximum size in bytes of the input, which contains the written file.
const INPUT_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// How long the editor may be made to wait.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub(crate) struct Cursor {
    #[command(flatten)]
    service: ServiceOptions,
}

impl Cursor {
    /// Reports the edit. Always succeeds, because evidence must not break the editor.
    pub(crate) fn run(&self, output: &mut Output) {
        // Cursor reads a JSON object from every hook. If writing it fails, nobody is left to tell.
        drop(output.text("{}\n"));
        if let Err(error) = self.report() {
            output.error(&error);
        }
    }

    fn report(&self) -> Result<(), CommandError> {
        let mut input = Vec::new();
        io::stdin().take(INPUT_BYTES_MAX).read_to_end(&mut input)?;
        let Some(event) = decision(&input, SystemTime::now())? else {
            return Ok(());
        };
        let events = [event];
        // Kept on disk before it is sent, because the editor may stop this program at any moment.
        let kept = ServiceOutbox::of(&self.service).and_then(|kept| {
            kept.keep(&events[..])?;
            Ok(kept)
        });
        match kept {
            Ok(kept) => drain(&kept).map_err(|error| {
                error.hint("the report is kept and sent with the next one: svc outbox status")
            }),
            // If it cannot be kept, sending is tried once.
            Err(unkept) => self.send(&events).map_err(|unsent| {
                unkept.hint(format!(
                    "it could not be sent either, so it is lost: {}",
                    unsent.message()
                ))
            }),
        }
    }

    fn send(&self, events: &[Event]) -> Result<(), CommandError> {
        let client = service::client_for(&self.service, Role::Capture)?.with_timeout(PATIENCE);
        service::block_on(async {
            client.ingest_events(events).await?;
            Ok(())
        })
    }
}

/// Sends what is waiting. This report is the last.
fn drain(kept: &ServiceOutbox) -> Result<(), CommandError> {
    let client = kept.client()?.with_timeout(PATIENCE);
    let drained = service::block_on(kept.drain_within(&client, PATIENCE))?;
    match drained.map(|drained| drained.ending) {
        Some(Ending::Later(error) | Ending::Stopped(error)) => Err(error.into()),
        Some(_) | None => Ok(()),
    }
}

/// Returns the decision that an input describes: a write that nobody was asked about. `None` for
/// any other input.
fn decision(input: &[u8], received_at: SystemTime) -> Result<Option<Event>, CommandError> {
    let input = Json::parse(input).ok().and_then(Json::into_object);
    let input = input.ok_or_else(|| refused("the input of the hook is not a JSON object"))?;
    let is = |name: &str, word: &str| input.get(name).and_then(Json::as_str) == Some(word);
    if !is("hook_event_name", HOOK) || !is("tool_name", TOOL) {
        return Ok(None);
    }
    let text = |name: &str| input.get(name).and_then(Json::as_str).unwrap_or_default();
    let session_id = SessionId::new(text("conversation_id"))
        .map_err(|rule| refused(&format!("conversation_id {rule}")))?;
    let call_id = ForeignId::new(text("tool_use_id"))
        .map_err(|rule| refused(&format!("tool_use_id {rule}")))?;
    let occurred_at = received_at
        .try_into()
        .map_err(|_| refused("the clock of this machine is wrong"))?;
    Ok(Some(Event {
        agent: AgentHarness::Cursor,
        session_id,
        user_id: None,
        occurred_at,
        kind: ToolDecision {
            call_id,
            file_path: file_path(&input),
            accepted: true,
            explicit: false,
            tool_name: Some(TOOL.to_owned()),
        }
        .into(),
    }))
}

/// Returns the path of the written file; `None` if the input does not name it in a known form.
fn file_path(input: &Object) -> Option<FilePath> {
    let given = input.get("tool_input")?;
    let parsed;
    let arguments = if let Some(text) = given.as_str() {
        parsed = Json::parse(text.as_bytes()).ok()?;
        parsed.as_object()?
    } else {
        given.as_object()?
    };
    let path = arguments
        .get("file_path")
        .or_else(|| arguments.get("path"))?;
    FilePath::new(path.as_str()?).ok()
}

fn refused(why: &str) -> CommandError {
    CommandError::refused("unreadable_hook", format!("not reported: {why}"))
}

#[cfg(test)]
mod tests {
    use svc_model::ingest::LogsRequest;
    use svc_model::ingest::event::EventKind;
    use svc_model::request::Request as _;

    use super::*;

    const INPUT: &str = r#"{"conversation_id":"c-1","generation_id":"g","model":"m","hook_event_name":"postToolUse",
        "cursor_version":"3.1.0","workspace_roots":["/w"],"tool_name":"Write","tool_use_id":" tool_1 ",
        "tool_input":{"file_path":"/w/a.rs","content":"x"},"tool_output":"{}","duration":12}"#;

    fn read(input: &str) -> Result<Option<Event>, CommandError> {
        let received_at = SystemTime::UNIX_EPOCH + Duration::from_micros(1_793_491_200_000_001);
        decision(input.as_bytes(), received_at)
    }

    fn path(input: &str) -> Option<String> {
        let EventKind::ToolDecision(decision) = read(input).unwrap().unwrap().kind else {
            panic!("it is a decision");
        };
        decision.file_path.map(|path| path.as_str().to_owned())
    }

    #[test]
    fn a_write_is_an_implicit_decision() {
        // With the byte order mark that some shells put before their output.
        let event = read(&format!("\u{feff}{INPUT}\r\n")).unwrap().unwrap();
        let request = LogsRequest::from(&event).write().unwrap();
        assert_eq!(
            String::from_utf8(request.body.unwrap()).unwrap(),
            concat!(
                r#"{"resourceLogs":[{"resource":{"attributes":[]},"scopeLogs":[{"logRecords":[{"#,
                r#""timeUnixNano":"1793491200000001000","body":{"stringValue":"svc.tool_decision"},"attributes":["#,
                r#"{"key":"agent","value":{"stringValue":"cursor"}},"#,
                r#"{"key":"session.id","value":{"stringValue":"c-1"}},"#,
                r#"{"key":"tool_use_id","value":{"stringValue":"tool_1"}},"#,
                r#"{"key":"file_path","value":{"stringValue":"/w/a.rs"}},"#,
                r#"{"key":"decision","value":{"stringValue":"accept"}},"#,
                r#"{"key":"explicit","value":{"boolValue":false}},"#,
                r#"{"key":"tool_name","value":{"stringValue":"Write"}}]}]}]}]}"#
            )
        );
    }

    #[test]
    fn events_other_than_writes_are_ignored() {
        for (from, to) in [
            ("postToolUse", "preToolUse"),
            (r#""Write""#, r#""Read""#),
            (r#""tool_name":"Write","#, ""),
        ] {
            assert_eq!(read(&INPUT.replace(from, to)).unwrap(), None, "{to}");
        }
        assert_eq!(read("{}").unwrap(), None);
    }

    #[test]
    fn a_path_is_optional_and_may_be_inside_json_text() {
        assert_eq!(path(INPUT).unwrap(), "/w/a.rs");
        let text = r#""{\"path\":\"b.rs\"}""#;
        let object = r#"{"file_path":"/w/a.rs","content":"x"}"#;
        assert_eq!(path(&INPUT.replace(object, text)).unwrap(), "b.rs");
        for without in ["null", "{}", "\"x\"", r#"{"file_path":7}"#] {
            assert_eq!(path(&INPUT.replace(object, without)), None, "{without}");
        }
    }

    #[test]
    fn a_write_without_usable_ids_is_not_reported() {
        for (from, to) in [
            ("c-1", " "),
            (" tool_1 ", ""),
            (r#""tool_use_id":" tool_1 ","#, ""),
        ] {
            let error = read(&INPUT.replace(from, to)).unwrap_err();
            assert_eq!(error.code(), "unreadable_hook", "{to}");
        }
        assert!(read("").is_err() && read("[]").is_err());
    }
}
