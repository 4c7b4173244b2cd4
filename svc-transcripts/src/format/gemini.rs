//! Gemini CLI: a header and records, of which a later one with the same id takes the place of an
//! earlier one. Older versions keep one document with a list of them.

use std::collections::VecDeque;
use std::path::Path;

use serde::{Deserialize, Serialize};
use svc_model::id::{ForeignId, SessionId};
use svc_model::json::{Json, Object};
use svc_model::usage::TokenCounts;

use super::ReadLine;
use super::block::{
    call_block, given, kind, member, objects, reasoning_block, result_block, text, text_block,
};
use crate::content::Said;
use crate::context::{Context, Line, Meaning};
use crate::conversation::{Parent, Place};
use crate::{Lost, TranscriptCall, value};

/// Kinds of records that say nothing to the model.
const SILENT: [&str; 3] = ["error", "info", "warning"];

/// The answers with results that are remembered: as many as the lines that a bookmark has.
const REMEMBERED_MAX: usize = 256;

/// The reader of Gemini CLI's lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Gemini {
    session_id: Option<SessionId>,
    /// The record that the next one follows.
    last: Option<String>,
    /// The last answers whose tools have results.
    with_results: VecDeque<String>,
}

impl ReadLine for Gemini {
    fn new(name: &Path) -> Self {
        let stem = name.file_stem().and_then(|stem| stem.to_str());
        Self {
            session_id: stem.and_then(|stem| SessionId::new(stem).ok()),
            last: None,
            with_results: VecDeque::new(),
        }
    }

    fn line<'l>(&mut self, line: &'l Line, context: &mut Context) -> Result<Meaning<'l>, Lost> {
        if let Some(id) = line.text("$rewindTo") {
            self.rewind(id, context)?;
            return Ok(Meaning::Known);
        }
        if let Some(changed) = line.member("$set") {
            self.records(line, changed, context)?;
            return Ok(Meaning::Known);
        }
        if line.text("sessionId").is_some() {
            self.header(line);
            self.records(line, &line.object, context)?;
            return Ok(Meaning::Known);
        }
        self.record(line.offset, line.numbered(), &line.object, context)
    }
}

impl Gemini {
    fn header(&mut self, line: &Line) {
        let session_id = line.text("sessionId").map(SessionId::new);
        self.session_id = session_id.and_then(Result::ok).or(self.session_id.take());
    }

    /// Reads the records of a document.
    fn records(&mut self, line: &Line, holder: &Object, context: &mut Context) -> Result<(), Lost> {
        for (record, number) in objects(holder.get("messages")).zip(1_u64..) {
            context.time = value::instant(record.get("timestamp")).or(context.time);
            let id = ForeignId::new(&format!("message-{number}")).ok();
            let meaning = self.record(line.offset, id, record, context)?;
            if let Meaning::Unknown(kind) = meaning {
                context.unknown(&kind);
            }
        }
        Ok(())
    }

    fn record<'r>(
        &mut self,
        offset: u64,
        number: Option<ForeignId>,
        record: &'r Object,
        context: &mut Context,
    ) -> Result<Meaning<'r>, Lost> {
        let Some(id) = value::id(record.get("id")).or(number) else {
            return Ok(Meaning::Unknown(kind(record).into()));
        };
        let place = Place {
            offset,
            id: Some(id.as_str()),
            parent: Parent::Previous,
            side: "",
        };
        match kind(record) {
            "user" => self.user(place, &id, record, context)?,
            "gemini" => self.answer(place, &id, record, context)?,
            kind if SILENT.contains(&kind) => {
                if !context.conversation.knows(id.as_str()) {
                    context.conversation.pass(place)?;
                    self.last = Some(id.as_str().to_owned());
                }
            }
            kind => return Ok(Meaning::Unknown(kind.into())),
        }
        Ok(Meaning::Known)
    }

    fn user(
        &mut self,
        place: Place<'_>,
        id: &ForeignId,
        record: &Object,
        context: &mut Context,
    ) -> Result<(), Lost> {
        let said = Said::by("user", sent(record.get("content")));
        if context.conversation.knows(id.as_str()) {
            context.conversation.replace(id.as_str(), said);
            return Ok(());
        }
        self.last = Some(id.as_str().to_owned());
        context.conversation.input(place, said)
    }

    fn answer(
        &mut self,
        place: Place<'_>,
        id: &ForeignId,
        record: &Object,
        context: &mut Context,
    ) -> Result<(), Lost> {
        let Some(session_id) = self.session_id.clone() else {
            return context.conversation.pass(place);
        };
        let mut call = context.call(session_id);
        call.call.call_id = Some(id.clone());
        describe(&mut call, record);
        let said = Said::by("assistant", made(record));
        let conversation = &mut context.conversation;
        if let Some(answer) = conversation.open_answer(id.as_str()) {
            answer.replace(call, said);
        } else if !conversation.knows(id.as_str()) {
            if let Some(answer) = conversation.answer(place, id.as_str(), || call)? {
                answer.add(said);
            }
            self.last = Some(id.as_str().to_owned());
        }
        self.results(place, record, context)
    }

    /// Places the results of an answer's tools behind it.
    fn results(
        &mut self,
        answer: Place<'_>,
        record: &Object,
        context: &mut Context,
    ) -> Result<(), Lost> {
        let said = results(record);
        let Some(id) = answer.id.filter(|_| !said.is_empty()) else {
            return Ok(());
        };
        let results_id = format!("{id}/results");
        if context.conversation.knows(&results_id) {
            context.conversation.replace(&results_id, said);
            return Ok(());
        }
        if self.last.as_deref() != Some(id) {
            // The next request was sent without them.
            return Ok(());
        }
        let place = Place {
            id: Some(&results_id),
            parent: Parent::Line(id),
            ..answer
        };
        context.conversation.result(place, said)?;
        self.last = Some(results_id.clone());
        self.with_results.push_back(id.to_owned());
        if self.with_results.len() > REMEMBERED_MAX {
            self.with_results.pop_front();
        }
        Ok(())
    }

    /// Goes back to a record. What follows it is no longer sent.
    fn rewind(&mut self, id: &str, context: &mut Context) -> Result<(), Lost> {
        context.conversation.finish_all();
        let has_results = self.with_results.iter().any(|answer| answer == id);
        let last = if has_results {
            format!("{id}/results")
        } else {
            id.to_owned()
        };
        context.conversation.go_to(&last)?;
        self.last = Some(last);
        Ok(())
    }
}

fn describe(call: &mut TranscriptCall, record: &Object) {
    call.call.model = value::id(record.get("model"));
    call.call.usage = member(record, "tokens").and_then(counts);
}

/// The counts exclude the tokens of thoughts from the output, and those of tools from the input.
fn counts(tokens: &Object) -> Option<TokenCounts> {
    let count = |name| value::count(tokens, name);
    let (cached, thoughts) = (count("cached"), count("thoughts"));
    let uncached = count("input")
        .and_then(|input| input.checked_sub(cached.unwrap_or(0)))
        .and_then(|uncached| uncached.checked_add(count("tool").unwrap_or(0)))
        .filter(|uncached| *uncached >= 0);
    let output = count("output");
    let output = output.and_then(|output| output.checked_add(thoughts.unwrap_or(0)));
    let counts = TokenCounts {
        input_tokens_uncached: uncached,
        // Of input counts that contradict each other none is known.
        cache_read_tokens: cached.filter(|_| uncached.is_some()),
        output_tokens: output,
        reasoning_tokens: thoughts.filter(|_| output.is_some()),
        ..TokenCounts::default()
    };
    (!counts.is_empty()).then_some(counts)
}

/// Returns what a user sent, as blocks.
fn sent(content: Option<&Json>) -> Json {
    let Some(parts) = content.and_then(Json::as_array) else {
        return match content {
            Some(Json::Object(part)) => block(part),
            _ => content.cloned().unwrap_or_default(),
        };
    };
    let blocks = parts.iter().map(|part| match part.as_object() {
        Some(part) => block(part),
        None => part.clone(),
    });
    blocks.collect()
}

fn block(part: &Object) -> Json {
    if let Some(response) = member(part, "functionResponse") {
        return result_block(response.get("id"), response.get("response"));
    }
    match part.get("text") {
        Some(text) => text_block(text.clone()),
        None => part.clone().into(),
    }
}

/// Returns what the model made, as blocks: its thoughts, its text, and the calls of tools.
fn made(record: &Object) -> Json {
    let thoughts = objects(record.get("thoughts")).map(|thought| {
        let parts = ["subject", "description"];
        let parts: Vec<&str> = parts
            .iter()
            .filter_map(|name| text(thought, name))
            .collect();
        reasoning_block(parts.join("\n"))
    });
    let content = given(record, "content").map(|content| sent(Some(content)));
    let content = match content {
        Some(Json::Array(blocks)) => blocks,
        content => content.into_iter().collect(),
    };
    let calls = objects(record.get("toolCalls"));
    let calls = calls.map(|call| call_block(call.get("id"), call.get("name"), call.get("args")));
    thoughts.chain(content).chain(calls).collect()
}

/// Returns the results of the tools that an answer calls, as one message.
fn results(record: &Object) -> Said {
    let responses = objects(record.get("toolCalls")).flat_map(|call| {
        objects(call.get("result")).map(|part| match member(part, "functionResponse") {
            Some(response) => {
                let id = response.get("id").or_else(|| call.get("id"));
                result_block(id, response.get("response"))
            }
            None => block(part),
        })
    });
    let responses: Vec<Json> = responses.collect();
    if responses.is_empty() {
        return Said::default();
    }
    Said::by("tool", responses.into())
}
