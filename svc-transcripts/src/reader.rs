//! Reads the lines of one transcript.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use svc_model::json::{Json, NodeBudget, Object};
use svc_model::time::Instant;

use crate::bookmark::{State, Totals};
use crate::context::{Context, Line, Meaning};
use crate::format::Format;
use crate::{Agent, Bookmark, Lost, Tally, TranscriptCall};

/// The memory that the values of one line may take, in bytes.
const LINE_MEMORY_MAX: usize = 1024 * 1024 * 1024;
/// The lines of a file that tell whether its format has changed.
const TELLING_LINES: u64 = 10;
/// The snapshots that are kept before the first are dropped that are not needed.
const SNAPSHOTS: usize = 64;

/// Reads one transcript of an agent, line by line.
#[derive(Debug)]
pub struct TranscriptReader {
    format: Format,
    context: Context,
    number: u64,
    totals: Totals,
    /// The lines before this offset were counted by an earlier reader.
    counted_to: u64,
    /// The offset after the last line.
    end: u64,
    /// The reader before each line from the first that is still needed.
    snapshots: VecDeque<Snapshot>,
    snapshots_max: usize,
}

#[derive(Debug)]
struct Snapshot {
    offset: u64,
    number: u64,
    tip: u32,
    time: Option<Instant>,
    format: Arc<Format>,
}

impl TranscriptReader {
    /// Returns a reader of a file from its start. The last components of the file's path tell what
    /// its lines do not.
    pub fn new(agent: Agent, name: &Path) -> Self {
        Self::with(Format::new(agent, name))
    }

    fn with(format: Format) -> Self {
        Self {
            context: Context::new(&format),
            format,
            number: 0,
            totals: Totals::default(),
            counted_to: 0,
            end: 0,
            snapshots: VecDeque::new(),
            snapshots_max: SNAPSHOTS,
        }
    }

    /// Returns a reader that goes on from a bookmark. `None` if the bookmark cannot be read; then the
    /// file is to be read from its start.
    pub fn resume(agent: Agent, _name: &Path, bookmark: &Bookmark) -> Option<Self> {
        let state = State::read(&bookmark.state)?;
        if !state.format.is_of(agent) {
            return None;
        }
        let mut reader = Self::with(state.format);
        reader.number = state.number;
        reader.totals = state.totals;
        reader.counted_to = state.counted_to;
        reader.end = bookmark.offset;
        reader.context.time = state.time;
        reader.context.cwd = state.cwd;
        let conversation = &mut reader.context.conversation;
        conversation.resume(state.tip, state.lines, state.taken);
        Some(reader)
    }

    /// Keeps the content of all lines, so that no line is [`Lost`]. The memory grows with the file.
    #[must_use]
    pub fn keeping_everything(mut self) -> Self {
        self.context.conversation.keep_everything();
        self
    }

    /// Reads a line without its line end. `offset` is where it begins in the file.
    ///
    /// # Errors
    ///
    /// If it builds on a line that is no longer known.
    pub fn line(&mut self, offset: u64, line: &[u8]) -> Result<(), Lost> {
        let is_blank = line.iter().all(u8::is_ascii_whitespace);
        if !is_blank {
            self.begin_line(offset);
            let memory = NodeBudget::new(LINE_MEMORY_MAX);
            let json = Json::parse_within(line, &memory).ok();
            match json.and_then(Json::into_object) {
                Some(object) => self.object(offset, object)?,
                None => self.malformed(offset),
            }
        }
        self.end = offset + line.len() as u64 + 1;
        Ok(())
    }

    /// Counts a line that is too long to be read.
    pub fn skipped_line(&mut self, offset: u64) {
        self.begin_line(offset);
        self.malformed(offset);
        self.end = offset;
    }

    fn begin_line(&mut self, offset: u64) {
        self.snapshot(offset);
        self.number += 1;
        self.context.counts = offset >= self.counted_to;
        if self.context.counts {
            self.totals.lines += 1;
            self.context.tally.lines += 1;
        }
    }

    fn malformed(&mut self, offset: u64) {
        self.context.tally.malformed_lines += u64::from(offset >= self.counted_to);
        self.judge();
    }

    fn object(&mut self, offset: u64, object: Object) -> Result<(), Lost> {
        self.context.time = self.format.time(&object).or(self.context.time);
        let looks_like_answer = looks_like_answer(&object);
        let line = Line {
            offset,
            number: self.number,
            object,
        };
        let meaning = self.format.line(&line, &mut self.context)?;
        if self.context.counts {
            self.totals.known += u64::from(!matches!(meaning, Meaning::Unknown(_)));
            let is_open = looks_like_answer && !matches!(meaning, Meaning::NoAnswer);
            self.totals.answers += u64::from(is_open);
        }
        if let Meaning::Unknown(kind) = meaning {
            self.context.unknown(&kind);
        }
        self.judge();
        Ok(())
    }

    /// Judges whether the format has changed.
    fn judge(&mut self) {
        let Totals {
            lines,
            known,
            answers,
            calls,
        } = self.totals;
        let is_strange = lines >= TELLING_LINES && known == 0;
        let calls = calls + self.context.conversation.opened();
        self.context.tally.format_changed = is_strange || (answers > 0 && calls == 0);
    }

    /// Finishes open answers: the Session has ended, or nothing was written for a while.
    pub fn end(&mut self) {
        self.format.end(&mut self.context);
        self.context.conversation.finish_all();
    }

    /// Returns the texts of the last answer of the file, whether it is finished or not, joined.
    pub fn last_answer_text(&self) -> Option<String> {
        self.context.conversation.last_answer_text()
    }

    /// Returns the time of the last line that was read; that of the line before if it has none.
    pub fn last_time(&self) -> Option<Instant> {
        self.context.time
    }

    /// Returns the answers that were finished since this was called last, in order.
    pub fn take(&mut self) -> Vec<TranscriptCall> {
        self.context.conversation.take()
    }

    /// Returns from where a later reading goes on, without the calls that were taken.
    pub fn bookmark(&self) -> Bookmark {
        let conversation = &self.context.conversation;
        let needed = conversation.needed_from();
        let snapshot = needed.and_then(|offset| {
            let after = self
                .snapshots
                .partition_point(|snapshot| snapshot.offset < offset);
            self.snapshots.get(after)
        });
        let mut state = if let Some(snapshot) = snapshot {
            let tip = conversation.anchor(snapshot.tip);
            State::new((*snapshot.format).clone(), snapshot.number, tip)
        } else {
            let tip = conversation.anchor(conversation.tip());
            State::new(self.format.clone(), self.number, tip)
        };
        let offset = snapshot.map_or(self.end, |snapshot| snapshot.offset);
        state.time = snapshot.map_or(self.context.time, |snapshot| snapshot.time);
        state.cwd.clone_from(&self.context.cwd);
        state.lines = conversation.lines_before(offset);
        state.taken = conversation.taken();
        state.counted_to = self.end.max(self.counted_to);
        state.totals = self.totals;
        state.totals.calls += conversation.opened();
        Bookmark {
            offset,
            state: state.write(),
        }
    }

    /// Returns what the reader met.
    pub fn tally(&self) -> &Tally {
        &self.context.tally
    }

    /// Returns the first working directory that the file names.
    pub fn cwd(&self) -> Option<&str> {
        self.context.cwd.as_deref()
    }

    /// Keeps the reader as it is before a line.
    fn snapshot(&mut self, offset: u64) {
        if self.snapshots.len() >= self.snapshots_max {
            let needed = self.context.conversation.needed_from().unwrap_or(offset);
            let before = self
                .snapshots
                .partition_point(|snapshot| snapshot.offset < needed);
            self.snapshots.drain(..before);
            self.snapshots_max = SNAPSHOTS.max(2 * self.snapshots.len());
        }
        let last = self.snapshots.back().map(|snapshot| &snapshot.format);
        let format = last.filter(|format| ***format == self.format).cloned();
        self.snapshots.push_back(Snapshot {
            offset,
            number: self.number,
            tip: self.context.conversation.tip(),
            time: self.context.time,
            format: format.unwrap_or_else(|| Arc::new(self.format.clone())),
        });
    }
}

/// Returns whether a line looks like an answer of a model.
fn looks_like_answer(object: &Object) -> bool {
    let says_so = |object: &Object| {
        let values = ["role", "type"].map(|name| object.get(name).and_then(Json::as_str));
        values.iter().any(|value| {
            matches!(
                value,
                Some("assistant" | "assistant.message" | "gemini" | "model")
            )
        })
    };
    // A document has a list of messages.
    let inside = |value: &Json| match value {
        Json::Object(object) => says_so(object),
        Json::Array(items) => items.iter().filter_map(Json::as_object).any(says_so),
        _ => false,
    };
    says_so(object) || object.iter().any(|(_, value)| inside(value))
}
