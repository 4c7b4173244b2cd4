//! A record with its resource's attributes, and the identities in both.

use svc_model::id::{SessionId, UserId, is_trimmed};
use svc_model::ingest::{LogEvent, LogSkip};
use svc_model::json::{Json, Object, Text};
use svc_model::limit::PATH_BYTES_MAX;
use svc_model::time::Instant;

use super::attribute::{AttributeValue, Attributes};
use super::time;
use crate::value;

/// The name of the attribute with the Session.
pub(super) const SESSION: &str = "session.id";
/// The scope in which Claude Code logs, under names without its prefix.
const CLAUDE_CODE_SCOPE: &str = "com.anthropic.claude_code.events";
/// The name of the attribute with the user.
const USER: &str = "user.id";

/// A record, borrowed from its export.
#[derive(Debug)]
pub(super) struct ExportedRecord<'r> {
    /// Its index among the records of the export.
    pub(super) place: usize,
    /// The record.
    pub(super) record: &'r Object,
    /// Its attributes.
    pub(super) attributes: Attributes<'r>,
    /// The attributes of its resource.
    pub(super) resource: &'r Attributes<'r>,
    /// The name of its scope.
    pub(super) scope: Option<&'r Text>,
}

/// The kinds of records that become facts or complete them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordKind {
    /// An event that may become a fact.
    Event(LogEvent),
    /// The result of a tool call of Claude Code.
    ClaudeCodeResult,
    /// The result of a tool call of Codex.
    CodexResult,
}

impl RecordKind {
    fn of(name: &str) -> Option<Self> {
        match name {
            "claude_code.tool_result" => Some(Self::ClaudeCodeResult),
            "codex.tool_result" => Some(Self::CodexResult),
            name => LogEvent::from_wire(name).map(Self::Event),
        }
    }
}

impl<'r> ExportedRecord<'r> {
    pub(super) fn new(
        place: usize,
        record: &'r Object,
        resource: &'r Attributes<'r>,
        scope: Option<&'r Text>,
    ) -> Self {
        Self {
            place,
            record,
            attributes: Attributes::of(record),
            resource,
            scope,
        }
    }

    /// Returns the kinds of the record. There may be several, because names may be in its body, in
    /// its attribute `event.name` and in its `eventName`.
    ///
    /// Senders differ in where they put the name, and newer versions of the protocol moved it. A
    /// name counts in any of these places, but only with its vendor's prefix or in its vendor's
    /// scope: a bare `tool_decision` could come from anyone. Nothing else counts, not even the name
    /// of the service.
    pub(super) fn kinds(&self) -> [Option<RecordKind>; 3] {
        let is_claude_code = self.scope.is_some_and(|scope| *scope == *CLAUDE_CODE_SCOPE);
        let kind = |name: &str| {
            RecordKind::of(name).or_else(|| {
                let full = is_claude_code.then(|| format!("claude_code.{name}"))?;
                RecordKind::of(&full)
            })
        };
        let [first, second, third] = self.names().map(|name| kind(name?.as_str()?));
        let second = second.filter(|_| second != first);
        let third = third.filter(|_| third != first && third != second);
        [first, second, third]
    }

    /// Returns whether the record is named like one of the service's own events, but none of them.
    pub(super) fn is_unknown_own(&self) -> bool {
        let mut names = self.names().into_iter().flatten();
        let is_own = names.any(|name| name.as_str().is_some_and(|name| name.starts_with("svc.")));
        is_own && self.kinds().iter().all(Option::is_none)
    }

    /// Returns whether a name of the record begins like this.
    pub(super) fn is_named(&self, start: &str) -> bool {
        let mut names = self.names().into_iter().flatten();
        names.any(|name| name.as_bytes().starts_with(start.as_bytes()))
    }

    fn names(&self) -> [Option<&'r Text>; 3] {
        let body = self.record.get("body");
        let body = body.and_then(|body| AttributeValue::of(body).text());
        let named = self.record.get("eventName").and_then(Json::as_text);
        [body, self.attributes.text("event.name"), named]
    }

    /// Returns the text under a name, from the record or else from the resource.
    pub(super) fn either(&self, name: &str) -> Option<&'r Text> {
        self.attributes
            .text(name)
            .or_else(|| self.resource.text(name))
    }

    /// Returns the Session.
    pub(super) fn session(&self) -> Result<SessionId, LogSkip> {
        session(self.either(SESSION))
    }

    /// Returns the user from the resource, or else from the record.
    pub(super) fn user(&self) -> Result<Option<UserId>, LogSkip> {
        match self.resource_user()? {
            Some(user) => Ok(Some(user)),
            None => user(&self.attributes),
        }
    }

    /// Returns the user from the resource.
    pub(super) fn resource_user(&self) -> Result<Option<UserId>, LogSkip> {
        user(self.resource)
    }

    /// Returns when the event happened.
    pub(super) fn occurred_at(&self) -> Result<Instant, LogSkip> {
        time::instant(self.record.get("timeUnixNano")).ok_or(LogSkip::MissingEventTime)
    }

    /// Returns when the event happened, or else when it was observed.
    pub(super) fn occurred_or_observed_at(&self) -> Result<Instant, LogSkip> {
        self.occurred_at()
            .or_else(|skip| time::instant(self.record.get("observedTimeUnixNano")).ok_or(skip))
    }

    /// Returns when the event happened, or else what the client wrote beside its attributes.
    pub(super) fn occurred_or_stamped_at(&self) -> Result<Instant, LogSkip> {
        self.occurred_at()
            .or_else(|skip| self.stamped_at().ok_or(skip))
    }

    /// Returns what the client wrote beside its attributes, or else when the event happened.
    pub(super) fn stamped_or_occurred_at(&self) -> Result<Instant, LogSkip> {
        self.stamped_at().map_or_else(|| self.occurred_at(), Ok)
    }

    fn stamped_at(&self) -> Option<Instant> {
        let stamp = self.attributes.text("event.timestamp")?.as_str()?;
        Instant::parse_iso_8601(stamp).ok()
    }

    /// Returns the id of a call, which may be absent.
    pub(super) fn call(&self, name: &str) -> Result<Option<String>, LogSkip> {
        match self.attributes.text(name).filter(|text| !text.is_blank()) {
            Some(text) => identity(text).map(Some),
            None => Ok(None),
        }
    }
}

/// Returns the Session that a text names.
pub(super) fn session(text: Option<&Text>) -> Result<SessionId, LogSkip> {
    let text = text.ok_or(LogSkip::MissingSession)?.as_str();
    text.and_then(|text| SessionId::new(text).ok())
        .ok_or(LogSkip::InvalidFact)
}

/// Returns the user that attributes name.
pub(super) fn user(attributes: &Attributes<'_>) -> Result<Option<UserId>, LogSkip> {
    let Some(text) = attributes.text(USER).filter(|text| !text.is_blank()) else {
        return Ok(None);
    };
    let user = text.as_str().and_then(|text| UserId::new(text).ok());
    user.map(Some).ok_or(LogSkip::InvalidFact)
}

/// Returns an identity, trimmed, if it is within its limit.
pub(super) fn identity(text: &Text) -> Result<String, LogSkip> {
    let identity = value::identity(text).ok().flatten();
    identity.map(str::to_owned).ok_or(LogSkip::InvalidFact)
}

/// Returns a path, unchanged, if it is within its limit.
pub(super) fn path(text: &str) -> Result<String, LogSkip> {
    if text.contains('\0') || text.len() > PATH_BYTES_MAX {
        return Err(LogSkip::InvalidFact);
    }
    Ok(text.to_owned())
}

/// Returns a text, trimmed as an identity is, if it is valid UTF-8.
pub(super) fn trimmed(text: &Text) -> Option<&str> {
    Some(text.as_str()?.trim_matches(is_trimmed))
}
