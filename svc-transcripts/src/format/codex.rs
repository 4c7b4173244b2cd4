//! Codex: one line an item of the models' responses interface. The lines that tell the tokens of an
//! answer also tell where it ends; older files have none of them.

use std::path::Path;

use serde::{Deserialize, Serialize};
use svc_messages::identity::is_uuid;
use svc_model::id::{ForeignId, SessionId};
use svc_model::ingest::ContinuedCall;
use svc_model::json::{Json, Object};
use svc_model::usage::TokenCounts;

use self::item::{Item, Maker};
use super::ReadLine;
use crate::content::Said;
use crate::context::{Context, Line, Meaning};
use crate::conversation::{Answer, Parent, Place};
use crate::{Lost, TranscriptCall, value};

mod item;

/// Kinds of lines that say nothing, besides those that end in `_metadata`.
const SILENT: [&str; 7] = [
    "event_msg",
    "ghost_snapshot",
    "inter_agent_communication",
    "realtime_item",
    "retained_context",
    "security_risk_score",
    "world_state",
];

/// The answers that may be parts of one.
const PARTS_MAX: usize = 64;

/// The reader of Codex's lines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Codex {
    session: Option<Session>,
    model: Option<ForeignId>,
    cwd: Option<String>,
    tier: Option<String>,
    /// While the lines are those of the Session that this one was forked from: when the fork was
    /// made, in milliseconds since 1970.
    copied_until: Option<u64>,
    boundary: Boundary,
    /// The answer to which items are added.
    open: Option<Open>,
    /// The answers of this turn that are parts of one, if a line with counts comes.
    parts: Vec<String>,
    /// The answer that was closed by a line with counts, directly before.
    counted: Option<String>,
}

/// What the first line says of the Session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Session {
    id: SessionId,
    forked_from: Option<SessionId>,
    version: Option<String>,
    model_provider: Option<ForeignId>,
    git_branch: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Open {
    /// Empty for an answer that is written again: it has nothing new.
    key: String,
    /// Whether the result of a tool came after its last item.
    has_result: bool,
}

/// What closes the answers of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
enum Boundary {
    /// The next item that the model did not make: no line with counts was met.
    #[default]
    Run,
    /// An event with counts.
    Counts,
    /// A record of one answer.
    Records,
}

impl ReadLine for Codex {
    fn new(_name: &Path) -> Self {
        Self::default()
    }

    fn line<'l>(&mut self, line: &'l Line, context: &mut Context) -> Result<Meaning<'l>, Lost> {
        let kind = line.text("type").unwrap_or_default();
        let Some(payload) = line.member("payload") else {
            return Ok(known(kind));
        };
        if !matches!(kind, "event_msg" | "token_usage_record") {
            self.settle_counted(context);
        }
        match kind {
            "session_meta" => self.session(line, payload, context)?,
            "turn_context" => self.turn(payload, context),
            "response_item" => return self.item(line, payload, context),
            "token_usage_record" => self.record(line, payload, context)?,
            "event_msg" => self.event(payload, context),
            "compacted" => self.compacted(line, payload, context)?,
            _ => return Ok(known(kind)),
        }
        Ok(Meaning::Known)
    }

    /// Items that come later are an answer of their own.
    fn end(&mut self, context: &mut Context) {
        self.settle_counted(context);
        self.drop_open(context);
    }
}

fn known(kind: &str) -> Meaning<'_> {
    if SILENT.contains(&kind) || kind.ends_with("_metadata") {
        Meaning::Known
    } else {
        Meaning::Unknown(kind.into())
    }
}

/// Lines that are not items.
impl Codex {
    fn session(
        &mut self,
        line: &Line,
        payload: &Object,
        context: &mut Context,
    ) -> Result<(), Lost> {
        context.note_cwd(text(payload, "cwd"));
        // A later one is that of a Session whose lines are copied here.
        if self.session.is_some() {
            return Ok(());
        }
        let session_id = |name| SessionId::new(text(payload, name)?).ok();
        let Some(id) = session_id("id") else {
            return Ok(());
        };
        let forked_from = session_id("forked_from_id").filter(|other| *other != id);
        if forked_from.is_some() {
            let own = time_in_uuid(id.as_str());
            let told = value::instant(payload.get("timestamp")).or(context.time);
            let told = told.and_then(|time| u64::try_from(time.microseconds() / 1_000).ok());
            self.copied_until = own.or(told);
        }
        let git = payload.get("git").and_then(Json::as_object);
        self.cwd = value::path(payload.get("cwd"));
        self.session = Some(Session {
            id,
            forked_from,
            version: value::word(payload.get("cli_version")),
            model_provider: value::id(payload.get("model_provider")),
            git_branch: git.and_then(|git| value::path(git.get("branch"))),
        });
        let instructions = payload.get("base_instructions").and_then(Json::as_object);
        let instructions = instructions.and_then(|instructions| instructions.get("text"));
        match instructions {
            Some(Json::String(text)) if !text.is_empty() => {
                let said = Said::by("system", text.clone().into());
                context.conversation.input(place(line), said)
            }
            _ => Ok(()),
        }
    }

    fn turn(&mut self, payload: &Object, context: &mut Context) {
        context.note_cwd(text(payload, "cwd"));
        self.cwd = value::path(payload.get("cwd")).or(self.cwd.take());
        self.model = value::id(payload.get("model")).or(self.model.take());
        let made = text(payload, "turn_id").and_then(time_in_uuid);
        if self
            .copied_until
            .zip(made)
            .is_some_and(|(until, made)| made >= until)
        {
            self.copied_until = None;
        }
    }

    fn event(&mut self, payload: &Object, context: &mut Context) {
        match text(payload, "type") {
            Some("token_count") => self.counts(payload, context),
            Some("thread_settings_applied") => {
                let settings = payload.get("thread_settings").and_then(Json::as_object);
                let tier = settings.unwrap_or(payload).get("service_tier");
                self.tier = value::word(tier).or(self.tier.take());
                self.settle_counted(context);
            }
            _ => self.settle_counted(context),
        }
    }

    /// An event with counts closes the open answer, if no records do.
    fn counts(&mut self, payload: &Object, context: &mut Context) {
        let info = payload.get("info").and_then(Json::as_object);
        let usage = info.and_then(|info| info.get("last_token_usage")?.as_object());
        let Some(usage) = usage.and_then(counts) else {
            return;
        };
        if self.boundary == Boundary::Records {
            return;
        }
        let Some(key) = self.take_open(context) else {
            return;
        };
        close(&key, usage, context);
        match self.boundary {
            // Before the first record, or instead of it.
            Boundary::Run => self.counted = Some(key),
            _ => context.conversation.finish(&key),
        }
    }

    /// Returns the open answer, which a line with counts closes: everything since the last such line.
    fn take_open(&mut self, context: &mut Context) -> Option<String> {
        let open = self.open.take()?;
        let mut parts = self.parts.drain(..);
        let Some(first) = parts.next() else {
            return Some(open.key);
        };
        for part in parts.chain([open.key]) {
            context.conversation.join(&first, &part);
        }
        context.conversation.release(&first);
        Some(first)
    }

    /// Ends the open answer without a line with counts.
    fn drop_open(&mut self, context: &mut Context) {
        self.open = None;
        for part in self.parts.drain(..) {
            context.conversation.release(&part);
        }
    }

    /// Finishes an answer that an event with counts has closed: no record came.
    fn settle_counted(&mut self, context: &mut Context) {
        if let Some(key) = self.counted.take() {
            self.boundary = Boundary::Counts;
            context.conversation.finish(&key);
        }
    }

    /// A record closes the open answer. Without one it is that of an answer that was not written:
    /// the summary of a compaction.
    fn record(&mut self, line: &Line, payload: &Object, context: &mut Context) -> Result<(), Lost> {
        self.boundary = Boundary::Records;
        let usage = payload
            .get("usage")
            .and_then(Json::as_object)
            .and_then(counts);
        let response_id = value::id(payload.get("response_id"));
        let counted = self.counted.take();
        if let Some(key) = &counted {
            context.conversation.finish(key);
        }
        // A record and an event may tell the same.
        let same = counted.filter(|key| {
            let answer = context.conversation.open_answer(key);
            answer.is_some_and(|answer| answer.call.call.usage == usage)
        });
        let open = self.take_open(context).or(same);
        if self.copied_until.is_some() {
            return Ok(());
        }
        let key = match (open, &response_id) {
            (Some(key), _) => key,
            (None, None) => return Ok(()),
            (None, Some(id)) => {
                let key = id.as_str().to_owned();
                let begun = self.begun(numbered(line), context);
                let Some(mut begun) = begun else {
                    return Ok(());
                };
                begun.call.response_id = Some(id.clone());
                context.conversation.answer(place(line), &key, || begun)?;
                key
            }
        };
        let time = context.time;
        if let Some(Answer { call, .. }) = context.conversation.open_answer(&key) {
            call.call.response_id = response_id;
            call.call.usage = usage.or(call.call.usage);
            call.call.ended_at = time.unwrap_or(call.call.ended_at);
        }
        context.conversation.finish(&key);
        Ok(())
    }

    /// A compaction: the input begins anew.
    fn compacted(
        &mut self,
        line: &Line,
        payload: &Object,
        context: &mut Context,
    ) -> Result<(), Lost> {
        self.drop_open(context);
        context.conversation.finish_all();
        let history = payload.get("replacement_history").and_then(Json::as_array);
        let mut said = Said::default();
        for item in history
            .unwrap_or_default()
            .iter()
            .filter_map(Json::as_object)
        {
            said.append(Item::of(item).said);
        }
        if let (None, Some(Json::String(text))) = (history, payload.get("message"))
            && !text.is_empty()
        {
            said = Said::by("user", text.clone().into());
        }
        let place = Place {
            parent: Parent::Start,
            ..place(line)
        };
        context.conversation.input(place, said)
    }
}

/// Items.
impl Codex {
    fn item<'l>(
        &mut self,
        line: &'l Line,
        payload: &'l Object,
        context: &mut Context,
    ) -> Result<Meaning<'l>, Lost> {
        let item = Item::of(payload);
        for kind in item::unknown_blocks(payload) {
            context.unknown(kind);
        }
        let is_copied = self.copied_until.is_some();
        match item.maker {
            Maker::Unknown => {
                return Ok(Meaning::Unknown(
                    text(payload, "type").unwrap_or_default().into(),
                ));
            }
            Maker::Nobody => {}
            Maker::Model if is_copied => {
                context.conversation.input(place(line), item.said)?;
                return Ok(Meaning::NoAnswer);
            }
            Maker::Model => self.model_made(line, payload, item.said, context)?,
            Maker::Tool => {
                if let Some(open) = &mut self.open {
                    open.has_result = true;
                }
                context.conversation.result(place(line), item.said)?;
            }
            Maker::User => {
                self.drop_open(context);
                context.conversation.input(place(line), item.said)?;
            }
        }
        Ok(Meaning::Known)
    }

    fn model_made(
        &mut self,
        line: &Line,
        payload: &Object,
        said: Said,
        context: &mut Context,
    ) -> Result<(), Lost> {
        let is_new_run = |open: &Open| open.has_result && self.boundary == Boundary::Run;
        if let Some(open) = self.open.take_if(|open| is_new_run(open)) {
            if self.parts.len() >= PARTS_MAX {
                self.drop_open(context);
            }
            context.conversation.hold(&open.key);
            self.parts.push(open.key);
        }
        if let Some(open) = &mut self.open {
            open.has_result = false;
            let time = context.time;
            if let Some(answer) = context.conversation.open_answer(&open.key) {
                answer.call.call.ended_at = time.unwrap_or(answer.call.call.ended_at);
                answer.add(said);
            }
            return Ok(());
        }
        let own = value::id(payload.get("id")).or_else(|| value::id(payload.get("call_id")));
        let call_id = own.or_else(|| numbered(line));
        let Some(begun) = self.begun(call_id, context) else {
            return context.conversation.pass(place(line));
        };
        let key = begun
            .call
            .id()
            .map(|id| id.as_str().to_owned())
            .unwrap_or_default();
        let is_new = !context.conversation.has_answer(&key);
        let answer = context.conversation.answer(place(line), &key, || begun)?;
        if let Some(answer) = answer.filter(|_| is_new) {
            answer.add(said);
        }
        self.open = Some(Open {
            key: if is_new { key } else { String::new() },
            has_result: false,
        });
        Ok(())
    }

    /// Returns a call that begins with this line.
    fn begun(&self, call_id: Option<ForeignId>, context: &Context) -> Option<TranscriptCall> {
        let session = self.session.as_ref()?;
        let mut begun = context.call(session.id.clone());
        begun.agent_version.clone_from(&session.version);
        begun.continues = session.forked_from.clone().map(|session_id| ContinuedCall {
            session_id,
            response_id: None,
        });
        let call = &mut begun.call;
        call.call_id = Some(call_id?);
        call.model.clone_from(&self.model);
        call.model_provider.clone_from(&session.model_provider);
        call.tier.clone_from(&self.tier);
        call.cwd.clone_from(&self.cwd);
        call.git_branch.clone_from(&session.git_branch);
        Some(begun)
    }
}

fn close(key: &str, usage: TokenCounts, context: &mut Context) {
    let time = context.time;
    if let Some(Answer { call, .. }) = context.conversation.open_answer(key) {
        call.call.usage = Some(usage);
        call.call.ended_at = time.unwrap_or(call.call.ended_at);
    }
}

fn counts(usage: &Object) -> Option<TokenCounts> {
    let read = value::count(usage, "cached_input_tokens");
    let written = value::count(usage, "cache_write_input_tokens");
    let output = value::count(usage, "output_tokens");
    let reasoning = value::count(usage, "reasoning_output_tokens");
    let uncached = value::count(usage, "input_tokens").and_then(|all| {
        let uncached = all
            .checked_sub(read.unwrap_or(0))?
            .checked_sub(written.unwrap_or(0))?;
        (uncached >= 0).then_some(uncached)
    });
    let counts = TokenCounts {
        input_tokens_uncached: uncached,
        cache_read_tokens: read,
        cache_write_tokens: written,
        cache_write_5m_tokens: None,
        cache_write_1h_tokens: None,
        output_tokens: output,
        reasoning_tokens: reasoning.filter(|part| output.is_some_and(|all| *part <= all)),
    };
    (!counts.is_empty()).then_some(counts)
}

/// Returns the milliseconds since 1970 in a UUID of version 7.
fn time_in_uuid(text: &str) -> Option<u64> {
    if !is_uuid(text.as_bytes()) || text.as_bytes()[14] != b'7' {
        return None;
    }
    let digits = text.get(..8)?.to_owned() + text.get(9..13)?;
    u64::from_str_radix(&digits, 16).ok()
}

fn text<'o>(object: &'o Object, name: &str) -> Option<&'o str> {
    object.get(name)?.as_str()
}

/// Returns an id by the place in the file.
fn numbered(line: &Line) -> Option<ForeignId> {
    match value::count(&line.object, "ordinal") {
        Some(ordinal) => ForeignId::new(&format!("line-{ordinal}")).ok(),
        None => line.numbered(),
    }
}

fn place(line: &Line) -> Place<'_> {
    Place {
        offset: line.offset,
        id: None,
        parent: Parent::Previous,
        side: "",
    }
}
