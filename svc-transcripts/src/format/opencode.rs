//! `OpenCode`: a line for the Session, and then one for each message with all its parts. The shell
//! writes these lines from `OpenCode`'s database or tree of files.

use std::path::Path;

use serde::{Deserialize, Serialize};
use svc_model::id::{ForeignId, SessionId};
use svc_model::json::{Json, Object};
use svc_model::time::Instant;
use svc_model::usage::TokenCounts;

use super::ReadLine;
use super::block::{
    call_block, kind, member, objects, reasoning_block, result_block, text, text_block,
};
use crate::content::Said;
use crate::context::{Context, Line, Meaning};
use crate::conversation::{Parent, Place};
use crate::{Lost, TranscriptCall, value};

/// Kinds of parts that say nothing to the model.
const SILENT: [&str; 8] = [
    "agent",
    "compaction",
    "patch",
    "reasoning",
    "retry",
    "snapshot",
    "step-finish",
    "step-start",
];
/// Kinds of parts that are sent in a form that is not kept.
const NOT_KEPT: [&str; 2] = ["file", "subtask"];

/// The reader of `OpenCode`'s lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OpenCode {
    session_id: Option<SessionId>,
    version: Option<String>,
    directory: Option<String>,
    /// Whether the input begins anew with the next message.
    begins: bool,
}

/// One answer in a message: the parts of a step, or all parts.
struct Step<'l> {
    parts: Vec<&'l Object>,
    finish: Option<&'l Object>,
    /// Its number in the message, from 1; `None` if the message has no steps.
    number: Option<usize>,
}

impl ReadLine for OpenCode {
    fn new(_name: &Path) -> Self {
        Self {
            session_id: None,
            version: None,
            directory: None,
            begins: false,
        }
    }

    fn time(&self, line: &Object) -> Option<Instant> {
        let object = member(line, "message").or_else(|| member(line, "session"))?;
        created(object)
    }

    fn line<'l>(&mut self, line: &'l Line, context: &mut Context) -> Result<Meaning<'l>, Lost> {
        if let Some(session) = line.member("session") {
            self.session(session, context);
            return Ok(Meaning::Known);
        }
        let Some(message) = line.member("message") else {
            let first = || line.object.iter().next()?.0.as_str();
            let name = line.text("type").or_else(first).unwrap_or_default();
            return Ok(Meaning::Unknown(name.into()));
        };
        let parts: Vec<&Object> = objects(line.object.get("parts")).collect();
        for kind in parts.iter().map(|part| kind(part)) {
            let is_known = SILENT.contains(&kind) || NOT_KEPT.contains(&kind);
            if !is_known && !["text", "tool"].contains(&kind) {
                context.unknown(kind);
            }
        }
        let begins_anew = parts.iter().any(|part| kind(part) == "compaction");
        match text(message, "role").unwrap_or_default() {
            "user" => {
                self.begins |= begins_anew;
                self.input(line, asked(&parts), context)?;
            }
            "assistant" => {
                let meaning = self.assistant(line, message, &parts, context)?;
                self.begins |= begins_anew;
                return Ok(meaning);
            }
            role => return Ok(Meaning::Unknown(role.into())),
        }
        Ok(Meaning::Known)
    }
}

impl OpenCode {
    fn session(&mut self, session: &Object, context: &mut Context) {
        context.note_cwd(text(session, "directory"));
        let session_id = text(session, "id").map(SessionId::new);
        self.session_id = session_id.and_then(Result::ok).or(self.session_id.take());
        self.version = value::word(session.get("version"));
        self.directory = value::path(session.get("directory"));
    }

    fn place(&mut self, line: &Line) -> Place<'static> {
        let parent = if std::mem::take(&mut self.begins) {
            Parent::Start
        } else {
            Parent::Previous
        };
        Place {
            offset: line.offset,
            id: None,
            parent,
            side: "",
        }
    }

    fn input(&mut self, line: &Line, said: Said, context: &mut Context) -> Result<(), Lost> {
        if said.is_empty() {
            return Ok(());
        }
        context.conversation.input(self.place(line), said)
    }

    fn assistant<'l>(
        &mut self,
        line: &Line,
        message: &'l Object,
        parts: &[&'l Object],
        context: &mut Context,
    ) -> Result<Meaning<'l>, Lost> {
        let is_summary = message.get("summary") == Some(&true.into());
        if is_summary {
            // It is made of everything before it.
            self.begins = false;
        }
        let completed = member(message, "time").and_then(|time| time.get("completed"));
        let completed = value::instant(completed);
        let (Some(session_id), Some(completed), Some(id)) =
            (self.session_id.clone(), completed, text(message, "id"))
        else {
            self.input(line, made(parts), context)?;
            self.input(line, results(parts), context)?;
            return Ok(Meaning::NoAnswer);
        };
        let mut call = context.call(session_id);
        call.call.ended_at = completed;
        self.describe(&mut call, message, context);
        for step in steps(parts) {
            self.answer(line, id, &step, call.clone(), context)?;
        }
        if is_summary {
            self.begins = true;
            self.input(line, made(parts), context)?;
        }
        Ok(Meaning::Known)
    }

    fn describe(&self, call: &mut TranscriptCall, message: &Object, context: &Context) {
        call.agent_version.clone_from(&self.version);
        let call = &mut call.call;
        call.started_at = created(message);
        let model = member(message, "model");
        let named = |name| {
            value::id(message.get(name)).or_else(|| value::id(model.and_then(|m| m.get(name))))
        };
        call.model = named("modelID");
        call.model_provider = named("providerID");
        let cwd = member(message, "path").and_then(|path| value::path(path.get("cwd")));
        call.cwd = cwd
            .or_else(|| self.directory.clone())
            .or_else(|| context.cwd.clone());
        call.stop_reason = value::word(message.get("finish"));
        use_counts(call, message);
    }

    fn answer(
        &mut self,
        line: &Line,
        message_id: &str,
        step: &Step<'_>,
        mut call: TranscriptCall,
        context: &mut Context,
    ) -> Result<(), Lost> {
        let key = match step.number {
            Some(number) => format!("{message_id}/{number}"),
            None => message_id.to_owned(),
        };
        call.call.call_id = ForeignId::new(&key).ok();
        if let Some(finish) = step.finish {
            call.call.stop_reason = value::word(finish.get("reason"));
            use_counts(&mut call.call, finish);
        } else if step.number.is_some() {
            call.call.usage = None;
            call.call.cost_usd_micros = None;
        }
        if step.number.is_some_and(|number| number > 1) {
            call.call.started_at = None;
        }
        let place = self.place(line);
        let conversation = &mut context.conversation;
        if let Some(answer) = conversation.answer(place, &key, || call)? {
            answer.add(made(&step.parts));
        }
        conversation.finish(&key);
        self.input(line, results(&step.parts), context)
    }
}

fn created(object: &Object) -> Option<Instant> {
    let time = member(object, "time").and_then(|time| value::instant(time.get("created")));
    time.or_else(|| value::instant(object.get("time_created")))
}

/// Returns the steps of a message. What stands before the first belongs to it.
fn steps<'l>(parts: &[&'l Object]) -> Vec<Step<'l>> {
    if !parts.iter().any(|part| kind(part) == "step-finish") {
        return vec![Step {
            parts: parts.to_vec(),
            finish: None,
            number: None,
        }];
    }
    let mut steps: Vec<Step<'l>> = Vec::new();
    let mut open: Vec<&'l Object> = Vec::new();
    for part in parts {
        open.push(part);
        if kind(part) == "step-finish" {
            let number = Some(steps.len() + 1);
            let parts = std::mem::take(&mut open);
            let finish = Some(*part);
            steps.push(Step {
                parts,
                finish,
                number,
            });
        }
    }
    let says_something = open
        .iter()
        .any(|part| ["text", "tool", "reasoning"].contains(&kind(part)));
    if says_something {
        let number = Some(steps.len() + 1);
        steps.push(Step {
            parts: open,
            finish: None,
            number,
        });
    }
    steps
}

/// Sets the counts and the cost that a message or the end of a step has.
fn use_counts(call: &mut svc_model::ingest::SentCall, object: &Object) {
    call.usage = member(object, "tokens").and_then(counts);
    let amount = match object.get("cost") {
        Some(Json::Object(cost)) => cost.get("total"),
        cost => cost,
    };
    let has_tokens = call.usage.is_some_and(|usage| {
        let counts = [usage.input_tokens_uncached, usage.output_tokens];
        let cached = [usage.cache_read_tokens, usage.cache_write_tokens];
        let counts = counts.into_iter().chain(cached).flatten();
        counts.into_iter().any(|count| count > 0)
    });
    call.cost_usd_micros = value::cost(amount.and_then(Json::as_number), has_tokens);
}

fn counts(tokens: &Object) -> Option<TokenCounts> {
    let cache = member(tokens, "cache");
    let cached = |name| cache.and_then(|cache| value::count(cache, name));
    let output = value::count(tokens, "output");
    let reasoning = value::count(tokens, "reasoning");
    let counts = TokenCounts {
        input_tokens_uncached: value::count(tokens, "input"),
        cache_read_tokens: cached("read"),
        cache_write_tokens: cached("write"),
        output_tokens: output,
        reasoning_tokens: reasoning.filter(|reasoning| Some(*reasoning) <= output),
        ..TokenCounts::default()
    };
    (!counts.is_empty()).then_some(counts)
}

/// Returns what a user sent.
fn asked(parts: &[&Object]) -> Said {
    let is_sent = |part: &&&Object| part.get("ignored") != Some(&true.into());
    let texts = parts.iter().filter(|part| kind(part) == "text");
    let texts = texts
        .filter(is_sent)
        .map(|part| text_block(part.get("text").cloned()));
    let mut said = said("user", texts.collect());
    let not_kept = parts.iter().filter(|part| NOT_KEPT.contains(&kind(part)));
    said.left_out.unsupported_content += not_kept.count() as u64;
    said
}

/// Returns what the model made: its reasoning, its texts, and the calls of tools.
fn made(parts: &[&Object]) -> Said {
    let blocks = parts.iter().filter_map(|part| match kind(part) {
        "text" => {
            let is_empty = text(part, "text").is_none_or(str::is_empty);
            (!is_empty).then(|| text_block(part.get("text").cloned()))
        }
        "reasoning" => Some(reasoning_block(part.get("text").cloned())),
        "tool" => {
            let input = member(part, "state").and_then(|state| state.get("input"));
            Some(call_block(part.get("callID"), part.get("tool"), input))
        }
        _ => None,
    });
    said("assistant", blocks.collect())
}

/// Returns the results of the tools that were called, as one message.
fn results(parts: &[&Object]) -> Said {
    let tools = parts.iter().filter(|part| kind(part) == "tool");
    let blocks = tools.filter_map(|part| {
        let state = member(part, "state")?;
        let result = state.get("output").or_else(|| state.get("error"))?;
        Some(result_block(part.get("callID"), Some(result)))
    });
    said("tool", blocks.collect())
}

fn said(role: &str, blocks: Vec<Json>) -> Said {
    if blocks.is_empty() {
        return Said::default();
    }
    Said::by(role, blocks.into())
}
