//! Copilot CLI: one event a line. The events of subagents stand between those of the Session.

use std::collections::VecDeque;
use std::path::Path;

use serde::{Deserialize, Serialize};
use svc_model::evidence::Part;
use svc_model::id::{ForeignId, SessionId};
use svc_model::json::{Json, Object, Text};
use svc_model::usage::TokenCounts;

use super::ReadLine;
use super::block::{call_block, given, member, objects, reasoning_block, text, text_block};
use crate::content::Said;
use crate::context::{Context, Line, Meaning};
use crate::conversation::{Answer, Parent, Place};
use crate::{Lost, TranscriptCall, value};

/// Kinds of events that say nothing to the model.
const SILENT: [&str; 76] = [
    "abort",
    "assistant.idle",
    "assistant.intent",
    "assistant.message_delta",
    "assistant.message_start",
    "assistant.reasoning",
    "assistant.reasoning_delta",
    "assistant.streaming_delta",
    "assistant.turn_end",
    "assistant.turn_start",
    "assistant.usage",
    "auto_mode_switch.completed",
    "auto_mode_switch.requested",
    "capabilities.changed",
    "command.completed",
    "command.execute",
    "command.queued",
    "commands.changed",
    "elicitation.completed",
    "elicitation.requested",
    "exit_plan_mode.completed",
    "exit_plan_mode.requested",
    "external_tool.completed",
    "external_tool.requested",
    "hook.end",
    "hook.progress",
    "hook.start",
    "mcp.oauth_completed",
    "mcp.oauth_required",
    "model.call_failure",
    "pending_messages.modified",
    "permission.completed",
    "permission.requested",
    "sampling.completed",
    "sampling.requested",
    "session.auto_mode_resolved",
    "session.background_tasks_changed",
    "session.compaction_complete",
    "session.compaction_start",
    "session.context_changed",
    "session.custom_agents_updated",
    "session.error",
    "session.extensions_loaded",
    "session.handoff",
    "session.idle",
    "session.import_legacy",
    "session.info",
    "session.mcp_server_status_changed",
    "session.mcp_servers_loaded",
    "session.mode_changed",
    "session.permissions_changed",
    "session.plan_changed",
    "session.remote_steerable_changed",
    "session.schedule_cancelled",
    "session.schedule_created",
    "session.shutdown",
    "session.skills_loaded",
    "session.snapshot_rewind",
    "session.task_complete",
    "session.title_changed",
    "session.tools_updated",
    "session.truncation",
    "session.usage_checkpoint",
    "session.usage_info",
    "session.warning",
    "session.workspace_file_changed",
    "skill.invoked",
    "subagent.completed",
    "subagent.deselected",
    "subagent.failed",
    "subagent.selected",
    "subagent.started",
    "system.notification",
    "tool.execution_partial_result",
    "tool.execution_progress",
    "tool.execution_start",
];

/// What the ids begin with that providers give to responses.
const RESPONSE_IDS: [&str; 3] = ["chatcmpl-", "msg_", "resp_"];

/// The sides whose last event is remembered: the Session and its last subagents.
const SIDES_MAX: usize = 64;

/// The reader of Copilot CLI's lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CopilotCli {
    session_id: Option<SessionId>,
    version: Option<String>,
    model: Option<String>,
    cwd: Option<String>,
    git_branch: Option<String>,
    /// The last event of each side.
    tips: VecDeque<(String, String)>,
}

/// What an event has besides its kind.
struct Event<'l> {
    line: &'l Line,
    data: &'l Object,
    id: String,
    side: &'l str,
}

impl ReadLine for CopilotCli {
    fn new(name: &Path) -> Self {
        let folder = name.parent().and_then(Path::file_name);
        let folder = folder.and_then(|folder| folder.to_str());
        Self {
            session_id: folder.and_then(|folder| SessionId::new(folder).ok()),
            version: None,
            model: None,
            cwd: None,
            git_branch: None,
            tips: VecDeque::new(),
        }
    }

    fn line<'l>(&mut self, line: &'l Line, context: &mut Context) -> Result<Meaning<'l>, Lost> {
        let kind = line.text("type").unwrap_or_default();
        let (Some(data), Some(id)) = (line.member("data"), id(line)) else {
            let is_known = SILENT.contains(&kind);
            return Ok(if is_known {
                Meaning::Known
            } else {
                Meaning::Unknown(kind.into())
            });
        };
        let event = Event {
            line,
            data,
            id,
            side: text(data, "parentToolCallId").unwrap_or_default(),
        };
        match kind {
            "session.start" | "session.resume" => self.session(&event, context),
            "session.model_change" => {
                self.model = text(data, "newModel")
                    .map(str::to_owned)
                    .or(self.model.take());
            }
            "system.message" => {
                let role = text(data, "role").unwrap_or("system");
                self.input(&event, Said::by(role, content(data, "content")), context)?;
            }
            "user.message" => {
                let name = ["transformedContent", "content"];
                let name = name.into_iter().find(|name| given(data, name).is_some());
                let said = Said::by("user", content(data, name.unwrap_or("content")));
                self.input(&event, said, context)?;
            }
            "tool.execution_complete" => self.input(&event, tool_result(data), context)?,
            "assistant.message" => self.answer(&event, context)?,
            kind if SILENT.contains(&kind) => {}
            kind => return Ok(Meaning::Unknown(kind.into())),
        }
        Ok(Meaning::Known)
    }
}

impl CopilotCli {
    fn session(&mut self, event: &Event<'_>, context: &mut Context) {
        let data = event.data;
        let session_id = text(data, "sessionId").map(SessionId::new);
        self.session_id = session_id.and_then(Result::ok).or(self.session_id.take());
        self.version = value::word(data.get("copilotVersion")).or(self.version.take());
        let model = text(data, "selectedModel").map(str::to_owned);
        self.model = model.or(self.model.take());
        if let Some(place) = member(data, "context") {
            context.note_cwd(text(place, "cwd"));
            self.cwd = value::path(place.get("cwd")).or(self.cwd.take());
            self.git_branch = value::path(place.get("branch"));
        }
    }

    /// Calls a function with the place of an event, which then is the last one of its side.
    fn placed<T>(
        &mut self,
        event: &Event<'_>,
        put: impl FnOnce(Place<'_>) -> Result<T, Lost>,
    ) -> Result<T, Lost> {
        let tip = self.tips.iter().position(|(side, _)| side == event.side);
        let tip = tip.and_then(|tip| self.tips.remove(tip));
        let placed = put(Place {
            offset: event.line.offset,
            id: Some(&event.id),
            parent: tip
                .as_ref()
                .map_or(Parent::Start, |(_, tip)| Parent::Line(tip)),
            side: event.side,
        });
        self.tips
            .push_back((event.side.to_owned(), event.id.clone()));
        if self.tips.len() > SIDES_MAX {
            self.tips.pop_front();
        }
        placed
    }

    fn input(&mut self, event: &Event<'_>, said: Said, context: &mut Context) -> Result<(), Lost> {
        self.placed(event, |place| context.conversation.input(place, said))
    }

    fn answer(&mut self, event: &Event<'_>, context: &mut Context) -> Result<(), Lost> {
        let data = event.data;
        let own_id = value::id(data.get("messageId")).or_else(|| ForeignId::new(&event.id).ok());
        let (Some(session_id), Some(call_id)) = (self.session_id.clone(), own_id) else {
            return self.input(event, Said::default(), context);
        };
        let mut begun = context.call(session_id);
        let ended_at = begun.call.ended_at;
        begun.agent_version.clone_from(&self.version);
        begun.call.call_id = Some(call_id.clone());
        begun.call.cwd.clone_from(&self.cwd);
        begun.call.git_branch.clone_from(&self.git_branch);
        begun.call.subagent = value::id(data.get("parentToolCallId"));
        let model = self.model.clone();
        let key = call_id.as_str();
        self.placed(event, |place| {
            let conversation = &mut context.conversation;
            if let Some(answer) = conversation.answer(place, key, || begun)? {
                describe(&mut answer.call, data, model.as_deref());
                answer.call.call.ended_at = ended_at;
                add(answer, data);
            }
            if is_last(data) {
                conversation.finish(key);
            }
            Ok(())
        })
    }
}

fn id(line: &Line) -> Option<String> {
    let id = line.text("id").map(str::to_owned);
    id.or_else(|| line.numbered().map(|id| id.as_str().to_owned()))
}

fn content(data: &Object, name: &str) -> Json {
    data.get(name).cloned().unwrap_or_default()
}

fn tool_result(data: &Object) -> Said {
    let result = match data.get("result") {
        Some(Json::Object(result)) => ["content", "text_result_for_llm", "textResultForLlm"]
            .into_iter()
            .find_map(|name| result.get(name).filter(|value| !value.is_null())),
        result => result.filter(|result| !result.is_null()),
    };
    let error = member(data, "error").and_then(|error| error.get("message"));
    let result = result.or(error).cloned().unwrap_or_default();
    Said::of(&Object::from_iter([
        ("role", "tool".into()),
        ("tool_call_id", content(data, "toolCallId")),
        ("content", result),
    ]))
}

fn describe(call: &mut TranscriptCall, data: &Object, model: Option<&str>) {
    let call = &mut call.call;
    let model = model.and_then(|model| ForeignId::new(model).ok());
    call.model = value::id(data.get("model")).or(call.model.take()).or(model);
    let response_id = value::id(data.get("apiCallId"));
    let response_id = response_id.filter(|id| {
        let id = id.as_str();
        RESPONSE_IDS
            .iter()
            .any(|beginning| id.starts_with(beginning))
    });
    call.response_id = response_id.or(call.response_id.take());
    let usage = TokenCounts {
        output_tokens: value::count(data, "outputTokens"),
        ..TokenCounts::default()
    };
    call.usage = Some(usage).filter(|usage| !usage.is_empty()).or(call.usage);
}

/// Adds an event to an answer. A text that was sent in pieces is one text.
fn add(answer: &mut Answer, data: &Object) {
    let is_continued = value::count(data, "chunkIndex").is_some_and(|index| index > 0);
    let said = Said::by("assistant", made(data));
    let mut parts = answer
        .call
        .call
        .output
        .last_mut()
        .map(|message| &mut message.parts);
    let last = parts.as_mut().and_then(|parts| parts.last_mut());
    match (last, text(data, "content")) {
        (Some(Part::Text { content }), Some(next)) if is_continued => {
            *content = Text::from(format!("{}{next}", content.to_string_lossy()));
            let rest = data.iter().filter(|(name, _)| **name != "content");
            let rest = rest
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            answer.add_to_message(Said::by("assistant", made(&rest)));
        }
        _ => answer.add_to_message(said),
    }
    let mut opaque = Said::default();
    opaque.left_out.opaque_reasoning = u64::from(has_opaque_reasoning(data));
    answer.add(opaque);
}

/// Returns what the model made, as blocks: its reasoning, its text, and the calls of tools.
fn made(data: &Object) -> Json {
    let reasoning = given(data, "reasoningText").cloned().map(reasoning_block);
    let content = text(data, "content").filter(|content| !content.is_empty());
    let requests = objects(data.get("toolRequests")).map(|request| {
        let member = |name| request.get(name);
        call_block(member("toolCallId"), member("name"), member("arguments"))
    });
    let blocks = reasoning.into_iter().chain(content.map(text_block));
    blocks.chain(requests).collect()
}

fn has_opaque_reasoning(data: &Object) -> bool {
    let is_given = |name| given(data, name).is_some();
    !is_given("reasoningText") && (is_given("reasoningOpaque") || is_given("encryptedContent"))
}

/// Returns whether an answer is complete with this event: it says how much the model wrote, and is
/// the last piece.
fn is_last(data: &Object) -> bool {
    let count = |name| value::count(data, name);
    let is_last = match (count("chunkIndex"), count("chunkCount")) {
        (Some(index), Some(count)) => index + 1 >= count,
        _ => true,
    };
    is_last && count("outputTokens").is_some()
}
