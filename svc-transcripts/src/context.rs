//! What the readers of all formats share while they read a file.

use std::borrow::Cow;

use svc_model::id::{ForeignId, SessionId};
use svc_model::ingest::SentCall;
use svc_model::json::{Json, Object};
use svc_model::limit::PATH_BYTES_MAX;
use svc_model::time::Instant;

use crate::conversation::Conversation;
use crate::format::Format;
use crate::{Tally, TranscriptCall};

/// The characters of the name of an unknown kind.
const KIND_CHARACTERS_MAX: usize = 64;
/// The unknown kinds that are counted by name.
const KINDS_MAX: usize = 256;
/// The name of unknown kinds without a usable name.
const OTHER: &str = "other";

/// A line of a file.
#[derive(Debug)]
pub(crate) struct Line {
    /// Where it begins in the file.
    pub(crate) offset: u64,
    /// Its number, from 1.
    pub(crate) number: u64,
    pub(crate) object: Object,
}

impl Line {
    /// Returns a text of the line.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.object.get(name)?.as_str()
    }

    /// Returns an object of the line.
    pub(crate) fn member(&self, name: &str) -> Option<&Object> {
        self.object.get(name)?.as_object()
    }

    /// Returns an id for what has none.
    pub(crate) fn numbered(&self) -> Option<ForeignId> {
        ForeignId::new(&format!("line-{}", self.number)).ok()
    }

    /// Returns whether a member is true.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.object.get(name).and_then(Json::as_bool) == Some(true)
    }
}

/// What a line is.
#[derive(Debug)]
pub(crate) enum Meaning<'a> {
    /// A line of a known kind.
    Known,
    /// A line of a known kind that looks like an answer and is none.
    NoAnswer,
    /// A line of a kind that is not known.
    Unknown(Cow<'a, str>),
}

/// What the reader of a format works on.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) conversation: Conversation,
    pub(crate) tally: Tally,
    /// The first working directory.
    pub(crate) cwd: Option<String>,
    /// The time of the last line.
    pub(crate) time: Option<Instant>,
    /// Whether the line is counted: it was not by an earlier reader.
    pub(crate) counts: bool,
}

impl Context {
    pub(crate) fn new(format: &Format) -> Self {
        Self {
            conversation: Conversation::new(format.merged_role(), format.keeps_outputs()),
            tally: Tally::default(),
            cwd: None,
            time: None,
            counts: true,
        }
    }

    /// Notes a working directory, if it is the first.
    pub(crate) fn note_cwd(&mut self, cwd: Option<&str>) {
        if self.cwd.is_none() {
            let usable = cwd.filter(|cwd| !cwd.is_empty() && cwd.len() <= PATH_BYTES_MAX);
            self.cwd = usable.map(str::to_owned);
        }
    }

    /// Counts something of a kind that is not known.
    pub(crate) fn unknown(&mut self, kind: &str) {
        if !self.counts {
            return;
        }
        let unknown = &mut self.tally.unknown;
        let fits = kind.chars().count() <= KIND_CHARACTERS_MAX && !kind.is_empty();
        let has_room = unknown.len() < KINDS_MAX || unknown.contains_key(kind);
        let kind = if fits && has_room { kind } else { OTHER };
        *unknown.entry(kind.to_owned()).or_default() += 1;
    }

    /// Returns a call of a Session that ends with this line. A file without any time has its calls at
    /// the first instant there is.
    pub(crate) fn call(&self, session_id: SessionId) -> TranscriptCall {
        let first = Instant::from_microseconds(0).unwrap_or(Instant::MAX);
        TranscriptCall {
            session_id,
            continues: None,
            agent_version: None,
            call: SentCall::new(self.time.unwrap_or(first)),
        }
    }
}
