//! pi: a tree of entries, each with the id of the one before it. In the first version entries have
//! no ids, and each follows the one before it in the file.

use std::collections::VecDeque;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use svc_model::evidence::Part;
use svc_model::id::{ForeignId, SessionId};
use svc_model::ingest::ContinuedCall;
use svc_model::json::{Json, Object};
use svc_model::time::Instant;
use svc_model::usage::TokenCounts;

use super::ReadLine;
use super::block::{given, kind, member, objects, text};
use crate::content::Said;
use crate::context::{Context, Line, Meaning};
use crate::conversation::{Parent, Place};
use crate::{Lost, TranscriptCall, value};

/// Kinds of entries that say nothing to the model.
const SILENT: [&str; 6] = [
    "compactionSummary",
    "custom",
    "label",
    "model_change",
    "session_info",
    "thinking_level_change",
];

/// Kinds of entries, and roles of messages, that are sent in a form that is not kept.
const NOT_KEPT: [&str; 5] = [
    "bashExecution",
    "branchSummary",
    "branch_summary",
    "custom",
    "custom_message",
];

/// Kinds of blocks of a message.
const BLOCKS: [&str; 4] = ["image", "text", "thinking", "toolCall"];

/// The last silent entries that are remembered.
const SETTINGS_MAX: usize = 64;

/// The hexadecimal digits of a response id that is made from the answer.
const DIGEST_CHARACTERS: usize = 32;

/// The reader of pi's lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pi {
    session_id: Option<SessionId>,
    continues: Option<SessionId>,
    provider: Option<String>,
    model: Option<String>,
    /// The last entries that say nothing to the model, and what follows each.
    settings: VecDeque<(String, Option<String>)>,
    /// The digest of the last summary.
    summary: Option<String>,
}

impl ReadLine for Pi {
    fn new(name: &Path) -> Self {
        let name = name.file_name().and_then(|name| name.to_str());
        Self {
            session_id: name.and_then(session_of_file),
            continues: None,
            provider: None,
            model: None,
            settings: VecDeque::new(),
            summary: None,
        }
    }

    fn time(&self, line: &Object) -> Option<Instant> {
        value::instant(line.get("timestamp")).or_else(|| {
            let message = member(line, "message")?;
            value::instant(message.get("timestamp"))
        })
    }

    fn line<'l>(&mut self, line: &'l Line, context: &mut Context) -> Result<Meaning<'l>, Lost> {
        let kind = line.text("type").unwrap_or_default();
        if kind == "session" {
            self.header(line, context);
            return Ok(Meaning::Known);
        }
        let id = id(line);
        self.note_next(line, id.as_deref());
        let place = place(line, id.as_deref());
        match kind {
            "message" => return self.message(line, place, context),
            "compaction" => self.compaction(line, place, context)?,
            _ if NOT_KEPT.contains(&kind) && kind != "custom" => {
                context.conversation.input(place, Said::unsupported())?;
            }
            _ => {
                self.pass(place, context)?;
                if !SILENT.contains(&kind) {
                    return Ok(Meaning::Unknown(kind.into()));
                }
            }
        }
        Ok(Meaning::Known)
    }

    fn keeps_outputs(&self) -> bool {
        true
    }
}

impl Pi {
    fn header(&mut self, line: &Line, context: &mut Context) {
        context.note_cwd(line.text("cwd"));
        let session_id = line.text("id").map(SessionId::new);
        self.session_id = session_id.and_then(Result::ok).or(self.session_id.take());
        let earlier = line.text("parentSession").or(line.text("branchedFrom"));
        let earlier = earlier.and_then(session_of_file);
        self.continues = earlier.filter(|earlier| Some(earlier) != self.session_id.as_ref());
        self.provider = line.text("provider").map(str::to_owned);
        self.model = line.text("modelId").map(str::to_owned);
    }

    /// Places an entry that says nothing to the model.
    fn pass(&mut self, place: Place<'_>, context: &mut Context) -> Result<(), Lost> {
        if let Some(id) = place.id {
            self.settings.push_back((id.to_owned(), None));
            if self.settings.len() > SETTINGS_MAX {
                self.settings.pop_front();
            }
        }
        context.conversation.pass(place)
    }

    /// Notes what follows a silent entry.
    fn note_next(&mut self, line: &Line, id: Option<&str>) {
        let parent = match line.text("parentId") {
            Some(parent) => parent.to_owned(),
            None if line.text("id").is_none() => number(line.number.saturating_sub(1)),
            None => return,
        };
        let mut settings = self.settings.iter_mut();
        let setting = settings.find(|(setting, next)| *setting == parent && next.is_none());
        if let Some((_, next)) = setting {
            *next = id.map(str::to_owned);
        }
    }

    fn message<'l>(
        &mut self,
        line: &'l Line,
        place: Place<'_>,
        context: &mut Context,
    ) -> Result<Meaning<'l>, Lost> {
        let Some(message) = line.member("message") else {
            self.pass(place, context)?;
            return Ok(Meaning::Unknown("message".into()));
        };
        let said = match text(message, "role").unwrap_or_default() {
            "assistant" if is_failure(message) => {
                self.pass(place, context)?;
                return Ok(Meaning::NoAnswer);
            }
            "assistant" => {
                self.answer(message, place, context)?;
                return Ok(Meaning::Known);
            }
            "user" => Said::by("user", content(message, context)),
            "toolResult" => tool_result(message),
            role if NOT_KEPT.contains(&role) => {
                let is_sent = message.get("excludeFromContext") != Some(&true.into());
                if is_sent {
                    Said::unsupported()
                } else {
                    Said::default()
                }
            }
            role => {
                self.pass(place, context)?;
                let is_known = SILENT.contains(&role);
                return Ok(if is_known {
                    Meaning::Known
                } else {
                    Meaning::Unknown(role.into())
                });
            }
        };
        context.conversation.input(place, said)?;
        Ok(Meaning::Known)
    }

    fn answer(
        &mut self,
        message: &Object,
        place: Place<'_>,
        context: &mut Context,
    ) -> Result<(), Lost> {
        let (Some(session_id), Some(key)) = (self.session_id.clone(), place.id) else {
            return self.pass(place, context);
        };
        let said = Said::by("assistant", content(message, context));
        let mut begun = context.call(session_id);
        begun.continues = self.continues.clone().map(|session_id| ContinuedCall {
            session_id,
            response_id: None,
        });
        begun.call.call_id = ForeignId::new(key).ok();
        begun.call.cwd.clone_from(&context.cwd);
        self.describe(&mut begun, message);
        let conversation = &mut context.conversation;
        if let Some(answer) = conversation.answer(place, key, || begun)? {
            answer.add(said);
        }
        conversation.finish(key);
        Ok(())
    }

    fn describe(&self, call: &mut TranscriptCall, message: &Object) {
        let call = &mut call.call;
        let own = |name: &str, header: Option<&String>| {
            value::id(message.get(name)).or_else(|| ForeignId::new(header?).ok())
        };
        call.model = own("model", self.model.as_ref());
        call.model_provider = own("provider", self.provider.as_ref());
        call.response_id = value::id(message.get("responseId")).or_else(|| made_id(message));
        call.stop_reason = value::word(message.get("stopReason"));
        let usage = member(message, "usage");
        call.usage = usage.and_then(counts);
        let cost = usage.and_then(|usage| member(usage, "cost"));
        let total = cost.and_then(|cost| cost.get("total")?.as_number());
        call.cost_usd_micros = value::cost(total, call.usage.is_some_and(|usage| is_used(&usage)));
    }

    /// Begins the input anew: with a summary, and what is kept of the entries before it.
    fn compaction(
        &mut self,
        line: &Line,
        place: Place<'_>,
        context: &mut Context,
    ) -> Result<(), Lost> {
        let mut said = Said::by(
            "user",
            line.object.get("summary").cloned().unwrap_or_default(),
        );
        if let Some(first) = self.first_kept(line) {
            let mut kept = context.conversation.said_since(&first, place.parent)?;
            // What an earlier compaction kept is kept again, and its summary is not.
            let begins_with_summary = kept.messages.first().and_then(digest_of_text);
            if self.summary.is_some() && begins_with_summary == self.summary {
                kept.messages.remove(0);
            }
            said.append(kept);
        }
        let summary = said.messages.first().and_then(digest_of_text);
        self.summary = summary;
        let begin = Place {
            parent: Parent::Start,
            ..place
        };
        context.conversation.input(begin, said)
    }

    /// Returns the id of the first entry that a compaction keeps, past entries that say nothing.
    fn first_kept(&self, line: &Line) -> Option<String> {
        let index = value::count(&line.object, "firstKeptEntryIndex");
        // The header has the index 0 and the number 1.
        let at_index = || index.map(|index| number(index.unsigned_abs().saturating_add(1)));
        let named = line.text("firstKeptEntryId").map(str::to_owned);
        let mut first = named.or_else(at_index)?;
        for _ in 0..self.settings.len() {
            let setting = self.settings.iter().find(|(setting, _)| *setting == first);
            match setting.and_then(|(_, next)| next.clone()) {
                Some(next) => first = next,
                None => break,
            }
        }
        Some(first)
    }
}

fn id(line: &Line) -> Option<String> {
    let id = line.text("id").map(str::to_owned);
    id.or_else(|| line.numbered().map(|id| id.as_str().to_owned()))
}

fn number(number: u64) -> String {
    format!("line-{number}")
}

fn place<'l>(line: &'l Line, id: Option<&'l str>) -> Place<'l> {
    let parent = match line.object.get("parentId") {
        Some(Json::Null) => Parent::Start,
        Some(Json::String(id)) => id.as_str().map_or(Parent::Previous, Parent::Line),
        _ => Parent::Previous,
    };
    Place {
        offset: line.offset,
        id,
        parent,
        side: "",
    }
}

/// Returns the Session of a file, whose name is a time and the id of the Session.
fn session_of_file(path: &str) -> Option<SessionId> {
    let name = path.rsplit(['/', '\\']).next()?;
    let stem = name.strip_suffix(".jsonl").unwrap_or(name);
    SessionId::new(stem.rsplit('_').next()?).ok()
}

/// Returns the content of a message, with its blocks named as models' interfaces name them.
fn content(message: &Object, context: &mut Context) -> Json {
    let mut content = message.get("content").cloned().unwrap_or_default();
    for block in objects(Some(&content)).map(kind) {
        if !BLOCKS.contains(&block) {
            context.unknown(block);
        }
    }
    if let Json::Array(blocks) = &mut content {
        for block in blocks.iter_mut().filter_map(Json::as_object_mut) {
            if kind(block) == "toolCall" {
                block.insert("type", "tool_call");
            }
        }
    }
    content
}

fn tool_result(message: &Object) -> Said {
    let member = |name| message.get(name).cloned().unwrap_or_default();
    Said::of(&Object::from_iter([
        ("role", "tool".into()),
        ("tool_call_id", member("toolCallId")),
        ("content", member("content")),
    ]))
}

/// Returns whether the model answered nothing, because of an error or the user.
fn is_failure(message: &Object) -> bool {
    let reason = text(message, "stopReason").unwrap_or_default();
    let is_empty = given(message, "content")
        .is_none_or(|content| content.as_array().is_some_and(<[Json]>::is_empty));
    let counts = member(message, "usage").and_then(counts);
    ["error", "aborted"].contains(&reason) && is_empty && !counts.is_some_and(|c| is_used(&c))
}

fn counts(usage: &Object) -> Option<TokenCounts> {
    let counts = TokenCounts {
        input_tokens_uncached: value::count(usage, "input"),
        cache_read_tokens: value::count(usage, "cacheRead"),
        cache_write_tokens: value::count(usage, "cacheWrite"),
        output_tokens: value::count(usage, "output"),
        ..TokenCounts::default()
    };
    (!counts.is_empty()).then_some(counts)
}

fn is_used(counts: &TokenCounts) -> bool {
    let counts = [
        counts.input_tokens_uncached,
        counts.cache_read_tokens,
        counts.cache_write_tokens,
        counts.output_tokens,
    ];
    counts.into_iter().flatten().any(|count| count > 0)
}

/// Returns an id that only copies of an answer share, for an answer without one: it has its time.
fn made_id(message: &Object) -> Option<ForeignId> {
    let digest = hexadecimal(&Json::Object(message.clone()).to_canonical());
    ForeignId::new(&format!("pi-{digest}")).ok()
}

fn digest_of_text(message: &svc_model::evidence::Message) -> Option<String> {
    match message.parts.first()? {
        Part::Text { content } => Some(hexadecimal(content.as_bytes())),
        _ => None,
    }
}

/// Returns the first digits of the digest of some bytes.
fn hexadecimal(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let digits = digest.iter().map(|byte| format!("{byte:02x}"));
    let digits: String = digits.collect();
    digits[..DIGEST_CHARACTERS].to_owned()
}
