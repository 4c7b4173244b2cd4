//! Claude Code: one line a block of an answer, each with the id of the line before it.

use std::collections::VecDeque;
use std::path::Path;

use serde::{Deserialize, Serialize};
use svc_model::id::SessionId;
use svc_model::json::{Json, Object};
use svc_model::usage::TokenCounts;

use super::ReadLine;
use crate::content::Said;
use crate::context::{Context, Line, Meaning};
use crate::conversation::{Parent, Place};
use crate::{Lost, TranscriptCall, value};

/// Kinds of lines that say nothing.
const SILENT: [&str; 21] = [
    "agent-name",
    "ai-title",
    "atis-latch",
    "attachment",
    "bridge-session",
    "continued-in",
    "custom-title",
    "file-history-snapshot",
    "frame-link",
    "last-prompt",
    "mode",
    "permission-mode",
    "pr-link",
    "progress",
    "queue-operation",
    "relocated",
    "result",
    "started",
    "summary",
    "system",
    "worktree-state",
];

/// Kinds of blocks, besides those that end in `tool_use` or `tool_result`.
const BLOCKS: [&str; 9] = [
    "container_upload",
    "document",
    "fallback",
    "file",
    "image",
    "redacted_thinking",
    "search_result",
    "text",
    "thinking",
];

/// The model of messages that the client wrote itself.
const SYNTHETIC: &str = "<synthetic>";
/// The side of a subagent without an id.
const SIDECHAIN: &str = "sidechain";
/// The last answers of which the results are put in a row.
const ROUNDS_MAX: usize = 4;
/// The lines and calls of one of them.
const ROUND_ITEMS_MAX: usize = 256;

/// The reader of Claude Code's lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClaudeCode {
    /// The subagent whose file this is.
    subagent: Option<String>,
    session_id: Option<SessionId>,
    rounds: VecDeque<Round>,
}

/// An answer with tool calls. Its results follow one another, whichever line of it they name:
/// otherwise only the last would be on the way to the next answer, which had them all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Round {
    key: String,
    lines: Vec<String>,
    /// The calls without a result.
    calls: Vec<String>,
    results: Vec<String>,
}

impl Round {
    fn note(&mut self, line: &Line, content: &Json) {
        if self.lines.len() >= ROUND_ITEMS_MAX || self.calls.len() >= ROUND_ITEMS_MAX {
            return;
        }
        self.lines.extend(line.text("uuid").map(str::to_owned));
        let ids = blocks(content).filter(|block| kind(block).ends_with("tool_use"));
        let ids = ids.filter_map(|block| block.get("id")?.as_str());
        self.calls.extend(ids.map(str::to_owned));
    }

    fn has(lines: &[String], line: &str) -> bool {
        lines.iter().any(|known| known == line)
    }
}

impl ReadLine for ClaudeCode {
    fn new(name: &Path) -> Self {
        let is_subagent = name.iter().any(|part| part == "subagents");
        let stem = name.file_stem().and_then(|stem| stem.to_str());
        let id = stem.map(|stem| stem.strip_prefix("agent-").unwrap_or(stem));
        Self {
            subagent: id.filter(|_| is_subagent).map(str::to_owned),
            session_id: None,
            rounds: VecDeque::new(),
        }
    }

    fn line<'l>(&mut self, line: &'l Line, context: &mut Context) -> Result<Meaning<'l>, Lost> {
        context.note_cwd(line.text("cwd"));
        let session_id = line.text("sessionId").map(SessionId::new);
        self.session_id = session_id.and_then(Result::ok).or(self.session_id.take());
        match line.text("type").unwrap_or_default() {
            "user" => self.user(line, context),
            "assistant" => self.assistant(line, context),
            "system" if line.text("subtype") == Some("compact_boundary") => {
                context.conversation.finish_all();
                context.conversation.pass(Place {
                    parent: Parent::Start,
                    ..self.place(line)
                })?;
                Ok(Meaning::Known)
            }
            kind => {
                if line.text("uuid").is_some() {
                    // What follows a line that is gone is gone too, and only that.
                    context.conversation.pass(self.place(line)).ok();
                }
                Ok(if SILENT.contains(&kind) {
                    Meaning::Known
                } else {
                    Meaning::Unknown(kind.into())
                })
            }
        }
    }

    fn merged_role(&self) -> Option<&'static str> {
        Some("user")
    }
}

impl ClaudeCode {
    fn place<'l>(&'l self, line: &'l Line) -> Place<'l> {
        let parent = match line.object.get("parentUuid") {
            Some(Json::Null) => Parent::Start,
            Some(Json::String(id)) => id.as_str().map_or(Parent::Previous, |id| self.after(id)),
            _ => Parent::Previous,
        };
        Place {
            offset: line.offset,
            id: line.text("uuid"),
            parent,
            side: self.side(line),
        }
    }

    /// Returns what a line follows that names another one. What follows one of several results
    /// follows them all.
    fn after<'l>(&'l self, id: &'l str) -> Parent<'l> {
        let round = self
            .rounds
            .iter()
            .find(|round| Round::has(&round.results, id));
        Parent::Line(
            round
                .and_then(|round| round.results.last())
                .map_or(id, |id| id),
        )
    }

    fn side<'l>(&'l self, line: &'l Line) -> &'l str {
        let in_file = self.subagent.as_deref();
        match line.text("agentId") {
            Some(id) if in_file.is_some() || line.is("isSidechain") => id,
            _ if in_file.is_some() => in_file.unwrap_or_default(),
            _ if line.is("isSidechain") => SIDECHAIN,
            _ => "",
        }
    }

    fn user<'l>(&mut self, line: &'l Line, context: &mut Context) -> Result<Meaning<'l>, Lost> {
        if line.member("message").is_none() {
            context.conversation.pass(self.place(line))?;
            return Ok(Meaning::Known);
        }
        let content = content(line);
        count_blocks(&content, context);
        let is_summary = line.is("isCompactSummary");
        let results = self.take_results(line, &content);
        let mut place = self.place(line);
        if is_summary {
            context.conversation.finish_all();
            place.parent = Parent::Start;
        }
        if let Some(last) = &results {
            place.parent = Parent::Line(last);
        }
        let is_result = only_results(&content);
        let said = Said::by("user", content);
        if is_result {
            context.conversation.result(place, said)?;
        } else {
            context.conversation.input(place, said)?;
        }
        Ok(Meaning::Known)
    }

    /// Returns what a line follows that has results of an answer that it names, and notes them.
    fn take_results(&mut self, line: &Line, content: &Json) -> Option<String> {
        let (id, parent) = (line.text("uuid")?, line.text("parentUuid")?);
        if !only_results(content) {
            return None;
        }
        let follows = |round: &&mut Round| {
            Round::has(&round.lines, parent) || Round::has(&round.results, parent)
        };
        let round = self.rounds.iter_mut().find(follows)?;
        let ids = || blocks(content).filter_map(|block| block.get("tool_use_id")?.as_str());
        if Round::has(&round.results, id) || !ids().any(|id| Round::has(&round.calls, id)) {
            return None;
        }
        round.calls.retain(|call| !ids().any(|id| id == call));
        let last = round.results.last().cloned();
        round.results.push(id.to_owned());
        Some(last.unwrap_or_else(|| parent.to_owned()))
    }

    fn assistant<'l>(
        &mut self,
        line: &'l Line,
        context: &mut Context,
    ) -> Result<Meaning<'l>, Lost> {
        let Some(message) = line.member("message") else {
            context.conversation.pass(self.place(line))?;
            return Ok(Meaning::Known);
        };
        let content = content(line);
        count_blocks(&content, context);
        let is_synthetic = message.get("model").and_then(Json::as_str) == Some(SYNTHETIC);
        if is_synthetic || line.is("isApiErrorMessage") {
            let said = Said::by("assistant", content);
            context.conversation.input(self.place(line), said)?;
            return Ok(Meaning::NoAnswer);
        }
        self.answer(line, message, content, context)?;
        Ok(Meaning::Known)
    }

    fn answer(
        &mut self,
        line: &Line,
        message: &Object,
        content: Json,
        context: &mut Context,
    ) -> Result<(), Lost> {
        let Some(session_id) = self.session_id.clone() else {
            return context.conversation.pass(self.place(line));
        };
        let response_id = value::id(message.get("id"));
        let own_id = value::id(line.object.get("uuid")).or_else(|| line.numbered());
        let Some(key) = response_id.clone().or_else(|| own_id.clone()) else {
            return context.conversation.pass(self.place(line));
        };
        let mut begun = context.call(session_id);
        let ended_at = begun.call.ended_at;
        begun.agent_version = value::word(line.object.get("version"));
        begun.call.call_id = own_id.filter(|_| response_id.is_none());
        begun.call.response_id = response_id;
        let subagent = Some(self.side(line)).filter(|side| !["", SIDECHAIN].contains(side));
        begun.call.subagent = value::id(subagent.map(Json::from).as_ref());
        let key = key.as_str();
        let conversation = &mut context.conversation;
        if let Some(answer) = conversation.answer(self.place(line), key, || begun)? {
            describe(&mut answer.call, line, message);
            answer.call.call.ended_at = ended_at;
            let is_finished = answer.call.call.stop_reason.is_some();
            self.note_round(key, line, &content);
            answer.add_to_message(Said::by("assistant", content));
            if is_finished {
                conversation.finish(key);
            }
        }
        Ok(())
    }

    fn note_round(&mut self, key: &str, line: &Line, content: &Json) {
        if self.rounds.back().is_none_or(|round| round.key != key) {
            self.rounds.retain(|round| round.key != key);
            self.rounds.push_back(Round {
                key: key.to_owned(),
                ..Round::default()
            });
            if self.rounds.len() > ROUNDS_MAX {
                self.rounds.pop_front();
            }
        }
        if let Some(round) = self.rounds.back_mut() {
            round.note(line, content);
        }
    }
}

/// Sets what the last line of an answer says of it.
fn describe(call: &mut TranscriptCall, line: &Line, message: &Object) {
    let call = &mut call.call;
    let usage = message.get("usage").and_then(Json::as_object);
    call.usage = usage.and_then(counts).or(call.usage);
    let tier = usage.and_then(|usage| {
        value::word(usage.get("speed")).or_else(|| value::word(usage.get("service_tier")))
    });
    call.tier = tier.or(call.tier.take());
    call.stop_reason = value::word(message.get("stop_reason")).or(call.stop_reason.take());
    call.model = value::id(message.get("model")).or(call.model.take());
    call.request_id = value::id(line.object.get("requestId")).or(call.request_id.take());
    call.cwd = value::path(line.object.get("cwd")).or(call.cwd.take());
    call.git_branch = value::path(line.object.get("gitBranch")).or(call.git_branch.take());
}

fn counts(usage: &Object) -> Option<TokenCounts> {
    let lifetimes = usage.get("cache_creation").and_then(Json::as_object);
    let lifetime = |name| lifetimes.and_then(|lifetimes| value::count(lifetimes, name));
    let short = lifetime("ephemeral_5m_input_tokens");
    let long = lifetime("ephemeral_1h_input_tokens");
    let written = value::count(usage, "cache_creation_input_tokens");
    let sum = short
        .zip(long)
        .and_then(|(short, long)| short.checked_add(long));
    let agrees = sum.is_some() && written.is_none_or(|written| sum == Some(written));
    let counts = TokenCounts {
        input_tokens_uncached: value::count(usage, "input_tokens"),
        cache_read_tokens: value::count(usage, "cache_read_input_tokens"),
        cache_write_tokens: written.or(sum),
        cache_write_5m_tokens: short.filter(|_| agrees),
        cache_write_1h_tokens: long.filter(|_| agrees),
        output_tokens: value::count(usage, "output_tokens"),
        reasoning_tokens: None,
    };
    (!counts.is_empty()).then_some(counts)
}

fn content(line: &Line) -> Json {
    let message = line.member("message");
    let content = message.and_then(|message| message.get("content"));
    content.cloned().unwrap_or_default()
}

fn blocks(content: &Json) -> impl Iterator<Item = &Object> {
    content
        .as_array()
        .unwrap_or_default()
        .iter()
        .filter_map(Json::as_object)
}

fn kind(block: &Object) -> &str {
    block.get("type").and_then(Json::as_str).unwrap_or_default()
}

fn is_result(block: &Object) -> bool {
    kind(block).ends_with("tool_result")
}

fn only_results(content: &Json) -> bool {
    let mut blocks = blocks(content).peekable();
    blocks.peek().is_some() && blocks.all(is_result)
}

fn count_blocks(content: &Json, context: &mut Context) {
    for kind in blocks(content).map(kind) {
        let is_tool = kind.ends_with("tool_use") || kind.ends_with("tool_result");
        if !is_tool && !BLOCKS.contains(&kind) {
            context.unknown(kind);
        }
    }
}
